"""SIGKILL at a random moment of any stage, then the same command again: the same standings, losses listed."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from prill.folder import folders

pytestmark = pytest.mark.slow

STAGES = ("solve", "seal", "measure", "judge")
COMMAND = ("--suite", "smoke", "--entrant", "base-only", "--jobs", "1", "--runs")


def prill(*arguments: str | Path) -> list[str]:
    """A command line."""
    return [sys.executable, "-m", "prill.cli", *map(str, arguments)]


def standings(runs: Path) -> dict[str, Any]:
    """The base-only row without what must differ: ids."""
    scored = subprocess.run(
        prill("score", "smoke", "--runs", runs, "--format", "json"), capture_output=True, text=True, check=True
    )
    row = next(row for row in json.loads(scored.stdout)["standings"] if row["entrant"] == "base-only")
    return {"score": row["score"], "cells": [{**cell, "run": None} for cell in row["cells"]]}


def kill_in(stage: str, runs: Path, chance: random.Random) -> None:
    """Run until the stage has begun, let a random moment pass, and kill the runner."""
    with subprocess.Popen(prill("run", *COMMAND, runs), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        begun = f'"event":"began","stage":"{stage}"'
        while process.poll() is None:
            events = runs.glob("*/events.jsonl")
            if any(begun in file.read_text() for file in events):
                break
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.9))
        process.send_signal(signal.SIGKILL)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The standings of a run that nobody killed."""
    runs = tmp_path_factory.mktemp("undisturbed")
    subprocess.run(prill("run", *COMMAND, runs), check=True, capture_output=True)
    return standings(runs)


@pytest.mark.parametrize("stage", STAGES)
def test_killed_runner_loses_nothing(stage: str, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """After a kill in any stage the same command ends with the same standings; only a cut solve is lost, and listed."""
    kill_in(stage, tmp_path, random.Random(stage))
    again = subprocess.run(prill("run", *COMMAND, tmp_path), capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert standings(tmp_path) == undisturbed
    lost = [folder for folder in folders(tmp_path) if folder.read().state == "lost"]
    assert len(lost) == (len(folders(tmp_path)) - 1)
    if stage != "solve":
        assert not lost
    scored = subprocess.run(prill("score", "smoke", "--runs", tmp_path), capture_output=True, text=True, check=True)
    assert all(folder.id in scored.stdout for folder in lost)
