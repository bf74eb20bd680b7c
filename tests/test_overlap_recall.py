"""How many planted items the scanner finds, kind by kind, and how many rows it flags for nothing: floors.

The words are made up, so that nothing but the plants can be alike; the bench measures the same on English text.
"""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import lru_cache

import pytest

from prill.overlap.scan import Report
from prill.overlap.search import Searcher
from prill.sockets import Item

SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
PLANTS = 40
ROWS = 1200
COMMON = [f"{a}{b}" for a in ("the", "of", "and", "to", "in") for b in ("", "se", "re", "ly")]


def words(rng: random.Random, count: int) -> list[str]:
    """Made-up words, every third a common one, every seventh a number."""
    return [
        str(rng.randrange(2, 999))
        if at % 7 == 3
        else rng.choice(COMMON)
        if at % 3 == 0
        else "".join(rng.choices(SYLLABLES, k=rng.randrange(2, 4)))
        for at in range(count)
    ]


@lru_cache(1)
def items() -> list[Item]:
    """Problems with worked answers, and questions with choices, by halves."""
    rng = random.Random(11)
    made = []
    for number in range(600):
        question = " ".join(words(rng, rng.randrange(24, 60))) + "?"
        choices = [" ".join(words(rng, 6)) for _ in range(4)]
        worked = " ".join(words(rng, rng.randrange(30, 60)))
        fields = {"choices": choices} if number % 2 else {}
        made.append(Item(id=f"r{number}", question=question, answer="B" if number % 2 else worked, fields=fields))
    return made


def whole(item: Item) -> str:
    """An item as one text."""
    return "\n".join([item.question, *item.fields.get("choices", []), item.answer])


def spoilt(rng: random.Random, text: str, share: float) -> str:
    """A share of the words replaced."""
    return " ".join(rng.choice(SYLLABLES) * 3 if rng.random() < share else word for word in text.split())


def thirds(text: str) -> list[str]:
    """A text in three parts."""
    parts = text.split()
    size = -(-len(parts) // 3)
    return [" ".join(parts[at : at + size]) for at in (0, size, 2 * size)]


def mixed(rng: random.Random, item: Item) -> str:
    """The question with its choices in another order."""
    return "\n".join([item.question, *rng.sample(item.fields["choices"], 4)])


def padded(text: str) -> str:
    """A filler word after every sixth."""
    return re.sub(r"((?:\S+ ){6})", r"\1actually ", text)


Make = Callable[[random.Random, Item], list[str]]
KINDS: dict[str, tuple[float, int, Make]] = {
    "exact": (0.99, 0, lambda rng, item: [whole(item)]),
    "escaped": (0.99, 0, lambda rng, item: [f"“{whole(item)}” é"]),
    "question only": (0.99, 0, lambda rng, item: [item.question]),
    "case": (0.97, 0, lambda rng, item: [re.sub(" ", lambda _: rng.choice(["  ", ", ", "\n"]), whole(item).upper())]),
    "numbers": (0.99, 2, lambda rng, item: [re.sub(r"\d+", lambda _: str(rng.randrange(5000)), item.question)]),
    "choices": (0.99, 1, lambda rng, item: [mixed(rng, item)]),
    "split": (0.93, 2, lambda rng, item: thirds(whole(item))),
    "replaced": (0.90, 0, lambda rng, item: [spoilt(rng, whole(item), 0.12)]),
    "filler": (0.60, 0, lambda rng, item: [padded(whole(item))]),
    "solution": (0.97, 2, lambda rng, item: [item.answer]),
}
"""Kind → its floor, which items it is for (0: all, 1: with choices, 2: with worked answers), the rows it makes."""


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, dict[str, list[tuple[str, set[int]]]]]:
    """A scan of rows with plants, and of each kind the items planted with their rows."""
    rng = random.Random(12)
    place = tmp_path_factory.mktemp("recall")
    lines: list[str] = []
    planted: dict[str, list[tuple[str, set[int]]]] = defaultdict(list)
    for kind, (_, wanted, make) in KINDS.items():
        fit = [item for item in items() if wanted == 0 or (wanted == 1) == bool(item.fields)]
        for item in rng.sample(fit, PLANTS):
            lines += [json.dumps({"text": " ".join(words(rng, 50))}) for _ in range(ROWS // (len(KINDS) * PLANTS))]
            texts = make(rng, item)
            planted[kind].append((item.id, set(range(len(lines) + 1, len(lines) + 1 + len(texts)))))
            lines += [json.dumps({"text": text}, ensure_ascii=kind == "escaped") for text in texts]
    (place / "data.jsonl").write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRILL_CACHE", str(place / "cache"))
        return Searcher({"r": items()}, plain=True).search([place / "data.jsonl"]), planted


@pytest.mark.parametrize("kind", KINDS)
def test_recall(scanned: tuple[Report, dict[str, list[tuple[str, set[int]]]]], kind: str) -> None:
    """Of each kind of plant at least its floor is found, in its rows and under its own name."""
    report, planted = scanned
    places = {(place.item, place.row) for place in report.places}
    found = sum(any((item, row) in places for row in rows) for item, rows in planted[kind])
    assert found >= KINDS[kind][0] * PLANTS


def test_no_alarm_without_a_plant(scanned: tuple[Report, dict[str, list[tuple[str, set[int]]]]]) -> None:
    """No row without a plant is flagged, and no row for another item than its own."""
    report, planted = scanned
    right = {(item, row) for each in planted.values() for item, rows in each for row in rows}
    assert [place for place in report.places if (place.item, place.row) not in right] == []


def test_kinds_are_named(scanned: tuple[Report, dict[str, list[tuple[str, set[int]]]]]) -> None:
    """How an item was changed is named rightly for nearly all plants."""
    report, planted = scanned
    names = {
        "exact": "verbatim",
        "case": "case",
        "numbers": "numbers",
        "choices": "choices",
        "solution": "solution-only",
    }
    for kind, name in names.items():
        rows = {row for _, each in planted[kind] for row in each}
        said = Counter(place.kind for place in report.places if place.row in rows)
        assert said[name] >= 0.9 * sum(said.values()), (kind, said)
