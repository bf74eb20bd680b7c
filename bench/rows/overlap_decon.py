"""Contamination scan: CPU beside decon's, one worker each."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from bench.paired import cpu_seconds
from bench.row import Row
from bench.scanning import corpus, scan

SLICE_BYTES = 32_000_000
ROUNDS = 3
PYTHON = "PRILL_BENCH_DECON"
"""Names a Python that has the wheel `decontaminate`; it needs 3.12 or later, whatever runs this."""
PROGRAM = """
import sys, decon
training, evals, out = sys.argv[1:]
decon.detect(decon.Config(training, evals, out, worker_threads=1, content_key="text"))
"""


def measure() -> Row:
    """A slice of the corpus. What decon needs for a single row, its index above all, is taken from its figure."""
    name, against, goal, unit = "contamination scan, CPU", "decon (wheel decontaminate)", 1 / 80, "x decon"
    python = os.environ.get(PYTHON)
    if not python:
        why = f"`pip install decontaminate` with Python 3.12 or later, anywhere; {PYTHON} names that Python"
        return Row(name=name, against=against, goal=goal, measured=None, unit=unit, note=why, skipped=True)
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        for folder in ("slice", "row", "evals"):
            (place / folder).mkdir()
        with corpus().file.open("rb") as whole:
            data = whole.read(SLICE_BYTES).rpartition(b"\n")[0] + b"\n"
        slice_file = place / "slice" / "slice.jsonl"
        slice_file.write_bytes(data)
        (place / "row" / "row.jsonl").write_bytes(b'{"text": "nothing to be found"}\n')
        rows = [
            {
                "eval_key": "bench", "eval_instance_index": number, "doc_id": number, "split": "test",
                "question": item.question, "answer": item.answer, "fingerprint": item.id,
            }
            for number, item in enumerate(corpus().items)
        ]  # fmt: skip
        (place / "evals" / "ref.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

        def decon(folder: str) -> float:
            command = [python, "-c", PROGRAM, *(str(place / each) for each in (folder, "evals", "out"))]
            return cpu_seconds(lambda: subprocess.run(command, check=True, capture_output=True))

        scan(slice_file)
        rounds = [
            (cpu_seconds(lambda: scan(slice_file, look=False)), decon("slice") - decon("row")) for _ in range(ROUNDS)
        ]
        close = cpu_seconds(lambda: scan(slice_file))
    ours, theirs = (len(data) / 1e6 / median(side) for side in zip(*rounds, strict=True))
    note = (
        f"ours {ours:.0f} MB/cpu-s, decon {theirs:.1f}, its index apart; {ROUNDS} rounds; with the close look "
        f"at what is flagged, far more here than in training data, ours is {len(data) / 1e6 / close:.0f} MB/cpu-s"
    )
    return Row(name=name, against=against, goal=goal, measured=median(a / b for a, b in rounds), unit=unit, note=note)
