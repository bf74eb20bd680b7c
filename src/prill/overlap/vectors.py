"""What a compiled loop does with 64 bytes at once, as numba intrinsics over LLVM vectors: AVX-512, AVX2 or NEON code.

Addresses are whole numbers, and nobody checks them: callers give buffers with 64 bytes to spare at either end.
"""

from collections.abc import Callable
from typing import Any

from prill.overlap.words import HALF, MIX, NUMBER, ROTATIONS

WIDTH = 64
LANES = 8
"""Words or grams that are hashed at once."""


def intrinsics() -> dict[str, Any]:
    """What the compiled functions call, by name.

    `fold64(source, target)` stores 64 bytes folded (small letters, digits, line ends; else blanks) and gives a bit for
    each that is an escape or no ASCII; `wordy(address)` and `newlines(address)` a bit for each of 64 folded bytes that
    belongs to a word or ends a line; `fetch(address)` asks for a byte before it is needed; `trailing(mask)` how many
    zero bits stand below the lowest one; `ones(mask)` how many bits are set. `hash8(base, starts, out)` stores
    `words.hash_of` of eight words that begin at 32-bit places behind `base`, and gives a bit for each that is a number;
    `move8(source, target)` copies eight hashes; `grams8(words, sieve, shift)` gives a bit for each gram that begins
    with one of eight hashes and passes the sieve.
    """
    from llvmlite import ir

    word, no = ir.IntType(64), ir.Constant(ir.IntType(1), 0)
    return {
        "fold64": intrinsic(2, fold64),
        "hash8": intrinsic(3, hash8),
        "move8": intrinsic(2, move8),
        "grams8": intrinsic(3, grams8),
        "wordy": intrinsic(1, lambda b, at: b.bitcast(b.icmp_unsigned(">", loaded(b, at), all_of(32)), word)),
        "newlines": intrinsic(1, lambda b, at: b.bitcast(b.icmp_unsigned("==", loaded(b, at), all_of(10)), word)),
        "fetch": intrinsic(1, fetch),
        "trailing": intrinsic(1, lambda b, mask: b.cttz(mask, no)),
        "ones": intrinsic(1, lambda b, mask: b.ctpop(mask)),
    }


def intrinsic(count: int, make: Callable[..., Any]) -> Any:
    """An intrinsic of one, two or three unsigned numbers that gives one; `make` writes its code with a builder."""
    from numba import types
    from numba.extending import intrinsic as declare

    number = types.uint64

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return make(builder, *arguments)

    def of_one(context: Any, first: Any) -> Any:
        return number(number), write

    def of_two(context: Any, first: Any, second: Any) -> Any:
        return number(number, number), write

    def of_three(context: Any, first: Any, second: Any, third: Any) -> Any:
        return number(number, number, number), write

    return declare({1: of_one, 2: of_two, 3: of_three}[count])


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


def numbers_at(builder: Any, address: Any) -> Any:
    """Eight numbers that lie in a row."""
    return builder.load(builder.inttoptr(address, eight(0).type.as_pointer()), align=1)


def gathered(builder: Any, addresses: Any, many: int = 1) -> list[Any]:
    """Eight numbers from eight addresses, one load each, since every machine has those; then what lies behind them."""
    from llvmlite import ir

    word, lane = ir.IntType(64), ir.IntType(32)
    found = [eight(0)] * many
    for number in range(LANES):
        address = builder.extract_element(addresses, ir.Constant(lane, number))
        for ahead in range(many):
            place = builder.add(address, ir.Constant(word, 8 * ahead))
            value = builder.load(builder.inttoptr(place, word.as_pointer()), align=1)
            found[ahead] = builder.insert_element(found[ahead], value, ir.Constant(lane, number))
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


def hash8(builder: Any, base: Any, starts: Any, out: Any) -> Any:
    """The code of `hash8`. A word ends where its bytes say so, at the first that is a blank or a line's end."""
    from llvmlite import ir

    b, kind = builder, ir.VectorType(ir.IntType(32), LANES)
    places = b.load(b.inttoptr(starts, kind.as_pointer()), align=1)
    first = b.add(spread(b, base), b.zext(places, ir.VectorType(ir.IntType(64), LANES)))
    low, high = gathered(b, first, 2)
    left, right = blank(b, low), blank(b, high)
    low = b.and_(low, below(b, left))
    whole = b.sext(b.icmp_signed("==", left, eight(0)), left.type)
    high = b.and_(b.and_(high, below(b, right)), whole)
    number = b.icmp_signed(">=", b.shl(low, eight(57)), eight(0))
    low, high = b.xor(low, eight(MIX[0])), b.xor(high, eight(MIX[1]))
    mixed = b.add(b.xor(product(b, low), swapped(b, high)), b.xor(product(b, high), swapped(b, low)))
    mixed = b.xor(mixed, b.lshr(mixed, eight(32)))
    b.store(b.select(number, eight(NUMBER), mixed), b.inttoptr(out, mixed.type.as_pointer()), align=1)
    return lanes(b, number)


def blank(builder: Any, value: Any) -> Any:
    """All bits of each byte that belongs to no word, none of the others."""
    from llvmlite import ir

    data = builder.bitcast(value, all_of(0).type)
    found = builder.sext(builder.icmp_unsigned("<=", data, all_of(32)), data.type)
    return builder.bitcast(found, ir.VectorType(ir.IntType(64), LANES))


def below(builder: Any, value: Any) -> Any:
    """The bits below the lowest one that is set, or all."""
    return builder.and_(builder.sub(value, eight(1)), builder.not_(value))


def product(builder: Any, value: Any) -> Any:
    """The halves of each number, multiplied."""
    return builder.mul(builder.and_(value, eight(HALF)), builder.lshr(value, eight(32)))


def swapped(builder: Any, value: Any) -> Any:
    """The halves of each number, each in the place of the other."""
    return builder.or_(builder.shl(value, eight(32)), builder.lshr(value, eight(32)))


def move8(builder: Any, source: Any, target: Any) -> Any:
    """The code of `move8`."""
    value = numbers_at(builder, source)
    builder.store(value, builder.inttoptr(target, value.type.as_pointer()), align=1)
    return target


def lanes(builder: Any, truths: Any) -> Any:
    """A bit for each of eight truths."""
    from llvmlite import ir

    return builder.zext(builder.bitcast(truths, ir.IntType(LANES)), ir.IntType(64))


def grams8(builder: Any, words: Any, sieve: Any, shift: Any) -> Any:
    """The code of `grams8`."""
    from llvmlite import ir

    b, word = builder, ir.IntType(64)
    value = numbers_at(b, words)
    for place, turn in enumerate(ROTATIONS[1:], 1):
        other = numbers_at(b, b.add(words, ir.Constant(word, 8 * place)))
        value = b.xor(value, b.or_(b.shl(other, eight(turn)), b.lshr(other, eight(64 - turn))))
    place = b.lshr(value, spread(b, shift))
    (kept,) = gathered(b, b.add(spread(b, sieve), b.shl(place, eight(3))))
    bits = eight(0)
    for right in (0, 6, 12):
        bits = b.or_(bits, b.shl(eight(1), b.and_(b.lshr(value, eight(right)), eight(63))))
    return lanes(b, b.icmp_unsigned("==", b.and_(kept, bits), bits))
