"""Sampled lineage of a checkpoint of Qwen3-1.7B's shape beside a base and a sibling, warm.

The three files have their full size of 3.4 GB and are holes but for the sampled places: what is read is the same.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import weights_made
from bench.paired import ROUNDS, cpu_seconds
from bench.row import Row

GOAL = 1.0
SEED = 3


def measure() -> Row:
    """CPU seconds from folders to a verdict; one thread."""
    single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    code = "from bench.rows import weights_sampled; print(weights_sampled.figures())"
    said = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | single, capture_output=True, text=True, check=True
    )
    seconds, tensors = json.loads(said.stdout)
    return Row(
        name="sampled lineage of a 1.7 B model",
        against=f"{tensors} matrices of three files of 3.4 GB",
        goal=GOAL,
        measured=seconds,
        unit="s CPU",
        note="median of 5, warm, one thread, directions and signs included; holes but for the sampled places",
    )


def figures() -> list[float]:
    """Median CPU seconds, and the number of matrices."""
    from prill.checkpoint.lineage import compare, references
    from prill.checkpoint.rule import decide

    with TemporaryDirectory(prefix="prill-bench-") as place:
        ours, base, sibling = weights_made.sparse(Path(place), weights_made.qwen_shapes(), SEED)

        def work() -> int:
            measured = compare(ours, references(base, {"sibling": sibling}, seed=SEED))
            if decide(measured).word not in ("review", "contains instruct"):
                raise RuntimeError("half of the sibling was not seen; the figure means nothing")
            return len(measured.rows)

        tensors = work()
        taken = sorted(cpu_seconds(work) for _ in range(ROUNDS))
    return [taken[ROUNDS // 2], tensors]
