"""Where the published readings and ours differ, case by case: the page is computed, and this test holds it so."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prill.graders import choice, math, number

CASES = Path(__file__).parent / "cases"
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "readings.md"
SCORERS = ("inspect-0.3.150", "inspect-0.3.285")
HEAD = """# Where published readings and ours differ

Every mark is read twice: as the pinned published scorer reads it (*official*) and by our own rules (*robust*,
`tests/cases/RULES.md`). The benchmark says which one counts; the other is shown beside it and the two are never mixed.
These are the acceptance cases in which a published scorer gives another mark than the right one. `make test` recomputes
this page; `PRILL_GOLDEN=write` writes it.

"""


def cases(part: str) -> Iterator[dict[str, Any]]:
    """The cases of one part, in order of their ids."""
    for file in sorted(CASES.glob("*.json")):
        case = json.loads(file.read_text())
        if case["part"] == f"evaluator/answer.{part}":
            yield case


def wrong_numbers(part: str) -> Iterator[tuple[str, str, list[str]]]:
    """Cases that `match(numeric)` of either Inspect marks wrongly."""
    for case in cases(part):
        given, right = case["input"], case["expected"].get("correct")
        if right is not None:
            marks = [number.OFFICIAL[name](given["completion"], str(given["target"])) for name in SCORERS]
            yield case["id"], given["completion"], ["" if mark == right else said(mark) for mark in marks]


def wrong_letters() -> Iterator[tuple[str, str, list[str]]]:
    """Single-answer cases in which `choice` of either Inspect reads another letter, or one where there is none."""
    for case in cases("choice"):
        given = case["input"]
        if "letter" in case["expected"] and not given.get("multiple"):
            right = {case["expected"]["letter"]} - {None}
            reads = [choice.OFFICIAL[name](given["completion"], given["choices"], False) for name in SCORERS]
            yield case["id"], given["completion"], ["" if r == right else "".join(sorted(r)) or "none" for r in reads]


def wrong_formulas() -> Iterator[tuple[str, str, list[str]]]:
    """Cases that the comparison of strings, as published with MATH, marks wrongly."""
    for case in cases("math"):
        right = case["expected"].get("equivalent")
        if right is not None:
            mark = math.same_string(case["input"]["completion"], case["input"]["target"])
            yield case["id"], case["input"]["completion"], ["" if mark == right else said(mark)]


def said(mark: bool) -> str:
    """A mark in a word."""
    return "right" if mark else "wrong"


def shown(text: str) -> str:
    """A reply in a table's cell: on one line, short, and as code."""
    line = json.dumps(text, ensure_ascii=True)[1:-1].replace("|", "\\|").replace("`", "'")
    return f"`{line if len(line) <= 90 else line[:89] + '…'}`"


def section(title: str, names: tuple[str, ...], rows: list[tuple[str, str, list[str]]]) -> str:
    """One part: how many differ, then those that do."""
    counts = ", ".join(f"{sum(bool(row[2][at]) for row in rows)} by {name}" for at, name in enumerate(names))
    lines = [f"## {title}", "", f"{len(rows)} cases; marked otherwise than right: {counts}.", ""]
    lines += ["| case | reply | " + " | ".join(names) + " |", "|---" * (2 + len(names)) + "|"]
    lines += [f"| {id} | {shown(reply)} | {' | '.join(marks)} |" for id, reply, marks in rows if any(marks)]
    return "\n".join(lines) + "\n"


def test_the_page_is_what_the_graders_say() -> None:
    """The page of differences is recomputed from the cases, letter by letter."""
    parts = [
        section("AIME: the answer is a whole number", SCORERS, list(wrong_numbers("aime"))),
        section("GSM8K: the answer is a number", SCORERS, list(wrong_numbers("gsm8k"))),
        section("Multiple choice: the answer is one letter", SCORERS, list(wrong_letters())),
        section("MATH: the answer is a formula", ("string comparison",), list(wrong_formulas())),
    ]
    page = HEAD + "\n".join(parts)
    if os.environ.get("PRILL_GOLDEN") == "write":
        PAGE.write_text(page)
    assert PAGE.read_text() == page
