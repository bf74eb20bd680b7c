"""Specs, runs and a suite's policy → cells with reasons → standings. Pure: the same files give the same board.

Every cell is a value, or none, and always says why. Missing is `None`; it is never zero. A required judge that has
not spoken, or that says *unknown*, holds the cell. Nothing is dropped: each run that ever began is in `attempts`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean, stdev

from msgspec.structs import replace

from prill.record import Attempt, Board, Cell, CellState, Finding, Measurement, Run, Standing
from prill.spec import Effect, Key, RunSpec, Suite, decided, key

NO_SUBMISSION, BROKEN = "no_submission", "broken_submission"
"""The two rules that sealing and loading decide, not a judge."""


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
    for spec in expected:
        titles[spec.entrant.name] = spec.entrant.title
        cells[spec.entrant.name] += cells_of(suite, spec, counting.get(key(spec), []), tried.get(key(spec), []))
    rows = [standing(suite, name, titles[name], entries, partial=partial) for name, entries in cells.items()]
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
    )


def choose(suite: Suite, expected: list[RunSpec], runs: list[Run]) -> tuple[list[Attempt], dict[Key, list[Run]]]:
    """Which runs count for which cell and seed, and for every other one why it does not."""
    planned = {key(spec): spec for spec in expected}
    ready: dict[Key, list[Run]] = defaultdict(list)
    verdicts: dict[str, tuple[bool, str]] = {}
    for run in sorted(runs, key=lambda run: (run.began or 0.0, run.spec.id)):
        spec = planned.get(key(run.spec))
        if spec is None:
            verdicts[run.spec.id] = False, "not a cell of this suite as it is now defined or asked for"
        elif changed := differences(spec, run.spec):
            verdicts[run.spec.id] = False, f"made under other decisions ({', '.join(changed)})"
        elif run.state == "lost":
            verdicts[run.spec.id] = False, "lost: solving began and never ended; another run takes its place"
        elif run.state != "done":
            verdicts[run.spec.id] = False, unfinished(run)
        else:
            ready[key(run.spec)].append(run)
    counting = {cell: select(suite, candidates) for cell, candidates in ready.items()}
    for cell, candidates in ready.items():
        for run in candidates:
            counts = run in counting[cell]
            rule = f"selection rule: {suite.score.selection}"
            verdicts[run.spec.id] = counts, rule if counts else f"superseded ({rule})"
    return [attempt(run, *verdicts[run.spec.id]) for run in runs], counting


def unfinished(run: Run) -> str:
    """Why a run that is neither lost nor done has no number yet."""
    if run.failures:
        last = run.failures[-1]
        return f"stage {last.stage} failed on our side: {last.detail.get('why', 'see events.jsonl')}"
    return {"planned": "not begun", "running": "solving now"}.get(run.state, "a later stage is not done")


def select(suite: Suite, runs: list[Run]) -> list[Run]:
    """The runs of one cell and seed that count, of those given in the order they began."""
    if suite.score.selection == "mean":
        return runs
    if suite.score.selection == "best":
        return [max(runs, key=lambda run: fmean([m.value or 0.0 for m in run.measurements] or [0.0]))]
    return [runs[0] if suite.score.selection == "first" else runs[-1]]


def attempt(run: Run, counts: bool, why: str) -> Attempt:
    """One line of the ledger."""
    entrant, model, benchmarks, seed = key(run.spec)
    return Attempt(
        run=run.spec.id,
        entrant=entrant,
        model=model,
        benchmarks=benchmarks,
        seed=seed,
        state=run.state,
        ended=run.outcome.ended if run.outcome else run.state,
        counts=counts,
        why=why,
    )


def differences(now: RunSpec, then: RunSpec) -> list[str]:
    """Names of the decisions that differ, such as `budget.hours`."""
    new, old = decided(now), decided(then)
    names = []
    for field in new:
        if new[field] != old[field]:
            inner = new[field] if isinstance(new[field], dict) else {}
            names += [f"{field}.{part}" for part in inner if inner[part] != old[field].get(part)] or [field]
    return names


# --- cells -------------------------------------------------------------------------------------------------


def cells_of(suite: Suite, spec: RunSpec, runs: list[Run], attempts: list[Attempt]) -> list[Cell]:
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
        if runs:
            cells.append(mean_of([cell_of(suite, empty, run) for run in runs]))
        else:
            cells.append(without_run(empty, attempts))
    return cells


def without_run(empty: Cell, attempts: list[Attempt]) -> Cell:
    """A cell for which no run counts: lost if all that was tried is lost, else missing."""
    if not attempts:
        return empty
    last = attempts[-1]
    state: CellState = "lost" if all(entry.state == "lost" for entry in attempts) else "missing"
    return replace(empty, state=state, why=last.why, run=last.run)


def cell_of(suite: Suite, empty: Cell, run: Run) -> Cell:
    """What one finished run earns in one benchmark."""
    measured = next((m for m in run.measurements if m.benchmark == empty.benchmark), None)
    cell = replace(empty, run=run.spec.id)
    if run.submission is None or measured is None:
        return replace(cell, why="a stage of this run is not done")
    cell = replace(cell, raw=measured.value, n=measured.n, stderr=measured.stderr)
    if run.submission.state == "absent":
        return apply(suite, cell, NO_SUBMISSION, in_words(run))
    if run.submission.state == "broken" or measured.state == "unloadable":
        why = run.submission.why if run.submission.state == "broken" else measured.why
        return apply(suite, cell, BROKEN, f"the submission is broken: {why}")
    return judged(suite, cell, measured, run)


def in_words(run: Run) -> str:
    """Why there is no submission."""
    ended = f"; the agent's run: {run.outcome.why}" if run.outcome else ""
    return f"no submission: {run.submission.why if run.submission else 'nothing was sealed'}{ended}"


def judged(suite: Suite, cell: Cell, measured: Measurement, run: Run) -> Cell:
    """A measured cell after the judges: held if one is missing or cannot tell, else the gravest broken rule decides."""
    spoken = {judgement.judge for judgement in run.judgements}
    silent = [judge for judge in suite.judges if judge not in spoken]
    if silent:
        return replace(cell, state="held", why=f"required judge without a verdict: {', '.join(silent)}")
    findings = [finding for judgement in run.judgements for finding in judgement.findings]
    broken = [f for f in findings if f.verdict == "broken" and effect(suite, f.rule) != "none"]
    unknown = [f for f in findings if f.verdict == "unknown" and effect(suite, f.rule) != "none"]
    if broken:
        gravest = min(broken, key=lambda f: ("hold", "zero", "base").index(effect(suite, f.rule)))
        return replace(apply(suite, cell, gravest.rule, gravest.why), cites=gravest.citations)
    if unknown:
        return replace(
            cell,
            state="held",
            rule=unknown[0].rule,
            why=f"{unknown[0].rule}: {unknown[0].why}",
            cites=unknown[0].citations,
        )
    value = scaled(suite, measured.value, run, cell.benchmark)
    return replace(cell, state="measured", value=value, why=kept(findings))


def kept(findings: list[Finding]) -> str:
    """What a measured cell rests on."""
    rules = sorted({finding.rule for finding in findings if finding.verdict == "kept"})
    return f"measured; kept: {', '.join(rules)}" if rules else "measured; no rule was judged"


def effect(suite: Suite, rule: str) -> Effect:
    """What breaking a rule does; a rule that the policy does not name holds the cell until a person looks."""
    return suite.policy.get(rule, "hold")


def apply(suite: Suite, cell: Cell, rule: str, why: str) -> Cell:
    """A cell after policy."""
    match effect(suite, rule):
        case "zero":
            return replace(cell, state="zero", value=0.0, rule=rule, why=why)
        case "base":
            reference = next(
                (r for r in suite.references if (r.model, r.benchmark) == (cell.model, cell.benchmark)), None
            )
            if reference is None:
                return replace(cell, state="held", rule=rule, why=f"{why}; no base score to fall back to")
            return replace(
                cell, state="base", value=0.0 if suite.score.scale != "raw" else reference.base, rule=rule, why=why
            )
        case _:
            return replace(cell, state="held", rule=rule, why=why)


def scaled(suite: Suite, value: float | None, run: Run, benchmark: str) -> float | None:
    """Raw, or floor-to-ceiling clamped to 0..1."""
    if value is None or suite.score.scale == "raw":
        return value
    test = next(test for test in run.spec.benchmarks if test.name == benchmark)
    return min(1.0, max(0.0, (value - test.floor) / (test.ceiling - test.floor)))


def mean_of(cells: list[Cell]) -> Cell:
    """One cell out of several runs of it: the mean where all have a value, else the first that has none."""
    for cell in cells:
        if cell.value is None:
            return cell
    first = cells[0]
    if len(cells) == 1:
        return first
    value = fmean(cell.value for cell in cells if cell.value is not None)
    return replace(first, value=value, stderr=None, why=f"mean of {len(cells)} runs; first: {first.why}")


# --- standings ---------------------------------------------------------------------------------------------


def standing(suite: Suite, name: str, title: str, cells: list[Cell], *, partial: bool) -> Standing:
    """One entrant's row: per seed the weighted sum per model averaged over models, then mean and SD over seeds."""
    holes = [cell for cell in cells if cell.value is None]
    by_seed: dict[int, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_seed[cell.seed].append(cell)
    whole = {seed: entries for seed, entries in by_seed.items() if all(cell.value is not None for cell in entries)}
    scores = [weighted(suite, entries) for entries in whole.values()]
    counted = bool(scores) and (not holes or partial)
    return Standing(
        entrant=name,
        title=title,
        score=fmean(scores) if counted else None,
        why=headline_why(cells, holes, len(whole), len(by_seed), counted=counted),
        sd=stdev(scores) if counted and len(scores) > 1 else None,
        seeds=len(scores) if counted else 0,
        cells=tuple(cells),
        missing=sum(cell.state == "missing" for cell in cells),
        held=sum(cell.state == "held" for cell in cells),
        imputed=sum(cell.state in ("base", "zero") for cell in cells),
        lost=sum(cell.state == "lost" for cell in cells),
    )


def weighted(suite: Suite, cells: list[Cell]) -> float:
    """Weighted sum over benchmarks for each model, then the mean over models. Every cell has a value."""
    sums: dict[str, float] = defaultdict(float)
    for cell in cells:
        if cell.value is not None:
            sums[cell.model] += suite.score.weights[cell.benchmark] * cell.value
    return fmean(sums.values())


def headline_why(cells: list[Cell], holes: list[Cell], whole: int, seeds: int, *, counted: bool) -> str:
    """Why there is a headline, or none."""
    if not holes:
        return cells[0].why if len(cells) == 1 else f"all {len(cells)} cells have a value"
    if counted:
        return f"partial: {whole} of {seeds} seeds, {len(holes)} of {len(cells)} cells have no value"
    first = holes[0]
    place = f" ({first.model}/{first.benchmark}, seed {first.seed})" if len(cells) > 1 else ""
    return f"no score: {len(holes)} of {len(cells)} cells have no value; {first.state}{place}: {first.why}"


def seeds_of(suite: Suite, runs: Iterable[Run], entrant: str) -> list[int]:
    """The seeds that an entrant's row covers: those it has runs for, filled up to the suite's number from 0."""
    seen = {run.spec.seed for run in runs if run.spec.suite == suite.name and run.spec.entrant.name == entrant}
    fill = (seed for seed in range(suite.seeds + len(seen)) if seed not in seen)
    while len(seen) < suite.seeds:
        seen.add(next(fill))
    return sorted(seen)


def totals(rows: Board) -> Mapping[str, int]:
    """How many attempts ended in each way, and how many count."""
    count: dict[str, int] = defaultdict(int)
    for entry in rows.attempts:
        count[entry.ended] += 1
    return {
        "began": len(rows.attempts),
        "count": sum(entry.counts for entry in rows.attempts),
        **dict(sorted(count.items())),
    }
