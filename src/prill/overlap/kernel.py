"""The fast form of `scalar.py`: the same numbers, compiled by numba, 64 bytes at a time.

The functions are plain Python over arrays; `compiled()` gives their compiled twins, in which `u` makes unsigned numbers
and the names of `vectors.intrinsics` do what they say. Loops over unsigned numbers are the ones that become vectors.
Not covered: machines without numba; there `scalar.py` does the work. Nothing here checks the bounds of a buffer: a
chunk has `MARGIN` bytes to spare on either side, and `room` says how large the others must be.
"""

from functools import lru_cache
from types import FunctionType, SimpleNamespace
from typing import Any

from prill.overlap import vectors
from prill.overlap.scalar import FEWEST_WORDS, LONG_WORD, MOST_WORDS, WINDOW
from prill.overlap.words import KEPT_BYTES, MIX, NUMBER, PLANES, ROTATIONS, SIZE

MARGIN = 2 * vectors.WIDTH
EVERYTHING = (1 << 64) - 1
MIX_0, MIX_1, MIX_2 = MIX
TURN_1, TURN_2, TURN_3, TURN_4 = ROTATIONS[1:]
USUAL_WORDS = 12
"""In 64 bytes; more take a second round."""
SPREAD = 0x9E3779B97F4A7C15
"""Multiplier that makes a place in a table of a gram."""
u: Any = int
trailing: Any = None
ones: Any = None
fold64: Any = None
wordy: Any = None
newlines: Any = None
load: Any = None


def room(length: int) -> dict[str, int]:
    """How many elements the buffers for a chunk of so many bytes must have at least."""
    return {"folded": 2 * length + 4 * MARGIN, "words": length + MARGIN, "lines": length + MARGIN}


@lru_cache(1)
def compiled() -> SimpleNamespace:
    """`fold`, `edges`, `hashes`, `cut`, `look`, `settle` and `add`, compiled. Raises `ImportError` without numba."""
    from numba import njit, uint64

    space = {**globals(), **vectors.intrinsics(), "u": uint64}
    for plain in (hexadecimal, put, escape, character, fold, edges, hashes, cut, look, settle, add):
        space[plain.__name__] = njit(cache=True, nogil=True)(FunctionType(plain.__code__, space, plain.__name__))
    return SimpleNamespace(
        **{name: space[name] for name in ("fold", "edges", "hashes", "cut", "look", "settle", "add")}
    )


# --- folding: `words.folded` --------------------------------------------------------------------------------


def hexadecimal(data: Any, at: int) -> int:
    """Four hexadecimal digits as a number, or -1."""
    value = 0
    for place in range(at, at + 4):
        c = data[place]
        if 48 <= c < 58:
            digit = c - 48
        elif 97 <= c | 32 < 103:
            digit = (c | 32) - 87
        else:
            return -1
        value = value << 4 | digit
    return value


def put(target: Any, to: int, table: Any, point: int) -> int:
    """Write what a character becomes; the place behind it comes back."""
    if point < PLANES:
        packed = table[point]
        length = packed & u(7)
        for number in range(length):
            target[to + number] = (packed >> (u(56) - u(8) * number)) & u(255)
        return int(to + length)
    target[to] = 32
    if point >= 0x110000:
        return to + 1
    target[to + 1] = 0xF0 | point >> 18
    target[to + 2] = 0x80 | point >> 12 & 63
    target[to + 3] = 0x80 | point >> 6 & 63
    target[to + 4] = 0x80 | point & 63
    target[to + 5] = 32
    return to + 6


def escape(data: Any, at: int, end: int, target: Any, to: int, table: Any) -> tuple[int, int]:
    """Write what a run of backslashes and what it escapes become; the places behind them come back."""
    while at < end and data[at] == 0x5C:
        at += 1
    if at == end:
        target[to] = 32
        return at, to + 1
    c = data[at]
    if c == 110 or c == 114 or c == 116 or c == 102 or c == 98:  # n r t f b
        target[to] = 32
        return at + 1, to + 1
    point = hexadecimal(data, at + 1) if c == 117 and at + 5 <= end else -1
    if point < 0:
        target[to] = 32
        return at, to + 1
    at += 5
    if 0xD800 <= point < 0xDC00:
        behind = at
        while behind < end and data[behind] == 0x5C:
            behind += 1
        if at < behind and behind + 5 <= end and data[behind] == 117:
            low = hexadecimal(data, behind + 1)
            if 0xDC00 <= low < 0xE000:
                point = 0x10000 + ((point & 0x3FF) << 10) + (low & 0x3FF)
                at = behind + 5
    return at, put(target, to, table, point)


def character(data: Any, at: int, end: int, target: Any, to: int, table: Any) -> tuple[int, int]:
    """Write what the character that begins at a byte above 127 becomes; the places behind them come back."""
    first = int(data[at])
    length = 2 if 0xC2 <= first < 0xE0 else 3 if 0xE0 <= first < 0xF0 else 4 if 0xF0 <= first < 0xF5 else 0
    if length == 0 or at + length > end:
        target[to] = 32
        return at + 1, to + 1
    point = first & (0x7F >> length)
    for place in range(at + 1, at + length):
        c = int(data[place])
        if c & 0xC0 != 0x80:
            target[to] = 32
            return at + 1, to + 1
        point = point << 6 | c & 63
    return at + length, put(target, to, table, point)


def fold(data: Any, begin: int, end: int, target: Any, table: Any) -> int:
    """Fold `data[begin:end]` into `target`, from `MARGIN` on; the place behind the last byte comes back.

    After something special the next 64 bytes are read and written from there on, over what was written too much.
    """
    at, to = begin, MARGIN
    source, place = u(data.ctypes.data), u(target.ctypes.data)
    while at < end:
        special = fold64(source + u(at), place + u(to))
        if special == u(0):
            at += 64
            to += 64
            continue
        skipped = int(trailing(special))
        at += skipped
        to += skipped
        if at >= end:
            break
        if data[at] == 0x5C:
            at, to = escape(data, at, end, target, to, table)
        else:
            at, to = character(data, at, end, target, to, table)
    to -= at - end
    for behind in range(to, to + MARGIN):
        target[behind] = 32
    return to


# --- cutting: `scalar.segments` and `words.masked` -----------------------------------------------------------


def edges(target: Any, end: int, starts: Any, ends: Any, until: Any) -> tuple[int, int]:
    """Where words begin and end, and how many began before each line end; counts of words and of line ends."""
    base = u(target.ctypes.data)
    begun, ended, lines, carry = u(0), u(0), u(0), u(0)
    for number in range(u((end - MARGIN) // 64 + 1)):
        block = u(MARGIN) + u(64) * number
        inside = wordy(base + block)
        line = newlines(base + block)
        before = inside << u(1) | carry
        carry = inside >> u(63)
        first, behind = inside & ~before, ~inside & before
        while line:
            bit = trailing(line)
            until[lines] = begun + ones(first & ((u(1) << bit) - u(1)))
            lines += u(1)
            line &= line - u(1)
        begins, stops = ones(first), ones(behind)
        for place in range(u(USUAL_WORDS)):  # beyond the last bit this writes what the next block writes over
            starts[begun + place] = block + trailing(first)
            ends[ended + place] = block + trailing(behind)
            first &= first - u(1)
            behind &= behind - u(1)
        if begins > u(USUAL_WORDS) or stops > u(USUAL_WORDS):
            for place in range(u(USUAL_WORDS), u(32)):
                starts[begun + place] = block + trailing(first)
                ends[ended + place] = block + trailing(behind)
                first &= first - u(1)
                behind &= behind - u(1)
        begun += begins
        ended += stops
    return int(begun), int(lines)


def cut(count: int, until: Any, lines: int, stops: Any, begins: Any, pieces: Any) -> int:
    """Segments: behind which word each stops, the line it begins with, and its piece; how many there are."""
    segment, begun, line, piece = 0, 0, 0, 0
    for which in range(lines + 1):
        here = count if which == lines else int(until[which])
        while True:
            have = here - begun
            if have >= MOST_WORDS:
                begun += MOST_WORDS
            elif have >= FEWEST_WORDS or (which == lines and have > 0):
                begun = here
            else:
                break
            stops[segment], begins[segment], pieces[segment] = begun, line, piece
            segment += 1
            piece += 1
            if have < MOST_WORDS:
                line, piece = which + 1, 0
                break
    return segment


def hashes(target: Any, starts: Any, ends: Any, stops: Any, segments: int, kept: Any) -> tuple[int, int]:
    """`words.hash_of` of each word that is compared; how many those are, and how many words are long.

    `stops` has behind which word each segment stops, and gets the same in words that are compared.
    """
    base = u(target.ctypes.data)
    long_words, out, begun = u(0), u(0), u(0)
    for segment in range(segments):
        stop, before = u(stops[segment]), u(0)
        for place in range(begun, stop):
            start, length = u(starts[place]), u(ends[place]) - u(starts[place])
            short = min(length, u(8))
            rest = min(max(length, u(8)), u(KEPT_BYTES)) - u(8)
            low = load(base + start) & (u(EVERYTHING) >> (u(64) - u(8) * short))
            high = load(base + start + u(8)) & ((u(1) << u(4) * rest << u(4) * rest) - u(1))
            mixed = (low ^ length * u(MIX_2)) * u(MIX_0)
            mixed ^= mixed >> u(32)
            mixed = (mixed + high) * u(MIX_1)
            mixed ^= mixed >> u(29)
            number = u((low & u(255)) - u(48) < u(10))
            kept[out] = u(NUMBER) if number else mixed
            out += u(1) - (number & before)
            before = number
            long_words += length // u(LONG_WORD)
        begun = stop
        stops[segment] = out
    return int(out), int(long_words)


# --- looking: `words.grams`, and whether the index has them ---------------------------------------------------


def look(kept: Any, count: int, sieve: Any, shift: int, values: Any, maybe: Any) -> int:
    """Words at which a gram begins that passes the sieve, into `maybe`, and every gram into `values`.

    `sieve` is a bloom filter with three bits in one word. Three loops, because one would not become vectors.
    """
    last, right, found = u(max(0, count - SIZE + 1)), u(shift), u(0)
    for place in range(last):
        b, c, d, e = kept[place + u(1)], kept[place + u(2)], kept[place + u(3)], kept[place + u(4)]
        value = kept[place] ^ (b << u(TURN_1) | b >> u(64 - TURN_1)) ^ (c << u(TURN_2) | c >> u(64 - TURN_2))
        values[place] = value ^ (d << u(TURN_3) | d >> u(64 - TURN_3)) ^ (e << u(TURN_4) | e >> u(64 - TURN_4))
    for place in range(last):
        value = values[place]
        bits = u(1) << (value & u(63)) | u(1) << (value >> u(6) & u(63)) | u(1) << (value >> u(12) & u(63))
        maybe[found] = place
        found += u(sieve[value * u(SPREAD) >> right] & bits == bits)
    return int(found)


def settle(values: Any, maybe: Any, count: int, stops: Any, keys: Any, numbers: Any, at: Any, out: Any) -> int:
    """Of what passed the sieve, segments and numbers of grams that the index has, into `at` and `out`; how many."""
    segment, found, most = 0, 0, u(len(keys) - 1)
    for which in range(u(count)):
        place = u(maybe[which])
        value = values[place]
        slot = (value >> u(20)) & most
        while numbers[slot] >= 0 and keys[slot] != value:
            slot = (slot + u(1)) & most
        if numbers[slot] < 0:
            continue
        while u(stops[segment]) <= place:
            segment += 1
        if place + u(SIZE) <= u(stops[segment]):
            at[found], out[found] = segment, numbers[slot]
            found += 1
    return found


def add(base: int, found: Any, grams: Any, about: Any, postings: Any, entries: Any, out: Any) -> int:
    """`scalar.Score.add`; `out` gets as many pairs as it has room for, and the number of all comes back.

    `about` has of each gram where its postings begin and its worth; `postings` an entry and the last segment of each;
    `entries` of each its last segment, the last one told, its need, and the masses of the window, newest first.
    """
    events = 0
    for hit in range(len(found)):
        now = base + found[hit]
        number = grams[hit]
        worth = about[number, 1]
        for posting in range(about[number, 0], about[number + 1, 0]):
            entry, before = postings[posting, 0], postings[posting, 1]
            if before == now:
                continue
            passed = now - entries[entry, 0]
            if passed > 0:
                entries[entry, 5] = entries[entry, 4] if passed == 1 else entries[entry, 3] if passed == 2 else 0
                entries[entry, 4] = entries[entry, 3] if passed == 1 else 0
                entries[entry, 3] = 0
                entries[entry, 0] = now
            postings[posting, 1] = now
            entries[entry, 3] += worth
            if now - before < WINDOW:
                entries[entry, 3 + now - before] -= worth
            total = entries[entry, 3] + entries[entry, 4] + entries[entry, 5]
            if total >= entries[entry, 2] and entries[entry, 1] != now:
                entries[entry, 1] = now
                if events < len(out):
                    out[events, 0], out[events, 1] = now, entry
                events += 1
    return events
