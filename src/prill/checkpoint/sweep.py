"""Every element of a submission against the base and its siblings, in one pass that also hashes what it reads.

A submission's files are read once, in order; the other models through memory maps, block by block, so memory stays
constant. BF16 is widened by shifting bits in blocks that fit a core's cache. With numba (an optional package) the sums
are fused into one loop; without it numpy does the same at about a third of the speed. Files are swept side by side.
Not covered: directions and signs; those are measured on a sample (`distances.py`).
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prill.checkpoint.distances import MOST, NOTHING
from prill.checkpoint.tensors import Shard, Tensor
from prill.checkpoint.values import WIDTH, Place, bfloat_bits, fold, shared_rows, widen
from prill.record import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 1 << 22
"""Bytes of a submission's file that are read and hashed at a time."""
BLOCK = 1 << 15
"""Elements that are widened at a time: three blocks of float32 are 400 kB, which a core's second cache holds."""
WORTH = 1 << 28
"""Bytes of a submission from which compiling, about two seconds, pays."""
SUMS = 7
"""Of a block, for one other model X beside the base B, with d = S - B and e = X - B: B·B, B·d, d·d, d·e, e·e, and the
numbers of equal bits in (S, B) and (S, X)."""

Kernel = Callable[["NDArray[Any]", "NDArray[Any]", "NDArray[Any]", "NDArray[Any]"], None]
"""(S, B, X as BF16 bits, sums to add to)."""


class Whole(Record, frozen=True, kw_only=True):
    """One tensor, compared in all elements that the models share."""

    count: int
    cosine: float
    move: float
    size: float
    equal: float
    siblings: dict[str, tuple[float, float, float]]
    """name → alpha, cos(S-B, I-B), share of equal bits in S and I. Only where I differs from B."""


class Swept(Record, frozen=True, kw_only=True):
    """The result for all files."""

    tensors: dict[str, Whole]
    digests: dict[str, str]
    """File → hex SHA-256 of the bytes that were compared."""


def sweep(
    folder: Path,
    shards: Sequence[Shard],
    ours: Mapping[str, Place],
    theirs: Mapping[str, Place],
    siblings: Mapping[str, Mapping[str, Place]],
    *,
    compiled: bool | None = None,
) -> Swept:
    """Compare and hash all files of a checkpoint whose layout is sound. `ours` … hold what can be compared, by name.

    `compiled`: whether to compile the loop; left out, that is done where the files are large enough to be worth it.
    """
    large = sum(shard.bytes for shard in shards) >= WORTH if compiled is None else compiled
    kernel = (fused() if large else None) or blocked()
    with ThreadPoolExecutor(max_workers=min(len(shards) or 1, len(os.sched_getaffinity(0)))) as pool:
        done = list(pool.map(lambda shard: one(folder, shard, ours, theirs, siblings, kernel), shards))
    tensors = {name: whole for found, _ in done for name, whole in found.items()}
    return Swept(tensors=tensors, digests={shard.file: digest for shard, (_, digest) in zip(shards, done, strict=True)})


def one(
    folder: Path,
    shard: Shard,
    ours: Mapping[str, Place],
    theirs: Mapping[str, Place],
    siblings: Mapping[str, Mapping[str, Place]],
    kernel: Kernel,
) -> tuple[dict[str, Whole], str]:
    """One file, from its first byte to its last."""
    digest = hashlib.sha256()
    found: dict[str, Whole] = {}
    with (folder / shard.file).open("rb", buffering=0) as opened:
        for data in chunks(opened, shard.start):
            digest.update(data)
        for tensor in shard.tensors:
            name = next((each for each in (fold(tensor.name), tensor.name) if each in ours), None)
            parts = pieces(opened, tensor, digest)
            rows = shared_rows(name, ours, theirs) if name else None
            if name is None or rows is None:
                for _ in parts:
                    pass  # hashed all the same
                continue
            known = {
                sibling: places[name]
                for sibling, places in siblings.items()
                if fits(ours[name], places.get(name), rows)
            }
            found[name] = compare(parts, tensor.dtype, rows * ours[name].columns, theirs[name], known, kernel)
        for data in chunks(opened, None):
            digest.update(data)
    return found, digest.hexdigest()


def fits(ours: Place, other: Place | None, rows: int) -> bool:
    """Whether a sibling's tensor covers the rows that are compared."""
    return other is not None and other.columns == ours.columns and other.rows >= rows


def chunks(opened: Any, size: int | None) -> Iterator[bytes]:
    """The next bytes of a file: `size` of them, or all that are left."""
    while size is None or size > 0:
        data = opened.read(CHUNK if size is None else min(CHUNK, size))
        if not data:
            return
        size = None if size is None else size - len(data)
        yield data


def pieces(opened: Any, tensor: Tensor, digest: Any) -> Iterator[bytes]:
    """A tensor's bytes, hashed as they pass."""
    for data in chunks(opened, tensor.end - tensor.begin):
        digest.update(data)
        yield data


def compare(
    parts: Iterator[bytes], dtype: str, count: int, base: Place, known: Mapping[str, Place], kernel: Kernel
) -> Whole:
    """The sums of one tensor over its first `count` elements."""
    import numpy as np

    np.seterr(all="ignore")  # of this thread: what is not finite is dealt with in `summed`
    other, maps = mapped(base, count), {name: mapped(place, count) for name, place in known.items()}
    totals = {name: np.zeros(SUMS) for name in maps or ("",)}
    at, rest = 0, b""
    for part in parts:
        data = rest + part
        size = len(data) // np.dtype(WIDTH[dtype]).itemsize
        rest = data[size * np.dtype(WIDTH[dtype]).itemsize :]
        stored = np.frombuffer(data, dtype=WIDTH[dtype], count=size)[: count - at]
        for begin in range(0, len(stored), BLOCK):
            s = stored[begin : begin + BLOCK]
            span = slice(at + begin, at + begin + len(s))
            b = other[span]
            for name, total in totals.items():
                x, kind = (maps[name][span], known[name].dtype) if name else (b, base.dtype)
                if {dtype, base.dtype, kind} == {"BF16"}:
                    kernel(s, b, x, total)
                else:
                    total += plain(s, dtype, b, base.dtype, x, kind)
        at += len(stored)
    return summed(totals, count)


def mapped(place: Place, count: int) -> "NDArray[Any]":
    """The first elements of a stored tensor, flat, through a memory map."""
    import numpy as np

    return np.asarray(np.memmap(place.path, dtype=WIDTH[place.dtype], mode="r", offset=place.start, shape=(count,)))


def summed(totals: "Mapping[str, NDArray[Any]]", count: int) -> Whole:
    """Cosine, move and shares out of the sums. What is not finite counts as far away."""
    first = next(iter(totals.values()))
    bb, bd, dd, _, _, equal, _ = (float(value) for value in first)
    ss = max(bb + 2 * bd + dd, 0.0) if bb + bd + dd < float("inf") else 0.0
    empty = bb <= NOTHING and ss <= NOTHING
    size = 1.0 if empty else sqrt(ss) / max(sqrt(bb), NOTHING)
    cosine = 1.0 if empty else (bb + bd) / max(sqrt(bb * ss), NOTHING)
    sound = bb + bd + dd < float("inf")  # false for NaN as well
    found = {}
    for name, total in totals.items():
        de, ee, same = float(total[3]), float(total[4]), float(total[6])
        if name and ee > NOTHING:
            along = (de / ee, de / max(sqrt(dd * ee), NOTHING)) if sound and abs(de) < float("inf") else (0.0, 0.0)
            found[name] = (*along, same / count)
    return Whole(
        count=count,
        cosine=min(cosine, 1.0) if sound else 0.0,
        move=min(sqrt(dd) / max(sqrt(bb), NOTHING), MOST) if sound else MOST,
        size=min(size, MOST) if sound else MOST,
        equal=equal / count,
        siblings=found,
    )


def plain(s: Any, s_kind: str, b: Any, b_kind: str, x: Any, x_kind: str) -> "NDArray[Any]":
    """The sums of one block of any dtypes."""
    import numpy as np

    bits = [bfloat_bits(*each) for each in ((s, s_kind), (b, b_kind), (x, x_kind))]
    wide = widen(b, b_kind)
    d, e = widen(s, s_kind) - wide, widen(x, x_kind) - wide
    dots = [np.dot(left, right) for left, right in ((wide, wide), (wide, d), (d, d), (d, e), (e, e))]
    return np.array([*dots, *(np.count_nonzero(bits[0] == other) for other in bits[1:])], dtype=np.float64)


def blocked() -> Kernel:
    """The sums in numpy, with buffers that are made once for each thread."""
    import threading

    import numpy as np

    own = threading.local()

    def add(s: "NDArray[Any]", b: "NDArray[Any]", x: "NDArray[Any]", total: "NDArray[Any]") -> None:
        if not hasattr(own, "wide"):
            own.wide, own.same = np.empty((3, BLOCK), np.float32), np.empty(BLOCK, np.bool_)
        size = len(s)
        wide, same = own.wide[:, :size], own.same[:size]
        for stored, target in zip((s, b, x), wide, strict=True):
            bits = target.view(np.uint32)
            bits[:] = stored
            bits <<= 16
        d, base, e = wide
        d -= base
        e -= base
        total[0] += np.dot(base, base)
        total[1] += np.dot(base, d)
        total[2] += np.dot(d, d)
        total[3] += np.dot(d, e)
        total[4] += np.dot(e, e)
        for number, other in ((5, b), (6, x)):
            np.equal(s, other, out=same)
            total[number] += np.count_nonzero(same)

    return add


@cache
def fused() -> Kernel | None:
    """The same sums in one compiled loop, where numba is installed; compiled once in a process."""
    try:
        import numba
        import numpy as np
    except ImportError:
        return None

    def add(s: Any, b: Any, x: Any, total: Any) -> None:
        wide = np.empty((3, BLOCK), np.uint32)
        size = len(s)
        for i in range(size):
            wide[0, i] = np.uint32(s[i]) << np.uint32(16)
            wide[1, i] = np.uint32(b[i]) << np.uint32(16)
            wide[2, i] = np.uint32(x[i]) << np.uint32(16)
        values = wide.view(np.float32)
        bb = bd = dd = de = ee = np.float32(0.0)
        for i in range(size):
            base = values[1, i]
            d, e = values[0, i] - base, values[2, i] - base
            bb += base * base
            bd += base * d
            dd += d * d
            de += d * e
            ee += e * e
        same, like = 0, 0
        for i in range(size):
            same += s[i] == b[i]
            like += s[i] == x[i]
        total[0] += bb
        total[1] += bd
        total[2] += dd
        total[3] += de
        total[4] += ee
        total[5] += same
        total[6] += like

    compiled: Kernel = numba.njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True)(add)
    return compiled
