"""`prill --help`: what a person waits for before anything has been asked."""

import subprocess
import sys

from bench.paired import paired
from bench.row import Row

GOAL = 0.3


def measure() -> Row:
    """CPU seconds of a whole process that prints the help, beside one that does nothing."""
    prill = [sys.executable, "-c", "import sys; from prill.cli import main; sys.argv = ['prill', '--help']; main()"]
    bare = [sys.executable, "-c", "pass"]
    first = subprocess.run(prill, capture_output=True, text=True)
    if first.returncode or not first.stdout.startswith("usage: prill"):
        raise RuntimeError(f"prill --help does not print its help: {first.stderr.strip()[-200:]}")
    pair = paired(lambda: subprocess.run(prill, capture_output=True), lambda: subprocess.run(bare, capture_output=True))
    return Row(
        name="prill --help",
        against=f"python -c pass: {pair.theirs:.3f} s",
        goal=GOAL,
        measured=pair.ours,
        unit="s CPU",
        note=f"{pair.ratio:.1f}x of a bare interpreter; median of 5 fresh processes",
    )
