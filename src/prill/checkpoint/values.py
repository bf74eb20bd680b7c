"""The numbers in a checkpoint: which tensors a folder holds, and parts of them as arrays, read through a memory map.

Floating-point tensors of at least two dimensions are compared; further dimensions are flattened into columns. Those of
one dimension (norms) stand apart. Values are widened exactly (BF16, F16 → float32). Readers' older and newer prefixes
of a name are folded into one.
Not covered: packed (quantised) tensors; they are counted as `unread`.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prill.checkpoint.tensors import Shard, Tensor
from prill.checkpoint.view import look
from prill.checkpoint.weights import loaded, structure
from prill.record import Fault, Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}
HUGE = 1e6
"""No weight of a working model comes near; sums of squares of this stay finite in float32."""
PREFIXES = ("model.", "language_model.")
VOCABULARY = ("embed_tokens.weight", "lm_head.weight", "wte.weight", "word_embeddings.weight")
"""Tensors whose rows are tokens: these may grow when tokens are added."""
WHOLE = 1 << 18
"""Elements up to which a tensor is read whole."""
SIDE = 256
"""Otherwise: this many rows, and of each this many neighbouring columns (few pages of the file are then touched)."""


class Place(Record, frozen=True, kw_only=True):
    """Where one tensor's numbers lie."""

    path: str
    start: int
    """Bytes from the file's beginning."""
    dtype: str
    rows: int
    columns: int


class Weights(Record, frozen=True, kw_only=True):
    """The comparable tensors of a folder, by folded name."""

    places: dict[str, Place]
    vectors: dict[str, Place]
    """Tensors of one dimension, as one row."""
    config: dict[str, Any]
    """Its config.json; empty where there is none."""
    faults: tuple[Fault, ...]
    shards: tuple[Shard, ...]
    unread: int
    """Elements in tensors that are not plain floating-point numbers."""


class Plan(Record, frozen=True, kw_only=True):
    """How tensors are sampled. Two samples can be compared only if they were taken by one plan."""

    seed: int = 0
    whole: int = WHOLE
    side: int = SIDE


class Pick(Record, frozen=True, kw_only=True):
    """Which rows and columns (arrays of whole numbers) of a tensor are looked at."""

    rows: Any
    columns: Any


def open_weights(folder: Path) -> Weights:
    """Find the tensors of a checkpoint. Only headers are read."""
    view = look(folder)
    shards, wrong = loaded(view), tuple(each for each in structure(view) if each.severity == "fatal")
    if wrong:
        return Weights(places={}, vectors={}, config={}, faults=wrong, shards=(), unread=0)
    tensors = [(shard, tensor) for shard in shards for tensor in shard.tensors]
    folded = [fold(tensor.name) for _, tensor in tensors]
    plain = len(set(folded)) < len(folded)  # two names that fold into one are told apart by their full names
    places: dict[str, Place] = {}
    vectors: dict[str, Place] = {}
    unread = 0
    for (shard, tensor), name in zip(tensors, folded, strict=True):
        if tensor.dtype not in WIDTH:
            unread += tensor.count
        elif tensor.shape and tensor.count:
            found = places if len(tensor.shape) >= 2 else vectors
            found[tensor.name if plain else name] = place(folder, shard, tensor)
    config = view.json("config.json")
    return Weights(places=places, vectors=vectors, config=config, faults=(), shards=tuple(shards), unread=unread)


def fold(name: str) -> str:
    """A tensor's name without the prefixes that differ between classes and versions of one architecture."""
    while name.startswith(PREFIXES):
        name = name.split(".", 1)[1]
    return name


def place(folder: Path, shard: Shard, tensor: Tensor) -> Place:
    """Where a tensor of a shard lies."""
    rows = tensor.shape[0] if len(tensor.shape) > 1 else 1
    return Place(
        path=str(folder / shard.file),
        start=shard.start + tensor.begin,
        dtype=tensor.dtype,
        rows=rows,
        columns=tensor.count // rows,
    )


def pick(name: str, rows: int, columns: int, plan: Plan) -> Pick:
    """The part of a tensor to look at: whole if it is small, else drawn by the plan's seed and the tensor's name."""
    import numpy as np

    if rows * columns <= plan.whole:
        return Pick(rows=np.arange(rows), columns=np.arange(columns))
    draw = np.random.default_rng([plan.seed, zlib.crc32(name.encode())])
    chosen = np.sort(draw.choice(rows, min(rows, plan.side), replace=False))
    start = int(draw.integers(0, max(1, columns - plan.side + 1)))
    return Pick(rows=chosen, columns=np.arange(start, min(columns, start + plan.side)))


def read(place: Place, pick: Pick) -> "NDArray[Any]":
    """The picked part as it is stored: (rows, columns) of uint16 (BF16's bits), float16, float32 or float64."""
    import numpy as np

    shape = (place.rows, place.columns)
    stored = np.asarray(np.memmap(place.path, dtype=WIDTH[place.dtype], mode="r", offset=place.start, shape=shape))
    first, last = int(pick.columns[0]), int(pick.columns[-1])
    if last - first + 1 == len(pick.columns) and bool((pick.columns[1:] > pick.columns[:-1]).all()):
        return stored[pick.rows, first : last + 1]
    return stored[np.ix_(pick.rows, pick.columns)]


def widen(stored: "NDArray[Any]", dtype: str) -> "NDArray[Any]":
    """Stored values as float32, exactly (F64 is rounded)."""
    import numpy as np

    if dtype == "BF16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32)


def tamed(values: "NDArray[Any]") -> "NDArray[Any]":
    """A stranger's values with which one can calculate: what is no number is zero, nothing is larger than `HUGE`."""
    import numpy as np

    low, high = values.min(initial=0.0), values.max(initial=0.0)
    if low >= -HUGE and high <= HUGE:  # false where there is a NaN
        return values
    found: NDArray[Any] = np.clip(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0), -HUGE, HUGE)
    return found


def bfloat_bits(stored: "NDArray[Any]", dtype: str) -> "NDArray[Any]":
    """The BF16 bits (uint16) that the values have after rounding to nearest even; as stored where they are BF16."""
    import numpy as np

    if dtype == "BF16":
        return stored
    bits = np.ascontiguousarray(stored, dtype=np.float32).view(np.uint32)
    halves = bits.view("<u2").reshape(*bits.shape, 2)
    if not halves[..., 0].any():  # as it is for what was BF16 once
        return halves[..., 1]
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def shared_rows(name: str, places: Mapping[str, Place], *others: Mapping[str, Place]) -> int | None:
    """Rows that a tensor has in all of these folders; `None` where it is missing or has another shape.

    Only tensors whose rows are tokens may differ in their number of rows.
    """
    here = places[name]
    rows = here.rows
    for other in others:
        there = other.get(name)
        if there is None or there.columns != here.columns:
            return None
        if there.rows != here.rows and not name.endswith(VOCABULARY):
            return None
        rows = min(rows, there.rows)
    return rows
