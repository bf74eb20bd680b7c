"""Specs, runs and a suite's policy → cells with reasons → standings. Pure: the same files give the same board.

Every cell is a value, or none, and always says why. Missing is `None`; it is never zero. A judge or a verdict that the
suite requires and that is not there, or says *unknown*, holds the cell. Nothing is dropped: each run that ever began
is in `attempts`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean, stdev
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from prill.decisions import Key, key
from prill.record import Finding, Measurement, Run
from prill.scoring import tally
from prill.scoring.selection import choose, seeds_of, totals
from prill.scoring.voices import voices
from prill.scoring.why import alerts, why_zero
from prill.spec import Effect, Reference, RunSpec, Suite
from prill.standings import Attempt, Board, Cell, CellState, Era, Standing

__all__ = ["board", "decide", "seed_scores", "seeds_of", "totals"]

NO_RUN, NO_SUBMISSION, BROKEN, EVALUATION_FAILED = (
    "no_run",
    "no_submission",
    "broken_submission",
    "evaluation_failed",
)
"""The rules that planning, sealing and measuring decide, not a judge."""
OWN_RULES = (NO_RUN, NO_SUBMISSION, BROKEN, EVALUATION_FAILED)
GRAVITY: tuple[Effect, ...] = ("hold", "zero", "base")
"""Of several broken rules the first of these decides."""


def board(
    suite: Suite, expected: Iterable[RunSpec], runs: Iterable[Run], *, digest: str = "", partial: bool = False
) -> Board:
    """The suite's standings. `expected` are the specs that the suite plans now; `runs` is all that there is.

    A suite with a hole gives an entrant no headline unless `partial`, and then says what it leaves out.
    """
    expected = list(expected)
    mine = [run for run in runs if run.spec.suite == suite.name]
    attempts, counting = choose(suite, expected, mine)
    tried: dict[Key, list[Attempt]] = defaultdict(list)
    for entry in attempts:
        tried[entry.entrant, entry.model, entry.benchmarks, entry.seed].append(entry)
    cells: dict[str, list[Cell]] = defaultdict(list)
    titles: dict[str, str] = {}
    references = {(row.model, row.benchmark): row for row in suite.references}
    for spec in expected:
        titles[spec.entrant.name] = spec.entrant.title
        cells[spec.entrant.name] += cells_of(
            suite, references, spec, counting.get(key(spec), []), tried.get(key(spec), [])
        )
    rows = [standing(suite, name, titles[name], entries, partial=partial) for name, entries in cells.items()]
    places = tally.ranks({row.entrant: row.score for row in rows if row.score is not None})
    rows = [replace(row, rank=places.get(row.entrant), of=len(places)) for row in rows]
    rows.sort(key=lambda row: (row.score is None, -(row.score or 0.0), row.entrant))
    every = [cell for row in rows for cell in row.cells]
    return Board(
        suite=suite.name,
        title=suite.title,
        suite_digest=digest,
        standings=tuple(rows),
        attempts=tuple(sorted(attempts, key=lambda attempt: attempt.run)),
        expected=len(every),
        covered=sum(cell.value is not None for cell in every),
        wallet=suite.budget.usd,
    )


# --- one run in one benchmark ----------------------------------------------------------------------------------


class Reading(Struct, frozen=True, kw_only=True):
    """What is known of one run in one benchmark, before policy has its say."""

    submission: Literal["sealed", "absent", "broken"] = "sealed"
    submission_why: str = ""
    number: Any = None
    """What the evaluation wrote, as it was found."""
    failed: str = ""
    """Why the evaluation failed: this voids whatever number it wrote."""
    ungraded: str = ""
    """Why our grader failed: nothing follows about the submission."""
    broken: tuple[tuple[str, str], ...] = ()
    """(rule, why) of what the judges found broken."""
    unknown: tuple[tuple[str, str], ...] = ()
    silent: tuple[str, ...] = ()
    """Judges and rules without a word that the suite requires."""
    ran: bool = True


class Ruling(Struct, frozen=True, kw_only=True):
    """What policy makes of a reading."""

    state: CellState
    rule: str | None
    why: str


def decide(policy: Mapping[str, Effect], reading: Reading) -> Ruling:
    """The state of a cell. Of several broken rules the gravest effect decides; a rule without policy holds."""
    if not reading.ran:
        state = {"base": "base", "zero": "zero"}.get(policy.get(NO_RUN, "hold"), "missing")
        return Ruling(state=state, rule=NO_RUN if state != "missing" else None, why="no run yet")  # type: ignore[arg-type]
    if reading.ungraded:
        return Ruling(state="held", rule=None, why=f"grading error, ours to repair: {reading.ungraded}")
    found = [*own_faults(reading), *reading.broken]
    broken = [(rule, why) for rule, why in found if effect(policy, rule) != "none"]
    if broken:
        rule, why = min(broken, key=lambda fault: GRAVITY.index(effect(policy, fault[0])))
        effects: dict[Effect, CellState] = {"hold": "held", "zero": "zero", "base": "base"}
        return Ruling(state=effects[effect(policy, rule)], rule=rule, why=why)
    if own := own_faults(reading):
        return Ruling(state="missing", rule=own[0][0], why=own[0][1])
    if reading.silent:
        return Ruling(state="held", rule=None, why=f"required judge without a verdict: {', '.join(reading.silent)}")
    unknown = [(rule, why) for rule, why in reading.unknown if effect(policy, rule) != "none"]
    if unknown:
        return Ruling(state="held", rule=None, why=f"{unknown[0][0]} is unknown: {unknown[0][1]}")
    return Ruling(state="measured", rule=None, why="measured")


def own_faults(reading: Reading) -> list[tuple[str, str]]:
    """What is wrong with a run without any judge: at most one (rule, why)."""
    if reading.submission == "absent":
        return [(NO_SUBMISSION, reading.submission_why)]
    if reading.submission == "broken":
        return [(BROKEN, f"the submission is broken: {reading.submission_why}")]
    if reading.failed:
        return [(EVALUATION_FAILED, f"the evaluation failed: {reading.failed}")]
    if tally.number(reading.number) is None:
        return [(EVALUATION_FAILED, f"the evaluation gave {reading.number!r}, which is no number in 0..1")]
    return []


def effect(policy: Mapping[str, Effect], rule: str) -> Effect:
    """What breaking a rule does; a rule that the policy does not name holds the cell until a person looks."""
    return policy.get(rule, "hold")


# --- cells -----------------------------------------------------------------------------------------------------


def cells_of(
    suite: Suite,
    references: Mapping[tuple[str, str], Reference],
    spec: RunSpec,
    runs: list[Run],
    attempts: list[Attempt],
) -> list[Cell]:
    """One cell for each benchmark of a spec, out of the runs that count for it; `attempts` are all that were made."""
    cells = []
    for benchmark in spec.benchmarks:
        empty = Cell(
            entrant=spec.entrant.name,
            model=spec.model.name,
            benchmark=benchmark.name,
            seed=spec.seed,
            state="missing",
            value=None,
            raw=None,
            n=0,
            stderr=None,
            why="no run yet",
            rule=None,
            run=None,
        )
        reference = references.get((spec.model.name, benchmark.name))
        if runs:
            cells.append(mean_of([cell_of(suite, reference, empty, run) for run in runs]))
        elif attempts:
            cells.append(without_run(empty, attempts))
        else:
            cells.append(settled(suite, reference, empty, decide(suite.policy, Reading(ran=False))))
    return cells


def without_run(empty: Cell, attempts: list[Attempt]) -> Cell:
    """A cell for which no run counts: lost if all that was tried is lost, else missing."""
    last = attempts[-1]
    state: CellState = "lost" if all(entry.state == "lost" for entry in attempts) else "missing"
    return replace(empty, state=state, why=last.why, run=last.run)


def cell_of(suite: Suite, reference: Reference | None, empty: Cell, run: Run) -> Cell:
    """What one finished run earns in one benchmark."""
    measured = next((m for m in run.measurements if m.benchmark == empty.benchmark), None)
    cell = replace(empty, run=run.spec.id, era=era_of(suite, run))
    if run.submission is None or measured is None:
        return replace(cell, why="a stage of this run is not done")
    cell = replace(cell, raw=tally.number(measured.value), n=measured.n, stderr=measured.stderr)
    heard = voices(run, suite.signers)
    findings = list(heard.findings)
    ruling = decide(suite.policy, reading_of(suite, run, measured, findings))
    cell = settled(suite, reference, cell, ruling)
    cell = replace(cell, alerts=heard.alerts)
    decided_by = next((f for f in findings if f.rule == ruling.rule and f.verdict != "kept"), None)
    if decided_by is not None:
        cell = replace(cell, cites=decided_by.citations)
    if cell.raw is None:
        return cell
    test = next(test for test in run.spec.benchmarks if test.name == empty.benchmark)
    free = None if suite.score.scale == "raw" else tally.rescale(cell.raw, test.floor, test.ceiling)
    noticed = (*heard.alerts, *alerts(measured, empty.model, suite.references))
    cell = replace(cell, unclamped=free, alerts=noticed)
    if ruling.state != "measured":
        return cell
    below = "" if free is None or free > 0 else why_zero(measured, test.floor)
    value = cell.raw if free is None else tally.clamp(free)
    return replace(cell, value=value, why=kept(run, findings), zero_because=below)


def reading_of(suite: Suite, run: Run, measured: Measurement, findings: list[Finding]) -> Reading:
    """A finished run as `decide` wants it."""
    submission = run.submission
    assert submission is not None
    state, why = submission.state, submission.why
    if state == "absent":
        why = f"no submission: {why}" + (f"; the agent's run: {run.outcome.why}" if run.outcome else "")
    elif measured.state == "unloadable" and state == "sealed":
        state, why = "broken", measured.why
    spoken = {judgement.judge for judgement in run.judgements}
    judged = {finding.rule for finding in findings}
    origin = run.spec.origin
    judges = [judge for judge in suite.judges if judge not in spoken] if origin is None else []
    rules = [rule for rule in suite.verdicts if rule not in judged and (origin is None or rule not in origin.exempt)]
    return Reading(
        submission=state,
        submission_why=why,
        number=measured.value,
        failed=measured.why if measured.state == "failed" else "",
        ungraded=measured.why if measured.state == "ungraded" else "",
        broken=tuple((f.rule, f.why) for f in findings if f.verdict == "broken"),
        unknown=tuple((f.rule, f.why) for f in findings if f.verdict == "unknown"),
        silent=(*judges, *rules),
    )


def settled(suite: Suite, reference: Reference | None, cell: Cell, ruling: Ruling) -> Cell:
    """A cell after a ruling; where there is no base score to fall back to, it is held instead."""
    if ruling.state == "base" and suite.score.scale == "raw":
        if reference is None:
            return replace(cell, state="held", rule=ruling.rule, why=f"{ruling.why}; no base score to fall back to")
        return replace(cell, state="base", value=reference.base, rule=ruling.rule, why=ruling.why)
    imputed = ruling.state in ("base", "zero")
    return replace(cell, state=ruling.state, value=0.0 if imputed else None, rule=ruling.rule, why=ruling.why)


def kept(run: Run, findings: list[Finding]) -> str:
    """What a measured cell rests on."""
    rules = sorted({finding.rule for finding in findings if finding.verdict == "kept"})
    exempt = "".join(f"; {rule}: {why}" for rule, why in (run.spec.origin.exempt if run.spec.origin else {}).items())
    return (f"measured; kept: {', '.join(rules)}" if rules else "measured; no rule was judged") + exempt


def era_of(suite: Suite, run: Run) -> Era:
    """Under which rules a run was made and judged."""
    spoken = [f"{j.judge} ({j.version})" if j.version else j.judge for j in run.judgements]
    return Era(saw=f"{run.spec.prompt.name}: {', '.join(run.spec.rules)}", judged=suite.name, judges=tuple(spoken))


def mean_of(cells: list[Cell]) -> Cell:
    """One cell out of several runs of it: the mean where all have a value, else the first that has none.

    It is measured only if every run is; what policy put in for one of them is kept apart in `measured`.
    """
    for cell in cells:
        if cell.value is None:
            return cell
    if len(cells) == 1:
        return cells[0]
    shown = next((cell for cell in cells if cell.state != "measured"), cells[0])
    own = [cell.value for cell in cells if cell.state == "measured" and cell.value is not None]
    raws = [cell.raw for cell in cells if cell.raw is not None]
    return replace(
        shown,
        value=fmean(cell.value for cell in cells if cell.value is not None),
        raw=fmean(raws) if len(raws) == len(cells) else None,
        measured=fmean(own) if own else None,
        stderr=None,
        why=f"mean of {len(cells)} runs, {len(own)} of them measured; {shown.run}: {shown.why}",
        alerts=tuple(dict.fromkeys(alert for cell in cells for alert in cell.alerts)),
    )


# --- standings -------------------------------------------------------------------------------------------------


def standing(suite: Suite, name: str, title: str, cells: list[Cell], *, partial: bool) -> Standing:
    """One entrant's row: per seed the weighted sum over benchmarks' means, then mean and SD over seeds."""
    holes = [cell for cell in cells if cell.value is None]
    by_seed = seed_scores(suite, cells)
    scores = [score for score in by_seed.values() if score is not None]
    counted = bool(scores) and (not holes or partial)
    ran = [cell for cell in cells if cell.run is not None and cell.state not in ("lost", "missing")]
    flagged = [cell for cell in ran if cell.rule is not None and cell.rule not in OWN_RULES]
    raws = [cell.raw for cell in cells if cell.raw is not None]
    whole = len(raws) == len(cells) and bool(cells)
    return Standing(
        entrant=name,
        title=title,
        score=fmean(scores) if counted else None,
        why=headline_why(cells, holes, len(scores), len(by_seed), counted=counted),
        sd=stdev(scores) if counted and len(scores) > 1 else None,
        seeds=len(scores) if counted else 0,
        cells=tuple(cells),
        missing=sum(cell.state == "missing" for cell in cells),
        held=sum(cell.state == "held" for cell in cells),
        imputed=sum(cell.state in ("base", "zero") for cell in cells),
        lost=sum(cell.state == "lost" for cell in cells),
        raw_mean=fmean(raws) if whole else None,
        harmonic_mean=tally.harmonic(raws) if whole else None,
        clean=clean(suite, cells),
        flag_rate=len(flagged) / len(ran) if ran else None,
    )


def seed_scores(suite: Suite, cells: Iterable[Cell]) -> dict[int, float | None]:
    """Each seed's weighted score; none where one of its cells has no value."""
    grids: dict[int, dict[str, dict[str, float | None]]] = defaultdict(lambda: defaultdict(dict))
    for cell in cells:
        grids[cell.seed][cell.model][cell.benchmark] = cell.value
    return {seed: tally.weighted(suite.score.weights, grid) for seed, grid in grids.items()}


def clean(suite: Suite, cells: Iterable[Cell]) -> float | None:
    """The headline's formula over measured cells only; none where a benchmark has no measured cell."""
    values: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        own = cell.measured if cell.measured is not None else cell.value if cell.state == "measured" else None
        if own is not None:
            values[cell.benchmark].append(own)
    if set(values) != set(suite.score.weights):
        return None
    return tally.added(weight * fmean(values[benchmark]) for benchmark, weight in suite.score.weights.items())


def headline_why(cells: list[Cell], holes: list[Cell], whole: int, seeds: int, *, counted: bool) -> str:
    """Why there is a headline, or none."""
    if not holes:
        return cells[0].why if len(cells) == 1 else f"all {len(cells)} cells have a value"
    if counted:
        return f"partial: {whole} of {seeds} seeds, {len(holes)} of {len(cells)} cells have no value"
    first = holes[0]
    place = f" ({first.model}/{first.benchmark}, seed {first.seed})" if len(cells) > 1 else ""
    return f"no score: {len(holes)} of {len(cells)} cells have no value; {first.state}{place}: {first.why}"
