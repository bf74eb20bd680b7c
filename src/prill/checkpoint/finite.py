"""Whether all numbers of a safetensors file are finite: one pass over its bytes, in constant memory, without numpy.

Infinity and NaN are known by their exponent bits, which lie in the last one or two bytes of a little-endian element.
Holes of a sparse file are zeros and are skipped. Not covered: integers, and packed formats below one byte.
"""

import os
from pathlib import Path

from prill.checkpoint.documents import fault, printable
from prill.checkpoint.tensors import Shard, Tensor
from prill.record import Fault

BLOCK = 1 << 20
EXPONENT = {
    "F64": (8, 0x7F, 0xF0), "F32": (4, 0x7F, 0x80), "BF16": (2, 0x7F, 0x80), "F16": (2, 0x7C, 0x00),
    "F8_E5M2": (1, 0x7C, 0x00),
}  # fmt: skip
"""dtype → bytes of an element, exponent bits in its last byte, exponent bits in the byte before."""
EXACT = {"F8_E4M3": (1, frozenset({0x7F, 0xFF})), "F8_E8M0": (1, frozenset({0xFF}))}
"""dtype → bytes of an element, last bytes that are no finite number."""


def nonfinite(path: Path, shard: Shard) -> Fault | None:
    """The first infinity or NaN of a well-formed file, as a fault."""
    with path.open("rb", buffering=0) as opened:
        for tensor in shard.tensors:
            if tensor.dtype in EXPONENT or tensor.dtype in EXACT:
                at = first(opened.fileno(), shard.start, tensor)
                if at is not None:
                    where = f"{shard.file}: element {at} of {printable(tensor.name)!r}"
                    why = f"{where} is infinite or not a number; save a checkpoint from before training diverged"
                    return fault("WEIGHTS_NONFINITE", why)
    return None


def first(descriptor: int, start: int, tensor: Tensor) -> int | None:
    """Index of the first element that is not finite, in storage order."""
    width, marks, before = tables(tensor.dtype)
    begin, end = start + tensor.begin, start + tensor.end
    at = begin
    while at < end:
        data_from = next_data(descriptor, at)
        if data_from >= end:
            return None
        at = max(at, begin + (data_from - begin) // width * width)
        block = os.pread(descriptor, min(BLOCK, end - at), at)
        block = block[: len(block) // width * width]
        if not block:
            return None  # shorter than declared: told as FILE_TRUNCATED
        hit = find(block, width, marks, before)
        if hit is not None:
            return (at - begin) // width + hit
        at += len(block)
    return None


def find(block: bytes, width: int, marks: bytes, before: int) -> int | None:
    """Index of the first element of a block whose exponent bits are all set."""
    flags = block[width - 1 :: width].translate(marks)
    at = flags.find(1)
    while at >= 0:
        if not before or block[at * width + width - 2] & before == before:
            return at
        at = flags.find(1, at + 1)
    return None


def tables(dtype: str) -> tuple[int, bytes, int]:
    """Bytes of an element, 256 marks (1 where a last byte may belong to no finite number), bits of the byte before."""
    if dtype in EXACT:
        width, last = EXACT[dtype]
        return width, bytes(value in last for value in range(256)), 0
    width, bits, before = EXPONENT[dtype]
    return width, bytes(value & bits == bits for value in range(256)), before


def next_data(descriptor: int, at: int) -> int:
    """Where the next bytes that are not a hole begin; `at` itself where the file system does not tell."""
    try:
        return os.lseek(descriptor, at, os.SEEK_DATA)
    except OSError as error:
        return at if error.errno != 6 else 1 << 63  # ENXIO: only a hole follows
