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
from prill.overlap.scalar import FEWEST_WORDS, LONG_RUN, LONG_WORD, MOST_WORDS, WINDOW
from prill.overlap.vectors import LANES
from prill.overlap.words import NUMBER, PLANES, SIZE

MARGIN = 2 * vectors.WIDTH
USUAL_WORDS = 12
"""In 64 bytes; more take a second round."""
AHEAD = 8
"""Hits between asking for what they need and using it."""
u: Any = int
trailing: Any = None
ones: Any = None
fold64: Any = None
wordy: Any = None
newlines: Any = None
fetch: Any = None
hash8: Any = None
grams8: Any = None


def room(length: int) -> dict[str, int]:
    """How many elements the buffers for a chunk of so many bytes must have at least."""
    return {"folded": 2 * length + 4 * MARGIN, "words": length + MARGIN, "lines": length + MARGIN}


@lru_cache(1)
def compiled() -> SimpleNamespace:
    """`find` and `add`, compiled; what they call is compiled into them. Raises `ImportError` without numba."""
    from numba import njit, uint64

    space = {**globals(), **vectors.intrinsics(), "u": uint64}
    for plain in (
        hexadecimal,
        put,
        escape,
        character,
        fold,
        edges,
        hashes,
        numbers_run,
        longest,
        mask,
        cut,
        look,
        settle,
        find,
        add,
    ):
        space[plain.__name__] = njit(cache=True, nogil=True)(FunctionType(plain.__code__, space, plain.__name__))
    return SimpleNamespace(find=space["find"], add=space["add"])


def find(
    data: Any, length: int, folded: Any, table: Any, words: Any, lines: Any, hashed: Any,
    sieve: Any, shift: int, keys: Any, numbers: Any,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """`scalar.Scalar.find` of `length` bytes from `MARGIN` on: hits, segments, line ends, long words, longest run.

    Buffers, each with a row for each use: `words` gets starts, ends and places of hits as segments and grams; `lines`
    begins and pieces of segments at its end; `hashed` words and grams. One call, so that a thread asks for Python once.
    """
    end = fold(data, MARGIN, MARGIN + length, folded, table)
    count, ended = edges(folded, end, words[0], words[1], lines[0])
    segments = cut(count, lines[0], ended, lines[1], lines[2], lines[3])
    hashes(folded, words[0], words[1], count, hashed[0])
    long_words = longest(words[0], words[1], lines[1], segments)
    kept = mask(hashed[0], lines[1], segments)
    run = numbers_run(folded, words[0], count) if count - kept >= LONG_RUN // 2 else 0
    maybe = look(hashed[0], kept, sieve, shift, hashed[1], words[0])
    hits = settle(hashed[1], words[0], maybe, lines[1], keys, numbers, words[2], words[3])
    return hits, segments, ended, long_words, run


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


def hashes(target: Any, starts: Any, ends: Any, count: int, kept: Any) -> None:
    """`words.hash_of` of every word, eight at a time; places behind the last are filled up."""
    for place in range(u(count), u(count + LANES)):
        starts[place], ends[place] = MARGIN, MARGIN + 1
    base, begin, behind, out = u(target.ctypes.data), u(starts.ctypes.data), u(ends.ctypes.data), u(kept.ctypes.data)
    for eight in range(u((count + LANES - 1) // LANES)):
        hash8(base, begin + u(32) * eight, behind + u(32) * eight, out + u(64) * eight)


def longest(starts: Any, ends: Any, stops: Any, segments: int) -> int:
    """`Found.long_words`."""
    begun, most = u(0), u(0)
    for segment in range(segments):
        stop, many = u(stops[segment]), u(0)
        for place in range(begun, stop):
            many += u(ends[place] - starts[place]) // u(LONG_WORD)
        begun, most = stop, max(most, many)
    return int(most)


def mask(kept: Any, stops: Any, segments: int) -> int:
    """Of a run of numbers in a segment only the first stays; how many words are left to be compared.

    `stops` has behind which word each segment stops, and gets the same in words that are compared.
    """
    out, begun = u(0), u(0)
    for segment in range(segments):
        stop, before = u(stops[segment]), u(0)
        for place in range(begun, stop):
            value = kept[place]
            number = u(value == u(NUMBER))
            kept[out] = value
            out += u(1) - (number & before)
            before = number
        begun = stop
        stops[segment] = out
    return int(out)


def numbers_run(target: Any, starts: Any, count: int) -> int:
    """`Found.numbers`. In segments of many words a long run of numbers leaves more than half of itself uncompared."""
    run, most = u(0), u(0)
    for place in range(u(count)):
        run = (run + u(1)) * u(u(target[starts[place]]) - u(48) < u(10))
        most = max(most, run)
    return int(most) if most >= u(LONG_RUN) else 0


# --- looking: `words.grams`, and whether the index has them ---------------------------------------------------


def look(kept: Any, count: int, sieve: Any, shift: int, values: Any, maybe: Any) -> int:
    """Words at which a gram begins that passes the sieve, into `maybe`, and every gram into `values`.

    `sieve` is a bloom filter with three bits in one word.
    """
    last, found = u(max(0, count - SIZE + 1)), u(0)
    words, out, bits = u(kept.ctypes.data), u(values.ctypes.data), u(sieve.ctypes.data)
    for eight in range((last + u(LANES - 1)) // u(LANES)):
        passed = grams8(words + u(64) * eight, out + u(64) * eight, bits, u(shift))
        while passed:
            maybe[found] = u(LANES) * eight + trailing(passed)
            found += u(1)
            passed &= passed - u(1)
    while found > u(0) and u(maybe[found - u(1)]) >= last:
        found -= u(1)
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
    events, last, of_gram, of_posting = 0, len(found) - 1, u(about.ctypes.data), u(postings.ctypes.data)
    for hit in range(len(found)):
        fetch(of_gram + u(8) * u(grams[min(hit + 2 * AHEAD, last)]))
        fetch(of_posting + u(8) * u(about[grams[min(hit + AHEAD, last)], 0]))
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
