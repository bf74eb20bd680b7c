"""`decontaminate`, the agent's own check, beside the scanner that judges."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from prill.overlap.search import Searcher
from prill.sockets import Item
from test_overlap import CHOICE, FORM, ITEMS, STORY, cached, chat
from test_overlap_forms import LEXICON, made

__all__ = ["cached"]


def checked(repo: Path, data: Path, items: list[Item]) -> tuple[int, set[tuple[int, str]], str]:
    """The tool's exit code, the rows and items that it names, and what it says, run as in the agent's box."""
    file = data.parent / "items.jsonl"
    rows = [{"id": i.id, "question": i.question, "answer": i.answer, **i.fields} for i in items]
    file.write_text("\n".join(map(json.dumps, rows)))
    tool = repo / "src" / "prill" / "tools" / "decontaminate.py"
    env = {"PATH": os.environ["PATH"], "PRILL_ITEMS": str(file)}
    done = subprocess.run(
        [sys.executable, "-I", str(tool), str(data), "--json"], env=env, capture_output=True, text=True, check=False
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {(each["row"], each["item"]) for each in found}, done.stderr


def test_it_agrees_with_the_scanner_on_plants(repo: Path, tmp_path: Path) -> None:
    """Whole, shouted and cut items among noise are named by the tool in the rows in which the scanner names them."""
    rng = random.Random(3)
    items = made(60)
    rows = []
    for number in range(400):
        item = rng.choice(items)
        words = item.question.split()
        plant = (item.question, item.question.upper(), " ".join(words[: len(words) * 3 // 4]))[number % 3]
        noise = " ".join(rng.choices(LEXICON, k=40))
        rows.append(chat(plant if number % 20 < 3 else noise, noise))
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(rows))
    code, found, _ = checked(repo, data, items)
    report = Searcher({"m": items}, plain=True).search([data])
    assert code == 1 and len(found) > 50
    assert found == {(place.row, place.item) for place in report.places}


@pytest.mark.parametrize("item", [STORY, CHOICE, FORM[4]])
def test_it_names_the_item(repo: Path, tmp_path: Path, item: Item) -> None:
    """A story, a choice and one of many items that differ in numbers only are named in a chat row, and no other."""
    data = tmp_path / "data.jsonl"
    data.write_text(chat("Nothing to see here") + "\n" + chat(item.question) + "\n")
    assert checked(repo, data, ITEMS)[:2] == (1, {(2, item.id)})


def test_clean_and_unreadable_data(repo: Path, tmp_path: Path) -> None:
    """Data without items gives 0, other numbers in a form included; a file that cannot be read gives 3 and its name."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.jsonl").write_text(chat("Anna has 50 pens. Anna finds 60 pens. How many pens does Anna have now?"))
    assert checked(repo, data, ITEMS)[:2] == (0, set())
    (data / "b.txt").write_bytes(b"\xff\xfe\x00")
    code, found, said = checked(repo, data, ITEMS)
    assert (code, found) == (3, set()) and "b.txt" in said
