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
from small_world import small_world

pytestmark = pytest.mark.slow

STAGES = ("solve", "seal", "measure", "judge")


def run(world: Path, runs: Path) -> list[str]:
    """The command line of a run."""
    command = [sys.executable, "-m", "prill.cli", "run", "--suite", "smoke", "--entrant", "base-only", "--jobs", "1"]
    return [*command, "--definitions", str(world), "--runs", str(runs)]


def score(world: Path, runs: Path, *more: str) -> str:
    """What `prill score` says of the runs."""
    command = [sys.executable, "-m", "prill.cli", "score", "smoke", "--definitions", str(world), "--runs", str(runs)]
    return subprocess.run([*command, *more], capture_output=True, text=True, check=True).stdout


def standings(world: Path, runs: Path) -> dict[str, Any]:
    """The base-only row without what must differ: ids."""
    scored = json.loads(score(world, runs, "--format", "json"))
    row = next(row for row in scored["standings"] if row["entrant"] == "base-only")
    return {"score": row["score"], "cells": [{**cell, "run": None} for cell in row["cells"]]}


def kill_in(stage: str, world: Path, runs: Path, chance: random.Random) -> None:
    """Run until the stage has begun, let a random moment pass, and kill the runner."""
    with subprocess.Popen(run(world, runs), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        begun = f'"event":"began","stage":"{stage}"'
        while process.poll() is None:
            events = runs.glob("*/events.jsonl")
            if any(begun in file.read_text() for file in events):
                break
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.9))
        process.send_signal(signal.SIGKILL)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Definitions under which a run takes seconds."""
    return small_world(tmp_path_factory.mktemp("world"), canned=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, world: Path) -> dict[str, Any]:
    """The standings of a run that nobody killed."""
    runs = tmp_path_factory.mktemp("undisturbed")
    subprocess.run(run(world, runs), check=True, capture_output=True)
    return standings(world, runs)


@pytest.mark.parametrize("stage", STAGES)
def test_killed_runner_loses_nothing(stage: str, tmp_path: Path, world: Path, undisturbed: dict[str, Any]) -> None:
    """After a kill in any stage the same command ends with the same standings; only a cut solve is lost, and listed."""
    assert undisturbed["cells"][0]["state"] == "measured" and undisturbed["score"] > 0
    kill_in(stage, world, tmp_path, random.Random(stage))
    again = subprocess.run(run(world, tmp_path), capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert standings(world, tmp_path) == undisturbed
    lost = [folder for folder in folders(tmp_path) if folder.read().state == "lost"]
    assert len(lost) == (len(folders(tmp_path)) - 1)
    if stage != "solve":
        assert not lost
    scored = score(world, tmp_path)
    assert all(folder.id in scored for folder in lost)
