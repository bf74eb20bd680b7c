"""A whole run of the suite `wallet-smoke`: an agent trains, packs a server of its own, is measured by it and judged."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prill.catalog import Catalog
from small_world import FEW, small_world

pytestmark = pytest.mark.slow

RULES = {"contamination", "lineage", "inference", "credentials"}


def prill(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """One command, as a person would give it."""
    return subprocess.run(
        [sys.executable, "-m", "prill.cli", *map(str, arguments)], capture_output=True, text=True, timeout=600
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite with few items, three minutes and no self-check, run once by its honest entrant."""
    folder = tmp_path_factory.mktemp("wallet")
    text = Catalog().file("suites", "wallet-smoke").read_text()
    for old, new in (("hours = 0.15", "hours = 0.05"), ("self_checks = 1", "self_checks = 0")):
        assert old in text
        text = text.replace(old, new)
    (small_world(folder / "world") / "suites" / "wallet-smoke.toml").write_text(text)
    where = ("--definitions", folder / "world", "--runs", folder / "runs")
    done = prill("run", "--suite", "wallet-smoke", "--entrant", "honest-package", *where)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def run(world: Path) -> Path:
    """The folder of that run."""
    [folder] = [each for each in (world / "runs").iterdir() if (each / "spec.json").is_file()]
    return folder


def read(file: Path) -> dict[str, Any]:
    """A JSON file."""
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_the_package_is_sealed_whole(run: Path) -> None:
    """Server, weights and training data are sealed, and the weights in `model/` were counted."""
    sealed = read(run / "submission.json")
    assert sealed["state"] == "sealed", sealed["why"]
    assert {"serve.sh", "server.py", "model/model.safetensors", "train/train.jsonl"} <= {
        each["path"] for each in sealed["files"]
    }
    assert sealed["parameters"] == 845_184


def test_its_own_server_is_measured(run: Path) -> None:
    """Every item has the reply of the package's server, in boxes that isolate."""
    made = read(run / "measurements" / "word-problems.1.json")
    assert (made["state"], made["n"], made["isolated"]) == ("measured", FEW, True), made["why"]
    assert made["settings"]["engine"] == "package"
    assert set(made["stops"]) <= {"stop", "length"}


def test_all_four_rules_are_found_kept(run: Path) -> None:
    """Without any language model four judges speak to the four rules, and cite the weights where they lie."""
    found = [each for file in (run / "findings").iterdir() for each in read(file)["findings"]]
    assert {each["rule"]: each["verdict"] for each in found} == dict.fromkeys(RULES, "kept"), found
    [lineage] = [each for each in found if each["rule"] == "lineage"]
    assert lineage["numbers"]["lineage"] == "descends from base"
    assert [cite["file"] for cite in lineage["citations"]] == ["submission/model/model.safetensors"]


def test_the_cell_counts_as_measured(world: Path) -> None:
    """The standings have its value on the scale from floor to ceiling."""
    done = prill(
        "score", "wallet-smoke", "--definitions", world / "world", "--runs", world / "runs", "--format", "json"
    )
    rows = {row["entrant"]: row["cells"][0] for row in json.loads(done.stdout)["standings"]}
    assert rows["honest-package"]["state"] == "measured"
