"""Each page of docs/add is followed to the letter: its files are written, and what it promises is done."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from small_world import small_world

PAGES = sorted((Path(__file__).parents[2] / "docs" / "add").glob("*.md"))
BLOCK = re.compile(r"^```\w*\n# file: (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(page: Path, folder: Path) -> None:
    """Write every file that the page shows; a pyproject's entry points are made known as an installation would."""
    for name, text in BLOCK.findall(page.read_text()):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    project = folder / "pyproject.toml"
    if project.exists():
        points = tomllib.loads(project.read_text())["project"]["entry-points"]
        known = folder / "page-1.dist-info"
        known.mkdir()
        (known / "METADATA").write_text("Metadata-Version: 2.1\nName: page\nVersion: 1\n")
        lines = [f"[{group}]\n{name} = {place}" for group, names in points.items() for name, place in names.items()]
        (known / "entry_points.txt").write_text("\n".join(lines) + "\n")


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command in the folder where the page's files stand."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_definitions_of_the_page_are_sound(page: Path, tmp_path: Path) -> None:
    """The definitions that a page shows pass `prill check`."""
    follow(page, tmp_path)
    assert any(tmp_path.iterdir()), f"{page}: no block begins with '# file: …'"
    if (tmp_path / "definitions").is_dir():
        checked = run(tmp_path, "-m", "prill.cli", "check", "definitions")
        assert checked.returncode == 0, checked.stderr


@pytest.mark.slow
def test_agent_page(tmp_path: Path) -> None:
    """The agent of the page passes the conformance suite and carries a run of the smoke suite to a score."""
    follow(Path(__file__).parents[2] / "docs" / "add" / "agent.md", tmp_path)
    suite = "import shell_agent, prill.testing as t\nfor _, check in t.agent_conformance(shell_agent.plugin): check()"
    conforms = run(tmp_path, "-c", suite)
    assert conforms.returncode == 0, conforms.stderr
    small = str(small_world(tmp_path / "small", canned=True))
    options = ("--definitions", "definitions", "--definitions", small, "--runs", "runs")
    ran = run(tmp_path, "-m", "prill.cli", "run", "--suite", "smoke", "--entrant", "copycat", *options)
    assert ran.returncode == 0, ran.stderr
    scored = run(tmp_path, "-m", "prill.cli", "score", "smoke", "--format", "json", *options)
    [row] = [row for row in json.loads(scored.stdout)["standings"] if row["entrant"] == "copycat"]
    assert row["cells"][0]["state"] == "measured"
