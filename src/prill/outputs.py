"""What a program prints, from a pipe into a file, as it comes."""

import contextlib
import fcntl
import os
import time
from pathlib import Path

from prill.sockets import Keep

PIECE = 1 << 18


class Output:
    """One stream of a program, from its pipe into a file, byte for byte up to a cap; what is beyond is counted.

    With `keep.hide` known secrets become their names on the way; then offsets count what is in the file.
    """

    def __init__(self, path: Path, keep: Keep, *, timed: bool = False) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND  # both streams may share one file
        flags |= 0 if keep.append else os.O_TRUNC
        self.file = os.open(path, flags, 0o644)
        self.times = os.open(keep.times, flags, 0o644) if timed and keep.times else None
        self.cap, self.elapsed, self.hide = keep.most_bytes, keep.elapsed_seconds, keep.hide() if keep.hide else None
        self.start = self.kept = os.fstat(self.file).st_size if keep.append else 0
        self.dropped = 0
        self.problem = ""
        self.pipe, self.end = os.pipe()
        os.set_blocking(self.pipe, False)

    def take(self, since: float) -> int:
        """Move what is there; returns how many bytes, 0 at the end of the stream."""
        piece = os.read(self.pipe, PIECE)
        self.put(self.hide.feed(piece) if self.hide else piece, since)
        return len(piece)

    def put(self, piece: bytes, since: float) -> None:
        """Into the file what still fits; the rest is counted."""
        keep = piece[: max(0, self.cap - self.kept)]
        try:
            if keep and self.times is not None:
                os.write(self.times, f"{self.kept} {self.elapsed + time.monotonic() - since:.6f}\n".encode())
            rest = memoryview(keep)
            while rest:
                rest = rest[os.write(self.file, rest) :]
        except OSError as problem:  # a full disk must not block the program: it goes on, we report it at the end
            self.problem, self.cap, keep = f"cannot write a program's output: {problem}", 0, b""
        self.kept += len(keep)
        self.dropped += len(piece) - len(keep)

    def finish(self, since: float) -> None:
        """Take what is in the pipe now, and no more: a leftover may write for ever."""
        left = fcntl.fcntl(self.pipe, fcntl.F_GETPIPE_SZ)
        with contextlib.suppress(BlockingIOError):
            while left > 0 and (taken := self.take(since)):
                left -= taken
        if self.hide:
            self.put(self.hide.flush(), since)
        for descriptor in (self.file, self.times, self.pipe):
            if descriptor is not None:
                os.close(descriptor)
