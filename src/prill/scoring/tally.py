"""The arithmetic of scores: means, spreads, ranks, rescaling, weights, and what makes a number unfit to be one. Pure.

Numbers that are not there are `None`; nothing is filled in. Sums run from left to right in the order given, as the
published aggregation adds, so that published means come out bit for bit on every version of Python.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, sqrt
from statistics import fmean, stdev
from typing import Any

from msgspec import Struct

from prill.errors import DefinitionError
from prill.spec import Reference, Suite

VOTES = {"A>>B": (0.0, 3), "A>B": (0.0, 1), "A=B": (0.5, 1), "B>A": (1.0, 1), "B>>A": (1.0, 3)}
"""A verdict as what B earns in it, and its weight: a strong verdict weighs three."""
WEIGHTS_AGREE = 1e-12
"""How far a written weight may be from the one that the formula gives."""


class Figures(Struct, frozen=True, kw_only=True):
    """What a function of this module found, under names."""


class Spread(Figures, frozen=True, kw_only=True):
    """Mean and sample SD (ddof 1); no SD below two values, no mean below one."""

    mean: float | None
    sd: float | None
    n: int


class Accuracy(Figures, frozen=True, kw_only=True):
    """A share of items, errors in the denominator; no number where nothing was measured."""

    accuracy: float | None
    errors: int
    status: str


class Rescaled(Figures, frozen=True, kw_only=True):
    """Several raw values on their floor-to-ceiling scales, in 0..100, and what the clamp hides."""

    score: float
    raw_mean: float
    harmonic_mean: float
    unclamped: dict[str, float]


class Judged(Figures, frozen=True, kw_only=True):
    """A judged score, or none, and how many verdicts were missing."""

    score: float | None
    missing: int
    status: str


class Coverage(Figures, frozen=True, kw_only=True):
    """Which cells of a grid are there, which are not, which are there more than once, which are none of it."""

    expected: int
    present: int
    missing: tuple[tuple[str, str], ...]
    duplicates: tuple[tuple[str, str], ...]
    strangers: tuple[tuple[str, str], ...]


def number(found: Any) -> float | None:
    """A score is a finite number in 0..1 and not a truth value; anything else is none."""
    if isinstance(found, bool) or not isinstance(found, int | float) or not isfinite(found) or not 0 <= found <= 1:
        return None
    return float(found)


def added(values: Iterable[float]) -> float:
    """The sum from left to right (the built-in `sum` compensates since Python 3.12 and then differs in a last bit)."""
    total = 0.0
    for value in values:
        total += value
    return total


# --- means and spreads -----------------------------------------------------------------------------------------


def weighted(weights: Mapping[str, float], cells: Mapping[str, Mapping[str, float | None]]) -> float | None:
    """Model → benchmark → value: each benchmark's mean over models times its weight. `None` where a cell has none."""
    rows = list(cells.values())
    total = 0.0
    for benchmark, weight in weights.items():
        values = [value for row in rows if (value := row.get(benchmark)) is not None and isfinite(value)]
        if len(values) < len(rows) or not rows:
            return None
        total += added(values) / len(rows) * weight
    return total


def spread(values: Sequence[float]) -> Spread:
    """Mean, sample SD and number of values."""
    return Spread(mean=fmean(values) if values else None, sd=stdev(values) if len(values) > 1 else None, n=len(values))


def spread_of_mean(sds: Sequence[float]) -> float | None:
    """SD of the mean of independent parts: sqrt(Σ sd²) / n."""
    return sqrt(added(sd * sd for sd in sds)) / len(sds) if sds else None


def stderr(right: float, n: int) -> float | None:
    """Standard error of a share over n items, sqrt(p(1−p)/(n−1)); none below two items."""
    share = right / n if n else 0.0
    return sqrt(max(0.0, share * (1 - share)) / (n - 1)) if n > 1 else None


def accuracy(right: int, wrong: int, errors: int) -> Accuracy:
    """Items that ended in an error stay in the denominator; where all did, nothing was measured."""
    asked = right + wrong + errors
    if right + wrong == 0:
        return Accuracy(accuracy=None, errors=errors, status="eval_error")
    return Accuracy(accuracy=right / asked, errors=errors, status="measured")


def harmonic(values: Sequence[float]) -> float | None:
    """Harmonic mean; 0 as soon as one value is."""
    if not values:
        return None
    return len(values) / added(1 / value for value in values) if all(value > 0 for value in values) else 0.0


# --- scales and weights ----------------------------------------------------------------------------------------


def rescale(value: float, floor: float, ceiling: float) -> float:
    """Floor → 0, ceiling → 1, unclamped."""
    if not ceiling > floor:
        raise DefinitionError(f"floor {floor:g} and ceiling {ceiling:g}: the ceiling must be above the floor")
    return (value - floor) / (ceiling - floor)


def clamp(value: float) -> float:
    """Into 0..1."""
    return min(1.0, max(0.0, value))


def rescaled(parts: Mapping[str, tuple[float, float, float]]) -> Rescaled:
    """Name → (raw, floor, ceiling): each part rescaled and clamped on its own, then averaged; in 0..100."""
    raws = [raw for raw, _, _ in parts.values()]
    free = {name: rescale(raw, floor, ceiling) for name, (raw, floor, ceiling) in parts.items()}
    return Rescaled(
        score=100 * fmean(clamp(value) for value in free.values()),
        raw_mean=fmean(raws),
        harmonic_mean=harmonic(raws) or 0.0,
        unclamped={name: 100 * value for name, value in free.items()},
    )


def derived(references: Iterable[Reference], benchmarks: Iterable[str]) -> dict[str, float]:
    """Weights by the formula `gap`: 1 / (mean instruct score − mean base score), normalised over the benchmarks.

    A benchmark without references, or without a positive gap, is a `DefinitionError`.
    """
    rows = list(references)
    inverse: dict[str, float] = {}
    for benchmark in benchmarks:
        ours = [row for row in rows if row.benchmark == benchmark]
        instruct = [row.instruct for row in ours if row.instruct is not None]
        if not ours or len(instruct) < len(ours):
            raise DefinitionError(f"no weight for {benchmark}: it needs a base and an instruct score for each model")
        gap = added(instruct) / len(ours) - added(row.base for row in ours) / len(ours)
        if not gap > 0:
            raise DefinitionError(f"no weight for {benchmark}: instruct is not above base (by {gap:g})")
        inverse[benchmark] = 1 / gap
    total = added(inverse.values())
    return {benchmark: value / total for benchmark, value in inverse.items()}


def weight_fault(suite: Suite) -> str | None:
    """What is wrong with a suite's weights: benchmarks, sum, or that the formula says otherwise."""
    weights = suite.score.weights
    if set(weights) != set(suite.benchmarks):
        return f"weights are for {sorted(weights)}, benchmarks are {sorted(suite.benchmarks)}"
    bad = [name for name, weight in weights.items() if not (isfinite(weight) and weight >= 0)]
    if bad:
        return f"the weight of {bad[0]} is {weights[bad[0]]}, not a number of at least 0"
    if abs(added(weights.values()) - 1) > 1e-9:
        return f"weights sum to {added(weights.values()):.12g}, not 1"
    if suite.score.weights_from == "gap":
        try:
            formula = derived(suite.references, weights)
        except DefinitionError as error:
            return str(error)
        far = {name: value for name, value in formula.items() if abs(value - weights[name]) > WEIGHTS_AGREE}
        if far:
            name = next(iter(far))
            return f"the weight of {name} is {weights[name]!r}, but the formula gap gives {far[name]!r}"
    return None


# --- what may be published, and how it is named ----------------------------------------------------------------


def ranks(scores: Mapping[str, float], unranked: Iterable[str] = ()) -> dict[str, int]:
    """Equal scores share a rank; what is unranked has none and takes no place."""
    ranked = {name: score for name, score in scores.items() if name not in set(unranked)}
    return {name: 1 + sum(other > score for other in ranked.values()) for name, score in ranked.items()}


def agrees(published: float, right: float, items: int) -> bool:
    """Whether a published share is that of its items, up to rounding inside half an item."""
    return items > 0 and abs(published * items - right) < 0.5


def named_mean(parts: Mapping[str, float]) -> tuple[float, str]:
    """The mean of parts, and a name that says what is averaged."""
    value = fmean(parts.values())
    return value, f"mean of {len(parts)}: {', '.join(parts)}" if len(parts) != 1 else next(iter(parts))


def coverage(models: Iterable[str], benchmarks: Iterable[str], present: Iterable[tuple[str, str]]) -> Coverage:
    """A grid of models and benchmarks against the (model, benchmark) pairs that there are."""
    grid = [(model, benchmark) for model in models for benchmark in benchmarks]
    count = Counter(present)
    return Coverage(
        expected=len(grid),
        present=sum(pair in count for pair in grid),
        missing=tuple(pair for pair in grid if pair not in count),
        duplicates=tuple(sorted(pair for pair, times in count.items() if times > 1)),
        strangers=tuple(sorted(pair for pair in count if pair not in set(grid))),
    )


def same_series(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Fields in which two settings differ (judge, reference, version …); none: their numbers may be compared."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


# --- judged benchmarks -----------------------------------------------------------------------------------------


def win_rate(questions: Iterable[tuple[str | None, str | None]]) -> Judged:
    """ArenaHard: in game 1 the candidate is B, in game 2 it is A. A question that lacks a verdict is left out.

    The mean is over all votes, a strong verdict being three; a word that is no verdict counts as missing.
    """
    won, votes, missing = 0.0, 0, 0
    for game1, game2 in questions:
        if game1 not in VOTES or game2 not in VOTES:
            missing += 1
            continue
        for share, weight in (VOTES[game1], (1 - VOTES[game2][0], VOTES[game2][1])):
            won += share * weight
            votes += weight
    return Judged(score=won / votes if votes else None, missing=missing, status="measured" if votes else "unjudged")


def rubric_score(items: Iterable[Sequence[tuple[float, bool | None]]]) -> Judged:
    """HealthBench: an item is its points met over its positive points, the score the mean, clipped after the mean.

    Each criterion is (points, met). One without a grade, or an item without points to earn, blocks the score.
    """
    shares, missing = [], 0
    for criteria in items:
        positive = added(points for points, _ in criteria if points > 0)
        ungraded = sum(met is None for _, met in criteria)
        missing += ungraded or (not positive)
        if positive and not ungraded:
            shares.append(added(points for points, met in criteria if met) / positive)
    if missing or not shares:
        return Judged(score=None, missing=missing, status="judge_invalid")
    return Judged(score=clamp(fmean(shares)), missing=0, status="measured")
