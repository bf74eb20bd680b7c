"""PostTrainBench's published tables (a CSV of model × benchmark, each) as standings.

By file name: `final_M` or `<x>_run_<n>` is one run; `aggregated_M` beside `final_M` says why cells are not measured;
`aggregated_avg_A` (with `aggregated_std_A`) is a mean over runs, whose imputed cells nobody marked. A table with a
missing column, no number where a share belongs, or a model twice is refused with file, line and what is allowed.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from prill.catalog import Catalog
from prill.errors import DefinitionError
from prill.score import clean, seed_scores
from prill.scoring import tally
from prill.spec import Suite
from prill.standings import Board, Cell, Standing

WORDS = {
    "not stored": "no_submission",
    "not avl.": "no_submission",
    "ERR": "evaluation_failed",
}
"""What stands in a cell of an unfinished table instead of a number → our rule."""
RUN = re.compile(r"(?P<who>.+)_run_(?P<seed>\d+)")
NOT_RUNS = ("baseline", "baseline_fewshot", "time_overview")
Grid = dict[str, dict[str, float | str]]


def names_of(suite: Suite, catalog: Catalog) -> dict[str, str]:
    """A model's name in the tables (its repository without the organisation) → its name here."""
    return {(catalog.model(name).repo or name).split("/")[-1]: name for name in suite.models}


def grid(file: Path, models: Mapping[str, str], benchmarks: tuple[str, ...], *, words: bool = False) -> Grid:
    """Our model → benchmark → share (or, where `words` allows it, a word). One row for each model of the suite."""
    with file.open(encoding="utf-8-sig", newline="") as opened:
        rows = list(csv.reader(opened))
    head = rows[0] if rows else []
    for name in ("model", *benchmarks):
        if head.count(name) != 1:
            what = "no column" if name not in head else "more than one column"
            raise DefinitionError(f"{file}:1: {what} {name!r}; a table has model, {', '.join(benchmarks)}")
    found: Grid = {}
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(head):
            raise DefinitionError(f"{file}:{line}: {len(row)} fields, but the head has {len(head)}")
        fields = dict(zip(head, row, strict=True))
        if fields["model"] not in models:
            raise DefinitionError(f"{file}:{line}: no model {fields['model']!r} (there are: {', '.join(models)})")
        model = models[fields["model"]]
        if model in found:
            raise DefinitionError(f"{file}:{line}: model {fields['model']!r} for the second time; each has one row")
        found[model] = {name: share(file, line, name, fields[name], words=words) for name in benchmarks}
    missing = [name for name, model in models.items() if model not in found]
    if missing:
        raise DefinitionError(f"{file}:{len(rows)}: no row for {', '.join(missing)}; the suite has {', '.join(models)}")
    return found


def share(file: Path, line: int, name: str, text: str, *, words: bool) -> float | str:
    """A number in 0..1, or an allowed word."""
    if words and text in WORDS:
        return text
    try:
        value = tally.number(float(text))
    except ValueError:
        value = None
    if value is None:
        also = f", or one of {', '.join(WORDS)}" if words else ""
        raise DefinitionError(f"{file}:{line}: {name} is {text!r}, not a number in 0..1{also}")
    return value


class Importer:
    """A folder of published tables as a board. Only what the tables say is in it."""

    def __call__(self, tree: Path, to: Path, catalog: Catalog, suite_name: str) -> Board:
        """One row for each agent for which the folder has a table; nothing is written to `to`."""
        suite = catalog.suite(suite_name)
        models = names_of(suite, catalog)
        files = {file.stem: file for file in sorted(tree.glob("*.csv"))}
        cells: dict[str, list[Cell]] = defaultdict(list)
        for stem, file in files.items():
            run = RUN.fullmatch(stem)
            if stem.startswith("final_"):
                who = stem.removeprefix("final_")
                raw = files.get(f"aggregated_{who}")
                before = grid(raw, models, suite.benchmarks, words=True) if raw else None
                cells[who] += cells_of(suite, who, 0, grid(file, models, suite.benchmarks), before, file.name)
            elif stem.startswith("aggregated_avg_"):
                who = stem.removeprefix("aggregated_avg_")
                if not any(RUN.fullmatch(other) and other.startswith(f"{who}_run_") for other in files):
                    table = grid(file, models, suite.benchmarks)
                    cells[who] += [
                        replace(cell, why=f"{file.name}: mean over runs; which were imputed is not published")
                        for cell in cells_of(suite, who, 0, table, None, file.name)
                    ]
            elif run is not None:
                table = grid(file, models, suite.benchmarks)
                cells[run["who"]] += cells_of(suite, run["who"], int(run["seed"]), table, None, file.name)
        if not cells:
            raise DefinitionError(f"{tree}: no table of the form final_*.csv, aggregated_avg_*.csv or *_run_<n>.csv")
        rows = [row_of(suite, who, found) for who, found in cells.items()]
        places = tally.ranks({row.entrant: row.score for row in rows if row.score is not None})
        rows = [replace(row, rank=places.get(row.entrant), of=len(places)) for row in rows]
        rows.sort(key=lambda row: (row.score is None, -(row.score or 0.0), row.entrant))
        every = [cell for row in rows for cell in row.cells]
        return Board(
            suite=suite.name,
            title=f"{suite.title}, published tables",
            suite_digest=catalog.digests[f"suites/{suite.name}"],
            standings=tuple(rows),
            attempts=(),
            expected=len(every),
            covered=sum(cell.value is not None for cell in every),
        )


def cells_of(suite: Suite, who: str, seed: int, table: Grid, before: Grid | None, file: str) -> list[Cell]:
    """One cell for each entry; imputed where the table before imputation has a word or another number."""
    bases = {(row.model, row.benchmark): row.base for row in suite.references}
    cells = []
    for model, row in table.items():
        for benchmark, value in row.items():
            assert isinstance(value, float)
            raw: float | str = value if before is None else before[model][benchmark]
            rule = WORDS.get(raw) if isinstance(raw, str) else None if raw == value else "contamination"
            why = f"{file}: as published"
            if rule is not None:
                why = f"{file}: {raw if isinstance(raw, str) else 'a verdict, or a number that was put aside'}"
            base = bases.get((model, benchmark))
            alert = rule is None and before is not None and value == base
            cells.append(
                Cell(
                    entrant=who,
                    model=model,
                    benchmark=benchmark,
                    seed=seed,
                    state="measured" if rule is None else "base",
                    value=value,
                    raw=raw if isinstance(raw, float) else None,
                    n=0,
                    stderr=None,
                    why=why,
                    rule=rule,
                    run=None,
                    alerts=(f"exactly {value!r}, the base score of {benchmark}",) if alert else (),
                )
            )
    return cells


def row_of(suite: Suite, who: str, cells: list[Cell]) -> Standing:
    """A standing of published cells."""
    scores = [score for score in seed_scores(suite, cells).values() if score is not None]
    shown = tally.spread(scores)
    return Standing(
        entrant=who,
        title=who,
        score=shown.mean,
        why=f"from published tables; {cells[0].why}",
        sd=shown.sd,
        seeds=shown.n,
        cells=tuple(cells),
        missing=0,
        held=0,
        imputed=sum(cell.state == "base" for cell in cells),
        lost=0,
        clean=clean(suite, cells),
    )


plugin = Importer()
