"""Without bubblewrap: `--sandbox local` carries a run to a score, and every record says that nothing was isolated."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from prill.catalog import Catalog
from small_world import small_world

pytestmark = pytest.mark.slow


def prill(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """One command."""
    return subprocess.run([sys.executable, "-m", "prill.cli", *map(str, arguments)], capture_output=True, text=True)


def test_local_is_marked_in_every_record(tmp_path: Path) -> None:
    """A `local` run is measured and judged, its records say that nothing was isolated, and `score` must be asked."""
    own, runs = ("--definitions", small_world(tmp_path / "small")), tmp_path / "runs"
    ran = prill("run", "--suite", "smoke", "--entrant", "base-only", "--sandbox", "local", *own, "--runs", runs)
    assert ran.returncode == 0, ran.stderr
    records = [
        *runs.glob("*/outcome.json"),
        *runs.glob("*/measurements/*.json"),
        *runs.glob("*/findings/*.json"),
    ]
    assert len(records) == 2 + len(Catalog().suite("smoke").judges)
    assert not any(json.loads(file.read_text())["isolated"] for file in records)
    cells = {}
    for sandbox in ((), ("--sandbox", "local")):
        board = json.loads(prill("score", "smoke", *own, "--runs", runs, "--format", "json", *sandbox).stdout)
        [row] = [row for row in board["standings"] if row["entrant"] == "base-only"]
        cells[sandbox] = row["cells"][0]
    assert (cells["--sandbox", "local"]["state"], cells["--sandbox", "local"]["value"]) == ("measured", 0.0)
    assert cells[()]["why"] == "made under other decisions (sandbox)"
    [folder] = runs.glob("2*")
    assert "NOT ISOLATED" in prill("show", folder).stdout
