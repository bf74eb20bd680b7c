"""The acceptance cases of part `aggregate`, each put to the public functions that decide such a thing."""

from collections.abc import Callable
from math import isclose
from typing import Any

import pytest
from msgspec.structs import replace

from acceptance import Case, case_id, cases
from prill import plugins
from prill.errors import DefinitionError
from prill.importers import posttrainbench
from prill.score import Reading, decide
from prill.scoring import tally, why
from prill.spec import Effect, Reference, Suite
from prill.standings import CellState
from samples import SUITE

Value = dict[str, Any]

POLICY: dict[str, Effect] = {
    "no_run": "base", "no_submission": "base", "broken_submission": "base", "evaluation_failed": "base",
    "contamination": "base", "model": "base", "api": "base", "lookup": "hold",
}  # fmt: skip
REASONS = {"no_submission": "no_final_model", "evaluation_failed": "eval_error", "no_run": "no_run"}
SOURCES: dict[CellState, str] = {"measured": "measured", "base": "base", "zero": "zero", "held": "blocked"}


def resolve_cell(asked: Value) -> Value:
    """What a run is worth, as `score.decide` says it."""
    metrics = asked.get("metrics")
    failed = [step["name"] for step in asked.get("steps", []) if step.get("exception")]
    grading = asked.get("grading") or ""
    judges = asked.get("judges") or {}
    silent = [*asked.get("missing_judges", []), *(name for name, word in dict(judges).items() if word is None)]
    reading = Reading(
        ran=asked.get("ran", True),
        submission="sealed" if asked.get("has_final_model", True) else "absent",
        number=(metrics or {}).get("accuracy"),
        failed=", ".join(failed) or ("" if metrics is not None else "no metrics") or str(asked.get("exception") or ""),
        ungraded="" if grading in ("", "ok", "done") else str(grading),
        broken=tuple((flag, flag) for flag in asked.get("flags", [])),
        silent=tuple(silent),
    )
    ruling = decide(POLICY, reading)
    value = {"measured": reading.number, "base": asked.get("base"), "zero": 0.0}.get(ruling.state)
    reason = None if ruling.state == "measured" else REASONS.get(ruling.rule or "", f"flag:{ruling.rule}")
    if ruling.rule is None and ruling.state == "held":
        reason = "grading_error" if reading.ungraded else "missing_judge"
    return {"value": value, "source": SOURCES.get(ruling.state, ruling.state), "reason": reason}


def grids(asked: Value) -> list[Value]:
    """The seeds' cells, under whichever name they come."""
    found = asked.get("seeds") or asked.get("runs") or asked.get("cells")
    return list(found.values()) if isinstance(found, dict) else list(found or [])


def seed_scores(asked: Value) -> Value:
    """A score for each seed, then mean and SD."""
    scores = [tally.weighted(asked["weights"], grid) for grid in grids(asked)]
    spread = tally.spread([score for score in scores if score is not None])
    return {"scores": scores, "mean": spread.mean, "sd": spread.sd, "n": spread.n}


def coverage(asked: Value) -> Value:
    """Which cells of a grid are missing or there twice."""
    present = [tuple(pair) for pair in asked.get("present", asked.get("runs", []))]
    found = tally.coverage(asked["models"], asked["benchmarks"], present)  # type: ignore[arg-type]
    return {"expected": found.expected, "present": found.present, "missing": [list(pair) for pair in found.missing],
            "duplicates": [list(pair) for pair in found.duplicates], "complete": not found.missing}  # fmt: skip


def label(asked: Value) -> Value:
    """A mean and the words that say of what."""
    value, words = tally.named_mean(asked["parts"])
    return {"value": value, "label": words}


def rescale(asked: Value) -> Value:
    """Floor to ceiling; the harmonic mean to the four decimals of the page that the case quotes."""
    found = tally.rescaled({name: tuple(part) for name, part in asked["benchmarks"].items()})
    return {"score": found.score, "raw_mean": found.raw_mean, "harmonic_mean": round(found.harmonic_mean, 4)}


def arena(asked: Value) -> Value:
    """ArenaHard's win rate."""
    found = tally.win_rate((question["game1"], question["game2"]) for question in asked["questions"])
    return {"win_rate": found.score, "null_judgments": found.missing}


def healthbench(asked: Value) -> Value:
    """HealthBench's score."""
    found = tally.rubric_score([[(c["points"], c["met"]) for c in item] for item in asked["items"]])
    return {"score": found.score, "status": found.status}


def stderr(asked: Value) -> Value:
    """A share and its standard error, to the six decimals in which the cases are written."""
    found = tally.stderr(asked["k"], asked["n"])
    error = None if found is None else round(found, 6)
    return {"p": asked["k"] / asked["n"] if asked["n"] else None, "stderr": error}


def same_series(asked: Value) -> Value:
    """Whether two settings' numbers may be compared."""
    first, second = (value for key, value in asked.items() if key != "op")
    differ = tally.same_series(first, second)
    return {"same": not differ, "same_series": not differ, "differs": differ}


def sanity(asked: Value) -> Value:
    """Equality with a reference score."""
    references = asked.get("references", asked.get("reference"))
    known = references if isinstance(references, dict) else {"reference": references}
    equal = why.equals_reference(asked.get("value", asked.get("score")), known)
    return {"alert": bool(equal), "equal_to": equal}


OPS: dict[str, Callable[[Value], Value]] = {
    "weighted_score": lambda asked: {"score": tally.weighted(asked["weights"], asked["cells"])},
    "resolve_cell": resolve_cell,
    "seed_scores": seed_scores,
    "spread": lambda asked: {name: getattr(tally.spread(asked["values"]), name) for name in ("mean", "sd", "n")},
    "spread_of_mean": lambda asked: {"sd": tally.spread_of_mean(asked["sds"])},
    "stderr": stderr,
    "consistency": lambda asked: {"publish": tally.agrees(asked["published"], asked["items_right"], asked["items"])},
    "label": label,
    "latest": lambda asked: {f"{b}|{repo}": d for (b, repo), d in posttrainbench.latest(asked["dirs"]).items()},
    "coverage": coverage,
    "accuracy": lambda asked: {
        name: getattr(tally.accuracy(asked["right"], asked["wrong"], asked["errors"]), name)
        for name in ("accuracy", "errors", "status")
    },
    "rescale": rescale,
    "mark": lambda asked: {"marked": [cell["source"] != "measured" for cell in asked["cells"]]},
    "rank": lambda asked: {"ranks": tally.ranks(asked["scores"], asked.get("unranked", ()))},
    "arena": arena,
    "healthbench": healthbench,
    "same_series": same_series,
    "sanity": sanity,
}


def met(expected: Any, found: Any) -> bool:
    """Equal, numbers up to 1e-6 of their size."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(name in found and met(v, found[name]) for name, v in expected.items())
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(met, expected, found))
    if isinstance(expected, bool) or expected is None or isinstance(expected, str):
        return bool(expected == found)
    return isinstance(found, int | float) and isclose(expected, found, rel_tol=1e-6, abs_tol=1e-9)


@pytest.mark.parametrize("case", cases("aggregate"), ids=case_id)
def test_each_case_is_met(case: Case) -> None:
    """A case of part `aggregate` is met by the public functions in every key that it expects."""
    found = OPS[case["input"]["op"]](case["input"])
    for key, expected in case["expected"].items():
        if key == "label_must_contain":
            assert expected in found["label"]
        else:
            assert met(expected, found[key]), f"{case['why']}: {key} is {found[key]!r}, not {expected!r}"


def test_the_importer_is_found_by_its_name() -> None:
    """The importer that the cases of `latest` use is the plug-in that the command line gets."""
    assert plugins.get("importers", "posttrainbench") is posttrainbench.plugin


def test_a_grid_is_held_against_what_there_is() -> None:
    """Pairs that are missing, there twice or of no place in the grid are each named."""
    there = [("a", "x"), ("b", "x"), ("a", "x"), ("c", "x")]
    found = tally.coverage(["a", "b"], ["x", "y"], there)
    assert (found.expected, found.present) == (4, 2)
    assert found.missing == (("a", "y"), ("b", "y"))
    assert (found.duplicates, found.strangers) == ((("a", "x"),), (("c", "x"),))


def test_fields_that_part_two_series_are_named() -> None:
    """Numbers of two settings may be compared only where no field differs; one that is missing differs too."""
    one = {"judge": "m", "version": 1}
    assert tally.same_series(one, dict(one)) == []
    assert tally.same_series(one, {"judge": "n"}) == ["judge", "version"]


def test_nothing_has_no_harmonic_mean_and_no_scale() -> None:
    """No value has no mean, a zero among values makes it zero, and a scale needs its ceiling above its floor."""
    assert (tally.harmonic([]), tally.harmonic([0.5, 0.0]), tally.harmonic([0.5, 1.0])) == (None, 0.0, 2 / 3)
    with pytest.raises(DefinitionError, match="ceiling must be above"):
        tally.rescale(0.5, 0.7, 0.7)


def weighted(weights: dict[str, float], **references: tuple[float, float | None]) -> Suite:
    """A suite whose weights come from the gap between a base and an instruct score for each benchmark."""
    rows = tuple(
        Reference(model="tiny", benchmark=name, base=base, instruct=instruct, source="made up for tests")
        for name, (base, instruct) in references.items()
    )
    score = replace(SUITE.score, weights=weights, weights_from="gap")
    return replace(SUITE, benchmarks=tuple(weights), references=rows, score=score)


@pytest.mark.parametrize(
    ("suite", "words"),
    [
        (weighted({"sums": 0.2, "poems": 0.8}, sums=(0.1, 0.9), poems=(0.3, 0.5)), None),
        (weighted({"sums": 0.5, "poems": 0.5}, sums=(0.1, 0.9), poems=(0.3, 0.5)), "but the formula gap gives 0.2"),
        (weighted({"sums": 1.0}, sums=(0.1, None)), "it needs a base and an instruct score for each model"),
        (weighted({"sums": 1.0}, sums=(0.5, 0.5)), "instruct is not above base"),
        (weighted({"sums": -1.0, "poems": 2.0}), "the weight of sums is -1.0"),
        (weighted({"sums": 0.5, "poems": 0.4}), "weights sum to 0.9"),
    ],
)
def test_weights_are_held_against_their_formula(suite: Suite, words: str | None) -> None:
    """Weights sum to 1 and are what the formula that the suite names gives; what is wrong is said of one benchmark."""
    fault = tally.weight_fault(suite)
    assert fault is None if words is None else words in (fault or "")
