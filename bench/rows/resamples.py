"""10,000 paired resamples of a whole board: 60 entrants × 4 base models × 7 benchmarks, 2,556 items each.

Measured in a process of its own in which the matrix product has one thread: on a busy machine several threads spend
most of their CPU time waiting for each other, and the figure would say nothing about the work.
"""

import json
import os
import subprocess
import sys

from bench.paired import cpu_seconds
from bench.row import Row

GOAL = 0.5
FASTER = 100
DRAWS = 10_000
ENTRANTS, MODELS = 60, 4
ITEMS = (30, 250, 100, 448, 1319, 245, 164)
LOOPED = 40
"""Draws of each cell that the index loop makes; the rest is as much again for each draw."""
ROUNDS = 5


ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def measure() -> Row:
    """CPU seconds of all resamples at once, beside a loop that draws each cell's items by index."""
    command = [sys.executable, "-c", "from bench.rows import resamples; print(resamples.figures())"]
    said = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True).stdout
    fast, slow = json.loads(said)
    ratio = slow / fast
    return Row(
        name="10,000 paired resamples of a board",
        against=f"numpy index loop: {slow:.0f} s",
        goal=GOAL,
        measured=fast if ratio >= FASTER else None,
        unit="s CPU",
        note=f"{fast:.3f} s, {ratio:.0f} times as fast as the loop (at least {FASTER} is the goal), which was run for "
        f"{LOOPED} draws of 8 of {ENTRANTS * MODELS} columns a benchmark and scaled up; one thread",
    )


def figures() -> list[float]:
    """Median CPU seconds of ours and of the loop, scaled to all its draws."""
    import numpy as np

    from prill.scoring import bootstrap

    chance = np.random.default_rng(0)
    columns = ENTRANTS * MODELS
    share = np.kron(np.eye(ENTRANTS), np.full((MODELS, 1), 1 / MODELS / len(ITEMS)))
    marks = [(chance.random((items, columns)) < 0.4).astype(np.float32) for items in ITEMS]
    blocks = [bootstrap.Block(marks=one, share=share) for one in marks]
    nothing = [0.0] * ENTRANTS

    def ours() -> None:
        values = bootstrap.resample(blocks, nothing, [], DRAWS, np.random.default_rng(1))
        if values.shape != (DRAWS, ENTRANTS) or not 0.39 < values.mean() < 0.41:
            raise RuntimeError("the resamples do not have the mean of the marks; the figure means nothing")

    def theirs() -> None:
        bootstrap.naive([column for one in marks for column in one[:, :: columns // 8].T], LOOPED, chance)

    ours()
    theirs()
    taken = sorted((cpu_seconds(ours), cpu_seconds(theirs)) for _ in range(ROUNDS))
    fast, slow = taken[ROUNDS // 2]
    return [fast, slow * DRAWS / LOOPED * columns / 8]
