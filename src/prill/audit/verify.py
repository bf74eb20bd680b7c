"""A bundle held against itself, with nothing believed and nothing fetched: files, hashes, pointers, numbers, pages.

Every fault has a code, a place and a sentence. Everything is bounded: entries, bytes, depth, work.

    MISSING CHANGED UNLISTED CLIMBS LINK NOT_A_FILE TOO_MANY TOO_LARGE      files, against the manifest
    MALFORMED DUPLICATE_KEY TOO_DEEP SCHEMA                                 JSON, against its record
    DANGLING MOVED HASH                                                     pointers and digests in JSON
    WRONG UNDERIVABLE TOO_MUCH_WORK                                         numbers, computed again
    WRONG TYPED EXTERNAL DANGLING                                           pages, value by value
    STATEMENT SIGNATURE                                                     the statement; its signature by a given key

Not covered: whether the inputs were what they are said to be (`prill audit rerun` computes all from them again), and
who made the bundle, unless it is signed and a key is given.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from prill.audit import bundle
from prill.audit.bundle import COPIES, DERIVATIONS, ENVELOPE, MANIFEST, OUTSIDE, PROVENANCE, SHAPES, STATEMENT
from prill.audit.derive import MOST_WORK, Calculator, Derivations, same
from prill.audit.pointers import Budget, Unsound, digest_of, read_json, resolve, safe_name, text_digest, walk
from prill.audit.sheets import Cell, Sheet
from prill.audit.shown import shown
from prill.audit.signing import check, key_ids, payload_of

MOST_FILES = 10_000
LARGEST, LARGEST_READ = 2_000_000_000, 32_000_000
"""Bytes of all files together, and of all those that are read as JSON or as a page."""
MOST_FAULTS = 1_000
WITHIN_DERIVATIONS = ("value", "of", "under", "source")
"""Keys whose texts are pointers in `derivations.json`; `at` holds one in every file that names its schema."""
PAGES = (".html", ".htm", ".svg", ".xhtml", ".xml")


class Fault(NamedTuple):
    """Something wrong with a bundle."""

    code: str
    where: str
    why: str


class Report(NamedTuple):
    """What verifying a bundle gave."""

    faults: tuple[Fault, ...]
    counts: dict[str, int]
    """What was checked: files, pointers, digests, derived values, values on pages."""
    notes: tuple[str, ...]


def verify(folder: Path, public_key: Path | None = None, say: Callable[[str], None] | None = None) -> Report:
    """All that can be found wrong with a bundle. Raises nothing for what is in it, however it is made."""
    return Verifying(folder, say).run(public_key)


class Verifying:
    """One verifying under way."""

    def __init__(self, folder: Path, say: Callable[[str], None] | None = None) -> None:
        self.folder, self.say, self.told = folder, say, time.monotonic()
        self.faults: list[Fault] = []
        self.notes: list[str] = []
        self.counts = dict.fromkeys(("files", "pointers", "digests", "derived", "shown"), 0)
        self.documents: dict[str, Any] = {}
        self.pages: dict[str, str] = {}
        self.digests: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        self.bytes = {True: 0, False: 0}
        """Of files that are read, and of all."""
        self.budget = Budget(MOST_WORK)

    def fault(self, code: str, where: str, why: str) -> None:
        """One fault; the list of them is bounded too."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(code, where, why[:500]))

    def count(self, what: str) -> None:
        """One more thing checked, with a word of progress every two seconds."""
        self.counts[what] += 1
        if self.say is not None and time.monotonic() - self.told > 2:
            self.told = time.monotonic()
            self.say(f"{self.folder.name}: " + " · ".join(f"{number:,} {name}" for name, number in self.counts.items()))

    def run(self, public_key: Path | None) -> Report:
        """All steps in order."""
        for path in self.present():
            self.read(path)
        self.against_manifest()
        self.statement(public_key)
        self.records()
        self.inner()
        self.numbers()
        return Report(tuple(self.faults), self.counts, tuple(self.notes))

    # --- files ---

    def present(self) -> Iterator[str]:
        """Regular files of the bundle, by path; anything else is a fault."""
        seen = 0
        todo = [self.folder]
        while todo:
            place = todo.pop()
            try:
                with os.scandir(place) as entries:
                    found = sorted(islice(entries, MOST_FILES + 1), key=lambda one: os.fsencode(one.name))
            except OSError as error:
                self.fault("MISSING", self.name(place), f"cannot be looked into: {error.strerror}")
                continue
            for entry in found:
                seen += 1
                if seen > MOST_FILES:
                    self.fault("TOO_MANY", ".", f"more than {MOST_FILES:,} entries; the rest was not looked at")
                    return
                if (path := self.regular(entry)) is not None:
                    yield path
                elif entry.is_dir(follow_symlinks=False):
                    todo.append(Path(entry.path))

    def name(self, place: Path) -> str:
        """A path inside the bundle, as text that can be printed."""
        return os.fsencode(place.relative_to(self.folder).as_posix()).decode(errors="backslashreplace")

    def regular(self, entry: "os.DirEntry[str]") -> str | None:
        """The path of a regular file with a good name; none, and a fault unless it is a folder, for anything else."""
        path, name = Path(entry.path).relative_to(self.folder).as_posix(), self.name(Path(entry.path))
        if entry.is_symlink():
            self.fault("LINK", name, "a link; it is not followed")
        elif entry.is_dir(follow_symlinks=False):
            return None
        elif not entry.is_file(follow_symlinks=False):
            self.fault("NOT_A_FILE", name, "neither a file nor a folder")
        elif not safe_name(path):
            self.fault("CLIMBS", name, "not a name that a bundle may use")
        else:
            return path
        return None

    def read(self, path: str) -> None:
        """One file: its digest, and what it says if it is JSON or a page."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        wanted = path.endswith((".json", *PAGES))
        kept, digest = [], hashlib.sha256()
        try:
            with os.fdopen(os.open(self.folder / path, flags), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if not self.room(path, size, wanted):
                    return
                while block := file.read(1 << 20):
                    digest.update(block)
                    if wanted:
                        kept.append(block)
        except OSError as error:
            self.fault("MISSING", path, f"cannot be read: {error.strerror}")
            return
        self.count("files")
        self.digests[path], self.sizes[path] = digest.hexdigest(), size
        try:
            if path.endswith(".json"):
                self.documents[path] = read_json(b"".join(kept))
            elif wanted:
                self.pages[path] = b"".join(kept).decode()
        except Unsound as error:
            self.fault(error.code, path, str(error))
        except UnicodeDecodeError:
            self.fault("MALFORMED", path, "not UTF-8 text")

    def room(self, path: str, size: int, wanted: bool) -> bool:
        """Whether there is room for one more file; a fault where there is none."""
        for what, most in ((True, LARGEST_READ), (False, LARGEST)):
            if wanted or not what:
                self.bytes[what] += size
                if self.bytes[what] > most:
                    self.bytes[what] -= size
                    self.fault("TOO_LARGE", path, f"{size:,} bytes; a bundle may have {most:,} of such files in all")
                    return False
        return True

    def against_manifest(self) -> None:
        """Every file is listed with its digest, and every listed file is there."""
        try:
            manifest = msgspec.convert(self.documents.get(MANIFEST), bundle.Manifest)
        except msgspec.ValidationError as error:
            self.fault("MISSING", MANIFEST, f"no manifest that can be read: {error}")
            return
        listed: set[str] = set()
        for file in manifest.files:
            if not safe_name(file.path) or file.path in OUTSIDE:
                self.fault("CLIMBS", MANIFEST, f"lists {file.path[:200]!r}, which is no name inside the bundle")
            elif file.path in listed:
                self.fault("MALFORMED", MANIFEST, f"lists {file.path} twice")
            elif file.path not in self.digests:
                self.fault("MISSING", file.path, "listed in the manifest, but not in the bundle (or not readable)")
            elif (self.digests[file.path], self.sizes[file.path]) != (file.sha256, file.bytes):
                self.fault("CHANGED", file.path, f"has digest {self.digests[file.path]}, but {file.sha256} is listed")
            listed.add(file.path)
        for path in self.digests:
            if path not in listed and path not in OUTSIDE:
                self.fault("UNLISTED", path, "in the bundle, but not in the manifest")

    def statement(self, public_key: Path | None) -> None:
        """The statement is about these files, and its signature is of the key that was given."""
        said = self.documents.get(STATEMENT)
        try:
            subjects = {one["name"]: one["digest"]["sha256"] for one in said["subject"]}  # type: ignore[index]
            if said["_type"] != bundle.STATEMENT_TYPE:  # type: ignore[index]
                raise TypeError
        except (TypeError, KeyError):
            self.fault("STATEMENT", STATEMENT, "no in-toto Statement with subjects")
            subjects = None
        if subjects is not None:
            wanted = {path: digest for path, digest in self.digests.items() if path not in (STATEMENT, ENVELOPE)}
            for path in sorted({*subjects, *wanted}, key=str):
                if subjects.get(path) != wanted.get(path):
                    self.fault("STATEMENT", STATEMENT, f"is not about {str(path)[:200]} as it is in the bundle")
        if ENVELOPE not in self.documents:
            if public_key is not None:
                self.fault("SIGNATURE", ENVELOPE, "not signed, but a key was given to check")
            return
        envelope = self.documents[ENVELOPE]
        try:
            keys = key_ids(envelope)
            if hashlib.sha256(payload_of(envelope)).hexdigest() != self.digests.get(STATEMENT):
                self.fault("SIGNATURE", ENVELOPE, f"holds another statement than {STATEMENT}")
            if public_key is None:
                self.notes.append(
                    f"says it is signed by key {', '.join(keys)[:200]}; not checked, give --key PUBLIC.pem"
                )
            else:
                check(envelope, public_key)
                self.notes.append(f"signed by {public_key.name}")
        except Unsound as error:
            self.fault(error.code, ENVELOPE, str(error))

    # --- JSON ---

    def records(self) -> None:
        """A file that names its schema is such a record."""
        for path, value in self.documents.items():
            if path.startswith(COPIES) or not isinstance(value, dict) or "schema" not in value:
                continue
            shape = SHAPES.get(value["schema"]) if isinstance(value["schema"], str) else None
            if shape is None:
                self.fault("SCHEMA", path, f"schema {str(value['schema'])[:80]!r} is not known to this prill")
                continue
            try:
                msgspec.convert(value, shape)
            except msgspec.ValidationError as error:
                self.fault("SCHEMA", path, f"not a {value['schema']}: {error}")

    def inner(self) -> None:
        """Pointers and digests inside JSON files."""
        try:
            for path, document in self.documents.items():
                if path.startswith(COPIES) or not isinstance(document, dict) or document.get("schema") not in SHAPES:
                    continue
                for place, entry in walk(path, document):
                    self.budget.spend(1)
                    if isinstance(entry, dict):
                        self.pointers(place, entry, WITHIN_DERIVATIONS if path == DERIVATIONS else ("at",))
                        self.own_digest(place, entry)
        except Unsound as error:
            self.fault(error.code, ".", str(error))

    def pointers(self, place: str, entry: dict[str, Any], keys: tuple[str, ...]) -> None:
        """The pointers of one object."""
        for key in keys:
            found = entry.get(key, [])
            for pointer in found if isinstance(found, list) else [found]:
                self.count("pointers")
                self.budget.spend(1)
                try:
                    found = resolve(self.documents, pointer)
                except Unsound as error:
                    self.fault(error.code, place, str(error))
                    continue
                if key == "at" and "sha256" in entry:
                    self.budget.weigh(found)
                    if digest_of(found) != entry["sha256"]:
                        self.fault("MOVED", place, f"{pointer} leads to something else than it did")

    def own_digest(self, place: str, entry: dict[str, Any]) -> None:
        """A text that stands beside its digest has that digest."""
        text, digest = entry.get("text"), entry.get("sha256")
        if isinstance(text, str) and isinstance(digest, str):
            self.count("digests")
            if text_digest(text) != digest:
                near = (
                    "; without its last line break it would" if text_digest(text.removesuffix("\n")) == digest else ""
                )
                self.fault("HASH", place, f"its text has digest {text_digest(text)}, not {digest[:80]}{near}")

    # --- numbers ---

    def numbers(self) -> None:
        """Every derivation gives the value that stands there, and every value on a page rests on something."""
        try:
            derivations = msgspec.convert(self.documents.get(DERIVATIONS), Derivations)
        except msgspec.ValidationError:
            self.fault("MISSING", DERIVATIONS, "no derivations that can be read")
            derivations = Derivations(derived=(), observed=())
        calculator = Calculator(self.documents, derivations, (PROVENANCE, DERIVATIONS, MANIFEST), self.budget)
        try:
            for entry in derivations.derived:
                self.derived(calculator, entry)
            for path, text in self.pages.items():
                self.page(calculator, path, text)
        except Unsound as error:
            self.fault(error.code, DERIVATIONS, str(error))

    def derived(self, calculator: Calculator, entry: Any) -> None:
        """One derivation."""
        self.count("derived")
        try:
            calculator.ground(entry.value)
            found, made = resolve(self.documents, entry.value), calculator.evaluate(entry)
            if not same(found, made):
                self.fault(
                    "WRONG", entry.value, f"is {found!r}, but {entry.how} of {', '.join(entry.of)[:200]} is {made!r}"
                )
        except Unsound as error:
            if error.code == "TOO_MUCH_WORK":
                raise
            self.fault(error.code, entry.value, str(error))

    def page(self, calculator: Calculator, path: str, text: str) -> None:
        """One page, value by value."""
        sheet = Sheet(text)
        for code, why in sheet.faults:
            self.fault(code, path, why)
        for cell in sheet.cells:
            self.count("shown")
            try:
                self.cell(calculator, path, cell)
            except Unsound as error:
                if error.code == "TOO_MUCH_WORK":
                    raise
                self.fault(error.code, f"{path}:{cell.line}", str(error))

    def cell(self, calculator: Calculator, path: str, cell: Cell) -> None:
        """One value of a page."""
        value = resolve(self.documents, cell.pointer)
        if cell.way is None:
            if cell.text != cell.pointer:
                self.fault("WRONG", f"{path}:{cell.line}", f"shows {cell.text[:80]!r} as the pointer {cell.pointer}")
            return
        self.budget.weigh(value)
        try:
            wanted = shown(value, cell.way)
        except ValueError as error:
            raise Unsound("TYPED", str(error)) from None
        if cell.text != wanted:
            self.fault(
                "WRONG", f"{path}:{cell.line}", f"shows {cell.text[:80]!r}, but {cell.pointer} is {wanted[:80]!r}"
            )
        if cell.value is not None and cell.value != shown(value, "text"):
            self.fault("WRONG", f"{path}:{cell.line}", f"its value {cell.value[:80]!r} is not that of {cell.pointer}")
        calculator.ground(cell.pointer)
