"""What a compiled loop does with 64 bytes at once, as numba intrinsics over LLVM vectors: AVX-512, AVX2 or NEON code.

Addresses are whole numbers, and nobody checks them: callers give buffers with 64 bytes to spare at either end.
"""

from collections.abc import Callable
from typing import Any

WIDTH = 64


def intrinsics() -> dict[str, Any]:
    """What the compiled functions call, by name.

    `fold64(source, target)` stores 64 bytes folded (small letters, digits, line ends; else blanks) and gives a bit for
    each that is an escape or no ASCII; `wordy(address)` and `newlines(address)` a bit for each of 64 folded bytes that
    belongs to a word or ends a line; `load(address)` eight bytes as a number, the first the lowest; `trailing(mask)`
    how many zero bits stand below the lowest one; `ones(mask)` how many bits are set.
    """
    from llvmlite import ir

    word, no = ir.IntType(64), ir.Constant(ir.IntType(1), 0)
    return {
        "fold64": intrinsic(2, fold64),
        "wordy": intrinsic(1, lambda b, at: b.bitcast(b.icmp_unsigned(">", loaded(b, at), all_of(32)), word)),
        "newlines": intrinsic(1, lambda b, at: b.bitcast(b.icmp_unsigned("==", loaded(b, at), all_of(10)), word)),
        "load": intrinsic(1, lambda b, at: b.load(b.inttoptr(at, word.as_pointer()), align=1)),
        "trailing": intrinsic(1, lambda b, mask: b.cttz(mask, no)),
        "ones": intrinsic(1, lambda b, mask: b.ctpop(mask)),
    }


def intrinsic(count: int, make: Callable[..., Any]) -> Any:
    """An intrinsic of one or two unsigned numbers that gives one; `make` writes its code with a builder."""
    from numba import types
    from numba.extending import intrinsic as declare

    number = types.uint64

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return make(builder, *arguments)

    def of_one(context: Any, first: Any) -> Any:
        return number(number), write

    def of_two(context: Any, first: Any, second: Any) -> Any:
        return number(number, number), write

    return declare(of_one if count == 1 else of_two)


def all_of(value: int) -> Any:
    """A vector of one byte."""
    from llvmlite import ir

    byte = ir.IntType(8)
    return ir.Constant(ir.VectorType(byte, WIDTH), [ir.Constant(byte, value)] * WIDTH)


def loaded(builder: Any, address: Any) -> Any:
    """64 bytes from anywhere."""
    return builder.load(builder.inttoptr(address, all_of(0).type.as_pointer()), align=1)


def fold64(builder: Any, source: Any, target: Any) -> Any:
    """The code of `fold64`."""
    from llvmlite import ir

    data = loaded(builder, source)
    low = builder.or_(data, all_of(0x20))
    letter = builder.icmp_unsigned("<", builder.sub(low, all_of(97)), all_of(26))
    digit = builder.icmp_unsigned("<", builder.sub(data, all_of(48)), all_of(10))
    end = builder.icmp_unsigned("==", data, all_of(10))
    kept = builder.select(builder.or_(digit, end), data, all_of(32))
    folded = builder.select(letter, low, kept)
    builder.store(folded, builder.inttoptr(target, data.type.as_pointer()), align=1)
    high = builder.icmp_unsigned(">", data, all_of(127))
    escape = builder.icmp_unsigned("==", data, all_of(0x5C))
    return builder.bitcast(builder.or_(high, escape), ir.IntType(64))
