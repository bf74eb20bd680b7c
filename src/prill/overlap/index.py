"""Test items → the grams that tell them from all other text, with what each is worth.

Each item has up to three *units*: the question, the answer (a worked solution), and all of it with the choices; a long
unit is cut into pieces, so that a part is found as well. Units that differ in numbers only share one entry, and
`align.py` tells which of them is meant. A gram counts where at least `LEAST_WORDS` of its words are no numbers and at
most `MOST_UNITS` entries have it, and is worth its idf.
Not covered: units too short or too much like all others to be told apart; `Index.unseen` names their items.
"""

import hashlib
import math
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

from prill.overlap.words import NUMBER, fives, folded, gram, hash_of, masked, plain, runs_of, word_at
from prill.sockets import Item, Value

LEAST_WORDS = 3
MOST_UNITS = 24
PIECE = 256
"""Words of a piece; a rest of at most half of it stays with the piece before."""
RUNS = runs_of(PIECE)
FEWEST_ITEMS = 10_000
"""idf is taken as if the items were at least so many, since a small benchmark says little about other text."""
SHORT_ANSWER = 40
"""Characters below which an answer is not looked for by itself."""
UNIT = 64
"""A mass of 1 in the whole numbers that are summed."""
SMALL = 0.65
"""Share of a small entry's mass that must be found, where all of it is hardly more than a level's mass."""
LEAST_MASS = 34
"""Of an entry that can be looked for at all: four grams that no other has."""
Part = Literal["question", "answer", "all"]


class Level(NamedTuple):
    """How much of an entry must stand in the text: a share of its mass, and a mass; of a small one nearly all."""

    share: float
    mass: float

    def needed(self, total: float) -> float:
        """The mass that must be found of an entry with that total."""
        return max(self.share * total, min(self.mass, SMALL * total))


LEVELS = {
    "strict": Level(0.5, 40),
    "normal": Level(0.25, 40),
    "sensitive": Level(0.2, 35),
    "very-sensitive": Level(0.15, 30),
}


class Unit(Value, frozen=True, kw_only=True):
    """A piece of an item's text."""

    benchmark: str
    item: str
    part: Part
    text: str
    start: int
    """Of the piece in the part's text, in characters."""


class Entry(NamedTuple):
    """Units that are alike up to their numbers."""

    units: tuple[int, ...]
    total: int
    """Mass of its grams that count, times `UNIT`."""


class Index:
    """What is looked for. Plain numbers in arrays, so that the fast scanner can use them as they are."""

    def __init__(
        self, units: list[Unit], unseen: tuple[str, ...], entries: list[Entry],
        grams: "array[int]", worth: "array[int]", first: "array[int]", having: "array[int]",
    ) -> None:  # fmt: skip
        """`grams` rise; `first`: where the entries of each begin in `having`, and the end; `worth`: times `UNIT`."""
        self.units, self.entries = units, entries
        self.grams, self.worth, self.first, self.having = grams, worth, first, having
        self.unseen = unseen
        """Ids of items that no unit of can be looked for."""
        self.known_needs: dict[Level, array[int]] = {}

    @cached_property
    def number(self) -> dict[int, int]:
        """Which place each gram has in the arrays."""
        return {value: number for number, value in enumerate(self.grams)}

    def mass(self, value: int) -> int:
        """What a gram is worth, times `UNIT`; nothing where it does not count."""
        place = bisect_left(self.grams, value)
        return self.worth[place] if place < len(self.grams) and self.grams[place] == value else 0

    def needs(self, level: Level) -> "array[int]":
        """The mass that must be found of each entry, times `UNIT`."""
        if level not in self.known_needs:
            needs = (math.ceil(UNIT * level.needed(entry.total / UNIT)) for entry in self.entries)
            self.known_needs[level] = array("q", needs)
        return self.known_needs[level]


def built(units: list[Unit], bare: tuple[str, ...] = ()) -> Index:
    """The index of these units; `bare` are items that have none."""
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, unit in enumerate(units):
        hashes = [hash_of(word) for word in plain(unit.text.encode(errors="replace")).split()]
        alike[tuple(hashes[place] for place in masked(hashes))].append(number)
    own = [list(dict.fromkeys(filter(telling, fives(key)))) for key in alike]
    spread = Counter(five for each in own for five in each)
    items = {(unit.benchmark, unit.item) for unit in units}
    among = max(FEWEST_ITEMS, len(items))
    worth = {five: round(UNIT * math.log(among / n)) for five, n in spread.items() if n <= MOST_UNITS}
    entries: list[Entry] = []
    postings: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for members, its_grams in zip(alike.values(), own, strict=True):
        counted = [five for five in its_grams if five in worth]
        total = sum(worth[five] for five in counted)
        if total < LEAST_MASS * UNIT:
            continue
        for five in counted:
            postings[five].append(len(entries))
        entries.append(Entry(tuple(members), total))
    ranked = sorted((gram(five), worth[five], places) for five, places in postings.items())
    first, having = array("i", [0]), array("i")
    for _, _, places in ranked:
        having.extend(places)
        first.append(len(having))
    seen = {(units[n].benchmark, units[n].item) for entry in entries for n in entry.units}
    return Index(
        units, tuple(sorted({*bare, *(item for name, item in items - seen)})), entries,
        array("Q", (value for value, _, _ in ranked)), array("i", (mass for _, mass, _ in ranked)), first, having,
    )  # fmt: skip


def telling(hashes: Sequence[int]) -> bool:
    """Whether enough of the words are no numbers."""
    return len(hashes) - hashes.count(NUMBER) >= LEAST_WORDS


def units_of(benchmark: str, items: Iterable[Item]) -> tuple[list[Unit], tuple[str, ...]]:
    """All units of a benchmark's items, and ids of items without any."""
    made: list[Unit] = []
    bare = []
    for item in items:
        mine = [
            Unit(benchmark=benchmark, item=item.id, part=part, text=text[start:end], start=start)
            for part, text in parts(item)
            for start, end in pieces(text)
        ]
        made += mine
        if not mine:
            bare.append(item.id)
    return made, tuple(bare)


def parts(item: Item) -> list[tuple[Part, str]]:
    """The texts of an item that are looked for. A short answer is none: it stands everywhere."""
    fields, choices = item.fields, choices_of(item.fields)
    found: list[tuple[Part, str]] = [("question", item.question)]
    turns = fields.get("conversation")
    earlier = [turn.get("content") for turn in turns if isinstance(turn, dict)] if isinstance(turns, list) else []
    found += [("question", text) for text in earlier if isinstance(text, str)]
    solutions = [item.answer, *(fields.get(name) for name in ("solution", "reasoning", "rationale", "test"))]
    found += [("answer", text) for text in solutions if isinstance(text, str) and len(text) >= SHORT_ANSWER]
    criteria = fields.get("rubrics")
    if isinstance(criteria, list):
        found.append(("answer", "\n".join(str(c.get("criterion", "")) for c in criteria if isinstance(c, dict))))
    if choices:
        found.append(("all", "\n".join([item.question, *choices])))
    return found


def choices_of(fields: Mapping[str, Any]) -> list[str]:
    """The options of a question, where it has any."""
    for name in ("choices", "options"):
        value = fields.get(name)
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
    return []


def pieces(text: str) -> list[tuple[int, int]]:
    """Where the pieces of a text begin and end, in characters."""
    if len(text) < 2 * PIECE:
        return [(0, len(text))] if text.strip() else []
    data = text.encode(errors="replace")
    plainly, shifts = folded(data)
    runs = [found.span() for found in RUNS.finditer(plainly)]
    if len(runs) > 1 and len(plainly[slice(*runs[-1])].split()) <= PIECE // 2:
        runs.pop()
    starts = [word_at(plainly, shifts, begin, 0).start for begin, _ in runs]
    cuts = [len(data[:start].decode(errors="replace")) for start in starts]
    return list(zip([0, *cuts[1:]], [*cuts[1:], len(text)], strict=True))


def digest_of(units: Iterable[Unit], unseen: Iterable[str] = ()) -> str:
    """Names an index by what it is made of."""
    digest = hashlib.sha256()
    for unit in units:
        for text in (unit.benchmark, unit.item, unit.part, unit.text):
            digest.update(text.encode(errors="replace") + b"\0")
    digest.update("\0".join(unseen).encode(errors="replace"))
    return digest.hexdigest()
