"""The fast form of `scalar.py`: the same numbers, compiled by numba, 64 bytes at a time.

The functions are plain Python over arrays; `compiled()` gives their compiled twins, in which `u` makes unsigned numbers
and the names of `vectors.intrinsics` do what they say. Loops over unsigned numbers are the ones that become vectors.
Not covered: machines without numba; there `scalar.py` does the work. Nothing here checks the bounds of a buffer: `room`
says how large each must be.
"""

from functools import lru_cache
from types import FunctionType, SimpleNamespace
from typing import Any

from prill.overlap import folding, vectors
from prill.overlap.folding import MARGIN, fold
from prill.overlap.index import MOST_UNITS
from prill.overlap.scalar import FEWEST_WORDS, LONG_RUN, LONG_WORD, MOST_WORDS, WINDOW
from prill.overlap.vectors import LANES
from prill.overlap.words import NUMBER, ROTATIONS, SIZE

USUAL_WORDS = 12
"""In 64 bytes; more take a second round."""
AHEAD = 8
"""Hits between asking for what they need and using it."""
MASS_BITS = 63 // WINDOW
"""Of an entry's mass in one segment: a piece of some 400 words weighs less than 2**19."""
FULL = LONG_RUN // LANES - 1
"""Groups of `LANES` words that are all numbers, of which a run of `LONG_RUN` numbers has at least so many in a row."""
u: Any = int
trailing: Any = None
ones: Any = None
wordy: Any = None
newlines: Any = None
fetch: Any = None
hash8: Any = None
move8: Any = None
grams8: Any = None


def room(length: int) -> dict[str, int]:
    """How many elements the buffers for a chunk of so many bytes must have at least."""
    return {
        "folded": 2 * length + 4 * MARGIN,
        "words": length + MARGIN,
        "lines": length + MARGIN,
        "marks": length // LANES + MARGIN,
    }


@lru_cache(1)
def compiled() -> SimpleNamespace:
    """`find` and `add`, compiled; what they call is compiled into them. Raises `ImportError` without numba."""
    from numba import njit, uint64

    space = {**vars(folding), **globals(), **vectors.intrinsics(), "u": uint64}
    for plain in (
        folding.hexadecimal, folding.put, folding.escape, folding.character, folding.stretch, fold, halves, begins,
        hashes, cut, longest, numbers_run, mask, gram_at, look, settle, find, add,
    ):  # fmt: skip
        space[plain.__name__] = njit(cache=True, nogil=True)(FunctionType(plain.__code__, space, plain.__name__))
    return SimpleNamespace(find=space["find"], add=space["add"])


def find(
    data: Any, tail: Any, folded: Any, table: Any, words: Any, places: Any, lines: Any, bits: Any, marks: Any,
    sieve: Any, shift: int, first: Any, grams: Any,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """`scalar.Scalar.find` of a chunk: hits, segments, line ends, long words, longest run of numbers.

    `tail` are the last 64 bytes of `data`, or all, with `MARGIN` bytes behind them. Buffers: `words` has a row for
    hashes of words and one for grams; `places` gets segments and grams of hits; `lines` begins and pieces of segments
    at its end; `bits` and `marks` are the same bytes, by eight and one by one. One call, so that a thread asks for
    Python once.
    """
    end = fold(data, tail, folded, table)
    count, ended, longs = begins(folded, end, places[0], lines[0], places[1], places[2])
    segments = cut(count, lines[0], ended, lines[1], lines[2], lines[3])
    long_words = longest(folded, longs, places[1], places[2], lines[1])
    run = numbers_run(words[0], count) if hashes(folded, places[0], count, words[0], marks) >= FULL else 0
    kept = mask(words[0], count, marks, lines[1], segments)
    maybe = look(words[0], kept, sieve, shift, first, bits, marks, words[1], places[0])
    hits = settle(words[1], places[0], maybe, lines[1], shift, first, grams, places[1], places[2])
    return hits, segments, ended, long_words, run


# --- cutting: `scalar.segments` and `words.masked` -----------------------------------------------------------


def halves(inside: int) -> int:
    """Where half a `LONG_WORD` begins: a word as long as that has such a part in one of its blocks."""
    inside &= inside >> u(1)
    inside &= inside >> u(2)
    inside &= inside >> u(4)
    found: int = inside & inside >> u(8)
    return found


def begins(target: Any, end: int, starts: Any, until: Any, blocks: Any, before_it: Any) -> tuple[int, int, int]:
    """Where words begin, and how many began before each line end; counts of both.

    Also, and counted, which 64 bytes hold half a long word, and how many words began before them.
    """
    base, count, lines, longs, carry = u(target.ctypes.data), u(0), u(0), u(0), u(0)
    for number in range(u((end - MARGIN) // 64 + 1)):
        here = u(MARGIN) + u(64) * number
        inside, line = wordy(base + here), newlines(base + here)
        first = inside & ~(inside << u(1) | carry)
        carry = inside >> u(63)
        while line:
            until[lines] = count + ones(first & (line ^ (line - u(1))))
            lines += u(1)
            line &= line - u(1)
        blocks[longs], before_it[longs] = number, count
        longs += u(halves(inside) != u(0))
        many = ones(first)
        for place in range(u(USUAL_WORDS)):  # beyond the last bit this writes what the next block writes over
            starts[count + place] = here + trailing(first)
            first &= first - u(1)
        if many > u(USUAL_WORDS):
            for place in range(u(USUAL_WORDS), u(32)):
                starts[count + place] = here + trailing(first)
                first &= first - u(1)
        count += many
    return int(count), int(lines), int(longs)


def hashes(target: Any, starts: Any, count: int, kept: Any, marks: Any) -> int:
    """`words.hash_of` of every word, and which are numbers, as a bit of `marks` each.

    How many groups of only numbers stand in a row at most comes back.
    """
    for place in range(u(count), u(count + LANES)):
        starts[place] = 0
    base, begin, out = u(target.ctypes.data), u(starts.ctypes.data), u(kept.ctypes.data)
    full, most = u(0), u(0)
    for eight in range(u(count // LANES)):
        numbers = hash8(base, begin + u(32) * eight, out + u(64) * eight)
        marks[eight] = numbers
        full = (full + u(1)) * u(numbers == u(255))
        most = max(most, full)
    rest = u(count // LANES)
    marks[rest] = hash8(base, begin + u(32) * rest, out + u(64) * rest) & ((u(1) << u(count % LANES)) - u(1))
    return int(most)


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


def longest(target: Any, longs: int, blocks: Any, before_it: Any, stops: Any) -> int:
    """`Found.long_words`. `stops` counts all words."""
    base, segment, many, most, behind = u(target.ctypes.data), 0, u(0), u(0), u(0)
    for which in range(longs):
        here = u(MARGIN) + u(64) * u(blocks[which])
        inside = wordy(base + here)
        first = inside & ~(inside << u(1) | u(target[here - u(1)] > 32))
        runs = halves(inside)
        while runs:
            bit = trailing(runs)
            runs &= runs - u(1)
            start = stop = here + bit
            if start < behind:
                continue
            while target[start - u(1)] > 32:
                start -= u(1)
            while target[stop] > 32:
                stop += u(1)
            behind = stop
            number = u(before_it[which]) + ones(first & ((u(2) << bit) - u(1)))
            while number > u(stops[segment]):
                segment, many = segment + 1, u(0)
            many += (stop - start) // u(LONG_WORD)
            most = max(most, many)
    return int(most)


def numbers_run(kept: Any, count: int) -> int:
    """`Found.numbers`."""
    run, most = u(0), u(0)
    for place in range(u(count)):
        run = (run + u(1)) * u(kept[place] == u(NUMBER))
        most = max(most, run)
    return int(most) if most >= u(LONG_RUN) else 0


def mask(kept: Any, count: int, marks: Any, stops: Any, segments: int) -> int:
    """Of a run of numbers in a segment only the first stays; how many words are left to be compared.

    `stops` has behind which word each segment stops, and gets the same in words that are compared.
    """
    base, groups = u(kept.ctypes.data), u((count + LANES - 1) // LANES)
    out, carry, begun, segment = u(0), u(0), u(0), 0
    for eight in range(groups):
        number = u(marks[eight])
        again = number & (number << u(1) | carry)
        carry = number >> u(LANES - 1)
        place = u(LANES) * eight
        if again == u(0):
            if out < place:
                move8(base + u(8) * place, base + u(8) * out)
            out += u(LANES)
            continue
        for at in range(place, place + u(LANES)):
            while segment < segments and u(stops[segment]) <= at:
                begun = u(stops[segment])
                stops[segment] = begun + out - at
                segment += 1
            kept[out] = kept[at]
            out += u(1) - (again >> (at - place) & u(begun != at))
    gone = u(LANES) * groups - out
    for left in range(segment, segments):
        stops[left] = u(stops[left]) - gone
    return count - int(gone)


# --- looking: `words.grams`, and whether the index has them ---------------------------------------------------


def gram_at(kept: Any, place: int) -> int:
    """`words.gram` of the words from a place on."""
    value: int = kept[place]
    for ahead in range(1, SIZE):
        other, turn = kept[place + u(ahead)], u(ROTATIONS[ahead])
        value ^= other << turn | other >> (u(64) - turn)
    return value


def look(
    kept: Any, count: int, sieve: Any, shift: int, first: Any, bits: Any, marks: Any, values: Any, maybe: Any
) -> int:
    """Words at which a gram begins that passes the sieve, into `maybe`, and the grams into `values`; how many.

    `sieve` is a bloom filter with three bits in one word.
    """
    last, found = u(max(0, count - SIZE + 1)), u(0)
    words, filters, begins = u(kept.ctypes.data), u(sieve.ctypes.data), u(first.ctypes.data)
    groups = (last + u(LANES - 1)) // u(LANES)
    for eight in range(groups):
        marks[eight] = grams8(words + u(64) * eight, filters, u(shift))
    for behind in range(groups, groups + u(LANES)):
        marks[behind] = u(0)
    for many in range((groups + u(LANES - 1)) // u(LANES)):
        passed = bits[many]
        while passed:
            place = u(64) * many + trailing(passed)
            passed &= passed - u(1)
            values[found], maybe[found] = gram_at(kept, place), place
            fetch(begins + u(4) * (values[found] >> u(shift)))
            found += u(1)
    while found > u(0) and u(maybe[found - u(1)]) >= last:
        found -= u(1)
    return int(found)


def settle(
    values: Any, maybe: Any, count: int, stops: Any, shift: int, first: Any, grams: Any, at: Any, out: Any
) -> int:
    """Of what passed the sieve, segments and numbers of grams that the index has, into `at` and `out`; how many.

    `grams` rise, and `first` has where those begin that lie behind each word of the sieve.
    """
    segment, found, known = 0, 0, u(grams.ctypes.data)
    for which in range(count):
        soon = values[min(which + AHEAD, count - 1)] >> u(shift)
        fetch(known + u(8) * u(first[soon]))
        value, place = values[which], u(maybe[which])
        number, end = u(first[value >> u(shift)]), u(first[(value >> u(shift)) + u(1)])
        while number < end and grams[number] < value:
            number += u(1)
        if number == end or grams[number] != value:
            continue
        while u(stops[segment]) <= place:
            segment += 1
        if place + u(SIZE) <= u(stops[segment]):
            at[found], out[found] = segment, number
            found += 1
    return found


def add(base: int, found: Any, grams: Any, about: Any, postings: Any, entries: Any, todo: Any, out: Any) -> int:
    """`scalar.Score.add`; `out` gets as many pairs as it has room for, and the number of all comes back.

    `about` has of each gram where its postings begin and its worth; `postings` an entry and the last segment of each;
    `entries` of each its last segment, the last one told, its need, and the masses of the window in one number, the
    newest lowest. `todo` gets the postings of some hits, so that what they lead to can be asked for early.
    """
    events, hit, count = u(0), u(0), u(len(found))
    of_gram, of_posting, of_entry = u(about.ctypes.data), u(postings.ctypes.data), u(entries.ctypes.data)
    field, all_fields = u((1 << MASS_BITS) - 1), u((1 << MASS_BITS * WINDOW) - 1)
    while hit < count:
        many = u(0)
        while hit < count and many + u(MOST_UNITS) <= u(len(todo)):
            fetch(of_gram + u(8) * u(grams[min(hit + u(2 * AHEAD), count - u(1))]))
            fetch(of_posting + u(8) * u(about[u(grams[min(hit + u(AHEAD), count - u(1))]), 0]))
            number, now = u(grams[hit]), base + found[hit]
            for posting in range(u(about[number, 0]), u(about[number + u(1), 0])):
                todo[many, 0], todo[many, 1], todo[many, 2] = posting, now, about[number, 1]
                many += u(1)
            hit += u(1)
        for which in range(many):
            fetch(of_entry + u(32) * u(postings[u(todo[min(which + u(AHEAD), many - u(1)), 0]), 0]))
            posting, now, worth = u(todo[which, 0]), todo[which, 1], u(todo[which, 2])
            entry, before = u(postings[posting, 0]), postings[posting, 1]
            if before == now:
                continue
            passed, since = u(min(now - entries[entry, 0], WINDOW)), u(min(now - before, WINDOW))
            masses = u(entries[entry, 3]) << u(MASS_BITS) * passed & all_fields
            masses += worth - (worth << u(MASS_BITS) * since & all_fields)
            postings[posting, 1] = entries[entry, 0] = now
            entries[entry, 3] = masses
            total = masses & field
            for older in range(u(1), u(WINDOW)):
                total += masses >> u(MASS_BITS) * older & field
            if total >= u(entries[entry, 2]) and entries[entry, 1] != now:
                entries[entry, 1] = now
                if events < u(len(out)):
                    out[events, 0], out[events, 1] = now, entry
                events += u(1)
    return int(events)
