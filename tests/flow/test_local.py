"""Without bubblewrap: `--sandbox local` carries a run to a score, and every record says that nothing was isolated."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def prill(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """One command."""
    return subprocess.run([sys.executable, "-m", "prill.cli", *map(str, arguments)], capture_output=True, text=True)


def test_local_is_marked_in_every_record(tmp_path: Path) -> None:
    """A `local` run is measured and judged, its records say that nothing was isolated, and `score` must be asked."""
    options = ("--sandbox", "local", "--runs", tmp_path)
    ran = prill("run", "--suite", "smoke", "--entrant", "base-only", *options)
    assert ran.returncode == 0, ran.stderr
    records = [
        *tmp_path.glob("*/outcome.json"),
        *tmp_path.glob("*/measurements/*.json"),
        *tmp_path.glob("*/findings/*.json"),
    ]
    assert len(records) == 4
    assert not any(json.loads(file.read_text())["isolated"] for file in records)
    cells = {}
    for sandbox in ((), ("--sandbox", "local")):
        board = json.loads(prill("score", "smoke", "--runs", tmp_path, "--format", "json", *sandbox).stdout)
        [row] = [row for row in board["standings"] if row["entrant"] == "base-only"]
        cells[sandbox] = row["cells"][0]
    assert (cells["--sandbox", "local"]["state"], cells["--sandbox", "local"]["value"]) == ("measured", 0.0)
    assert cells[()]["why"] == "made under other decisions (sandbox)"
    [folder] = tmp_path.glob("2*")
    assert "NOT ISOLATED" in prill("show", folder).stdout
