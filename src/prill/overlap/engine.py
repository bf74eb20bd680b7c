"""Which form of the scanner works: the compiled one where it pays, else the plain one; both give the same numbers."""

import hashlib
import threading
import warnings
from pathlib import Path
from typing import Any, Protocol

from prill.overlap import folding, kernel, vectors
from prill.overlap.index import MOST_UNITS, Index, Level
from prill.overlap.scalar import WINDOW, Found, Scalar
from prill.overlap.store import keep
from prill.overlap.words import PLANES, fold

NEVER = -WINDOW
FIRST_EVENTS = 4096
POSTINGS_AT_A_TIME = 1024
BITS_PER_GRAM = 8


class Scorer(Protocol):
    """Adds up the evidence of one stream."""

    def add(self, base: int, found: Found) -> list[tuple[int, int]]:
        """Pairs of segment and entry, of a chunk whose first segment has the number `base`."""


class Engine(Protocol):
    """Looks for an index in chunks."""

    def find(self, chunk: bytes) -> Found:
        """What a chunk holds. Several threads may ask at a time."""

    def score(self) -> Scorer:
        """A fresh sum, for a stream."""


def engine_for(index: Index, level: Level, cache: Path, *, compiled: bool) -> Engine:
    """The compiled form if it is asked for and can be had here, else the plain one, with a warning that says why."""
    if compiled:
        try:
            return Fast(index, level, cache)
        except Exception as error:  # whatever numba or LLVM cannot do on this machine, the plain form can
            why = f"{type(error).__name__}: {error}"[:200]
            warnings.warn(f"the compiled scanner does not run here ({why}); the plain one is slow", stacklevel=2)
    return Scalar(index, level)


class Fast:
    """The compiled scanner."""

    def __init__(self, index: Index, level: Level, cache: Path) -> None:
        import numba
        import numpy as np

        about = b"".join(Path(str(part.__file__)).read_bytes() for part in (kernel, folding, vectors))
        numba.config.CACHE_DIR = str(cache / f"compiled-{hashlib.sha256(about).hexdigest()[:16]}")
        self.index, self.do, self.np = index, kernel.compiled(), np
        self.table = character_table(cache)
        grams = np.frombuffer(index.grams, np.uint64) if index.grams else np.zeros(0, np.uint64)
        self.grams = grams
        self.sieve, self.shift, self.first = sieve(grams)
        self.about = np.zeros((len(grams) + 1, 2), np.int32)
        self.about[:, 0] = index.first
        self.about[:-1, 1] = index.worth
        self.having, self.needs = np.array(index.having, np.int32), np.array(index.needs(level), np.int32)
        self.own = threading.local()
        self.find(b"warm up, so that threads find the functions compiled\n" * 3)
        self.score().add(0, self.find(b""))

    def buffers(self, length: int) -> dict[str, Any]:
        """This thread's buffers, large enough for a chunk of so many bytes."""
        if getattr(self.own, "size", -1) < length:
            np, room = self.np, kernel.room(length)
            self.own.size = length
            bits = np.zeros(room["marks"] // 8, np.uint64)
            self.own.buffers = {
                "folded": np.full(room["folded"], 32, np.uint8),
                "words": np.empty((2, room["words"]), np.uint64),
                "places": np.empty((3, room["words"]), np.uint32),
                "lines": np.empty((4, room["lines"]), np.int32),
                "bits": bits,
                "marks": bits.view(np.uint8),
            }
        made: dict[str, Any] = self.own.buffers
        return made

    def find(self, chunk: bytes) -> Found:
        """What a chunk holds."""
        b, np = self.buffers(len(chunk)), self.np
        tail = np.frombuffer(chunk[-folding.TAIL :] + bytes(folding.MARGIN), np.uint8)
        hits, segments, newlines, long_words, run = self.do.find(
            np.frombuffer(chunk, np.uint8), tail, b["folded"], self.table, b["words"], b["places"], b["lines"],
            b["bits"], b["marks"], self.sieve, self.shift, self.first, self.grams,
        )  # fmt: skip
        _, at, grams = b["places"]
        _, _, begins, pieces = b["lines"]
        return Found(
            at[:hits].copy(), grams[:hits].copy(), begins[:segments].copy(), pieces[:segments].copy(),
            newlines, long_words, run,
        )  # fmt: skip

    def score(self) -> Scorer:
        """Adds up the evidence of one stream."""
        return Sum(self)


class Sum:
    """Evidence of a stream, compiled."""

    def __init__(self, fast: Fast) -> None:
        np = fast.np
        self.fast = fast
        self.postings = np.full((len(fast.having), 2), NEVER, np.int32)
        self.postings[:, 0] = fast.having
        self.entries = np.zeros((len(fast.needs), 4), np.int64)
        self.entries[:, :2] = NEVER
        self.entries[:, 2] = fast.needs
        self.todo = np.empty((POSTINGS_AT_A_TIME, 3), np.int32)
        self.out = np.empty((FIRST_EVENTS, 2), np.int32)

    def add(self, base: int, found: Found) -> list[tuple[int, int]]:
        """Pairs of segment and entry."""
        if len(self.out) < (most := len(found.grams) * MOST_UNITS):
            self.out = self.fast.np.empty((most, 2), self.fast.np.int32)
        about, postings, entries = self.fast.about, self.postings, self.entries
        count = self.fast.do.add(base, found.segments, found.grams, about, postings, entries, self.todo, self.out)
        return [(segment, entry) for segment, entry in self.out[:count].tolist()]


def sieve(grams: Any) -> tuple[Any, int, Any]:
    """A bloom filter of grams that rise, three bits of one word each; how far a gram is shifted to find its word; and
    which gram is the first of each word, and the end."""
    import numpy as np

    bits = max(6, (BITS_PER_GRAM * len(grams) // 64).bit_length())
    words, shift = np.zeros(1 << bits, np.uint64), 64 - bits
    one, low, which = np.uint64(1), np.uint64(63), grams >> np.uint64(shift)
    set_bits = (one << (grams & low)) | (one << (grams >> np.uint64(6) & low)) | (one << (grams >> np.uint64(12) & low))
    np.bitwise_or.at(words, which, set_bits)
    return words, shift, np.searchsorted(which, np.arange((1 << bits) + 1, dtype=np.uint64)).astype(np.int32)


def character_table(cache: Path) -> Any:
    """What every character below `PLANES` becomes: bytes from the top of a number, their count at its bottom."""
    import numpy as np

    file = cache / f"characters-{np.__version__}.npy"
    try:
        kept = np.load(file, allow_pickle=False)
        if kept.shape == (PLANES,) and kept.dtype == np.uint64:
            return kept
    except (OSError, ValueError, EOFError):
        pass
    made = np.array([packed(fold(point)) for point in range(PLANES)], np.uint64)
    keep(file, lambda half: np.save(half, made))
    return made


def packed(text: bytes) -> int:
    """Up to seven bytes in a number, and how many."""
    return int.from_bytes(text.ljust(7, b"\0"), "big") << 8 | len(text)
