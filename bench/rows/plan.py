"""Planning 10,000 cells: a suite far larger than any published one."""

from msgspec.structs import replace

from bench import made
from bench.paired import paired
from bench.row import Row

GOAL = 0.5
CELLS = 10_000


def measure() -> Row:
    """CPU seconds of `plan` beside a bare loop that copies the same specs."""
    world = made.world(entrants=25, models=4, benchmarks=20)
    planned = made.specs(*world, 5)
    if len(planned) != CELLS:
        raise RuntimeError(f"{len(planned)} specs planned, {CELLS} wanted")
    pair = paired(lambda: made.specs(*world, 5), lambda: [replace(spec, id="") for spec in planned])
    return Row(
        name=f"plan {CELLS:,} cells",
        against=f"replace() of each spec: {pair.theirs:.3f} s",
        goal=GOAL,
        measured=pair.ours,
        unit="s CPU",
        note=f"{pair.ratio:.1f}x of the bare loop; 25 entrants, 4 models, 20 benchmarks, 5 seeds",
    )
