"""Contamination scan: CPU beside decon's, one worker each."""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.paired import cpu_seconds
from bench.row import Row
from bench.scanning import corpus, scan

SLICE_BYTES = 32_000_000


def measure() -> Row:
    """A slice of the corpus; decon's own index build is part of its figure, as its command has it."""
    name, against, goal = "contamination scan, CPU", "decon (wheel decontaminate), one worker", 1 / 80
    if importlib.util.find_spec("decontaminate") is None:
        why = "the wheel is not installed here; it needs Python 3.12, this is " + sys.version.split()[0]
        return Row(name=name, against=against, goal=goal, measured=None, unit="x decon", note=why, skipped=True)
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        (place / "data").mkdir()
        (place / "evals").mkdir()
        with corpus().file.open("rb") as whole:
            (place / "data" / "slice.jsonl").write_bytes(whole.read(SLICE_BYTES).rpartition(b"\n")[0] + b"\n")
        rows = [{"question": item.question, "answer": item.answer} for item in corpus().items]
        (place / "evals" / "ref.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        command = [
            "decon", "detect", "--training-dir", str(place / "data"), "--evals-dir", str(place / "evals"),
            "--report-output-dir", str(place / "out"), "--worker-threads", "1", "--content-key", "text",
        ]  # fmt: skip
        theirs = cpu_seconds(lambda: subprocess.run(command, check=True, capture_output=True))
        ours = cpu_seconds(lambda: scan(place / "data" / "slice.jsonl"))
    return Row(name=name, against=against, goal=goal, measured=ours / theirs, unit="x decon", note="one round")
