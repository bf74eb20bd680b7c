"""A released tree as entries, one by one: from a folder, a text file of paths, or the index of a zip or tar archive.

An entry is (path, bytes or none, SHA-256 or none); a folder's own entry ends in `/`. Nothing is extracted, no link is
followed, and no file is held in memory. A text file has one path a line (or between NULs), alone, as `path TAB bytes`,
as `path TAB bytes TAB sha256`, or as `sha256sum` prints it; its first line says which, and a line of another form is
a fault. A listing names files: folders that stand in it without a `/` are counted as files.
Not covered: the directory of a zip archive is held in memory, as its format needs; whether an archive's index is true
of its contents; a path that stands in a listing twice.
"""

import lzma
import os
import re
import stat
import struct
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import IO, Literal, NamedTuple

from prill.errors import DefinitionError
from prill.folder import file_digest

BLOCK = 1 << 20
LONGEST = 1 << 16
"""Bytes of a line."""
LIST_FAULTS = 100
SUM = re.compile(r"(\\?)([0-9a-f]{64}) [ *](.+)")
BROKEN = (EOFError, OSError, ValueError, OverflowError, struct.error, zlib.error, lzma.LZMAError)
"""What reading a broken archive may raise."""
Entry = tuple[str, int | None, str | None]
Form = Literal[
    "paths", "paths and sizes", "paths, sizes and digests", "sha256sum", "a folder", "a zip's index", "a tar's index"
]


class Source(NamedTuple):
    """Where entries come from, and in which form."""

    kind: Literal["folder", "listing", "zip", "tar"]
    path: Path
    form: Form


class Faults(list[str]):
    """What was wrong with lines: the first of them, and at the end that there were more."""

    def note(self, what: str) -> None:
        """One more."""
        if len(self) < LIST_FAULTS:
            self.append(what[:300])
        elif len(self) == LIST_FAULTS:
            self.append("and more of them")


def source_of(path: Path) -> Source:
    """What a path is. Raises `DefinitionError` where it is nothing that can be listed."""
    if path.is_dir():
        return Source("folder", path, "a folder")
    if not path.is_file():
        raise DefinitionError(
            f"{path}: no such file or folder; give a folder, a file of paths, or a zip or tar archive"
        )
    if zipfile.is_zipfile(path):
        return Source("zip", path, "a zip's index")
    with path.open("rb") as file:
        start = file.read(LONGEST)
    if start[:2] == b"\x1f\x8b" or start[:3] == b"BZh" or start[:6] == b"\xfd7zXZ\0" or start[257:262] == b"ustar":
        return Source("tar", path, "a tar's index")
    first = start.lstrip(b"\0\n").replace(b"\0", b"\n").split(b"\n", 1)[0].decode(errors="backslashreplace")
    return Source("listing", path, form_of(first))


def form_of(first: str) -> Form:
    """The form of a listing, by its first line."""
    if SUM.fullmatch(first):
        return "sha256sum"
    columns = first.count("\t")
    return "paths" if columns == 0 else "paths and sizes" if columns == 1 else "paths, sizes and digests"


def blocks(
    source: Source, faults: Faults, *, hashing: bool = False, say: Callable[[str], None] | None = None
) -> Iterator[Iterable[Entry]]:
    """The entries, many at a time and each block to be read once, with a word of progress every two seconds."""
    make: dict[str, Callable[[], Iterator[tuple[int, Iterable[Entry]]]]] = {
        "folder": lambda: of_folder(source.path, faults, hashing),
        "zip": lambda: of_zip(source.path),
        "tar": lambda: of_tar(source.path, faults),
        "listing": lambda: of_listing(source, faults),
    }
    told, began, seen = time.monotonic(), time.monotonic(), 0
    for count, block in make[source.kind]():
        yield block
        seen += count
        if say is not None and time.monotonic() - told > 2:
            told = time.monotonic()
            say(f"{source.path.name}: {seen:,} paths in {told - began:.0f} s")


# --- text ---------------------------------------------------------------------------------------------------


def of_listing(source: Source, faults: Faults) -> Iterator[tuple[int, Iterable[Entry]]]:
    """Entries of a text file."""
    with source.path.open("rb") as file:
        for lines in text_blocks(file, source.path):
            if "" in lines:
                lines = [line for line in lines if line]
            if source.form == "paths":
                yield len(lines), zip(lines, repeat(None), repeat(None))
            else:
                yield len(lines), (made for line in lines if (made := columns(line, source.form, faults)) is not None)


def text_blocks(file: IO[bytes], path: Path) -> Iterator[list[str]]:
    """Lines (or what stands between NULs) in lists; bytes that are not UTF-8 are written as escapes."""
    rest, end = b"", None
    while data := file.read(BLOCK):
        if end is None:
            end = b"\0" if b"\0" in data else b"\n"
        whole, sign, left = data.rpartition(end)
        if not sign:
            rest += left
            if len(rest) > LONGEST:
                raise DefinitionError(f"{path}: a line of more than {LONGEST:,} bytes; is this a listing of paths?")
            continue
        yield text(rest + whole, end)
        rest = left
    if rest:
        yield text(rest, end or b"\n")


def text(data: bytes, end: bytes) -> list[str]:
    """One block as lines."""
    lines = data.decode(errors="backslashreplace").split(end.decode())
    return [line.rstrip("\r") for line in lines] if b"\r" in data else lines


def columns(line: str, form: Form, faults: Faults) -> Entry | None:
    """Path, size and digest of one line."""
    if form == "sha256sum":
        if match := SUM.fullmatch(line):
            path = match[3]
            if match[1]:
                path = path.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\")
            return path, None, match[2]
    else:
        parts = line.split("\t")
        wanted = 2 if form == "paths and sizes" else 3
        if len(parts) == wanted and (
            not parts[1] or (parts[1].isascii() and parts[1].isdigit() and len(parts[1]) < 19)
        ):
            digest = parts[2] if wanted == 3 and parts[2] else None
            if digest is None or re.fullmatch("[0-9a-f]{64}", digest):
                return parts[0], int(parts[1]) if parts[1] else None, digest
    faults.note(f"not of the form of the first line ({form}): {line[:200]!r}")
    return None


# --- folders and archives -----------------------------------------------------------------------------------


def of_folder(top: Path, faults: Faults, hashing: bool) -> Iterator[tuple[int, Iterable[Entry]]]:
    """Regular files below a folder, in the order of their paths' bytes; links and devices are faults, not followed."""
    todo: list[tuple[str, str]] = [("", str(top))]
    while todo:
        inside, place = todo.pop()
        made: list[Entry] = []
        subfolders = []
        try:
            with os.scandir(place) as found:
                entries = sorted(found, key=lambda one: os.fsencode(one.name))
        except OSError as error:
            faults.note(f"{inside or '.'}: cannot be read: {error.strerror}")
            continue
        for entry in entries:
            path = inside + os.fsencode(entry.name).decode(errors="backslashreplace")
            mode = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(mode.st_mode):
                subfolders.append((f"{path}/", entry.path))
                made.append((f"{path}/", None, None))
            elif stat.S_ISREG(mode.st_mode):
                made.append((path, mode.st_size, file_digest(Path(entry.path)) if hashing else None))
            else:
                faults.note(f"{path}: a link or a device; not counted")
        todo += reversed(subfolders)
        yield len(made), made


def of_zip(path: Path) -> Iterator[tuple[int, Iterable[Entry]]]:
    """Entries of a zip archive's directory."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, *BROKEN) as error:
        raise DefinitionError(f"{path}: not a zip archive that can be read: {error}") from None
    for start in range(0, len(infos), 10_000):
        block = infos[start : start + 10_000]
        yield len(block), [(one.filename, None if one.is_dir() else one.file_size, None) for one in block]


class Header(tarfile.TarInfo):
    """A header whose names are of a bounded length, so that no archive can ask for all of the memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "Header":
        """One header. Raises `ReadError` where it announces names longer than any file has."""
        made = super().frombuf(buf, encoding, errors)
        names = made.type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
        if (names or made.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)) and made.size > BLOCK:
            raise tarfile.ReadError(f"a header of {made.size:,} bytes")
        return made


def of_tar(path: Path, faults: Faults) -> Iterator[tuple[int, Iterable[Entry]]]:
    """Headers of a tar archive; what lies between them is passed over."""
    made: list[Entry] = []
    try:
        with tarfile.open(path, "r|*", errors="backslashreplace", tarinfo=Header) as archive:
            for member in archive:
                archive.members = []  # type: ignore[attr-defined]  # else it keeps every header that it has read
                if member.isdir():
                    made.append((member.name.rstrip("/") + "/", None, None))
                elif member.isreg():
                    made.append((member.name, member.size, None))
                else:
                    faults.note(f"{member.name}: a link or a device; not counted")
                if len(made) >= 10_000:
                    yield len(made), made
                    made = []
    except (tarfile.TarError, TypeError, *BROKEN) as error:  # TypeError: where Python finds a gzip header cut short
        raise DefinitionError(f"{path}: not a tar archive that can be read to its end: {error}") from None
    yield len(made), made


def lines_of(found: Iterator[Iterable[Entry]], faults: Faults) -> Iterator[bytes]:
    """Entries as a listing of our own form, so that they can be kept and read again."""
    for block in found:
        lines = []
        for path, size, digest in block:
            if "\n" in path or "\t" in path:
                faults.note(f"a line break or a tab in a name; not counted: {path[:200]!r}")
            else:
                lines.append(f"{path}\t{'' if size is None else size}\t{digest or ''}\n")
        yield "".join(lines).encode()


def progress(line: str) -> None:
    """A word on standard error."""
    print(line, file=sys.stderr, flush=True)
