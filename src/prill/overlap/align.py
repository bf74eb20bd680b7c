"""What the scanner flagged, looked at word by word: which item it is, where it begins and ends, and how it was changed.

Grams only say that there is something; here the words themselves are compared, in order, with their numbers.
Kinds: `verbatim`, `case` (case, accents, punctuation, spacing), `numbers`, `choices` (in another order), `paraphrase`
(words changed, left out or put in), `solution-only` (the worked answer without the question).
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from prill.overlap.index import UNIT, Index, Unit
from prill.overlap.words import SIZE, fives, gram, hash_of, masked, plain

Kind = Literal["verbatim", "case", "numbers", "choices", "paraphrase", "solution-only"]
Five = tuple[int, ...]
Hit = tuple[Five, int, int, int]
GAP = 40
"""Words between two grams beyond which they do not belong together."""
SPAN = 0.6
"""Share of a unit, from the first word found to the last, that makes a match of scattered words."""
RUN = 13
"""Words in a row that make a match wherever they stand, as most peers have it."""
SAME = 0.95
"""Share of words, numbers aside, that must agree for only the numbers to be said to differ."""
EXPLAINED = 0.5
"""Share of a match's words that may belong to a better one of another item."""


class Window(NamedTuple):
    """Neighbouring segments that are looked at together."""

    segments: tuple[tuple[bytes, ...], ...]
    """Their words."""


class Match(NamedTuple):
    """One unit found in a window."""

    unit: Unit
    kind: Kind
    exact: bool
    """Whether all words of the unit stand there in a row, numbers and all."""
    share: float
    """Of the mass of its entry."""
    mass: float
    first: int
    """Word of the window that it begins with."""
    last: int
    words: frozenset[int]
    """Words of the window that its grams cover."""
    item_first: int
    item_last: int


class Known(NamedTuple):
    """A unit's words and where its grams are."""

    texts: tuple[bytes, ...]
    hashes: tuple[int, ...]
    kept: tuple[int, ...]
    where: dict[Five, int]


@lru_cache(1 << 9)
def known(unit: Unit) -> Known:
    """What is needed of a unit time and again."""
    texts = plain_of(unit).split()
    hashes = tuple(map(hash_of, texts))
    kept = tuple(masked(hashes))
    where: dict[Five, int] = {}
    for place, five in enumerate(fives([hashes[place] for place in kept])):
        where.setdefault(five, place)
    return Known(tuple(texts), hashes, kept, where)


@lru_cache(1 << 12)
def plain_of(unit: Unit) -> bytes:
    """Its words as one text: enough to see whether all of it stands somewhere."""
    return plain(unit.text.encode(errors="replace"))


class Seen(NamedTuple):
    """A window's words, as they are compared."""

    texts: tuple[bytes, ...]
    hashes: tuple[int, ...]
    joined: bytes
    grams: tuple[tuple[Five, int, int], ...]
    """The hashes of each gram's words, its first and its last word."""


def seen(window: Window) -> Seen:
    """All words of a window in a row, and grams within its segments."""
    found: list[tuple[Five, int, int]] = []
    whole: list[int] = []
    for segment in window.segments:
        base, hashes = len(whole), list(map(hash_of, segment))
        kept = masked(hashes)
        found += zip(
            fives([hashes[place] for place in kept]),
            [base + place for place in kept],
            [base + place for place in kept[SIZE - 1 :]],
            strict=False,
        )
        whole += hashes
    texts = tuple(text for segment in window.segments for text in segment)
    return Seen(texts, tuple(whole), b" %b " % b" ".join(texts), tuple(found))


def matches(index: Index, needs: Sequence[int], window: Window, entries: Sequence[int]) -> list[Match]:
    """What there is of these entries in a window: the best match of each item, and none that another explains."""
    text = seen(window)
    found = [match for entry in entries for match in of_entry(index, needs[entry], entry, text)]
    found.sort(key=lambda match: (not match.exact, -match.mass, match.unit.item))
    best: dict[tuple[str, str], Match] = {}
    for match in found:
        name = match.unit.benchmark, match.unit.item
        if name in best:
            best[name] = together(best[name], match)
            continue
        others = frozenset().union(*(other.words for other in best.values() if other.exact or not match.exact))
        if len(match.words & others) <= EXPLAINED * len(match.words) or (
            match.exact and any(other.exact and other.words == match.words for other in best.values())
        ):
            best[name] = match
    return list(best.values())


def together(one: Match, other: Match) -> Match:
    """Two matches of one item: the first, and how it was changed as the one says that knows more of it."""
    if "solution-only" in (one.kind, other.kind):
        kind = other.kind if one.kind == "solution-only" else one.kind
    elif one.exact and one.unit.part == "all":
        kind = one.kind
    else:
        kind = "choices" if "choices" in (one.kind, other.kind) else one.kind
    return one._replace(kind=kind)


def of_entry(index: Index, need: int, entry: int, text: Seen) -> list[Match]:
    """Which of the units that are alike up to numbers stand in the text."""
    members = [index.units[number] for number in index.entries[entry].units]
    whole = [match for unit in members if (match := exactly(index, entry, unit, text))]
    if whole:
        return whole
    if len({plain_of(unit) for unit in members}) > 1:
        return []  # its words are a form that several items fill with numbers of their own: no item in particular
    found = nearly(index, need, entry, members[0], text)
    return [found] if found else []


def exactly(index: Index, entry: int, unit: Unit, text: Seen) -> Match | None:
    """The unit with all its words in a row."""
    wanted = plain_of(unit)
    at = text.joined.find(wanted)
    if at < 0:
        return None
    first, size = text.joined.count(b" ", 0, at), wanted.count(b" ") - 1
    last = first + size - 1
    kind: Kind = "solution-only" if unit.part == "answer" else "verbatim"
    return Match(
        unit, kind, True, 1.0, index.entries[entry].total / UNIT, first, last,
        frozenset(range(first, last + 1)), 0, size - 1,
    )  # fmt: skip


def nearly(index: Index, need: int, entry: int, unit: Unit, text: Seen) -> Match | None:
    """The unit with other numbers, other words or a part of it, if there is enough of it close together."""
    wanted = known(unit)
    hits = [(*found, wanted.where[found[0]]) for found in text.grams if found[0] in wanted.where]
    clusters = near_each_other(hits)
    kept = [hit for cluster in clusters if len(cluster) > 1 or len(clusters) == 1 for hit in cluster]
    worth = {five: index.mass(gram(five)) for five, *_ in kept}
    mass = sum(worth.values())
    if mass < need or not reaches(kept, len(wanted.kept)):
        return None
    main = max(clusters, key=lambda cluster: sum(worth.get(hit[0], 0) for hit in cluster))
    first, last, item_first, item_last = stretched(main, wanted, text)
    words = frozenset(place for _, begin, end, _ in kept for place in range(begin, end + 1))
    kind = kind_of(unit, wanted, text, first, last, item_first, item_last)
    share = mass / index.entries[entry].total
    return Match(unit, kind, False, share, mass / UNIT, first, last, words, item_first, item_last)


def reaches(hits: list[Hit], size: int) -> bool:
    """Whether what was found is more than a phrase: it spans most of the unit, or has enough words in a row."""
    places = [place for *_, place in hits]
    if max(places) - min(places) + SIZE >= SPAN * size:
        return True
    run = longest = SIZE
    for before, after in pairwise(hits):
        run = run + 1 if after[3] == before[3] + 1 else SIZE
        longest = max(longest, run)
    return longest >= RUN


def near_each_other(hits: list[Hit]) -> list[list[Hit]]:
    """Hits in groups without large gaps."""
    clusters: list[list[Hit]] = []
    for hit in hits:
        if clusters and hit[1] - clusters[-1][-1][2] <= GAP:
            clusters[-1].append(hit)
        else:
            clusters.append([hit])
    return clusters


def stretched(main: list[Hit], wanted: Known, text: Seen) -> tuple[int, int, int, int]:
    """First and last word of a match in the text and in the unit, drawn out as far as the words agree."""
    first, last = main[0][1], main[-1][2]
    lowest, highest = min(hit[3] for hit in main), max(hit[3] for hit in main) + SIZE - 1
    item_first, item_last = wanted.kept[main[0][3]], wanted.kept[main[-1][3] + SIZE - 1]
    while first > 0 and item_first > 0 and text.hashes[first - 1] == wanted.hashes[item_first - 1]:
        first, item_first = first - 1, item_first - 1
    end = len(wanted.hashes) - 1
    behind = len(text.hashes) - 1
    while last < behind and item_last < end and text.hashes[last + 1] == wanted.hashes[item_last + 1]:
        last, item_last = last + 1, item_last + 1
    return first, last, min(item_first, wanted.kept[lowest]), max(item_last, wanted.kept[highest])


def kind_of(unit: Unit, wanted: Known, text: Seen, first: int, last: int, item_first: int, item_last: int) -> Kind:
    """How the words between two places of the text differ from the unit's."""
    if unit.part == "answer":
        return "solution-only"
    if unit.part == "all" and reordered(unit, text):
        return "choices"
    there = slice(first, min(last + 1, first + 600))
    mine = slice(item_first, min(item_last + 1, item_first + 600))
    texts = [wanted.texts[mine], text.texts[there]]
    if texts[0] == texts[1]:
        return "verbatim"
    hashes = [wanted.hashes[mine], text.hashes[there]]
    numbers = [[text for text in side if 48 <= text[0] < 58] for side in texts]
    bare = [[side[place] for place in masked(side)] for side in hashes]
    if numbers[0] != numbers[1] and agreement(*bare) >= SAME:
        return "numbers"
    return "paraphrase"


def agreement(mine: Sequence[object], there: Sequence[object]) -> float:
    """Share of both that stands in both in one order."""
    matcher = SequenceMatcher(None, mine, there, autojunk=False)
    blocks = sum(block.size for block in matcher.get_matching_blocks())
    return 2 * blocks / max(1, len(mine) + len(there))


def reordered(unit: Unit, text: Seen) -> bool:
    """Whether all choices stand there as they are, in another order than the item's."""
    _, *choices = unit.text.split("\n")
    places = [text.joined.find(plain(choice.encode(errors="replace"))) for choice in choices]
    return bool(places) and min(places) >= 0 and places != sorted(places)


def same_letters(text: str, unit: Unit) -> bool:
    """Whether the unit's own characters stand in a text, up to white space."""
    return " ".join(unit.text.split()) in " ".join(text.split())
