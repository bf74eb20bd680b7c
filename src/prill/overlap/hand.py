"""The chunks of a stream that are at hand: words of their segments, their bytes and their lines, where one asks."""

import re
from collections import deque
from typing import NamedTuple

from prill.overlap.scalar import MOST_WORDS, WINDOW, Found
from prill.overlap.words import Shift, folded, runs_of, word_at

PIECES = runs_of(MOST_WORDS)


class Chunk(NamedTuple):
    """A piece of a stream, and what was found in it."""

    data: bytes
    offset: int
    row: int
    """Lines before it."""
    base: int
    """Segments before it."""
    found: Found


class Lines(NamedTuple):
    """Lines that segments begin with, folded."""

    text: bytes
    shifts: list[Shift]
    pieces: list[tuple[int, int]]
    """Where the segments begin and end in the text."""
    start: int
    """Byte of the stream."""


class AtHand:
    """The last chunks of a stream."""

    def __init__(self) -> None:
        self.chunks: deque[Chunk] = deque(maxlen=WINDOW)
        self.lines: dict[tuple[int, int], Lines] = {}
        self.starts: dict[int, list[int]] = {}

    def add(self, chunk: Chunk) -> None:
        """One more; the oldest is forgotten."""
        self.chunks.append(chunk)
        self.lines.clear()

    def words(self, segment: int) -> tuple[bytes, ...]:
        """Words of a segment; none before the first."""
        lines, begin, end = self.piece(segment)
        return tuple(lines.text[begin:end].split())

    def place(self, segment: int, number: int) -> tuple[int, int]:
        """Where a word of a segment, counted from 0, begins and ends in the stream."""
        (text, shifts, _, start), begin, _ = self.piece(segment)
        word = word_at(text, shifts, begin, number, start)
        return word.start, word.end

    def piece(self, segment: int) -> tuple[Lines, int, int]:
        """The lines that a segment stands in, and where in them."""
        chunk = next((c for c in self.chunks if c.base <= segment < c.base + len(c.found.lines)), None)
        if chunk is None:
            return Lines(b"", [], [], 0), 0, 0
        line, piece = (int(each[segment - chunk.base]) for each in (chunk.found.lines, chunk.found.pieces))
        if (chunk.base, line) not in self.lines:
            self.lines[chunk.base, line] = self.folded(chunk, segment - chunk.base)
        lines = self.lines[chunk.base, line]
        return lines, *lines.pieces[piece]

    def folded(self, chunk: Chunk, segment: int) -> Lines:
        """The lines that a segment, and no earlier one, begins with, up to the next segment's."""
        lines = chunk.found.lines
        line = lines[segment]
        start = self.line_start(chunk, int(line))
        end = next((self.line_start(chunk, int(n)) for n in lines[segment + 1 :] if n > line), None)
        text, shifts = folded(chunk.data[start:end])
        return Lines(text, shifts, [found.span() for found in PIECES.finditer(text)], chunk.offset + start)

    def line_start(self, chunk: Chunk, line: int) -> int:
        """Byte of a chunk where a line begins, counted from 0."""
        if chunk.base not in self.starts:
            self.starts = {chunk.base: [0, *(found.end() for found in re.finditer(b"\n", chunk.data))]}
        return self.starts[chunk.base][line]

    def bytes_between(self, start: int, end: int) -> bytes:
        """Bytes of the stream."""
        return b"".join(c.data[max(0, start - c.offset) : max(0, end - c.offset)] for c in self.chunks)

    def row_of(self, offset: int) -> tuple[int, bytes]:
        """Lines before a byte, and the line that it stands in, as far as it lies in one chunk."""
        chunk = next(c for c in self.chunks if c.offset <= offset < c.offset + len(c.data))
        at = offset - chunk.offset
        first = chunk.data.rfind(b"\n", 0, at) + 1
        end = chunk.data.find(b"\n", at)
        return chunk.row + chunk.data.count(b"\n", 0, first), chunk.data[first : end if end >= 0 else len(chunk.data)]
