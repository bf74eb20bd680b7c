"""A cache of the hub's files that several runs share: contents by their digest, and what each path of a commit holds.

    files/AB/ABCD…      a content, named by the digest that the hub gave and that its bytes were found to have
    known/AB/ABCD….json what the hub said of one path of one commit: digest, size, headers

Files are written beside their place and renamed last. When all contents are more than the most, those not used for
longest go. Not covered: file systems without atomic renames; a cache that somebody else may write to.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
MOST_BYTES = 200 << 30
SPARE_BYTES = 1 << 30
"""Space on the disk that is left to others."""
STALE_SECONDS = 86400.0


class Known(Struct, frozen=True, kw_only=True):
    """What the hub said of a file."""

    etag: str
    size: int
    commit: str
    linked: bool
    """Whether it is kept outside the repository; its digest is then the sha256 of its bytes, else git's of a blob."""
    type: str = "application/octet-stream"


class Blobs:
    """The cache below one folder."""

    def __init__(self, root: Path, most_bytes: int = MOST_BYTES) -> None:
        self.root, self.most = root, most_bytes
        for name in ("files", "known", "parts"):
            (root / name).mkdir(parents=True, exist_ok=True)
        for part in (root / "parts").iterdir():
            with suppress(OSError):
                if time.time() - part.stat().st_mtime > STALE_SECONDS:
                    part.unlink()

    def known(self, kind: str, repo: str, commit: str, path: str) -> Known | None:
        """What was said of a path, if it was."""
        with suppress(OSError, ValueError, TypeError):
            return Known(**json.loads(self._note(kind, repo, commit, path).read_bytes()))
        return None

    def note(self, kind: str, repo: str, path: str, known: Known) -> None:
        """Keep what was said of a path. A full disk is no error: then it is not kept."""
        whole = {name: getattr(known, name) for name in known.__struct_fields__}
        with suppress(OSError):
            self._place(self._note(kind, repo, known.commit, path), json.dumps(whole).encode())

    def open(self, etag: str, size: int) -> BinaryIO | None:
        """A content for reading, if it is here and whole."""
        if not DIGEST.fullmatch(etag):
            return None
        file = self._file(etag)
        with suppress(OSError):
            content = file.open("rb")
            if os.fstat(content.fileno()).st_size == size:
                with suppress(OSError):
                    os.utime(file)
                return content
            content.close()
        return None

    def part(self, known: Known) -> "Part | None":
        """Where a content that comes is written; `None` where it cannot be kept."""
        fits = known.size <= self.most and shutil.disk_usage(self.root).free - known.size > SPARE_BYTES
        if not DIGEST.fullmatch(known.etag) or not fits:
            return None
        with suppress(OSError):
            return Part(self, known)
        return None

    def shrink(self) -> None:
        """Let go of what was not used for longest, until all is within the most."""
        found = []
        for file in (self.root / "files").glob("*/*"):
            with suppress(OSError):
                stat = file.stat()
                found.append((stat.st_mtime, stat.st_size, file))
        total = sum(size for _, size, _ in found)
        for _, size, file in sorted(found):
            if total <= self.most:
                break
            with suppress(OSError):
                file.unlink()
            total -= size

    def _file(self, etag: str) -> Path:
        return self.root / "files" / etag[:2] / etag

    def _note(self, kind: str, repo: str, commit: str, path: str) -> Path:
        name = hashlib.sha256("\0".join((kind, repo.lower(), commit, path)).encode()).hexdigest()
        return self.root / "known" / name[:2] / f"{name}.json"

    def _place(self, file: Path, content: bytes) -> None:
        part = self.root / "parts" / secrets.token_hex(16)
        part.write_bytes(content)
        file.parent.mkdir(exist_ok=True)
        part.replace(file)


class Part:
    """A content under way; it becomes one only if its bytes have the digest."""

    def __init__(self, blobs: Blobs, known: Known) -> None:
        self.blobs, self.known, self.size = blobs, known, 0
        self.path = blobs.root / "parts" / secrets.token_hex(16)
        self._file: BinaryIO | None = self.path.open("xb")
        sha256 = len(known.etag) == 64
        self._hash = hashlib.sha256() if sha256 else hashlib.sha1(b"blob %d\0" % known.size, usedforsecurity=False)

    def write(self, piece: bytes) -> None:
        """More of it. Where the disk cannot take it, it is let go of, and the download goes on."""
        self.size += len(piece)
        self._hash.update(piece)
        try:
            if self._file is not None:
                self._file.write(piece)
        except OSError:
            self.drop()

    def finish(self) -> bool:
        """Whether it is kept: all bytes were there and had the digest."""
        right = self.size == self.known.size and self._hash.hexdigest() == self.known.etag
        if self._file is None or not right:
            self.drop()
            return False
        place = self.blobs._file(self.known.etag)
        try:
            self._file.close()
            place.parent.mkdir(exist_ok=True)
            self.path.replace(place)
        except OSError:
            self.drop()
            return False
        self.blobs.shrink()
        return True

    def drop(self) -> None:
        """Let go of it."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._file = None
        self.path.unlink(missing_ok=True)
