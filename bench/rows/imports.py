"""A synthetic results tree imported and scored: 1,338 runs against 338, for the time must grow with the runs alone."""

import json
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from bench.paired import paired
from bench.row import Row

SMALL, LARGE = 338, 1338
GOAL = 0.15
ROUNDS = 3
MODELS = ("Qwen_Qwen3-1.7B-Base", "Qwen_Qwen3-4B-Base", "HuggingFaceTB_SmolLM3-3B-Base", "google_gemma-3-4b-pt")
BENCHMARKS = ("aime2025", "arenahardwriting", "bfcl", "gpqamain", "gsm8k", "healthbench", "humaneval")


def tree(place: Path, runs: int) -> Path:
    """Roots of 28 cells each until there are so many runs."""
    chance = Random(0)
    cells = [(benchmark, model) for benchmark in BENCHMARKS for model in MODELS]
    for number in range(runs):
        root, cell = divmod(number, len(cells))
        benchmark, model = cells[cell]
        folder = place / f"claude_opus-{root // 3}_10h_run{root % 3}" / f"{benchmark}_{model}_{17_500_000 + number}"
        folder.mkdir(parents=True)
        files = {
            "metrics.json": {"accuracy": chance.random(), "stderr": 0.02},
            "judgement_gpt5_4.json": {"contamination": chance.random() < 0.1, "disallowed_model": False},
            "judgement_api.json": {"disallowed_api_usage": False},
            "judgement_ptb_lookup.json": {"disallowed_ptb_lookup": False},
        }
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content))
        (folder / "time_taken.txt").write_text("9:05:30\n")
        (folder / "solve_out.txt").write_text("a line that an agent printed\n" * 2000)
    return place


def measure() -> Row:
    """How far the CPU time of the larger tree is from proportional to the smaller one's."""
    from prill import plugins
    from prill.catalog import Catalog
    from prill.run import board_of

    bring, catalog, suite = plugins.get("importers", "posttrainbench"), Catalog(), "posttrainbench-1.1"
    with TemporaryDirectory(prefix="prill-bench-") as place:
        trees = {runs: tree(Path(place, str(runs)), runs) for runs in (SMALL, LARGE)}
        passes = count()

        def work(runs: int) -> None:
            to = Path(place, f"runs-{next(passes)}")
            report = bring(trees[runs], to, catalog, suite)
            board, _ = board_of(catalog, suite, to, partial=True)
            if report.made != runs or sum(entry.counts for entry in board.attempts) != runs:
                raise RuntimeError(f"not all {runs} runs were imported and counted; the figure means nothing")

        pair = paired(lambda: work(LARGE), lambda: work(SMALL), ROUNDS)
    return Row(
        name=f"import and score {LARGE:,} runs",
        against=f"{SMALL} runs: {1000 * pair.theirs / SMALL:.2f} ms CPU a run",
        goal=GOAL,
        measured=abs(pair.ratio * SMALL / LARGE - 1),
        unit="from proportional",
        note=f"{1000 * pair.ours / LARGE:.2f} ms CPU a run, {pair.ours:.2f} s in all",
    )
