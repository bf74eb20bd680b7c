"""Records → the text of a static site: standings, a page for each run, one stylesheet, one JSON file.

Values in, text out; templates come in as text. Pages load nothing but their own stylesheet, have no script, and
every link is relative, so that they open from a disk. All text that an agent, a model or a judge wrote is escaped,
made visible by `story.plain`, and cut at a length that the page states together with where the whole is.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import json

from prill.bill import THINGS
from prill.record import Citation, Record, Run, Step
from prill.standings import Attempt, Board, Cell, Era, Standing
from prill.story import Story, clock, interval, many, one_line, percent, place, plain, size

STEP, ALL_STEPS, LEAST_STEP = 2_000, 4_000_000, 200
"""Characters of one step on its page; of all steps of a page together; what each step gets at the least."""
ROWS = 500
"""Rows of a list of files, and moments of a timeline."""
STATES = {
    "measured": ("●", "measured, and every rule of the suite that was judged is kept"),
    "base": ("◐", "imputed: policy puts the untouched base model's score here"),
    "zero": ("○", "imputed: policy puts zero here"),
    "held": ("◇", "no number until a person has looked"),
    "lost": ("✕", "solving began and never ended; nothing follows about the entrant"),
    "missing": ("–", "no run counts for this cell yet"),
}
VERDICTS = {"kept": "✓", "broken": "✗", "unknown": "?"}


class Copy(Record, frozen=True, kw_only=True):
    """A file of a run folder, and what of it is published."""

    path: str
    """In the run folder."""
    bytes: int
    sha256: str
    """Of the whole file in the run folder."""
    published: str | None
    """Path below the run's folder on the site; text that might pass for a page has `.txt` added."""
    kept: int
    kept_sha256: str | None
    why: str = ""
    """Why it is cut or not published; empty where it is whole."""


class Reach(Record, frozen=True, kw_only=True):
    """What a page can link to about one run."""

    page: str
    """The run's page, as linked to; empty on that page itself."""
    folder: str
    steps: frozenset[int]
    starts: tuple[tuple[int, int, int], ...]
    """Offset, end and number of each step in the raw output, by offset."""
    files: Mapping[str, Copy]


class Cited(Record, frozen=True, kw_only=True):
    """A citation as a page shows it: one or two links, or why there is none."""

    step: str
    step_href: str | None
    file: str
    file_href: str | None
    why: str
    sha256: str | None
    quote: str


class Note(Record, frozen=True, kw_only=True):
    """Why cells say what they say; cells with the same reason share one."""

    number: int
    state: str
    rule: str | None
    why: str
    cites: tuple[Cited, ...]
    cells: int


def render(
    board: Board,
    runs: Mapping[str, Run],
    stories: Mapping[str, Story],
    steps: Mapping[str, Sequence[Step]],
    files: Mapping[str, Sequence[Copy]],
    templates: Mapping[str, str],
    records: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Relative path → text of every page. All mappings are by run id, but `templates` and `records` (by entrant)."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    room = Environment(
        loader=DictLoader(templates), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    room.filters |= {"plain": plain, "line": one_line, "percent": percent, "clock": clock, "size": size, "many": many}
    room.filters |= {"signed": signed, "along": along}
    room.globals |= {"STATES": STATES, "VERDICTS": VERDICTS, "THINGS": THINGS}
    room.globals |= {"cut": cut, "href": href, "interval": interval}
    own = {name: reach(name, steps.get(name, ()), files.get(name, ())) for name in runs}
    pages = {
        "index.html": room.get_template("index.html").render(up="", records=records or {}, **index(board, runs, own)),
        "style.css": templates["style.css"],
        "standings.json": json.format(json.encode(board), indent=1).decode() + "\n",
    }
    for name, run in runs.items():
        about = sheet(board, run, steps.get(name, ()), own[name])
        page = room.get_template("run.html").render(up="../", run=run, board=board, story=stories[name], **about)
        pages[f"runs/{name}.html"] = page
    return pages


# --- links ---


def href(path: str) -> str:
    """A relative link to a path, whatever is in its name."""
    return quote(path, safe="/")


def cut(text: str, most: int) -> tuple[str, int]:
    """What a page shows of a text, and how many characters it leaves out."""
    return plain(text[:most]), max(0, len(text) - most)


def reach(name: str, steps: Sequence[Step], files: Sequence[Copy]) -> Reach:
    """What the run's own page can link to."""
    return Reach(
        page="",
        folder=f"{name}/",
        steps=frozenset(step.step for step in steps),
        starts=tuple(sorted((s.offset, s.offset + s.length, s.step) for s in steps if s.length)),
        files={file.path: file for file in files},
    )


def seen_from_index(name: str, own: Reach) -> Reach:
    """The same from the index."""
    return Reach(
        page=f"runs/{name}.html", folder=f"runs/{own.folder}", steps=own.steps, starts=own.starts, files=own.files
    )


def cite(citation: Citation, own: Reach) -> Cited:
    """A citation with its links: to the step, and to the file if it is published and holds the cited bytes."""
    step = citation.step
    if step is None and citation.file.endswith("raw/stdout") and citation.offset is not None:
        at = bisect_right(own.starts, (citation.offset, 1 << 62, 0)) - 1
        step = own.starts[at][2] if at >= 0 and citation.offset < own.starts[at][1] else None
    known = step in own.steps
    copy = own.files.get(citation.file)
    why, link = "", None
    if copy is None:
        why = "not published: no such file in the run folder"
    elif copy.published is None:
        why = f"not published: {copy.why}"
    else:
        link = href(own.folder + copy.published)
        if (citation.offset or 0) + (citation.length or 0) > copy.kept:
            why = f"the cited bytes lie beyond what is published: {copy.why}"
    return Cited(
        step="" if step is None else f"step {step:,}",
        step_href=f"{href(own.page)}#step-{step}" if known else None,
        file=place(citation),
        file_href=link,
        why=why if step is None or known else f"no such step on the run's page; {why}".rstrip("; "),
        sha256=citation.sha256,
        quote=citation.quote,
    )


# --- the index ---


def index(board: Board, runs: Mapping[str, Run], own: Mapping[str, Reach]) -> dict[str, Any]:
    """What the index shows."""
    cells = [cell for row in board.standings for cell in row.cells]
    notes, numbers = annotate(cells, own)
    return {
        "board": board,
        "runs": runs,
        "columns": list(dict.fromkeys(cell.benchmark for cell in cells)),
        "matrix": [(row, matrix(row.cells)) for row in board.standings],
        "notes": notes,
        "number": numbers,
        "used": [state for state in STATES if any(cell.state == state for cell in cells)],
        "titles": {row.entrant: row.title for row in board.standings},
        "key": cell_key,
        "swayed": [row for row in board.standings if sways(row)],
        "selection": any(len({variant.score for variant in row.variants}) > 1 for row in board.standings),
        "eras": eras(cells),
        "alerts": [(cell, alert) for cell in cells for alert in cell.alerts],
        "zeros": [cell for cell in cells if cell.zero_because],
        "rescaled": any(cell.unclamped is not None for cell in cells),
    }


def signed(value: float) -> str:
    """`0.0125` → "+1.25", `-0.0125` → "−1.25", `0` → "0.00"."""
    return f"{'−' if value < 0 else '+' if value else ''}{percent(abs(value))}"


def along(value: float) -> str:
    """Where a share stands on a line of 100 units; what lies beyond an end stands at that end."""
    return f"{100 * min(1.0, max(0.0, value)):.2f}"


def sways(row: Standing) -> bool:
    """Whether a rule of selection, or leaving out what is imputed, gives another headline."""
    return len({score for variant in row.variants for score in (variant.score, variant.measured_only)}) > 1


def eras(cells: Iterable[Cell]) -> dict[Era, int]:
    """The eras of the cells, numbered in the order in which they come."""
    return {era: number for number, era in enumerate(dict.fromkeys(cell.era for cell in cells if cell.era), 1)}


def matrix(cells: Iterable[Cell]) -> list[tuple[str, int, dict[str, Cell]]]:
    """Model, seed and the cells by benchmark, in the order given."""
    rows: dict[tuple[str, int], dict[str, Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.model, cell.seed), {})[cell.benchmark] = cell
    return [(model, seed, by_benchmark) for (model, seed), by_benchmark in rows.items()]


def cell_key(cell: Cell) -> tuple[str, str, str, int]:
    """Which cell it is."""
    return cell.entrant, cell.model, cell.benchmark, cell.seed


def annotate(
    cells: Iterable[Cell], own: Mapping[str, Reach]
) -> tuple[list[Note], dict[tuple[str, str, str, int], int]]:
    """Numbered reasons in the order of the cells, and which cell has which."""
    grouped: dict[Any, list[Cell]] = {}
    for cell in cells:
        grouped.setdefault((cell.state, cell.why, cell.rule, cell.run if cell.cites else None), []).append(cell)
    notes: list[Note] = []
    numbers: dict[tuple[str, str, str, int], int] = {}
    for number, group in enumerate(grouped.values(), 1):
        first = group[0]
        there = own.get(first.run or "")
        cites = tuple(cite(c, seen_from_index(first.run or "", there)) for c in first.cites) if there else ()
        notes.append(
            Note(number=number, state=first.state, rule=first.rule, why=first.why, cites=cites, cells=len(group))
        )
        numbers |= {cell_key(cell): number for cell in group}
    return notes, numbers


# --- the page of a run ---


def sheet(board: Board, run: Run, steps: Sequence[Step], own: Reach) -> dict[str, Any]:
    """What a run's page shows, beside the run and its story."""
    name = run.spec.id
    ours = [cell for row in board.standings for cell in row.cells if cell.run == name]
    attempt: Attempt | None = next((entry for entry in board.attempts if entry.run == name), None)
    return {
        "cells": ours,
        "attempt": attempt,
        "tests": {benchmark.name: benchmark for benchmark in run.spec.benchmarks},
        "steps": steps,
        "room": min(STEP, max(LEAST_STEP, ALL_STEPS // max(len(steps), 1))),
        "most": ROWS,
        "files": list(own.files.values()),
        "folder": own.folder,
        "findings": [
            (judgement, [(finding, [cite(c, own) for c in finding.citations]) for finding in judgement.findings])
            for judgement in run.judgements
        ],
        "silent": [judge for judge in run.spec.judges if judge not in {made.judge for made in run.judgements}],
        "record": lambda start: newest(own, start),
    }


def newest(own: Reach, start: str) -> tuple[str, str | None]:
    """The last published file whose path starts so, with its link: where the whole of a cut text is."""
    found = [file for path, file in own.files.items() if path.startswith(start)]
    if not found:
        return start, None
    last = max(found, key=lambda file: (len(file.path), file.path))
    return last.path, href(own.folder + last.published) if last.published else None
