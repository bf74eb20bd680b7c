"""Inputs gathered into the store, and evidence computed from the store alone: the first time and every time after.

`gather` is the only part that touches a tree or a repository. `compute` reads nothing but the store, so that doing an
audit again is the same code on the same bytes.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from prill.audit import claims, inventory, listing, protocol, witness
from prill.audit.derive import Derivation, Derivations, Observation
from prill.audit.gitobjects import Commit, Object, checked, reading
from prill.audit.inventory import Names, Tally
from prill.audit.pointers import Unsound, join, read_json, resolve
from prill.audit.store import Store, blocks_of
from prill.catalog import Catalog
from prill.catalog import read as read_definition
from prill.errors import DefinitionError, InfraError
from prill.evidence import CLAIMS, COVERAGE, PROTOCOL, WITNESSES, Input, Inventory, Listing, Seen, Witnesses
from prill.questions import Audit, FactSet, Naming, Witness

PROVENANCE = "provenance.json"
T = TypeVar("T")
Say = Callable[[str], None] | None


class Sources(NamedTuple):
    """Where the things lie that an audit is about; what is not given is left out of the audit, and said to be."""

    tree: Path | None = None
    """For the inventory: a folder, listing or archive."""
    files: Path | None = None
    """For the witnesses: a folder."""
    repo: Path | None = None
    commit: str | None = None
    hashing: bool = False


def inventory_of(
    source: listing.Source,
    naming: Naming,
    naming_sha256: str,
    about: Listing,
    *,
    hashing: bool = False,
    say: Say = None,
) -> Inventory:
    """An inventory straight from its source."""
    tally = Tally(Names(naming), about.below)
    for block in listing.blocks(source, tally.faults, hashing=hashing, say=say):
        tally.feed(block)
    return inventory.inventory(tally, about, naming_sha256)


# --- gathering ----------------------------------------------------------------------------------------------


class Gathering:
    """One gathering under way: what goes into the store, by the names that the provenance will have."""

    def __init__(self, store: Store, catalog: Catalog, say: Say = None) -> None:
        self.store, self.catalog, self.say = store, catalog, say
        self.inputs: dict[str, Input] = {}

    def keep(
        self, key: str, kind: Any, name: str, blocks: Iterable[bytes], about: dict[str, str] | None = None
    ) -> None:
        """One input."""
        digest, size = self.store.keep(blocks)
        self.inputs[key] = Input(kind=kind, name=name, sha256=digest, bytes=size, about=about or {})

    def definition(self, key: str, file: Path) -> None:
        """A definition's file."""
        self.keep(key, "definition", file.stem, [file.read_bytes()])

    def tree(self, place: Path, naming: str, below: str, hashing: bool) -> None:
        """A tree's listing: a text file as it is, anything else as a listing of our own form."""
        self.definition("naming", self.catalog.file("namings", naming))
        source, faults = listing.source_of(place), listing.Faults()
        about = {"kind": source.kind, "form": source.form, "below": below}
        if source.kind == "listing":
            with place.open("rb") as file:
                self.keep("listing", "listing", place.name, blocks_of(file, self.say), about)
        else:
            lines = listing.lines_of(listing.blocks(source, faults, hashing=hashing, say=self.say), faults)
            self.keep("listing", "listing", place.name, lines, about)
            about["faults"] = "\n".join(" ".join(fault.split()) for fault in faults)

    def repository(self, repo: Path, commit: str, facts: str) -> None:
        """Every object between a commit and the files that its facts are about."""
        self.definition("facts", self.catalog.file("facts", facts))
        with reading(repo, commit) as objects:
            walked = Commit(objects, commit)
            protocol.protocol(walked, self.catalog.fact(facts), "")
        for oid, found in walked.used.items():
            self.keep(f"git {oid}", "git object", oid, [found.data], {"kind": found.kind})

    def witnesses(self, tree: Path, wanted: Iterable[Witness]) -> None:
        """The files that say something; those that are not there are inputs that are not there."""
        for one in wanted:
            file, trouble = witness.opened(tree, one.path)
            if file is None:
                about = {"trouble": trouble} if trouble else {}
                self.inputs[f"witness {one.id}"] = Input(
                    kind="file", name=one.path, sha256=None, bytes=None, about=about
                )
                continue
            with file:
                self.keep(f"witness {one.id}", "file", one.path, blocks_of(file, self.say))


def gather(
    audit_file: Path, audit: Audit, sources: Sources, store: Store, catalog: Catalog, say: Say = None
) -> dict[str, Input]:
    """All inputs of an audit in the store, by name."""
    made = Gathering(store, catalog, say)
    made.definition("audit", audit_file)
    if sources.tree is not None:
        if audit.naming is None:
            raise DefinitionError(f'{audit_file}: names no naming, so that a tree cannot be read; add naming = "…"')
        made.tree(sources.tree, audit.naming, audit.below, sources.hashing)
    if sources.repo is not None:
        commit = sources.commit or audit.commit
        if audit.facts is None or commit is None:
            raise DefinitionError(f'{audit_file}: for a repository it needs facts = "…" and a pinned commit')
        made.repository(sources.repo, commit, audit.facts)
        made.inputs["commit"] = Input(
            kind="git object",
            name=commit,
            sha256=made.inputs[f"git {commit}"].sha256,
            bytes=made.inputs[f"git {commit}"].bytes,
        )
    if sources.files is not None:
        if not sources.files.is_dir():
            raise DefinitionError(f"{sources.files}: no such folder; give the released tree's folder")
        made.witnesses(sources.files, audit.witnesses)
    return made.inputs


# --- computing ----------------------------------------------------------------------------------------------


class Made(NamedTuple):
    """Evidence and where it comes from."""

    documents: dict[str, Any]
    """Path in the bundle → record."""
    derivations: Derivations


class Computing:
    """Evidence out of the store."""

    def __init__(self, inputs: Mapping[str, Input], store: Store, say: Say = None) -> None:
        self.inputs, self.store, self.say = inputs, store, say
        self.documents: dict[str, Any] = {}
        self.derived: list[Derivation] = []
        self.observed: list[Observation] = []

    def source(self, key: str) -> str:
        """Pointer to an input."""
        return join(PROVENANCE, "inputs", key)

    def bytes(self, key: str) -> bytes:
        """An input's bytes."""
        digest = self.inputs[key].sha256
        if digest is None:
            raise InfraError(f"the input {key!r} was not there when the bundle was made")
        return self.store.get(digest)

    def definition(self, key: str, shape: type[T]) -> T:
        """An input as a definition."""
        return read_definition(Path(f"{self.inputs[key].name}.toml"), self.bytes(key), shape)

    def add(self, file: str, record: Any, found: tuple[list[Derivation], list[Observation]]) -> None:
        """One more document."""
        self.documents[file] = record
        self.derived += found[0]
        self.observed += found[1]

    def coverage(self) -> None:
        """The inventory."""
        given = self.inputs["listing"]
        naming = self.definition("naming", Naming)
        kind: Any = given.about["kind"]
        form: Any = given.about["form"] if kind == "listing" else "paths, sizes and digests"
        below = given.about["below"]
        about = Listing(kind=kind, name=given.name, form=given.about["form"], below=below, sha256=given.sha256)
        source = listing.Source("listing", self.store.checked(str(given.sha256)), form)
        made = inventory_of(source, naming, str(self.inputs["naming"].sha256), about, say=self.say)
        if given.about.get("faults"):
            made = replace(made, faults=(*given.about["faults"].split("\n"), *made.faults))
        derived, observed = inventory.derivations(made, COVERAGE, self.source("listing"))
        self.add(COVERAGE, made, (derived + inventory.cross_checks(made, COVERAGE), observed))

    def protocol(self) -> None:
        """The facts."""

        def objects(oid: str) -> Object | None:
            key = f"git {oid}"
            return checked(oid, Object(self.inputs[key].about["kind"], self.bytes(key))) if key in self.inputs else None

        commit = Commit(objects, self.inputs["commit"].name)
        made = protocol.protocol(commit, self.definition("facts", FactSet), str(self.inputs["facts"].sha256))
        self.add(PROTOCOL, made, protocol.derivations(made, PROTOCOL, self.source("commit")))

    def witnesses(self, audit: Audit) -> None:
        """The witnesses."""
        found: dict[str, Seen] = {}
        for one in audit.witnesses:
            given = self.inputs[f"witness {one.id}"]
            if given.sha256 is None:
                found[one.id] = witness.look(one, None, given.about.get("trouble", ""))
            else:
                with self.store.checked(given.sha256).open("rb") as file:
                    found[one.id] = witness.look(one, file)
        made: Witnesses = witness.gathered(found)
        sources = {name: self.source(f"witness {name}") for name in found}
        self.add(WITNESSES, made, witness.derivations(made, WITNESSES, sources))


def compute(inputs: Mapping[str, Input], store: Store, say: Say = None) -> Made:
    """All evidence of an audit from its inputs in the store."""
    computing = Computing(inputs, store, say)
    audit = computing.definition("audit", Audit)
    if "listing" in inputs:
        computing.coverage()
    if "commit" in inputs:
        computing.protocol()
    if audit.witnesses and all(f"witness {one.id}" in inputs for one in audit.witnesses):
        computing.witnesses(audit)
    values = {file: plain(record) for file, record in computing.documents.items()}
    assessed = claims.assess(audit, values)
    computing.add(CLAIMS, assessed, claims.derivations(assessed, CLAIMS, computing.source("audit")))
    derivations = Derivations(derived=tuple(computing.derived), observed=tuple(computing.observed))
    return Made(computing.documents, derivations)


def encoded(record: Any) -> bytes:
    """A record as the bytes of its file."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def plain(record: Any) -> Any:
    """A record as the JSON value that a reader of its file gets."""
    return read_json(encoded(record))


def evidence_of(folder: Path) -> dict[str, Any]:
    """The JSON files of a bundle's (or any) folder by their path, for claims to point into."""
    found = {}
    for file in sorted(folder.rglob("*.json")):
        try:
            found[file.relative_to(folder).as_posix()] = read_json(file.read_bytes())
        except Unsound as error:
            raise DefinitionError(f"{file}: {error}") from None
    return found


def lookup(documents: Mapping[str, Any], pointer: str) -> Any:
    """What a pointer leads to, or none."""
    try:
        return resolve(documents, pointer)
    except Unsound:
        return None
