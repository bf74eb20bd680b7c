"""What a headline hangs on: intervals, rank intervals, differences between neighbours, other rules of selection. Pure.

Chance has up to three sources, and an interval names those that are in it. `items`: the benchmark's items could have
been others; resampled, the same for all rows. `stderr`: cells whose items are not known bring their own standard
error, unpaired. `runs`: the same entrant in another run; a Student t with the variance between seeds pooled over the
entrants of the board that have two or more, since two or three seeds alone say little about their own variance.
A value that policy put in has no chance of its own. Not covered: the chance that another run would be flagged.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import isclose, sqrt
from statistics import fmean, variance
from typing import Any, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from prill.decisions import Key, key
from prill.record import Measurement, Run
from prill.score import board as board_of
from prill.score import seed_scores
from prill.scoring import bootstrap
from prill.scoring.overview import overview
from prill.spec import RunSpec, ScoreRule, Suite
from prill.standings import Board, Cell, Difference, Interval, Standing, Variant

RESAMPLES = 10_000
SELECTIONS: tuple[str, ...] = get_args(ScoreRule.__annotations__["selection"])


def scrutinise(
    board: Board,
    suite: Suite,
    expected: Iterable[RunSpec],
    runs: Iterable[Run],
    chance: Any,
    *,
    partial: bool = False,
    resamples: int = RESAMPLES,
) -> Board:
    """The board with what its headlines hang on. `chance` is a numpy generator: the same seed, the same figures."""
    expected, runs = list(expected), list(runs)
    counting = counted(board, runs)
    rows = with_intervals(board.standings, suite, counting, chance, resamples)
    others = variants(board, suite, expected, runs, partial=partial)
    used: dict[str, list[Run]] = defaultdict(list)
    for (entrant, *_), found in counting.items():
        used[entrant] += found
    rows = [replace(row, variants=others[row.entrant], overview=overview(used[row.entrant])) for row in rows]
    return replace(board, standings=tuple(rows), resamples=resamples)


def counted(board: Board, runs: Iterable[Run]) -> dict[Key, list[Run]]:
    """The runs that count, by cell and seed."""
    known = {run.spec.id: run for run in runs}
    found: dict[Key, list[Run]] = defaultdict(list)
    for entry in board.attempts:
        if entry.counts:
            found[key(known[entry.run].spec)].append(known[entry.run])
    return found


# --- other rules of selection ----------------------------------------------------------------------------------


def variants(
    board: Board, suite: Suite, expected: list[RunSpec], runs: list[Run], *, partial: bool
) -> dict[str, tuple[Variant, ...]]:
    """Each entrant's headline under each rule of selection, with imputed cells and without."""
    others: dict[str, list[Variant]] = defaultdict(list)
    alone = not any("superseded" in entry.why for entry in board.attempts) and suite.score.selection != "mean"
    for selection in SELECTIONS:
        same = alone or selection == suite.score.selection
        rule: Any = replace(suite.score, selection=selection)
        then = board if same else board_of(replace(suite, score=rule), expected, runs, partial=partial)
        for row in then.standings:
            others[row.entrant].append(Variant(selection=selection, score=row.score, measured_only=row.clean))
    return {entrant: tuple(found) for entrant, found in others.items()}


# --- intervals -------------------------------------------------------------------------------------------------


class Parts(Struct, kw_only=True):
    """What one row's chance is made of."""

    constant: float = 0.0
    noise: float = 0.0
    """Variance of the cells that bring their own standard error."""
    between: float = 0.0
    """Standard deviation of the mean over runs."""
    names: set[str] = field(default_factory=set)
    why: str = ""
    """Why there is no interval."""


def with_intervals(
    standings: Iterable[Standing], suite: Suite, counting: Mapping[Key, list[Run]], chance: Any, draws: int
) -> list[Standing]:
    """The rows with their intervals; rank intervals only where every ranked row has one."""
    rows = list(standings)
    ranked = [row for row in rows if row.score is not None]
    parts = [Parts() for _ in ranked]
    blocks = blocks_of(suite, ranked, counting, parts)
    pooled, df = between(suite, ranked)
    for row, part in zip(ranked, parts, strict=True):
        if row.seeds > 1 and df:
            part.between = sqrt(pooled / row.seeds)
            part.names.add("runs")
    able = [place for place, part in enumerate(parts) if not part.why]
    if not able:
        return [replace(row, interval=lacking(parts, ranked, row)) for row in rows]
    noises = [
        bootstrap.Noise(sds=[sqrt(part.noise) for part in parts]),
        bootstrap.Noise(sds=[part.between for part in parts], df=df or None),
    ]
    values = bootstrap.resample(blocks, [part.constant for part in parts], noises, draws, chance)
    limits = bootstrap.bounds(values)
    places = bootstrap.rank_bounds(values) if len(able) == len(ranked) and len(ranked) > 1 else None
    made = {}
    for place, row in enumerate(ranked):
        low, high = limits[place] if place in able else (None, None)
        made[row.entrant] = replace(
            row,
            interval=Interval(low=low, high=high, parts=tuple(sorted(parts[place].names)), why=parts[place].why),
            ranks=places[place] if places else None,
            next=difference(ranked, parts, values, place) if place + 1 < len(ranked) else None,
        )
    return [made.get(row.entrant, row) for row in rows]


def lacking(parts: list[Parts], ranked: list[Standing], row: Standing) -> Interval | None:
    """No interval, and why."""
    why = next((part.why for part, other in zip(parts, ranked, strict=True) if other is row), "")
    return Interval(low=None, high=None, parts=(), why=why) if why else None


def difference(ranked: list[Standing], parts: list[Parts], values: Any, place: int) -> Difference:
    """A row against the next one."""
    first, second = ranked[place], ranked[place + 1]
    assert first.score is not None and second.score is not None
    gap = first.score - second.score
    why = parts[place].why or parts[place + 1].why
    if why:
        return Difference(other=second.entrant, value=gap, low=None, high=None, detectable=None, why=why)
    [(low, high)] = bootstrap.bounds((values[:, place] - values[:, place + 1])[:, None])
    found = bootstrap.detectable(values[:, place], values[:, place + 1])
    return Difference(other=second.entrant, value=gap, low=low, high=high, detectable=found)


def between(suite: Suite, rows: Iterable[Standing]) -> tuple[float, int]:
    """Variance between an entrant's seeds, pooled over entrants, and its degrees of freedom."""
    total, df = 0.0, 0
    for row in rows:
        scores = [score for score in seed_scores(suite, row.cells).values() if score is not None]
        if len(scores) > 1:
            total += variance(scores) * (len(scores) - 1)
            df += len(scores) - 1
    return (total / df if df else 0.0), df


def blocks_of(
    suite: Suite, rows: list[Standing], counting: Mapping[Key, list[Run]], parts: list[Parts]
) -> list[bootstrap.Block]:
    """The marks of every measured cell, benchmark by benchmark; what has no marks goes into `parts`."""
    runs = {(*cell[:2], benchmark, cell[3]): found for cell, found in counting.items() for benchmark in cell[2]}
    blocks = []
    for benchmark, weight in suite.score.weights.items():
        columns: list[tuple[dict[str, float], int, float]] = []
        scale = None
        for place, row in enumerate(rows):
            whole = {seed for seed, score in seed_scores(suite, row.cells).items() if score is not None}
            cells = [cell for cell in row.cells if cell.benchmark == benchmark and cell.seed in whole]
            for cell in cells:
                share = weight / len(cells)
                found = runs.get((cell.entrant, cell.model, benchmark, cell.seed), [])
                marks = marks_of(cell, found)
                if suite.score.scale != "raw" and found:
                    test = next(test for test in found[0].spec.benchmarks if test.name == benchmark)
                    scale = (test.floor, test.ceiling)
                if cell.state == "measured" and marks is not None:
                    columns.append((marks, place, share))
                    parts[place].names.add("items")
                else:
                    unpaired(parts[place], cell, share, scale)
        if columns:
            blocks += made(columns, len(rows), scale)
    return blocks


def unpaired(part: Parts, cell: Cell, share: float, scale: tuple[float, float] | None) -> None:
    """A cell without marks: a constant, with its standard error where it was measured."""
    assert cell.value is not None
    part.constant += share * cell.value
    if cell.state != "measured":
        return
    if cell.stderr is None:
        part.why = part.why or (
            f"{cell.model}/{cell.benchmark}, seed {cell.seed}: neither the items' marks nor a standard error is known"
        )
        return
    part.noise += (share * cell.stderr / (scale[1] - scale[0] if scale else 1.0)) ** 2
    part.names.add("stderr")


def marks_of(cell: Cell, runs: list[Run]) -> dict[str, float] | None:
    """Item → mark, averaged over the runs that count; none where they do not add up to the cell's raw value."""
    marks: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        measured = next((m for m in run.measurements if m.benchmark == cell.benchmark), None)
        if measured is None or not measured.items or measured.value is None:
            return None
        found = counting_marks(measured)
        if found is None:
            return None
        for item, mark in found.items():
            marks[item].append(mark)
    if not marks or any(len(found) != len(runs) for found in marks.values()):
        return None
    return {item: fmean(found) for item, found in marks.items()}


def counting_marks(measured: Measurement) -> dict[str, float] | None:
    """The reading of the marks whose mean is the measurement's value."""
    assert measured.value is not None
    for reading in ("robust", "official"):
        marks = {entry.item: float(getattr(entry, reading)) for entry in measured.items}
        if len(marks) == len(measured.items) and isclose(fmean(marks.values()), measured.value, abs_tol=1e-9):
            return marks
    return None


def made(
    columns: list[tuple[dict[str, float], int, float]], rows: int, scale: tuple[float, float] | None
) -> list[bootstrap.Block]:
    """Columns over the same items in one block; others in blocks of their own, which are then not paired."""
    import numpy as np

    groups: dict[tuple[str, ...], list[tuple[dict[str, float], int, float]]] = defaultdict(list)
    for column in columns:
        groups[tuple(sorted(column[0]))].append(column)
    blocks = []
    for items, group in groups.items():
        marks = np.array([[column[item] for item in items] for column, _, _ in group], dtype=np.float32).T
        shares = np.zeros((len(group), rows), dtype=np.float32)
        for number, (_, place, share) in enumerate(group):
            shares[number, place] = share
        blocks.append(bootstrap.Block(marks=marks, share=shares, scale=scale))
    return blocks
