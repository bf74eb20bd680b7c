"""Contamination scan: memory of the whole process on 2 GB, in many rows and in one line."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.row import Row
from bench.scanning import corpus

BYTES = 2_000_000_000
PROGRAM = """
import resource, sys
from prill.cli import main
code = main(["overlap", sys.argv[1], "--items", sys.argv[2], "--json"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, code, file=sys.stderr)
"""


def peak(data: Path, items: Path) -> int:
    """MiB of a scan in a process of its own."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(data), str(items)], capture_output=True, text=True)
    mebibytes, code = done.stderr.split()[-2:]
    if code not in ("0", "1"):
        raise RuntimeError(f"the scan ended with {code}: {done.stderr[-500:]}")
    return int(mebibytes)


def measure() -> Row:
    """The larger of both peaks. The files are removed at the end."""
    with tempfile.TemporaryDirectory() as made:
        items, data = Path(made, "items.jsonl"), Path(made, "data.jsonl")
        rows = [{"id": item.id, "question": item.question, "answer": item.answer} for item in corpus().items]
        items.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        data.write_text("{}", encoding="utf-8")
        cold = peak(data, items)  # this one makes the index, the others find it kept
        peaks = []
        for one_line in (False, True):
            with data.open("wb") as out, corpus().file.open("rb") as whole:
                block = whole.read(64 << 20).rpartition(b"\n")[0]
                block = block.replace(b"\n", b" ") if one_line else block + b"\n"
                while out.tell() < BYTES:
                    out.write(block)
            peaks.append(peak(data, items))
            data.unlink()
    return Row(
        name="contamination scan, memory",
        against="nothing",
        goal=350,
        measured=max(peaks),
        unit="MiB",
        note=f"2 GB in rows: {peaks[0]} MiB; 2 GB in one line: {peaks[1]} MiB; whole process, interpreter and index "
        f"included; making the index once: {cold} MiB",
    )
