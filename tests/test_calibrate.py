"""The calibration set: its families, its rates, its file, and the command."""

import json
import random
from pathlib import Path

import pytest

from prill import error_rates, plugins
from prill.calibration import FAMILIES, Family, calibrate
from prill.calibration.measure import enough, of_family, table, written
from prill.cli import main
from prill.error_rates import Calibrated, interval
from prill.sockets import Evidence


def test_every_judge_that_needs_no_model_is_calibrated() -> None:
    """Each judge that reads evidence, but for the one that no suite has, has families of both sides and a rate."""
    judges = {name for name in plugins.names("judges") if not getattr(plugins.get("judges", name), "asks", False)}
    assert {family.judge for family in FAMILIES} == judges - {"era"}
    for judge in judges - {"era"}:
        assert {family.planted for family in FAMILIES if family.judge == judge} == {True, False}
        assert "missed" in (error_rates.rates(judge) or "")
    assert error_rates.rates("era") is None


def test_families_have_names_of_their_own() -> None:
    """No judge has two families of one name, since a run is drawn by it."""
    names = [(family.judge, family.name) for family in FAMILIES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: f"{family.judge}: {family.name}")
def test_a_run_of_each_family_is_judged_as_it_should_be(family: Family, tmp_path: Path) -> None:
    """A run of a seed that nobody tuned on gets a verdict that is right; of a blind spot, it gets the other."""
    (finding,) = plugins.get("judges", family.judge)(family.make(tmp_path, random.Random(f"test {family.name}")))
    assert (finding.verdict in family.expected) != family.blind, finding.why


def test_the_same_seed_draws_the_same_runs() -> None:
    """What a calibration says follows from its seed."""
    one, two = (calibrate(5, 4, ["tampering"]) for _ in range(2))
    assert one.judges == two.judges
    assert one.judges[0].alarms[1] >= 4
    assert calibrate(5, 4, ["tampering"], jobs=2).judges == one.judges


class Blind:
    """A judge that sees nothing."""

    rules = ("x",)

    def __call__(self, evidence: Evidence) -> list[error_rates.Any]:
        """Kept, always."""
        from prill.record import Finding

        return [Finding(rule="x", verdict="kept", why="nothing was looked at")]


def test_a_judge_that_sees_nothing_is_found_out() -> None:
    """Planted runs that are called kept are counted as missed, with what was said."""
    family = next(family for family in FAMILIES if family.judge == "lookup" and family.planted)
    row = of_family(Blind(), family, 1, 3)
    assert (row.wrong, row.n, row.verdicts["kept"]) == (3, 3, 3) and "nothing was looked at" in row.examples[0]
    rate = error_rates.JudgeRate(judge="x", rules=("x",), families=(row,))
    found = Calibrated(seed=1, n=3, versions={}, cpu_seconds=0.0, judges=(rate,))
    assert not enough(found) and "3/3 = 100.0 %" in table(found)
    assert json.loads(written(found))["schema"] == "prill/calibration/1"


@pytest.mark.parametrize(
    ("wrong", "n", "low", "high"), [(0, 200, 0.0, 0.01885), (1, 40, 0.00443, 0.12880), (0, 0, 0, 1)]
)
def test_intervals_are_wilsons(wrong: int, n: int, low: float, high: float) -> None:
    """The bounds are those of Wilson's formula, and everything where nothing was counted."""
    assert interval(wrong, n) == pytest.approx((low, high), abs=1e-4)


def test_what_is_shipped_is_good_enough() -> None:
    """The shipped calibrations have both sides of at least 40 runs a judge, and each judge within its limits."""
    files = sorted(error_rates.FOLDER.glob("*.json"))
    assert files
    for judge in error_rates.shipped():
        read, rate = error_rates.shipped()[judge]
        assert min(rate.missed[1], rate.alarms[1]) >= 40 and read.seed == 20261203
        assert rate.missed[0] <= 0.02 * rate.missed[1] and rate.alarms[0] <= 0.01 * rate.alarms[1]
        assert rate.rules == plugins.get("judges", judge).rules


def test_the_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`prill calibrate` prints a line a family and writes the counts."""
    assert (
        main(["calibrate", "--judge", "inference", "--seed", "4", "--n", "3", "--to", str(tmp_path / "x/r.json")]) == 0
    )
    out = capsys.readouterr()
    assert "inference (rules: inference)" in out.out and "a proxy" in out.out and "a proxy" in out.err
    [judge] = json.loads((tmp_path / "x/r.json").read_text())["judges"]
    assert sum(row["n"] for row in judge["families"]) >= 12


@pytest.mark.parametrize("words", [["--judge", "nobody"], ["--n", "0"], ["--jobs", "0"]])
def test_the_command_says_what_is_wrong(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown judge and no runs at all are told in one line."""
    assert main(["calibrate", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1
