"""What a compiled loop does with 64 bytes at once, as numba intrinsics over LLVM vectors: AVX-512, AVX2 or NEON code.

Addresses are whole numbers, and nobody checks them: callers give buffers with 64 bytes to spare at either end.
"""

from collections.abc import Callable
from typing import Any

from prill.overlap.words import KEPT_BYTES, MIX, NUMBER, ROTATIONS

WIDTH = 64
LANES = 8
"""Words or grams that are hashed at once."""


def intrinsics() -> dict[str, Any]:
    """What the compiled functions call, by name.

    `fold64(source, target)` stores 64 bytes folded (small letters, digits, line ends; else blanks) and gives a bit for
    each that is an escape or no ASCII; `wordy(address)` and `newlines(address)` a bit for each of 64 folded bytes that
    belongs to a word or ends a line; `fetch(address)` asks for a byte before it is needed; `trailing(mask)`
    how many zero bits stand below the lowest one; `ones(mask)` how many bits are set. `hash8(base, starts, ends, out)`
    stores `words.hash_of` of eight words that lie between 32-bit places behind `base`; `grams8(words, out, sieve,
    shift)` the grams that begin with eight hashes, and gives a bit for each that passes the sieve.
    """
    from llvmlite import ir

    word, no = ir.IntType(64), ir.Constant(ir.IntType(1), 0)
    return {
        "fold64": intrinsic(2, fold64),
        "hash8": intrinsic(4, hash8),
        "grams8": intrinsic(4, grams8),
        "wordy": intrinsic(1, lambda b, at: b.bitcast(b.icmp_unsigned(">", loaded(b, at), all_of(32)), word)),
        "newlines": intrinsic(1, lambda b, at: b.bitcast(b.icmp_unsigned("==", loaded(b, at), all_of(10)), word)),
        "fetch": intrinsic(1, fetch),
        "trailing": intrinsic(1, lambda b, mask: b.cttz(mask, no)),
        "ones": intrinsic(1, lambda b, mask: b.ctpop(mask)),
    }


def intrinsic(count: int, make: Callable[..., Any]) -> Any:
    """An intrinsic of one, two or four unsigned numbers that gives one; `make` writes its code with a builder."""
    from numba import types
    from numba.extending import intrinsic as declare

    number = types.uint64

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return make(builder, *arguments)

    def of_one(context: Any, first: Any) -> Any:
        return number(number), write

    def of_two(context: Any, first: Any, second: Any) -> Any:
        return number(number, number), write

    def of_four(context: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
        return number(number, number, number, number), write

    return declare({1: of_one, 2: of_two, 4: of_four}[count])


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


def eight(value: int) -> Any:
    """A vector of one number."""
    from llvmlite import ir

    word = ir.IntType(64)
    return ir.Constant(ir.VectorType(word, LANES), [ir.Constant(word, value)] * LANES)


def numbers_at(builder: Any, address: Any, bits: int) -> Any:
    """Eight numbers of so many bits that lie in a row, as numbers of 64."""
    from llvmlite import ir

    kind = ir.VectorType(ir.IntType(bits), LANES)
    found = builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)
    return found if bits == 64 else builder.zext(found, ir.VectorType(ir.IntType(64), LANES))


def gathered(builder: Any, addresses: Any) -> Any:
    """Eight numbers from eight addresses, one load each: every machine has those."""
    from llvmlite import ir

    word, lane = ir.IntType(64), ir.IntType(32)
    found = eight(0)
    for number in range(LANES):
        address = builder.extract_element(addresses, ir.Constant(lane, number))
        value = builder.load(builder.inttoptr(address, word.as_pointer()), align=1)
        found = builder.insert_element(found, value, ir.Constant(lane, number))
    return found


def spread(builder: Any, value: Any) -> Any:
    """A number in each of eight lanes."""
    from llvmlite import ir

    one = builder.insert_element(eight(0), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def fetch(builder: Any, address: Any) -> Any:
    """The code of `fetch`: a hint to the memory, which faults nowhere."""
    from llvmlite import ir

    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    name = "llvm.prefetch.p0"
    known = builder.module.globals
    hint = known[name] if name in known else ir.Function(builder.module, kind, name)
    builder.call(hint, [builder.inttoptr(address, byte), *(ir.Constant(number, n) for n in (0, 3, 1))])
    return address


def hash8(builder: Any, base: Any, starts: Any, ends: Any, out: Any) -> Any:
    """The code of `hash8`. Shifts by 64 are written as two of half of it."""
    b = builder
    start, full = numbers_at(b, starts, 32), eight((1 << 64) - 1)
    length = b.sub(numbers_at(b, ends, 32), start)
    first = b.add(spread(b, base), start)
    short = b.select(b.icmp_unsigned("<", length, eight(8)), length, eight(8))
    most = b.select(b.icmp_unsigned("<", length, eight(KEPT_BYTES)), length, eight(KEPT_BYTES))
    rest = b.shl(b.sub(most, short), eight(2))
    low = b.and_(gathered(b, first), b.lshr(full, b.sub(eight(64), b.shl(short, eight(3)))))
    mask = b.sub(b.shl(b.shl(eight(1), rest), rest), eight(1))
    high = b.and_(gathered(b, b.add(first, eight(8))), mask)
    mixed = b.mul(b.xor(low, b.mul(length, eight(MIX[2]))), eight(MIX[0]))
    mixed = b.mul(b.add(b.xor(mixed, b.lshr(mixed, eight(32))), high), eight(MIX[1]))
    mixed = b.xor(mixed, b.lshr(mixed, eight(29)))
    digit = b.icmp_unsigned("<", b.sub(b.and_(low, eight(255)), eight(48)), eight(10))
    b.store(b.select(digit, eight(NUMBER), mixed), b.inttoptr(out, mixed.type.as_pointer()), align=1)
    return out


def grams8(builder: Any, words: Any, out: Any, sieve: Any, shift: Any) -> Any:
    """The code of `grams8`."""
    from llvmlite import ir

    b, word = builder, ir.IntType(64)
    value = numbers_at(b, words, 64)
    for place, turn in enumerate(ROTATIONS[1:], 1):
        other = numbers_at(b, b.add(words, ir.Constant(word, 8 * place)), 64)
        value = b.xor(value, b.or_(b.shl(other, eight(turn)), b.lshr(other, eight(64 - turn))))
    b.store(value, b.inttoptr(out, value.type.as_pointer()), align=1)
    place = b.lshr(value, spread(b, shift))
    kept = gathered(b, b.add(spread(b, sieve), b.shl(place, eight(3))))
    bits = eight(0)
    for right in (0, 6, 12):
        bits = b.or_(bits, b.shl(eight(1), b.and_(b.lshr(value, eight(right)), eight(63))))
    passed = b.icmp_unsigned("==", b.and_(kept, bits), bits)
    return b.zext(b.bitcast(passed, ir.IntType(LANES)), word)
