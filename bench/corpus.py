"""A seeded corpus for the contamination scanner: test items, training rows around them, and items planted in many ways.

Sentences come from the documentation inside the installed packages, so that the text is English as people write it;
which sentence may stand in an item and which in a row is decided by its digest. Same seed and packages, same bytes.
Not covered: text of other languages than what those packages and the real items hold.
"""

import hashlib
import json
import os
import random
import re
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from prill.sockets import Item

DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)
SENTENCE = re.compile(r"[A-Z][^.!?\n\\{}<>=|]{40,220}[.!?]")
NAMES = [
    "Amara",
    "Bjorn",
    "Chloe",
    "Dmitri",
    "Esther",
    "Farid",
    "Greta",
    "Hiro",
    "Ines",
    "Joaquin",
    "Kwame",
    "Lucia",
    "Mei",
    "Nadia",
    "Oskar",
    "Priya",
    "Quinn",
]
THINGS = [
    "lemons",
    "tickets",
    "candles",
    "marbles",
    "notebooks",
    "pumpkins",
    "bracelets",
    "kites",
    "lanterns",
    "muffins",
    "sandbags",
    "puzzles",
    "flowers",
    "stamps",
    "postcards",
    "bicycles",
    "carrots",
    "pillows",
    "magnets",
    "ribbons",
    "feathers",
    "buttons",
    "blankets",
    "bottles",
]
PLACES = [
    "harbor",
    "bakery",
    "library",
    "orchard",
    "museum",
    "stadium",
    "workshop",
    "market",
    "theater",
    "clinic",
    "station",
    "village",
    "nursery",
]
ASKED = (
    "How many {thing} does {name} still have when the {place} closes for the night?",
    "What is the total worth of the {thing} if each of them brings {n} dollars at the {place}?",
    "How many {thing} would {name} need so that every visitor of the {place} receives {n}?",
    "By how many does the number of {thing} exceed the {n} {other} kept at the {place}?",
)
RUN = 8
"""Words in a row that a sentence of a row may not share with one of an item."""


@dataclass(frozen=True)
class Plant:
    """An item in a row of the corpus, or in three."""

    kind: str
    item: str
    rows: tuple[int, ...]
    """Counted from 1."""


@lru_cache(1)
def sentences() -> dict[str, list[str]]:
    """Sentences of the installed packages, apart for `items`, for `near` (hard negatives) and for `rows`.

    A sentence that shares a run of words with one of an item is left out: documentation repeats itself.
    """
    found: dict[str, list[str]] = {"items": [], "near": [], "rows": []}
    for text in all_sentences():
        first = hashlib.sha256(text.encode()).digest()[0]
        found["items" if first < 70 else "near" if first < 80 else "rows"].append(text)
    taken = {run for text in found["items"] for run in runs(text)}
    for kind in ("near", "rows"):
        found[kind] = [text for text in found[kind] if not any(run in taken for run in runs(text))]
    return found


def all_sentences() -> list[str]:
    """Every different sentence of the packages' documentation, in the order of their files."""
    seen: dict[str, None] = {}
    for file in sorted(Path(sysconfig.get_paths()["purelib"]).rglob("*.py")):
        if file.stat().st_size < 1_000_000:
            for block in DOCSTRING.findall(file.read_text(encoding="utf-8", errors="replace")):
                seen.update(dict.fromkeys(SENTENCE.findall(re.sub(r"\s+", " ", block))))
    return list(seen)


def runs(text: str) -> list[int]:
    """Runs of `RUN` words, numbers alike, hashed."""
    words = [re.sub(r"^\d.*", "0", word) for word in re.findall(r"[a-z0-9]+", text.lower())]
    return [hash(tuple(words[at : at + RUN])) for at in range(len(words) - RUN + 1)]


def filled(rng: random.Random, template: str, about: dict[str, str]) -> str:
    """A template with its blanks filled, each number drawn by itself."""
    text = re.sub(r"\{n\}", lambda _: str(rng.randrange(2, 400)), template)
    return text.format(**about)


def told(rng: random.Random, kind: str, about: dict[str, str]) -> str:
    """A sentence of a story: one of the packages', with somebody and numbers in it."""
    text = rng.choice(sentences()[kind]).translate(BRACES)
    lead = rng.choice(
        ("{name} notes {n} times that", "In {n} of {n} cases", "On day {n}, near the {place},", "For {n} {thing},")
    )
    cost = f"which costs {rng.randrange(2, 400)} {about['other']}"
    return f"{filled(rng, lead, about)} {text[0].lower()}{text[1:-1]}, {cost}."


def problem(rng: random.Random, kind: str) -> tuple[str, str]:
    """A word problem and its worked solution, of sentences of that kind."""
    about = {"name": rng.choice(NAMES), "thing": rng.choice(THINGS), "other": rng.choice(THINGS)}
    about["place"] = rng.choice(PLACES)
    question = " ".join(
        [*(told(rng, kind, about) for _ in range(rng.randrange(2, 4))), filled(rng, rng.choice(ASKED), about)]
    )
    worked = " ".join(told(rng, kind, about) for _ in range(rng.randrange(2, 4)))
    return question, f"{worked}\n#### {rng.randrange(2, 900)}"


BRACES = str.maketrans("", "", "{}'")


def choosing(rng: random.Random, kind: str) -> tuple[str, list[str]]:
    """A question of multiple choice about sentences, and its choices."""
    first, whole, *others = rng.sample(sentences()[kind], 6)
    words = whole.split()
    cut = max(5, len(words) // 2)
    choices = [
        " ".join(words[cut:]),
        *(" ".join(other.split()[-max(4, len(other.split()) // 2) :]) for other in others),
    ]
    chosen = choices[:4]
    rng.shuffle(chosen)
    lead = "Which of the following best completes the statement: " if rng.random() < 0.3 else ""
    return f"{first} {lead}{' '.join(words[:cut])} ...", chosen


def reference(seed: int, count: int = 10_000) -> list[Item]:
    """Items of two kinds by halves: word problems with solutions, and questions with choices."""
    rng = random.Random(f"{seed} reference")
    items = []
    for number in range(count):
        if number % 2:
            question, choices = choosing(rng, "items")
            items.append(Item(id=f"choice-{number}", question=question, answer="ABCD"[rng.randrange(4)],
                              fields={"choices": choices}))  # fmt: skip
        else:
            question, worked = problem(rng, "items")
            items.append(Item(id=f"word-{number}", question=question, answer=worked))
    return items


def real_items(data: Path) -> list[Item]:
    """The real items that lie beside a checkout, if they do."""
    items = []
    for name, field, folder in (("question.jsonl", "prompt", "arena-hard-v2.0"),):
        file = data / "benchmarks" / folder / name
        if file.is_file():
            rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            items += [Item(id=f"{folder}-{row['uid']}", question=row[field], answer="") for row in rows]
    file = data / "benchmarks" / "healthbench-easy" / "healthbench.jsonl"
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            items.append(Item(id=f"health-{row['prompt_id']}", question=row["prompt"][-1]["content"], answer=""))
    return items


# --- rows ----------------------------------------------------------------------------------------------------


def text_of(item: Item) -> str:
    """An item as one text: question, lettered choices, answer."""
    choices = item.fields.get("choices", [])
    lettered = [f"{letter}. {choice}" for letter, choice in zip("ABCD", choices, strict=False)]
    return "\n".join([item.question, *lettered, item.answer]).strip()


def shouted(rng: random.Random, text: str) -> str:
    """Other case, spacing and punctuation."""
    text = text.upper() if rng.random() < 0.5 else text.title()
    return re.sub(r"[,.;:?!]", lambda _: rng.choice(["", " -", " ;", "!"]), re.sub(" ", lambda _: rng.choice(
        [" ", "  ", "\n", "\t"]), text))  # fmt: skip


def other_numbers(rng: random.Random, text: str) -> str:
    """Every number another one."""
    return re.sub(r"\d+", lambda _: str(rng.randrange(2, 2000)), text)


def replaced(rng: random.Random, text: str, share: float) -> str:
    """A share of the words replaced by others."""
    pool = rng.choice(sentences()["rows"]).split() + rng.choice(sentences()["rows"]).split()
    return " ".join(rng.choice(pool) if rng.random() < share else word for word in text.split())


def padded(text: str) -> str:
    """A filler word after every sixth."""
    words = text.split()
    return " ".join(
        word + (" " + ("well", "actually", "indeed", "basically")[place // 6 % 4] if place % 6 == 5 else "")
        for place, word in enumerate(words)
    )


def permuted(rng: random.Random, item: Item) -> str:
    """The choices in another order."""
    choices = list(item.fields["choices"])
    rng.shuffle(choices)
    return "\n".join([item.question, *(f"({'abcd'[n]}) {choice}" for n, choice in enumerate(choices))])


def thirds(text: str) -> list[str]:
    """A text in three parts."""
    words = text.split()
    size = -(-len(words) // 3)
    return [" ".join(words[at : at + size]) for at in range(0, 3 * size, size)]


def schemas(rng: random.Random, item: Item) -> dict[str, Any]:
    """An item in the shapes that training data has."""
    answer = item.answer or "B"
    return {
        "text": {"text": text_of(item)},
        "messages": {
            "messages": [{"role": "user", "content": item.question}, {"role": "assistant", "content": answer}]
        },
        "prompt": {"prompt": item.question, "completion": answer},
        "instruction": {"instruction": item.question, "input": "", "output": answer},
        "conversations": {
            "conversations": [{"from": "human", "value": item.question}, {"from": "gpt", "value": answer}]
        },
    }


def kinds() -> dict[str, tuple[str, Callable[[random.Random, Item], list[Any]]]]:
    """Kind of plant → which items it is for, and the rows that it makes."""

    def one(change: Callable[[random.Random, Item], str]) -> Callable[[random.Random, Item], list[Any]]:
        return lambda rng, item: [{"text": change(rng, item)}]

    made: dict[str, tuple[str, Callable[[random.Random, Item], list[Any]]]] = {
        "exact": ("", one(lambda rng, item: text_of(item))),
        "escaped": ("", one(lambda rng, item: f"\u201c{text_of(item)}\u201d \u2014 caf\u00e9")),
        "question only": ("", one(lambda rng, item: item.question)),
        "case and punctuation": ("", one(lambda rng, item: shouted(rng, text_of(item)))),
        "numbers changed": ("word", one(lambda rng, item: other_numbers(rng, item.question))),
        "choices permuted": ("choice", one(permuted)),
        "split over 3 rows": ("word", lambda rng, item: [{"text": part} for part in thirds(text_of(item))]),
        "12 % words replaced": ("", one(lambda rng, item: replaced(rng, text_of(item), 0.12))),
        "25 % words replaced": ("", one(lambda rng, item: replaced(rng, text_of(item), 0.25))),
        "filler words": ("", one(lambda rng, item: padded(text_of(item)))),
        "solution only": ("word", one(lambda rng, item: item.answer)),
        "choices only": ("choice", one(lambda rng, item: "\n".join(item.fields["choices"]))),
    }
    for name in ("messages", "prompt", "instruction", "conversations"):
        made[f"schema {name}"] = ("", lambda rng, item, name=name: [schemas(rng, item)[name]])
    return made


def filler(rng: random.Random) -> Any:
    """A row without any item: prose, half of it in the shapes of training data."""
    pool = sentences()["rows"]
    text = "\n".join(" ".join(rng.choices(pool, k=rng.randrange(2, 9))) for _ in range(rng.randrange(1, 5)))
    row = Item(id="", question=rng.choice(pool), answer=text)
    return schemas(rng, row)[rng.choice(("text", "text", "text", "messages", "prompt", "instruction", "conversations"))]


def near(rng: random.Random) -> Any:
    """A hard negative: made as the items are, of other sentences and numbers."""
    if rng.random() < 0.5:
        question, choices = choosing(rng, "near")
        return {"text": "\n".join([question, *choices])}
    question, worked = problem(rng, "near")
    return {"question": question, "answer": worked}


def encoded(row: Any, ascii_only: bool) -> bytes:
    """A row as a JSON line, escaped or not."""
    return json.dumps(row, ensure_ascii=ascii_only).encode() + b"\n"


def rows(seed: int, items: list[Item], size: int, plants: int) -> Iterator[tuple[bytes, str, str]]:
    """JSON lines of about `size` bytes; with each its kind (`filler`, `near` or a plant's) and the item planted."""
    rng = random.Random(f"{seed} rows {size}")
    todo = []
    for kind, (wanted, make) in kinds().items():
        fit = [item for item in items if item.id.startswith(wanted)]
        for _ in range(plants):
            item = rng.choice(fit)
            todo.append(
                [(encoded(row, kind == "escaped" or rng.random() < 0.5), kind, item.id) for row in make(rng, item)]
            )
    rng.shuffle(todo)
    written, every = 0, max(1, size // (len(todo) + 1))
    due = every
    while written < size:
        row = near(rng) if rng.random() < 0.08 else filler(rng)
        line = encoded(row, rng.random() < 0.5)
        yield line, "near" if "question" in row or row.get("text", "").count("\n") == 4 else "filler", ""
        written += len(line)
        if written >= due and todo:
            due += every
            yield from todo.pop()
    for left in todo:
        yield from left


# --- on disk -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corpus:
    """A corpus in a file, the items that it was made with, and what each row is."""

    file: Path
    items: list[Item]
    kinds: list[tuple[str, str]]
    """Of each row its kind and the item planted in it, or nothing."""


def prepared(size: int, plants: int, seed: int = 0) -> Corpus:
    """A corpus of about so many bytes below the temporary folder, made once; real items are taken where they lie."""
    place = Path(tempfile.gettempdir()) / f"prill-bench-{os.getuid()}"
    place.mkdir(exist_ok=True)
    items = reference(seed) + real_items(Path(__file__).parents[2] / "shared" / "data")
    about = hashlib.sha256(f"{seed} {size} {plants} {len(sentences()['rows'])} {len(items)}".encode()).hexdigest()[:16]
    file, told = place / f"corpus-{about}.jsonl", place / f"corpus-{about}.json"
    if not told.exists():
        made = []
        with file.open("wb") as out:
            for line, kind, item in rows(seed, items, size, plants):
                out.write(line)
                made.append((kind, item))
        told.write_text(json.dumps(made), encoding="utf-8")
    return Corpus(file, items, [(kind, item) for kind, item in json.loads(told.read_text(encoding="utf-8"))])
