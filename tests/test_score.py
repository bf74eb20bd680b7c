"""Cells, standings and the attempts ledger: every state with its reason, and nothing dropped."""

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from prill.record import Event, Run
from prill.score import board, seeds_of, totals
from prill.standings import Board, Cell
from samples import BENCHMARK, ENTRANT, OUTCOME, SPEC, SUITE, judgement, measurement, run, submission


def one(*runs: Run, **suite: Any) -> Cell:
    """The only cell of the only entrant."""
    [standing] = board(replace(SUITE, **suite), [SPEC], runs).standings
    [cell] = standing.cells
    return cell


def flagged(rule: str, verdict: str = "broken", why: str = "found") -> Run:
    """A run with one finding against it."""
    judges = {"contamination": ("overlap", "lineage"), "lineage": ("lineage", "overlap")}
    ours, other = judges[rule]
    others = judgement(other, "lineage" if other == "lineage" else "contamination")
    return run(judgements=(judgement(ours, rule, verdict, why), others))


def test_measured() -> None:
    """A clean run's cell has the measured value and says which rules were kept."""
    cell = one(run())
    assert (cell.state, cell.value, cell.raw, cell.n) == ("measured", 0.5, 0.5, 4)
    assert cell.why == "measured; kept: contamination, lineage"


@pytest.mark.parametrize(
    ("bad", "state", "value", "words"),
    [
        (run(submission=submission("absent", "final_model is not there")), "base", 0.25, "final_model is not there"),
        (run(submission=submission("broken", "FILE_TRUNCATED: cut")), "zero", 0.0, "FILE_TRUNCATED"),
        (run(value=None), "zero", 0.0, "the engine cannot serve it"),
        (flagged("contamination"), "base", 0.25, "found"),
        (flagged("lineage"), "held", None, "found"),
        (flagged("contamination", "unknown", "2 files unread"), "held", None, "2 files unread"),
        (run(judgements=(judgement("overlap", "contamination"),)), "held", None, "lineage"),
    ],
)
def test_policy(bad: Run, state: str, value: float | None, words: str) -> None:
    """What went wrong decides the cell by the suite's policy, and the cell says why."""
    cell = one(bad)
    assert (cell.state, cell.value) == (state, value)
    assert words in cell.why


def test_missing_submission_outranks_silent_judges() -> None:
    """A run without a submission falls back by policy even if no judge has spoken."""
    assert one(run(submission=submission("absent"), judgements=())).state == "base"


def test_hold_outranks_base() -> None:
    """Of two broken rules the graver effect decides."""
    both = run(judgements=(judgement("overlap", "contamination", "broken"), judgement("lineage", "lineage", "broken")))
    assert one(both).rule == "lineage"


def test_effect_none() -> None:
    """A rule with effect `none` changes nothing, whatever was found."""
    policy = {**SUITE.policy, "contamination": "none"}
    assert one(flagged("contamination"), policy=policy).state == "measured"


def test_unnamed_rule_holds() -> None:
    """A rule that the policy does not name holds the cell instead of passing."""
    policy = {name: effect for name, effect in SUITE.policy.items() if name != "contamination"}
    assert one(flagged("contamination"), policy=policy).state == "held"


def test_no_reference_holds() -> None:
    """Falling back to a base score that nobody measured holds the cell instead of inventing one."""
    cell = one(flagged("contamination"), references=())
    assert (cell.state, cell.value) == ("held", None)
    assert "no base score" in cell.why


def test_floor_to_ceiling() -> None:
    """On the floor-to-ceiling scale a value is rescaled and clamped, and the raw one stays beside it."""
    rule = replace(SUITE.score, scale="floor-to-ceiling")
    assert one(run(value=0.45), score=rule).value == pytest.approx(0.5)
    assert one(run(value=0.1), score=rule).value == 0.0
    assert one(run(value=0.9), score=rule).value == 1.0
    assert one(run(value=0.9), score=rule).raw == 0.9


def test_nothing_yet() -> None:
    """A cell that nobody tried is missing, and the entrant has no score rather than zero."""
    result = board(SUITE, [SPEC], [])
    [standing] = result.standings
    assert (standing.cells[0].state, standing.score, standing.missing) == ("missing", None, 1)
    assert (result.expected, result.covered) == (1, 0)


def test_lost() -> None:
    """A lost run leaves its cell lost until another run takes its place, and stays in the ledger."""
    gone = run("r0", state="lost", outcome=None, submission=None, measurements=(), judgements=())
    assert one(gone).state == "lost"
    result = board(SUITE, [SPEC], [gone, run("r1")])
    assert result.standings[0].cells[0].state == "measured"
    assert [(a.run, a.counts) for a in result.attempts] == [("r0", False), ("r1", True)]
    assert totals(result) == {"began": 2, "count": 1, "finished": 1, "lost": 1}


@pytest.mark.parametrize(
    ("state", "failures", "words"),
    [
        ("planned", (), "not begun"),
        ("running", (), "solving now"),
        ("unfinished", (), "a later stage"),
        ("unfinished", (Event(at=1, event="failed", stage="judge", detail={"why": "no memory"}),), "no memory"),
    ],
)
def test_unfinished(state: Any, failures: tuple[Event, ...], words: str) -> None:
    """A run that is not done gives no number and says how far it is, or what failed on our side."""
    cell = one(run(state=state, failures=failures))
    assert (cell.state, cell.value) == ("missing", None)
    assert words in cell.why


@pytest.mark.parametrize(("rule", "value"), [("first", 0.2), ("latest", 0.4), ("best", 0.6), ("mean", 0.4)])
def test_selection(rule: Any, value: float) -> None:
    """Of several finished runs of one cell the suite's rule says which counts, and the others are superseded."""
    runs = [run(f"r{n}", value=v, began=float(n)) for n, v in ((1, 0.2), (2, 0.6), (3, 0.4))]
    score = replace(SUITE.score, selection=rule)
    for order in itertools.permutations(runs):
        result = board(replace(SUITE, score=score), [SPEC], order)
        assert result.standings[0].score == pytest.approx(value)
        assert sum(attempt.counts for attempt in result.attempts) == (3 if rule == "mean" else 1)


def test_best_never_prefers_a_missing_value() -> None:
    """Under `best` a run without a value loses to every number, also to a zero, whichever of them began first."""
    for order in ((None, 0.0), (0.0, None)):
        runs = [run(f"r{n}", value=value, began=float(n)) for n, value in enumerate(order)]
        ledger = board(replace(SUITE, score=replace(SUITE.score, selection="best")), [SPEC], runs).attempts
        assert [entry.counts for entry in ledger] == [value == 0.0 for value in order]


def test_mean_with_a_hole() -> None:
    """The mean of several runs has no value where one of them has none."""
    runs = [run("r1"), run("r2", judgements=())]
    assert one(*runs, score=replace(SUITE.score, selection="mean")).state == "held"


def test_other_decisions() -> None:
    """A run made under another budget does not count, and the ledger names the field that differs."""
    other = run(spec=replace(SPEC, budget=replace(SPEC.budget, hours=2)))
    result = board(SUITE, [SPEC], [other])
    assert result.standings[0].cells[0].state == "missing"
    assert result.attempts[0].why == "made under other decisions (budget.hours)"


def test_strangers() -> None:
    """Runs of another suite are not this suite's business; runs of an unplanned entrant are listed and do not count."""
    stranger = run("r2", entrant=replace(ENTRANT, name="bob"))
    foreign = run("r3", spec=replace(SPEC, suite="another"))
    result = board(SUITE, [SPEC], [run(), stranger, foreign])
    assert [(a.run, a.counts) for a in result.attempts] == [("r1", True), ("r2", False)]


def seeded(*values: float | None) -> Board:
    """One entrant with one run a seed; None is a seed without a run."""
    specs = [replace(SPEC, seed=seed) for seed in range(len(values))]
    runs = [run(f"r{seed}", seed=seed, value=value) for seed, value in enumerate(values) if value is not None]
    return board(SUITE, specs, runs)


def test_seeds() -> None:
    """The headline is the mean over seeds with the sample SD; one seed has no SD."""
    [standing] = seeded(0.4, 0.6).standings
    assert (standing.score, standing.sd, standing.seeds) == (pytest.approx(0.5), pytest.approx(0.1414, abs=1e-4), 2)
    assert seeded(0.4).standings[0].sd is None


def test_hole_has_no_headline() -> None:
    """A hole refuses the headline unless `partial` is asked for, and then it says what was left out."""
    specs = [replace(SPEC, seed=seed) for seed in (0, 1)]
    whole = board(SUITE, specs, [run()]).standings[0]
    assert whole.score is None
    assert "1 of 2 cells have no value" in whole.why
    partial = board(SUITE, specs, [run()], partial=True).standings[0]
    assert (partial.score, partial.seeds) == (0.5, 1)
    assert partial.why.startswith("partial: 1 of 2 seeds")


def test_weights() -> None:
    """Benchmarks are weighted within a model, then models are averaged."""
    second = replace(BENCHMARK, name="products")
    suite = replace(
        SUITE, benchmarks=("sums", "products"), score=replace(SUITE.score, weights={"sums": 0.75, "products": 0.25})
    )
    specs = [replace(SPEC, benchmarks=(test,)) for test in (BENCHMARK, second)]
    runs = [run("r1", value=0.4), run("r2", spec=specs[1], measurements=(measurement(0.8, benchmark="products"),))]
    assert board(suite, specs, runs).standings[0].score == pytest.approx(0.5)


def test_order() -> None:
    """Standings are ordered by score, those without one last, and ties by name."""
    entrants = [replace(ENTRANT, name=name, title=name) for name in ("c", "a", "b", "z")]
    specs = [replace(SPEC, entrant=entrant) for entrant in entrants]
    runs = [run(f"r{e.name}", entrant=e, value=v) for e, v in zip(entrants, (0.9, 0.3, 0.3), strict=False)]
    assert [row.entrant for row in board(SUITE, specs, runs).standings] == ["c", "a", "b", "z"]


def test_a_cell_for_each_benchmark_of_a_run() -> None:
    """A run for several benchmarks fills a cell for each, and one that was not measured is missing."""
    second = replace(BENCHMARK, name="products")
    spec = replace(SPEC, benchmarks=(BENCHMARK, second))
    suite = replace(SUITE, benchmarks=("sums", "products"), cell=("model",))
    cells = board(suite, [spec], [run(spec=spec)]).standings[0].cells
    assert [(cell.benchmark, cell.state) for cell in cells] == [("sums", "measured"), ("products", "missing")]


def test_seeds_of() -> None:
    """An entrant's seeds are those it has runs for, filled up from 0 to the suite's number."""
    assert seeds_of(SUITE, [], "ada") == [0]
    assert seeds_of(SUITE, [run(seed=7)], "ada") == [7]
    assert seeds_of(replace(SUITE, seeds=3), [run(seed=7), run(seed=0)], "ada") == [0, 1, 7]


def test_ended_words() -> None:
    """The ledger says how each run ended."""
    late = run(outcome=replace(OUTCOME, ended="time_limit"))
    assert board(SUITE, [SPEC], [late]).attempts[0].ended == "time_limit"


# --- policy, alerts, eras, wallets -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "state", "value"), [("base", "base", 0.25), ("zero", "zero", 0.0), ("hold", "missing", None)]
)
def test_policy_for_cells_without_a_run(effect: Any, state: str, value: float | None) -> None:
    """What a cell that nobody ran is worth is the suite's policy, and where that is to hold it stays missing."""
    made = board(replace(SUITE, policy={**SUITE.policy, "no_run": effect}), [SPEC], [])
    [cell] = made.standings[0].cells
    assert (cell.state, cell.value, cell.why) == (state, value, "no run yet")


def test_evaluation_failed() -> None:
    """An evaluation that failed falls back by policy whatever number it wrote, and our grader's failure holds."""
    policy = {**SUITE.policy, "evaluation_failed": "base"}
    failed = run(measurements=(measurement(0.0, state="failed", why="server died"),))
    cell = one(failed, policy=policy)
    assert (cell.state, cell.value, cell.rule) == ("base", 0.25, "evaluation_failed")
    ungraded = one(run(measurements=(measurement(None, state="ungraded", why="the judge was away"),)), policy=policy)
    assert (ungraded.state, ungraded.value) == ("held", None) and "the judge was away" in ungraded.why


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.5, -0.1])
def test_no_share(value: float) -> None:
    """What is no finite number in 0..1 is not averaged."""
    assert one(run(value=value), policy={**SUITE.policy, "evaluation_failed": "base"}).state == "base"


def test_required_verdicts() -> None:
    """A rule on which the suite wants a verdict holds a cell until some judge has spoken on it."""
    cell = one(run(), verdicts=("lookup",))
    assert (cell.state, cell.why) == ("held", "required judge without a verdict: lookup")


def test_alert_on_equality() -> None:
    """A value that equals a reference score to the last bit is measured and raises an alert; the next one does not."""
    cell = one(run(value=0.25))
    assert cell.state == "measured"
    assert cell.alerts == ("exactly 0.25: tiny's base score of sums; 5 values were possible",)
    assert one(run(value=0.2500001)).alerts == ()


def test_era() -> None:
    """A cell says under which rules it was made, by which suite it was judged, and by whom."""
    era = one(run()).era
    assert era is not None
    assert (era.saw, era.judged, era.judges) == ("words: a", "trial", ("overlap", "lineage"))


def test_why_zero() -> None:
    """A value under its floor says what it lacks, and the fewest kinds of lost reply that would have been enough."""
    rule = replace(SUITE.score, scale="floor-to-ceiling")
    low = measurement(0.1, n=200, stops={"length": 150, "timeout": 10}, items=())
    cell = one(run(measurements=(low,)), score=rule)
    assert (cell.value, cell.unclamped) == (0.0, pytest.approx(-0.2))
    assert cell.zero_because == (
        "20 of 200 right; above the floor of 0.2 from 21 more; enough would be: 150 cut off at max_tokens"
    )


def test_rank_within_a_wallet() -> None:
    """Rows with a headline are ranked, ties share a rank, and the board names the wallet that all had."""
    entrants = [replace(ENTRANT, name=name, title=name) for name in ("c", "a", "b", "z")]
    specs = [replace(SPEC, entrant=entrant) for entrant in entrants]
    runs = [run(f"r{e.name}", entrant=e, value=v) for e, v in zip(entrants, (0.9, 0.3, 0.3), strict=False)]
    suite = replace(SUITE, budget=replace(SUITE.budget, usd=50.0))
    specs = [replace(spec, budget=suite.budget) for spec in specs]
    made = board(suite, specs, [replace(r, spec=replace(r.spec, budget=suite.budget)) for r in runs])
    assert [(row.entrant, row.rank, row.of) for row in made.standings] == [
        ("c", 1, 3), ("a", 2, 3), ("b", 2, 3), ("z", None, 3),
    ]  # fmt: skip
    assert made.wallet == 50.0


def test_clean_and_flag_rate() -> None:
    """The measured-only mean leaves flagged runs out, and the flag rate is their share."""
    specs = [replace(SPEC, seed=seed) for seed in (0, 1)]
    guilty = replace(flagged("contamination"), spec=replace(SPEC, id="r1", seed=1))
    [row] = board(SUITE, specs, [run("r0", value=0.75), guilty]).standings
    assert (row.score, row.clean, row.flag_rate, row.imputed) == (0.5, 0.75, 0.5, 1)
    assert (row.raw_mean, row.harmonic_mean) == (0.625, pytest.approx(0.6))
