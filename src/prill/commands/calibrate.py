"""`prill calibrate`: how often the deterministic judges are wrong, on made-up runs that follow from a seed."""

import argparse
import sys
from pathlib import Path
from typing import Any

from prill.arguments import command
from prill.errors import DefinitionError, oneof

CALIBRATE = """For each judge, violations are planted in made-up runs, and innocent runs are made to look like them; the
real judge reads each. The table says what it missed and where it was wrong about an innocent run, with 95 % intervals.
Everything follows from the seed. The shipped rates (`definitions/calibrations`) have seed 20261203; to hold them
against runs that nobody has looked at, take another seed."""


def add(commands: Any) -> None:
    """The command of this family."""
    made = command(commands, "calibrate", "Measure how often judges are wrong, on made-up runs", CALIBRATE)
    made.add_argument(
        "--judge", action="append", default=[], metavar="NAME", help="only this one; may be repeated (default: all)"
    )
    made.add_argument("--seed", type=int, default=20261203, metavar="S", help="of the made-up runs (default: 20261203)")
    made.add_argument(
        "--n", type=int, default=400, metavar="N", help="runs of each side a judge, at least (default: 400)"
    )
    made.add_argument("--jobs", type=int, default=1, metavar="J", help="families at a time (default: 1)")
    made.add_argument("--to", type=Path, metavar="FILE", help="write the counts of every family as JSON")
    made.set_defaults(do=do)


def do(chosen: argparse.Namespace) -> int:
    """`prill calibrate`: 0, or 1 where a judge misses more than 2 % or is wrong about more than 1 %."""
    from prill.calibration import FAMILIES, calibrate
    from prill.calibration.measure import enough, table, written
    from prill.folder import write_whole

    known = sorted({family.judge for family in FAMILIES})
    for name in chosen.judge:
        if name not in known:
            raise DefinitionError(oneof("judge that is calibrated", name, known))
    for name, value in (("--n", chosen.n), ("--jobs", chosen.jobs)):
        if value is not None and value < 1:
            raise DefinitionError(f"{name} {value}: at least one is needed")

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    found = calibrate(chosen.seed, chosen.n, chosen.judge, say, chosen.jobs)
    if chosen.to is not None:
        chosen.to.parent.mkdir(parents=True, exist_ok=True)
        write_whole(chosen.to, written(found))
    print(table(found))
    return 0 if enough(found) else 1
