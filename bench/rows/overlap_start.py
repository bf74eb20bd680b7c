"""Contamination scan: what it costs before the first byte, with index and code kept from before."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.paired import ROUNDS, cpu_seconds
from bench.row import Row
from bench.scanning import corpus

PROGRAM = """
import sys
from pathlib import Path
from prill.commands.overlap import items_of
from prill.overlap.engine import engine_for
from prill.overlap.index import LEVELS, units_of
from prill.overlap.store import folder, index_of
units, bare = units_of("bench", items_of(Path(sys.argv[1])))
index = index_of(units, bare, folder())
print(type(engine_for(index, LEVELS["normal"], folder(), compiled=True)).__name__)
"""


def measure() -> Row:
    """CPU seconds of a whole process that reads the items, the index and the compiled code, and scans nothing."""
    with tempfile.TemporaryDirectory() as made:
        items = Path(made, "items.jsonl")
        rows = [{"id": item.id, "question": item.question, "answer": item.answer} for item in corpus().items]
        items.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        env = {**os.environ, "PRILL_CACHE": made}
        command = [sys.executable, "-c", PROGRAM, str(items)]

        def start() -> str:
            return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.strip()

        cold = cpu_seconds(start)
        used = [cpu_seconds(start) for _ in range(ROUNDS)]
        form = start()
    return Row(
        name="contamination scan, start",
        against="nothing",
        goal=1.5,
        measured=median(used),
        unit="CPU s",
        note=f"{len(rows)} items, warm caches, form: {form}; cold, with index and code made: {cold:.1f} s",
    )
