"""Standings of 1,000 finished runs, from their files."""

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from bench import made
from bench.paired import paired
from bench.row import Row
from prill import folder
from prill.score import board

GOAL = 2.0
RUNS = 1_000


def measure() -> Row:
    """CPU seconds from folders to a board, beside plain `json.loads` of the same bytes."""
    suite, players, bases, tests = made.world(entrants=25, models=4, benchmarks=5)
    expected = made.specs(suite, players, bases, tests, 2)
    chance = Random(0)
    with TemporaryDirectory(prefix="prill-bench-") as place:
        runs = Path(place)
        for spec in expected:
            made.finish(runs, spec, chance)
        files = [file for file in runs.glob("*/**/*") if file.suffix in (".json", ".jsonl")]
        size = sum(file.stat().st_size for file in files)

        def ours() -> object:
            standings = board(suite, expected, [run.read() for run in folder.folders(runs)])
            if standings.covered != RUNS:
                raise RuntimeError(f"only {standings.covered} of {RUNS} cells have a value; the figure means nothing")
            return standings

        def theirs() -> None:
            for file in files:
                text = file.read_bytes()
                for line in text.splitlines() if file.suffix == ".jsonl" else [text]:
                    json.loads(line)

        pair = paired(ours, theirs)
    return Row(
        name=f"score {RUNS:,} run folders",
        against=f"json.loads of the bytes: {pair.theirs:.3f} s",
        goal=GOAL,
        measured=pair.ours,
        unit="s CPU",
        note=f"{pair.ratio:.2f}x of json.loads; {size / 1e6:.0f} MB in {len(files):,} files, 300 items a measurement",
    )
