#!/usr/bin/env python3
"""decontaminate: which rows of training data look like test items? For checking only: training on items is forbidden.

    decontaminate DATA              a file or folder: JSON lines, JSON, text, CSV, .gz or Parquet of them
    decontaminate DATA --json       one JSON line for each row: file, row, item, share, text
    decontaminate DATA --all        every row, not the first 20

The items are those of $PRILL_ITEMS. A row is named when it has enough of an item's runs of five words, numbers masked;
an item that is spread over three rows is found too. The exit code is 0 for none, 1 for some, 3 for files not read.
Not covered: token ids, base64, archives, and text that says the same in other words. The judge's scanner sees more.
"""

import argparse
import gzip
import json
import math
import os
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORD = re.compile(r"[^\W_]+")
SIZE, LEAST_WORDS, MOST_ENTRIES, FEWEST_ITEMS = 5, 3, 24, 10_000
SHARE, MASS, SMALL, LEAST_MASS = 0.25, 40.0, 0.65, 34.0
PIECE, SHORT_ANSWER, WINDOW, SHOWN = 256, 40, 3, 20
QUESTIONS = ("question", "prompt", "problem", "text", "input", "instruction")
ANSWERS = ("answer", "solution", "reasoning", "rationale", "test")
FOUND, UNREAD = 1, 3
Gram = tuple[str, ...]


def main() -> int:
    """Print the rows that look like items."""
    options = argparse.ArgumentParser(
        prog="decontaminate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("data", nargs="+", type=Path, metavar="DATA", help="files or folders")
    options.add_argument("--json", action="store_true", help="one JSON line for each row")
    options.add_argument("--all", action="store_true", help="every row, not the first 20")
    chosen = options.parse_args()
    items = [json.loads(line) for line in Path(os.environ["PRILL_ITEMS"]).read_text("utf-8").splitlines() if line]
    test, found, unread = Test(items), 0, 0
    for file in (file for place in chosen.data for file in files(place)):
        try:
            for row, item, share, text in test.search(rows(file)):
                found += 1
                if chosen.json:
                    print(json.dumps({"file": str(file), "row": row, "item": item, "share": share, "text": text}))
                elif chosen.all or found <= SHOWN:
                    print(f"{file}, row {row}: item {item} ({share:.0%}): {' '.join(text.split())[:120]}")
        except (OSError, ValueError, ImportError, EOFError) as error:
            unread += 1
            print(f"decontaminate: not read: {file}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
    print(f"decontaminate: {found} rows look like test items", file=sys.stderr)
    return FOUND if found else UNREAD if unread else 0


def words(text: str) -> list[str]:
    """Words without case, accents and width."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return WORD.findall("".join(c for c in plain if not unicodedata.combining(c)) if not plain.isascii() else plain)


def masked(found: list[str]) -> list[str]:
    """All numbers alike, and of a run of them one."""
    bare = ["0" if word[0].isdigit() else word for word in found]
    return [word for place, word in enumerate(bare) if word != "0" or place == 0 or bare[place - 1] != "0"]


def fives(found: list[str]) -> dict[Gram, None]:
    """The different runs of five words that are not mostly numbers, in order."""
    runs = zip(*(found[at:] for at in range(SIZE)), strict=False)
    return {run: None for run in runs if SIZE - run.count("0") >= LEAST_WORDS}


class Test:
    """The items, by their runs of words."""

    def __init__(self, items: list[dict[str, Any]]) -> None:
        alike: dict[Gram, dict[str, str]] = defaultdict(dict)
        for number, item in enumerate(items, 1):
            for text in parts(item):
                found = words(text)
                for start in range(0, max(1, len(found) - PIECE // 2), PIECE):
                    piece = found[
                        start : start + PIECE + PIECE // 2 if start + 1.5 * PIECE > len(found) else start + PIECE
                    ]
                    alike[tuple(masked(piece))].setdefault(" ".join(piece), str(item.get("id", number)))
        own = [fives(list(key)) for key in alike]
        spread = Counter(run for each in own for run in each)
        among = max(FEWEST_ITEMS, len(items))
        self.worth = {run: math.log(among / n) for run, n in spread.items() if n <= MOST_ENTRIES}
        self.totals = [sum(self.worth.get(run, 0.0) for run in each) for each in own]
        self.units = list(alike.values())
        """Of each entry its units' words → item; several where items differ in numbers only."""
        self.having: dict[Gram, list[int]] = defaultdict(list)
        for entry, each in enumerate(own):
            for run in each if self.totals[entry] >= LEAST_MASS else ():
                if run in self.worth:
                    self.having[run].append(entry)

    def search(self, texts: Iterator[str]) -> Iterator[tuple[int, str, float, str]]:
        """Number of a row, the item that it ends, the share of it that is there, and the row."""
        last: list[tuple[str, set[Gram]]] = []
        for number, text in enumerate(texts, 1):
            found = words(text)
            last = [*last[1 - WINDOW :], (" ".join(found), {run for run in fives(masked(found)) if run in self.having})]
            best: dict[str, float] = {}
            for entry in {entry for run in last[-1][1] for entry in self.having[run]}:
                there = {run for _, runs in last for run in runs if entry in self.having[run]}
                mass, total = sum(self.worth[run] for run in there), self.totals[entry]
                if mass < max(SHARE * total, min(MASS, SMALL * total)):
                    continue
                item = self.named(entry, " ".join(joined for joined, _ in last))
                if item is not None:
                    best[item] = max(best.get(item, 0.0), round(mass / total, 4))
            for item, share in best.items():
                yield number, item, share, text

    def named(self, entry: int, there: str) -> str | None:
        """Which item it is; where items differ in numbers only, the one whose numbers stand there."""
        units = self.units[entry]
        exact = next((item for text, item in units.items() if f" {text} " in f" {there} "), None)
        return exact if exact is not None or len(units) > 1 else next(iter(units.values()))


def parts(item: dict[str, Any]) -> list[str]:
    """Texts of an item: its question, a long answer, and the question with its choices."""
    fields = {**item, **(item["fields"] if isinstance(item.get("fields"), dict) else {})}
    question = next((fields[name] for name in QUESTIONS if isinstance(fields.get(name), str)), "")
    answers = [text for name in ANSWERS if isinstance(text := fields.get(name), str) and len(text) >= SHORT_ANSWER]
    choices = fields.get("choices") or fields.get("options") or []
    choices = list(choices.values()) if isinstance(choices, dict) else choices
    return [question, *answers, *(["\n".join([question, *map(str, choices)])] if choices else [])]


def files(place: Path) -> Iterator[Path]:
    """A file, or all below a folder; links are passed over."""
    if not place.is_dir():
        yield place
    else:
        yield from sorted(file for file in place.rglob("*") if file.is_file() and not file.is_symlink())


def rows(file: Path) -> Iterator[str]:
    """Texts of a file's rows."""
    if file.suffix == ".parquet":
        from datasets import load_dataset

        for row in load_dataset("parquet", data_files=str(file), split="train", streaming=True):
            yield "\n".join(strings(row))
        return
    with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
        if Path(file.name.removesuffix(".gz")).suffix == ".json":
            whole = json.load(lines)
            yield from ("\n".join(strings(row)) for row in (whole if isinstance(whole, list) else [whole]))
            return
        for line in lines:
            try:
                yield "\n".join(strings(json.loads(line)))
            except (ValueError, RecursionError):
                yield line


def strings(value: Any) -> Iterator[str]:
    """All strings of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)


if __name__ == "__main__":
    sys.exit(main())
