"""Files → places where test items stand: chunks are looked through, and only what is flagged is looked at closely.

One thread reads and adds up, others look; chunks are cut by `sources.BLOCK` alone, so the number of threads changes
nothing. Memory is bounded by a few chunks. A row of token ids is decoded where there is a tokenizer, a blob of base64
where it is text; what they say is scanned as a stream of its own.
"""

import hashlib
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from prill.overlap import hidden
from prill.overlap.align import Match, Window, matches, same_letters
from prill.overlap.engine import Engine
from prill.overlap.hand import AtHand, Chunk
from prill.overlap.index import Index, Level
from prill.overlap.scalar import WINDOW, Found
from prill.overlap.sources import BLOCK, IDS, Text, Unread, files_below, texts
from prill.overlap.words import folded, plain, word_at
from prill.sockets import Value

MOST_WINDOWS = 50_000
"""Flagged windows that are looked at closely; further ones are only counted."""
MOST_PLACES = 10_000
"""Places that are told one by one; items are counted in all."""
MOST_NAMED = 1000
MOST_TOLD = 4096
QUOTED = 300
TOGETHER = 8
"""Chunks that a thread is given at a time, so that handing them over costs little."""
LEAVES = 2000


class Place(Value, frozen=True, kw_only=True):
    """One test item in one place."""

    benchmark: str
    item: str
    part: str
    """Of the item: `question`, `answer` or `all` (with the choices)."""
    kind: str
    file: str
    inside: str
    """Where in the file, if what was read is not the file itself: a member of an archive, `rows`, decoded token ids."""
    row: int
    """Line of the file (of what is inside it), from 1."""
    offset: int
    """Byte of the file (of what is inside it) where it begins."""
    length: int
    field: str | None
    """Path in the row, if the row is JSON."""
    share: float
    """Of what tells the item from other text, how much is there."""
    quote: str
    item_start: int
    """Where in that part of the item it begins and ends, in characters."""
    item_end: int
    item_quote: str


class Report(Value, frozen=True, kw_only=True):
    """What a scan saw."""

    places: tuple[Place, ...]
    items: dict[str, dict[str, int]]
    """Benchmark → item → in how many places it stands."""
    files: int
    rows: int
    bytes: int
    unread: tuple[str, ...]
    """What could hold training text and could not be read, with the reason."""
    passed: tuple[str, ...]
    """Links, pipes and the like: never training text of their own, with the reason."""
    not_looked_at: int
    """Flagged windows beyond the limit."""
    unseen: tuple[str, ...]
    """Items that are too short, or too much like others, to be looked for."""


class Scan:
    """Scans files one after another and remembers what it saw."""

    def __init__(
        self,
        index: Index,
        level: Level,
        engine: Engine,
        *,
        allowed: frozenset[tuple[str, str, bytes]] = frozenset(),
        decode: Callable[[list[list[int]]], list[str]] | None = None,
        workers: int = 1,
        most_windows: int = MOST_WINDOWS,
        remember: bool = False,
        say: Callable[[str, int], None] = lambda name, size: None,
    ) -> None:
        """`allowed`: what `seen_words` of a scan of texts that may be used says, if it was to
        `remember`. `say` hears of each chunk."""
        self.index, self.engine, self.needs = index, engine, index.needs(level)
        self.allowed, self.decode, self.workers, self.say = allowed, decode, workers, say
        self.most_windows, self.remember = most_windows, remember
        self.places: list[Place] = []
        self.items: dict[str, Counter[str]] = {}
        self.unread: dict[str, None] = {}
        self.passed: list[str] = []
        self.seen_words: set[tuple[str, str, bytes]] = set()
        """Benchmark, item and a digest of the words of every match."""
        self.files = self.rows = self.bytes = self.windows = self.not_looked_at = 0

    def report(self) -> Report:
        """What was seen so far. Flagged windows that were not looked at are unread: anything may stand there."""
        beyond = f"{self.not_looked_at} flagged windows after the first {self.most_windows} were not looked at"
        return Report(
            places=tuple(self.places),
            items={name: dict(counts) for name, counts in self.items.items()},
            files=self.files,
            rows=self.rows,
            bytes=self.bytes,
            unread=(*self.unread, *([beyond] if self.not_looked_at else [])),
            passed=tuple(self.passed),
            not_looked_at=self.not_looked_at,
            unseen=self.index.unseen,
        )

    def tree(self, root: Path, *, skip: tuple[str, ...] = ()) -> None:
        """Every file below a folder, or one file; `skip` names top-level entries to leave out."""
        if not os.path.lexists(root):
            self.name(f"{root}: there is no such file or folder")
        with ThreadPoolExecutor(self.workers) as pool:
            for name, file, why in files_below(root, skip):
                if why and len(self.passed) < MOST_NAMED:
                    self.passed.append(f"{name}: {why}")
                if not why:
                    self.file(name, file, pool)

    def file(self, name: str, file: Path, pool: ThreadPoolExecutor) -> None:
        """One regular file."""
        self.files += 1
        try:
            for text in texts(file):
                try:
                    Stream(self, name, text.inside).run(chunks(text.blocks), pool)
                except Unread as why:
                    self.name(f"{name}{':' if text.inside else ''}{text.inside}: {why}")
        except Unread as why:
            self.name(f"{name}: {why}")

    def tell(self, place: Place, words: bytes) -> None:
        """One more place, unless it says what an allowed text says."""
        what = place.benchmark, place.item, hashlib.blake2b(words, digest_size=16).digest()
        if self.remember:
            self.seen_words.add(what)
        if what in self.allowed:
            return
        self.items.setdefault(place.benchmark, Counter())[place.item] += 1
        if len(self.places) < MOST_PLACES:
            self.places.append(place)

    def name(self, why: str) -> None:
        """Something that cannot be read; of very many the first."""
        if len(self.unread) < MOST_NAMED:
            self.unread[why] = None
        else:
            self.unread["and more that is not named"] = None


def chunks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks as pieces that end with a line, or with a word where a line is longer than a block."""
    left = b""
    for block in blocks:
        for start in range(0, len(block), BLOCK):
            part = block[start : start + BLOCK]
            if len(left) + len(part) >= BLOCK and (end := part.rfind(b"\n") + 1):
                yield b"".join((left, memoryview(part)[:end]))  # copied once
                left = part[end:]
                continue
            left += part
            if len(left) < BLOCK:
                continue
            end = left.rfind(b"\n") + 1 or left.rfind(b" ") + 1 or len(left)
            yield left[:end]
            left = left[end:]
    if left:
        yield left


class Stream:
    """One stream of text."""

    def __init__(self, scan: Scan, name: str, inside: str, *, row: int | None = None, offset: int = 0) -> None:
        """`row`: the row of the file that all of it comes from, if it was hidden in one, and its byte."""
        self.scan, self.name, self.inside, self.only_row, self.only_offset = scan, name, inside, row, offset
        self.score = scan.engine.score()
        self.hand = AtHand()
        self.unended = False
        self.told: set[tuple[str, str, int]] = set()

    def run(self, pieces: Iterable[bytes], pool: ThreadPoolExecutor | None) -> None:
        """All of it, in order; several threads look ahead, some chunks at a time."""
        find, several = self.scan.engine.find, self.scan.workers > 1
        ahead: deque[Future[list[tuple[bytes, Found]]]] = deque()
        group: list[bytes] = []
        offset = row = base = 0

        def settle(found: Iterable[tuple[bytes, Found]]) -> None:
            nonlocal offset, row, base
            for data, its in found:
                self.chunk(Chunk(data, offset, row, base, its))
                offset, row, base = offset + len(data), row + its.newlines, base + len(its.lines)

        def looked(group: list[bytes]) -> list[tuple[bytes, Found]]:
            return [(data, find(data)) for data in group]

        try:
            for data in pieces:
                if pool is None or not several:
                    settle(looked([data]))
                    continue
                group.append(data)
                if len(group) == TOGETHER:
                    ahead.append(pool.submit(looked, group))
                    group = []
                    if len(ahead) > 2 * self.scan.workers:
                        settle(ahead.popleft().result())
        finally:
            while ahead:
                settle(ahead.popleft().result())
            settle(looked(group))
            if self.only_row is None:
                self.scan.rows += row + self.unended

    def chunk(self, chunk: Chunk) -> None:
        """Add up what one chunk holds, and look closely where there is enough."""
        self.hand.add(chunk)
        if self.only_row is None:
            self.scan.bytes += len(chunk.data)
            self.unended = not chunk.data.endswith(b"\n")
            self.scan.say(self.name, len(chunk.data))
            self.hidden(chunk)
        flagged: dict[int, list[int]] = {}
        for segment, entry in self.score.add(chunk.base, chunk.found):
            flagged.setdefault(segment, []).append(entry)
        for segment, entries in flagged.items():
            if self.scan.windows >= self.scan.most_windows:
                self.scan.not_looked_at += 1
                continue
            self.scan.windows += 1
            for many in (1, WINDOW):  # most items stand in one row
                window = Window(tuple(map(self.hand.words, range(segment - many + 1, segment + 1))))
                if found := matches(self.scan.index, self.scan.needs, window, entries):
                    break
            for match in found:
                self.tell(match, window, segment - many + 1)

    def tell(self, match: Match, window: Window, segment: int) -> None:
        """A match as a place with quotes, once; `segment` is the first of the window."""
        start, end = (self.place(window, segment, word)[side] for side, word in enumerate((match.first, match.last)))
        words = [text for part in window.segments for text in part][match.first : match.last + 1]
        key = match.unit.benchmark, match.unit.item, start
        if key in self.told:
            return
        self.told.add(key)
        if len(self.told) > MOST_TOLD:
            self.told = {each for each in self.told if each[2] >= self.hand.chunks[0].offset}
        data = self.hand.bytes_between(start, end)
        row_start = self.hand.row_of(start)
        field, plain = field_of(row_start[1], words)
        kind = match.kind
        if kind == "verbatim" and not same_letters(plain if field else data.decode(errors="replace"), match.unit):
            kind = "case" if match.exact else kind
        unit = match.unit
        text = unit.text.encode(errors="replace")
        mine = unit_span(unit.text, text, match)
        place = Place(
            benchmark=unit.benchmark, item=unit.item, part=unit.part, kind=kind, file=self.name, inside=self.inside,
            row=self.only_row if self.only_row is not None else row_start[0] + 1,
            offset=self.only_offset if self.only_row is not None else start, length=end - start, field=field,
            share=round(match.share, 4), quote=data[:QUOTED].decode(errors="replace"),
            item_start=unit.start + mine[0], item_end=unit.start + mine[1],
            item_quote=unit.text[mine[0] : mine[1]][:QUOTED],
        )  # fmt: skip
        self.scan.tell(place, b" ".join(words))

    def place(self, window: Window, segment: int, word: int) -> tuple[int, int]:
        """Where a word of a window begins and ends in the stream; `segment` is the window's first."""
        for part in window.segments:
            if word < len(part):
                break
            word -= len(part)
            segment += 1
        return self.hand.place(segment, word)

    def hidden(self, chunk: Chunk) -> None:
        """Text that a chunk holds in disguise."""
        if chunk.found.numbers:
            self.token_ids(chunk)
        if chunk.found.long_words >= hidden.FEWEST_LONG_WORDS:
            for at, data in hidden.blobs(chunk.data):
                row = chunk.row + chunk.data.count(b"\n", 0, at) + 1
                inner = Stream(
                    self.scan, self.name, f"{self.inside or 'row'}:base64", row=row, offset=chunk.offset + at
                )
                inner.run(chunks([data]), None)

    def token_ids(self, chunk: Chunk) -> None:
        """Lists of token ids, decoded or reported."""
        lists = list(hidden.lists(chunk.data))
        if not lists:
            return
        if self.scan.decode is None:
            why = "rows of token ids; they can be read with their tokenizer (--tokenizer DIR)"
            if self.inside.endswith(IDS):
                raise Unread(why)  # all of it is alike
            self.scan.name(f"{self.name}: {why}")
            return
        for (at, _), text in zip(lists, self.scan.decode([ids for _, ids in lists]), strict=True):
            row = chunk.row + chunk.data.count(b"\n", 0, at) + 1
            inside = f"{self.inside or 'row'}:token ids"
            Stream(self.scan, self.name, inside, row=row, offset=chunk.offset + at).run([text.encode()], None)


def unit_span(text: str, data: bytes, match: Match) -> tuple[int, int]:
    """Characters of the unit between the match's first and last word."""
    plainly, shifts = folded(data)
    start = word_at(plainly, shifts, 0, match.item_first).start
    end = word_at(plainly, shifts, 0, match.item_last).end
    return len(data[:start].decode(errors="replace")), len(data[:end].decode(errors="replace"))


def field_of(row: bytes, words: list[bytes]) -> tuple[str | None, str]:
    """Path of the string in a JSON row in which the words begin, and the string; nothing where it is no JSON."""
    try:
        value = msgspec.json.decode(row)
    except (msgspec.DecodeError, RecursionError):
        return None, ""
    wanted = b" %b " % b" ".join(words[:8])
    for path, text in leaves(value):
        if wanted in plain(text.encode(errors="replace")):
            return path, text
    return None, ""


def leaves(value: Any) -> Iterator[tuple[str, str]]:
    """Strings of a value with their paths, the first of them."""
    todo: list[tuple[str, Any]] = [("", value)]
    for _ in range(LEAVES):
        if not todo:
            return
        path, each = todo.pop()
        if isinstance(each, str):
            yield path, each
        elif isinstance(each, dict):
            todo += [(f"{path}.{name}" if path else str(name), inner) for name, inner in reversed(each.items())]
        elif isinstance(each, list):
            todo += [(f"{path}[{number}]", inner) for number, inner in reversed(list(enumerate(each)))]


__all__ = ["Place", "Report", "Scan", "Text"]
