"""How often a judge is wrong, as it was measured on made-up runs: the shipped files, and a line to show at a verdict.

The files are made by `prill calibrate`. A rate is one on those families; what they do not have is in no rate.
"""

import math
from functools import cache
from typing import Any

import msgspec

from prill.record import Record
from prill.runtime import PACKAGE

FOLDER = PACKAGE / "definitions" / "calibrations"
Z = 1.959964
"""Two-sided 95 % of a normal distribution."""


class FamilyRate(Record, frozen=True, kw_only=True):
    """One family of runs, and how many the judge got wrong."""

    name: str
    planted: bool
    blind: bool
    """A violation that the judge is known not to see; in no rate."""
    expected: tuple[str, ...]
    n: int
    wrong: int
    verdicts: dict[str, int]
    examples: tuple[str, ...] = ()
    """Runs that went wrong, by their number, with what was said."""


class JudgeRate(Record, frozen=True, kw_only=True):
    """One judge."""

    judge: str
    rules: tuple[str, ...]
    families: tuple[FamilyRate, ...]

    def count(self, planted: bool) -> tuple[int, int]:
        """How many runs of that side went wrong, and how many there were."""
        rows = [row for row in self.families if row.planted == planted and not row.blind]
        return sum(row.wrong for row in rows), sum(row.n for row in rows)

    @property
    def missed(self) -> tuple[int, int]:
        """Violations that were not called by a verdict that fits, and all of them."""
        return self.count(True)

    @property
    def alarms(self) -> tuple[int, int]:
        """Innocent runs that were not called kept, and all of them."""
        return self.count(False)


class Calibrated(Record, frozen=True, kw_only=True, tag="prill/calibration/1", tag_field="schema"):
    """What a calibration found."""

    seed: int
    n: int
    """Runs of each side a judge, at least."""
    versions: dict[str, str]
    cpu_seconds: float
    judges: tuple[JudgeRate, ...]


def interval(wrong: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; all of 0 to 1 where nothing was counted."""
    if n < 1:
        return 0.0, 1.0
    p = wrong / n
    middle, half = p + Z * Z / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    return max(0.0, (middle - half) / (1 + Z * Z / n)), min(1.0, (middle + half) / (1 + Z * Z / n))


@cache
def shipped() -> dict[str, tuple[Any, JudgeRate]]:
    """Judge → the newest shipped file that has it, by name, and its rates; files that cannot be read are left out."""
    found: dict[str, tuple[Any, JudgeRate]] = {}
    for file in sorted(FOLDER.glob("*.json")):
        try:
            read = msgspec.json.decode(file.read_bytes(), type=Calibrated)
        except (msgspec.DecodeError, OSError):
            continue
        found |= {judge.judge: (read, judge) for judge in read.judges}
    return found


def rates(judge: str) -> str | None:
    """A line to show beside a judge's verdicts; `None` for a judge that was not calibrated."""
    if judge not in shipped():
        return None
    read, rate = shipped()[judge]

    def words(wrong: int, n: int) -> str:
        return f"{wrong} of {n} (at most {100 * interval(wrong, n)[1]:.1f} %)"

    return (
        f"on made-up runs of seed {read.seed} it missed {words(*rate.missed)} planted violations and was wrong about "
        f"{words(*rate.alarms)} innocent ones"
    )
