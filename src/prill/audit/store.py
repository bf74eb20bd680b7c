"""Inputs kept by their digests, so that an audit can be done again without the tree or the repository it came from.

`sha256/ab/cdef…` below a folder. A file that is there is never written again; what is read is hashed first.
Not covered: how long a store is kept; it may be deleted, and then an audit needs its sources again.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from prill.errors import InfraError

DIGEST = re.compile("[0-9a-f]{64}")


class Store:
    """A folder of bytes by digest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        """Where the bytes of a digest lie, or would."""
        if not DIGEST.fullmatch(digest):
            raise InfraError(f"{digest[:80]!r} is not a SHA-256 in hexadecimal digits")
        return self.folder / "sha256" / digest[:2] / digest[2:]

    def keep(self, blocks: Iterable[bytes]) -> tuple[str, int]:
        """Bytes into the store; their digest and size."""
        self.folder.mkdir(parents=True, exist_ok=True)
        beside = self.folder / f".{secrets.token_hex(8)}"
        digest, size = hashlib.sha256(), 0
        try:
            with beside.open("xb") as file:
                for block in blocks:
                    file.write(block)
                    digest.update(block)
                    size += len(block)
            place = self.path(digest.hexdigest())
            place.parent.mkdir(parents=True, exist_ok=True)
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)
        return digest.hexdigest(), size

    def checked(self, digest: str) -> Path:
        """The file of a digest, hashed again. Raises `InfraError` where it is missing or has other bytes."""
        place = self.path(digest)
        try:
            with place.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            raise InfraError(
                f"{place}: not in the store; make the bundle's inputs anew with `prill audit bundle`"
            ) from None
        if found != digest:
            raise InfraError(f"{place}: has other bytes than its name says; remove it")
        return place

    def get(self, digest: str) -> bytes:
        """The bytes of a digest."""
        return self.checked(digest).read_bytes()


def blocks_of(file: IO[bytes], say: Callable[[str], None] | None = None) -> Iterator[bytes]:
    """An open file in blocks, with a word of progress every two seconds."""
    told, size = time.monotonic(), 0
    while block := file.read(1 << 20):
        yield block
        size += len(block)
        if say is not None and time.monotonic() - told > 2:
            told = time.monotonic()
            say(f"{Path(str(file.name)).name}: {size:,} bytes")
