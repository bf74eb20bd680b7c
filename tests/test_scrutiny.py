"""What headlines hang on: intervals against an oracle, paired differences, ranks, other rules of selection."""

from random import Random
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from prill.record import Bought, ItemMark, Run
from prill.score import board
from prill.scoring import bootstrap
from prill.scoring.overview import cost_words, overview
from prill.scrutiny import scrutinise
from prill.spec import RunSpec, Suite
from prill.standings import Board, Standing
from samples import BENCHMARK, ENTRANT, OUTCOME, SPEC, SUITE, judgement, measurement, run

WHO = [replace(ENTRANT, name=name, title=name) for name in ("ada", "bob", "cyd")]


def marked(name: str, who: Any, marks: list[float], seed: int = 0, **changes: Any) -> Run:
    """A run with these marks on items `i0`, `i1`, …"""
    items = tuple(
        ItemMark(item=f"i{n}", official=mark, robust=mark, answer="1", target="1", stop="stop")
        for n, mark in enumerate(marks)
    )
    value = fmean(marks)
    made = measurement(value, official=value, robust=value, n=len(marks), items=items, stderr=0.05)
    return run(name, entrant=who, seed=seed, measurements=(replace(made, **changes),))


def drawn(share: float, n: int, seed: int) -> list[float]:
    """Marks of n items of which about a share is right."""
    chance = Random(seed)
    return [float(chance.random() < share) for _ in range(n)]


def scrutinised(runs: list[Run], suite: Suite = SUITE, **options: Any) -> Board:
    """The board of these runs with all that its headlines hang on."""
    keys = {(r.spec.entrant.name, r.spec.seed): r.spec.entrant for r in runs}
    specs: list[RunSpec] = [replace(SPEC, entrant=who, seed=seed) for (_, seed), who in sorted(keys.items())]
    chance = np.random.default_rng(options.pop("seed", 0))
    return scrutinise(board(suite, specs, runs), suite, specs, runs, chance, **options)


def row(made: Board, name: str) -> Standing:
    """One entrant's row."""
    return next(found for found in made.standings if found.entrant == name)


def test_counts_are_resamples() -> None:
    """Each resample draws as many items as there are, each item equally often in the long run."""
    counts = bootstrap.counts(50, 4000, np.random.default_rng(1))
    assert set(counts.sum(axis=1)) == {50.0}
    assert counts.mean(axis=0) == pytest.approx(np.ones(50), abs=0.08)
    assert counts.var() == pytest.approx(49 / 50, abs=0.02)


def test_against_the_oracle() -> None:
    """The matrix product gives the same distribution as drawing items one by one by index."""
    marks = np.array(drawn(0.3, 200, 2))
    block = bootstrap.Block(marks=marks[:, None], share=np.ones((1, 1)))
    fast = bootstrap.resample([block], [0.0], [], 4000, np.random.default_rng(3))[:, 0]
    slow = bootstrap.naive([marks], 4000, np.random.default_rng(4))[:, 0]
    assert fast.mean() == pytest.approx(slow.mean(), abs=0.003)
    assert fast.std() == pytest.approx(slow.std(), rel=0.06)
    assert fast.std() == pytest.approx((marks.var() / len(marks)) ** 0.5, rel=0.05)


def test_rescaling_is_inside_the_resample() -> None:
    """On a floor-to-ceiling scale each resampled mean is clamped, so no resample leaves 0..1."""
    block = bootstrap.Block(marks=np.array(drawn(0.2, 40, 5))[:, None], share=np.ones((1, 1)), scale=(0.2, 0.7))
    values = bootstrap.resample([block], [0.0], [], 1000, np.random.default_rng(0))
    assert values.min() == 0.0 and 0 < values.max() <= 1 and (values == 0).mean() > 0.1


def test_ranks_share_places() -> None:
    """Equal values share the better rank in every resample."""
    values = np.array([[0.5, 0.5, 0.1]] * 100)
    assert bootstrap.rank_bounds(values) == [(1, 1), (1, 1), (3, 3)]


def test_interval_of_one_run() -> None:
    """One run's interval is that of its items, about two standard errors each way, and says so."""
    marks = drawn(0.4, 300, 7)
    found = row(scrutinised([marked("r1", WHO[0], marks)]), "ada")
    assert found.interval is not None and found.score is not None
    assert found.interval.parts == ("items",)
    assert found.interval.low is not None and found.interval.high is not None
    half = 1.96 * (np.var(marks) / 300) ** 0.5
    assert found.interval.high - found.interval.low == pytest.approx(2 * half, rel=0.08)
    assert found.interval.low < found.score < found.interval.high


def test_differences_are_paired() -> None:
    """Two rows that differ in few items are told apart though their intervals overlap by far."""
    marks = drawn(0.4, 400, 8)
    better = [1.0 if n < 12 else mark for n, mark in enumerate(marks)]
    made = scrutinised([marked("r1", WHO[0], marks), marked("r2", WHO[1], better)])
    first, second = made.standings
    assert (first.entrant, second.next, first.ranks, second.ranks) == ("bob", None, (1, 1), (2, 2))
    assert first.interval is not None and second.interval is not None and first.next is not None
    assert (first.interval.low or 0) < (second.interval.high or 0)
    assert first.next.low is not None and first.next.low > 0
    assert first.next.value == pytest.approx(fmean(better) - fmean(marks))
    assert first.next.detectable is not None and 0 < first.next.detectable < 0.03


def test_other_items_are_not_paired() -> None:
    """A row on other items has an interval of its own and a wider difference."""
    alike = marked("r1", WHO[0], drawn(0.4, 200, 1))
    other = marked("r2", WHO[1], drawn(0.4, 150, 2))
    made = scrutinised([alike, other])
    assert all(found.interval and found.interval.low is not None for found in made.standings)
    assert made.standings[0].next is not None and (made.standings[0].next.low or 0) < 0


def test_runs_are_a_source_of_chance() -> None:
    """With two seeds or more the variance between runs, pooled over entrants, widens the interval; with one it is not
    in it."""
    runs = [marked(f"r{s}", WHO[0], drawn(share, 2000, s), seed=s) for s, share in ((0, 0.3), (1, 0.5))]
    runs += [marked("r9", WHO[1], drawn(0.4, 2000, 9))]
    made = scrutinised(runs)
    ada, bob = row(made, "ada"), row(made, "bob")
    assert ada.interval is not None and bob.interval is not None
    assert (ada.interval.parts, bob.interval.parts) == (("items", "runs"), ("items",))
    assert (ada.interval.high or 0) - (ada.interval.low or 0) > 10 * (
        (bob.interval.high or 0) - (bob.interval.low or 0)
    )


def test_without_items() -> None:
    """A cell without items' marks brings its standard error, unpaired; without that there is no interval, and why."""
    with_error = replace(marked("r1", WHO[0], [0.5]), measurements=(measurement(0.5),))
    found = row(scrutinised([with_error]), "ada").interval
    assert found is not None and found.parts == ("stderr",) and found.low == pytest.approx(0.5 - 1.96 * 0.1, abs=0.01)
    bare = replace(with_error, measurements=(measurement(0.5, stderr=None),))
    found = row(scrutinised([bare]), "ada").interval
    assert found is not None and found.low is None and "neither the items' marks nor a standard error" in found.why


def test_imputed_has_no_chance() -> None:
    """A value that policy put in is the same in every resample."""
    guilty = replace(
        marked("r1", WHO[0], drawn(0.4, 100, 3)),
        judgements=(judgement("overlap", "contamination", "broken"), judgement("lineage", "lineage")),
    )
    found = row(scrutinised([guilty]), "ada")
    assert found.interval is not None and (found.interval.low, found.interval.high) == (0.25, 0.25)
    assert (found.imputed, found.clean, found.flag_rate) == (1, None, 1.0)


def test_the_seed_decides() -> None:
    """The same seed gives the same figures, another seed others."""
    runs = [marked("r1", WHO[0], drawn(0.4, 100, 3)), marked("r2", WHO[1], drawn(0.5, 100, 4))]
    assert scrutinised(runs, seed=1) == scrutinised(runs, seed=1)
    assert scrutinised(runs, seed=1) != scrutinised(runs, seed=2)


def test_variants() -> None:
    """The headline under each rule of selection stands beside the suite's own, with imputation and without."""
    shares = {1: 0.2, 2: 0.6, 3: 0.4}
    runs = [replace(marked(f"r{n}", WHO[0], [share]), began=float(n)) for n, share in shares.items()]
    guilty = replace(runs[2], judgements=(judgement("overlap", "contamination", "broken"),
                                          judgement("lineage", "lineage")))  # fmt: skip
    found = row(scrutinised([*runs[:2], guilty]), "ada").variants
    assert [(v.selection, v.score, v.measured_only) for v in found] == [
        ("first", 0.2, 0.2), ("latest", 0.25, None), ("best", 0.6, 0.6),
        ("mean", pytest.approx(0.35), pytest.approx(0.4)),
    ]  # fmt: skip


def test_overview() -> None:
    """Time, tokens and money are means over the runs that say them, with how many do not, and a share of the budget."""
    spent = replace(OUTCOME, wall_seconds=1800.0, tokens_out=100, usd=None)
    runs = [replace(marked("r1", WHO[0], [0.5]), outcome=spent),
            replace(marked("r2", WHO[0], [0.5], seed=1), outcome=replace(spent, tokens_out=None))]  # fmt: skip
    found = row(scrutinised(runs), "ada").overview
    assert found is not None
    assert (found.seconds.mean, found.seconds.share) == (1800.0, 0.5)
    assert (found.tokens_out.mean, found.tokens_out.known, found.tokens_out.unknown) == (100, 1, 1)
    assert (found.usd.mean, found.usd.unknown) == (None, 2)


def test_nothing_to_scrutinise() -> None:
    """A board without any headline keeps its rows and gives no interval."""
    made = scrutinise(board(SUITE, [SPEC], []), SUITE, [SPEC], [], np.random.default_rng(0))
    assert [(found.score, found.interval, found.ranks) for found in made.standings] == [(None, None, None)]


def test_floor_to_ceiling_board() -> None:
    """On a rescaled board a row under its floor has an interval from zero, and says what would have lifted it."""
    suite = replace(SUITE, score=replace(SUITE.score, scale="floor-to-ceiling"))
    marks = [1.0] * 17 + [0.0] * 83
    found = row(scrutinised([marked("r1", WHO[0], marks)], suite), "ada")
    [cell] = found.cells
    assert (cell.value, cell.unclamped) == (0.0, pytest.approx((0.17 - BENCHMARK.floor) / 0.5))
    assert (
        cell.zero_because == "17 of 100 right; above the floor of 0.2 from 4 more; enough would be: 83 answered wrongly"
    )
    assert found.interval is not None and found.interval.low == 0.0 and (found.interval.high or 0) > 0


def test_overview_of_what_was_bought() -> None:
    """What else was for sale is told by kind, with its share of the wallet, and a model beside the wallet has none."""
    budget = replace(SPEC.budget, usd=10.0, beside=("model",))
    paid = {
        "model": Bought(usd="1", why="", beside=True),
        "teacher": Bought(usd="2.5", why=""),
        "storage": Bought(usd="0.001", why=""),
        "gpu": Bought(usd=None, why="not charged"),
    }
    runs = [
        replace(marked(f"r{seed}", WHO[0], [0.5], seed=seed), outcome=replace(OUTCOME, usd=1.0, bought=paid))
        for seed in (0, 1)
    ]
    found = overview([replace(run, spec=replace(run.spec, budget=budget)) for run in runs])
    assert set(found.bought) == {"teacher", "storage"} and found.usd.share is None
    assert (found.bought["teacher"].mean, found.bought["teacher"].share) == (2.5, 0.25)
    assert cost_words(found) == "$1.00; storage under $0.01 (0.0 %); teacher $2.50 (25.0 %)"
