"""safetensors files: the header, read with bounded memory, and what is wrong with the file's structure.

A file is 8 bytes (little-endian length of the header), the header (JSON: tensor name → dtype, shape, byte range), and
the tensors' bytes without gaps. Nothing is allocated by a declared size, and nothing is ever unpickled.
Not covered: what the numbers in the tensors are worth (`lineage.py`), and packing of formats below one byte.
"""

from pathlib import Path
from typing import Any, TypeGuard

from prill.checkpoint.documents import fault, parse, printable
from prill.record import Fault, Record

LARGEST_HEADER = 16 << 20
"""Bytes. A header entry takes about 120, so this is room for more than 100,000 tensors in one file."""
LARGEST_COUNT = 1 << 60
"""Elements; more than this in one tensor is no checkpoint, and stops a product from growing without end."""
BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F6_E2M3": 6, "F6_E3M2": 6,
    "F4": 4, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8, "C64": 64,
}  # fmt: skip
"""Bits of one element by dtype name, from the format's own list."""


class Tensor(Record, frozen=True, kw_only=True):
    """One tensor of a file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int
    """Bytes `begin` to `end` of the file's data, which starts at `Shard.start`."""
    count: int
    """Elements."""


class Shard(Record, frozen=True, kw_only=True):
    """One readable file of tensors."""

    file: str
    """Path inside the checkpoint."""
    bytes: int
    start: int
    """Where the data begin, in bytes from the file's start."""
    tensors: tuple[Tensor, ...]
    """In the order of their bytes."""


class Refused(Exception):
    """Why a header cannot be used, as the fault's code and words."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


def read_shard(path: Path, file: str) -> tuple[Shard | None, tuple[Fault, ...]]:
    """Header of the file at `path`, called `file` in faults. `None` where there is no usable header."""
    try:
        size = path.stat().st_size
        start, entries = read_entries(path, size)
        tensors = tuple(sorted((tensor_of(name, entry) for name, entry in entries), key=lambda t: (t.begin, t.end)))
    except OSError as error:
        return None, (fault("FILE_UNREADABLE", f"{file}: cannot be read ({error.strerror})"),)
    except Refused as refused:
        return None, (fault(refused.code, f"{file}: {refused}; save it again"),)
    shard = Shard(file=file, bytes=size, start=start, tensors=tensors)
    return shard, tuple(layout(shard))


def read_entries(path: Path, size: int) -> tuple[int, list[tuple[str, Any]]]:
    """Where the data begin, and (name, entry) for each tensor in the header's order. Raises `Refused`."""
    with path.open("rb") as opened:
        first = opened.read(8)
        if len(first) < 8:
            raise Refused("HEADER_INCOMPLETE", f"{size} bytes are too few for a safetensors file")
        length = int.from_bytes(first, "little")
        if length > size - 8:
            raise Refused("HEADER_INCOMPLETE", f"the header is said to take {length} bytes, the file has {size}")
        if length > LARGEST_HEADER:
            raise Refused("HEADER_NOT_JSON", f"a header of {length} bytes; the most is {LARGEST_HEADER}")
        text = opened.read(length)
    if not text.startswith(b"{"):
        raise Refused("HEADER_NOT_JSON", "the header does not begin with `{`")
    document = parse(text)
    if document.value is None:
        raise Refused("HEADER_NOT_JSON", f"the header is {document.why}")
    entries = document.value
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise Refused("HEADER_NOT_JSON", "the header's __metadata__ is not an object")
    return 8 + length, list(entries.items())


def tensor_of(name: str, entry: Any) -> Tensor:
    """One entry of a header. Raises `Refused`."""
    label = repr(printable(name))
    if not isinstance(entry, dict):
        raise Refused("HEADER_NOT_JSON", f"{label} is not an object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in BITS:
        raise Refused("HEADER_NOT_JSON", f"{label} has the dtype {str(dtype)[:40]!r}, which the format does not know")
    if not sizes(shape) or not sizes(offsets) or len(offsets) != 2:
        raise Refused("OFFSETS_INVALID", f"{label} has no usable shape and byte range")
    count = 1
    for side in shape:
        count *= side
        if count > LARGEST_COUNT:
            raise Refused("OFFSETS_INVALID", f"{label} is said to have more than {LARGEST_COUNT} elements")
    begin, end = offsets
    if end - begin != -(-count * BITS[dtype] // 8):
        needed = f"{count} elements of {dtype}"
        raise Refused("OFFSETS_INVALID", f"{label} has {needed}, but bytes {begin} to {end}")
    return Tensor(name=name, dtype=dtype, shape=tuple(shape), begin=begin, end=end, count=count)


def sizes(value: Any) -> TypeGuard[list[int]]:
    """Whether this is a list of whole numbers from 0 to `LARGEST_COUNT`."""
    return isinstance(value, list) and all(
        isinstance(side, int) and not isinstance(side, bool) and 0 <= side <= LARGEST_COUNT for side in value
    )


def layout(shard: Shard) -> list[Fault]:
    """Gaps, overlaps, missing and superfluous bytes."""
    faults, at = [], 0
    for tensor in shard.tensors:
        if tensor.begin != at:
            kind = "overlaps the one before it" if tensor.begin < at else "leaves a gap before it"
            why = f"{shard.file}: {printable(tensor.name)!r} {kind} (begins at {tensor.begin}, not {at}); save it again"
            faults.append(fault("OFFSETS_INVALID", why))
            break
        at = tensor.end
    end = max((tensor.end for tensor in shard.tensors), default=0)
    has = shard.bytes - shard.start
    if has < end:
        why = f"{shard.file}: {end - has} of {end} data bytes are missing; copy or save it again"
        faults.append(fault("FILE_TRUNCATED", why))
    elif has > end:
        why = f"{shard.file}: {has - end} bytes follow the last tensor, which readers refuse; save it again"
        faults.append(fault("FILE_TRAILING_BYTES", why))
    return faults
