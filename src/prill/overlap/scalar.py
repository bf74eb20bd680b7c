"""The scanner in plain Python: what each chunk of text holds of an index. The fast form must give the same numbers.

A chunk is cut into *segments*: whole lines until there are `FEWEST_WORDS` words, and every `MOST_WORDS` words of a
longer line. Evidence for an entry is the mass of its different grams in a segment and the two before it, so that an
item split over rows is found, and one is not made of words that stand far apart.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from prill.overlap.index import Index, Level
from prill.overlap.words import NUMBER, Word, fives, gram, masked, words

FEWEST_WORDS = 32
MOST_WORDS = 1024
WINDOW = 3
"""Segments whose evidence is added."""
LONG_WORD = 32
"""Bytes; what words have in multiples of it makes one look for encoded blobs."""
LONG_RUN = 64
"""Numbers in a row that make one look for lists of token ids."""


class Found(NamedTuple):
    """What a chunk holds. `segments` and `grams` have one for each hit, `lines` and `pieces` one for each segment."""

    segments: Any
    """Of each hit, the segment, counted in this chunk."""
    grams: Any
    """Of each hit, which gram of the index."""
    lines: Any
    """Of each segment, the line of the chunk that its first piece begins with."""
    pieces: Any
    """Of each segment, which piece it is of those that begin there."""
    newlines: int
    long_words: int
    """How often `LONG_WORD` fits into the words of one segment, at most."""
    numbers: int
    """The longest run of numbers, if it has `LONG_RUN` of them, else 0."""


class Segment(NamedTuple):
    """Words that are looked at together."""

    line: int
    piece: int
    words: list[Word]


def segments(chunk: bytes, line: int = 0, at: int = 0) -> Iterator[Segment]:
    """Segments of a chunk, which may be given from any line on that begins one; `at` is added to places of words."""
    first, piece = line, 0
    gathered: list[Word] = []
    lines = chunk.split(b"\n")
    for number, text in enumerate(lines, line):
        for word in words(text, at):
            gathered.append(word)
            if len(gathered) == MOST_WORDS:
                yield Segment(first, piece, gathered)
                gathered, piece = [], piece + 1
        at += len(text) + 1
        if len(gathered) >= FEWEST_WORDS and number < line + len(lines) - 1:
            yield Segment(first, piece, gathered)
            gathered, piece, first = [], 0, number + 1
    if gathered:
        yield Segment(first, piece, gathered)


class Scalar:
    """Looks for an index in chunks, one after the other."""

    def __init__(self, index: Index, level: Level) -> None:
        self.index, self.level = index, level

    def find(self, chunk: bytes) -> Found:
        """Grams of the index in a chunk, in order."""
        found = Found([], [], [], [], chunk.count(b"\n"), 0, 0)
        long_words = numbers = run = 0
        for count, segment in enumerate(segments(chunk)):
            found.lines.append(segment.line)
            found.pieces.append(segment.piece)
            kept = masked([word.hash for word in segment.words])
            for word in segment.words:
                run = run + 1 if word.hash == NUMBER else 0
                numbers = max(numbers, run)
            long_words = max(long_words, sum(len(word.text) // LONG_WORD for word in segment.words))
            for five in fives([segment.words[place].hash for place in kept]):
                number = self.index.number.get(gram(five))
                if number is not None:
                    found.segments.append(count)
                    found.grams.append(number)
        return found._replace(long_words=long_words, numbers=numbers if numbers >= LONG_RUN else 0)

    def score(self) -> "Score":
        """Adds up the evidence of one stream."""
        return Score(self.index, self.level)


class Score:
    """Evidence of a stream, segment after segment."""

    def __init__(self, index: Index, level: Level) -> None:
        self.index, self.needs = index, index.needs(level)
        self.seen: dict[int, int] = {}
        """Posting → the last segment that had it."""
        self.buckets: dict[int, list[int]] = {}
        """Entry → mass of the grams that were last seen in each of the segments of the window, by segment modulo."""
        self.at: dict[int, int] = {}
        self.told: dict[int, int] = {}

    def add(self, base: int, found: Found) -> list[tuple[int, int]]:
        """Pairs of segment and entry where there is enough of the entry in the window that ends with the segment."""
        events: list[tuple[int, int]] = []
        for local, number in zip(found.segments, found.grams, strict=True):
            now, worth = base + local, self.index.worth[number]
            for posting in range(self.index.first[number], self.index.first[number + 1]):
                entry = self.index.having[posting]
                bucket = self.buckets.setdefault(entry, [0] * WINDOW)
                for passed in range(max(self.at.get(entry, 0) + 1, now - WINDOW + 1), now + 1):
                    bucket[passed % WINDOW] = 0
                self.at[entry] = now
                before = self.seen.get(posting, -WINDOW)
                if before == now:
                    continue
                if before > now - WINDOW:
                    bucket[before % WINDOW] -= worth
                bucket[now % WINDOW] += worth
                self.seen[posting] = now
                if sum(bucket) >= self.needs[entry] and self.told.get(entry, -1) != now:
                    self.told[entry] = now
                    events.append((now, entry))
        return events
