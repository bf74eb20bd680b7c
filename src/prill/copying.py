"""A copy of a folder that somebody else made, and may be changing: regular files only, bounded, no link followed.

Each folder and file is opened below the one before it and looked at once it is open, so that nothing put in its place
meanwhile leads out. Not covered: a file that is written to while it is read is copied as it was read.
"""

import errno
import os
import stat
from pathlib import Path

from prill.errors import InfraError
from prill.record import Fault

LARGEST_BYTES = 64 << 30
MOST_FILES = 10_000
DEEPEST = 64
"""Folders below one another."""
PIECE_BYTES = 1 << 20
OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Without waiting for a pipe's other end."""


def copied(source: Path, target: Path) -> list[Fault]:
    """Copy what can be copied into a folder that need not be there; what was refused comes back as faults.

    Raises `InfraError` where the disk does not read or write.
    """
    try:
        root = os.open(source, OPEN | os.O_DIRECTORY)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return []
        raise InfraError(f"cannot copy {source}: {error}") from error
    copy = Copy(source)
    try:
        copy.folder(root, target, ())
    finally:
        os.close(root)
    return copy.faults


class Copy:
    """One copying under way."""

    def __init__(self, source: Path) -> None:
        self.source, self.faults = source, list[Fault]()
        self.bytes = self.count = 0
        self.full = False

    def folder(self, opened: int, target: Path, names: tuple[str, ...]) -> None:
        """An open folder, and all in it."""
        target.mkdir(parents=True, exist_ok=True)
        with os.scandir(opened) as entries:
            found = sorted(entry.name for entry in entries)
        for name in found:
            if self.full:
                return
            self.entry(opened, target / name, (*names, name))

    def entry(self, parent: int, target: Path, names: tuple[str, ...]) -> None:
        """One name of an open folder."""
        label = os.fsencode("/".join(names)).decode(errors="backslashreplace")
        try:
            opened = os.open(names[-1], OPEN, dir_fd=parent)
        except FileNotFoundError:  # gone again
            return
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO):  # a link; a socket
                raise InfraError(f"cannot copy {self.source / label}: {error}") from error
            self.refuse("NOT_A_FILE", f"{label} is a link or a special file: not copied")
            return
        try:
            what = os.fstat(opened)
            self.count += 1
            if stat.S_ISDIR(what.st_mode) and len(names) > DEEPEST:
                self.refuse("TOO_DEEP", f"{label[:200]} lies below more than {DEEPEST} folders: not copied")
            elif self.count > MOST_FILES or self.bytes + what.st_size > LARGEST_BYTES:
                self.full = True
                self.refuse("TOO_LARGE", f"more than {LARGEST_BYTES} bytes or {MOST_FILES} files and folders")
            elif stat.S_ISDIR(what.st_mode):
                self.folder(opened, target, names)
            elif stat.S_ISREG(what.st_mode):
                self.file(opened, target, what.st_size)
            else:
                self.refuse("NOT_A_FILE", f"{label} is a link or a special file: not copied")
        except OSError as error:
            raise InfraError(f"cannot copy {self.source / label}: {error}") from error
        finally:
            os.close(opened)

    def file(self, opened: int, target: Path, size: int) -> None:
        """The bytes of an open file, no more of them than it had when it was opened."""
        with os.fdopen(os.dup(opened), "rb", buffering=0) as reading, target.open("wb") as writing:
            while size > 0 and (piece := reading.read(min(PIECE_BYTES, size))):
                writing.write(piece)
                size -= len(piece)
                self.bytes += len(piece)

    def refuse(self, code: str, why: str) -> None:
        """One thing that is not copied."""
        self.faults.append(Fault(code=code, why=why))
