"""Which runs count for which cell and seed, and for every other one why it does not: the attempts ledger. Pure.

Every run that ever began is in the ledger. A run counts if it is of a planned cell, made under the suite's decisions,
finished, and chosen by the suite's selection rule; nothing replaces anything without a line that says so.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import inf
from operator import attrgetter
from statistics import fmean

from msgspec.structs import replace

from prill.decisions import Key, decided, key
from prill.record import Run
from prill.spec import RunSpec, Suite
from prill.standings import Attempt, Board


def choose(suite: Suite, expected: Iterable[RunSpec], runs: list[Run]) -> tuple[list[Attempt], dict[Key, list[Run]]]:
    """The ledger, and for each cell and seed the runs that count."""
    planned = {key(spec): spec for spec in expected}
    ready: dict[Key, list[Run]] = defaultdict(list)
    verdicts: dict[str, tuple[bool, str]] = {}
    for run in sorted(runs, key=order):
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
        chosen = {run.spec.id for run in counting[cell]}
        rule = f"selection rule: {suite.score.selection}"
        for run in candidates:
            counts = run.spec.id in chosen
            verdicts[run.spec.id] = counts, rule if counts else f"superseded ({rule})"
    return [attempt(run, *verdicts[run.spec.id]) for run in runs], counting


def order(run: Run) -> tuple[int, float, str]:
    """By when a run began; imported runs by their tree's own numbers, compared as numbers."""
    return run.spec.origin.order if run.spec.origin else 0, run.began or 0.0, run.spec.id


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
        return [max(runs, key=merit)]
    return [runs[0] if suite.score.selection == "first" else runs[-1]]


def merit(run: Run) -> tuple[int, float]:
    """What the rule `best` compares: first how few values are missing, then the mean of those that are there.

    A value that is missing is below every number, also below 0.
    """
    values = [made.value for made in run.measurements if made.value is not None]
    return len(values) - len(run.spec.benchmarks), fmean(values) if values else -inf


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
    """Names of the decisions that differ, such as `budget.hours`; of an imported run only those that its tree tells."""
    if then.origin is not None:
        return [name for name in then.origin.told if attrgetter(name)(now) != attrgetter(name)(then)]
    if now == replace(then, id=now.id, definitions=now.definitions):
        return []
    new, old = decided(now), decided(then)
    names = []
    for field in new:
        if new[field] != old[field]:
            inner = new[field] if isinstance(new[field], dict) else {}
            names += [f"{field}.{part}" for part in inner if inner[part] != old[field].get(part)] or [field]
    return names


def seeds_of(suite: Suite, runs: Iterable[Run], entrant: str) -> list[int]:
    """The seeds that an entrant's row covers: those it has runs for, filled up from 0 to the suite's number."""
    seen = {run.spec.seed for run in runs if run.spec.suite == suite.name and run.spec.entrant.name == entrant}
    fill = (seed for seed in range(suite.seeds + len(seen)) if seed not in seen)
    while len(seen) < suite.seeds:
        seen.add(next(fill))
    return sorted(seen)


def totals(board: Board) -> Mapping[str, int]:
    """How many attempts ended in each way, and how many count."""
    count: dict[str, int] = defaultdict(int)
    for entry in board.attempts:
        count[entry.ended] += 1
    return {
        "began": len(board.attempts),
        "count": sum(entry.counts for entry in board.attempts),
        **dict(sorted(count.items())),
    }
