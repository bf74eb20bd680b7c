"""An agent that copies the base, asks for two self-checks where one is granted, and then edits a file."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from prill.catalog import Catalog
from prill.folder import RunFolder, folders
from prill.processes import everyone
from prill.sandboxes.local import descends
from prill.solving.checks import Checks
from prill.stages import seal, solve

pytestmark = pytest.mark.slow

SUITE = """
name = "checked"
title = "Checked"
models = ["smoke-base"]
benchmarks = ["word-problems"]
entrants = ["checker"]
prompt = "checked"
rules = []
judges = ["lineage"]
engine = "transformers"
budget = { hours = 0.1, usd = 1.0, disk_gb = 0.5, grace_seconds = 2.0, self_checks = 1 }
policy = { no_submission = "base", broken_submission = "base", lineage = "base" }
score = { weights = { word-problems = 1.0 } }
[[references]]
model = "smoke-base"
benchmark = "word-problems"
base = 0.0
"""
PROGRAM = """
import json, os, shutil, socket, subprocess, sys

def tell(text):
    print(json.dumps({"kind": "result", "text": text}), flush=True)

def check(*options):
    done = subprocess.run(["self-check", *options], capture_output=True, text=True)
    tell(json.dumps([done.returncode, done.stdout, done.stderr]))

sys.stdin.read()
shutil.copytree(os.environ["PRILL_BASE_MODEL"], os.environ["PRILL_SUBMISSION"], copy_function=shutil.copyfile)
for words in (b"", b"[" * 5000, b"{}\\n", b'{"do": ["check"]}\\n', b"\\xff\\n"):
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(os.environ["PRILL_CHECK"])
        door.sendall(words)
        door.shutdown(socket.SHUT_WR)
        door.recv(4096)
check("--left", "--json")
check("--json")
check()
with open(os.environ["PRILL_SUBMISSION"] + "/README.md", "w") as file:
    file.write("Changed after the check.")
"""
FILES = {
    "suites/checked.toml": SUITE,
    "entrants/checker.toml": 'name = "checker"\ntitle = "Checker"\nagent = "scripted"\nprogram = "checking.py"\n',
    "prompts/checked.toml": "name = 'checked'\ntemplate = '''Train {model}.\n{checks}'''\nrules = {}\n",
    "checking.py": PROGRAM,
}


def planned(folder: Path) -> tuple[RunFolder, Catalog]:
    """A run of that suite which nobody has begun."""
    world, runs = folder / "world", folder / "runs"
    for name, text in FILES.items():
        (world / name).parent.mkdir(parents=True, exist_ok=True)
        (world / name).write_text(text)
    done = prill("plan", "checked", "--definitions", world, "--runs", runs)
    assert done.returncode == 0, done.stderr
    [run] = folders(runs)
    return run, Catalog([world])


class Checked:
    """The run up to its seal, and what the agent saw."""

    def __init__(self, folder: Path) -> None:
        self.run, catalog = planned(folder)
        with self.run.lock():
            solve.do(self.run, catalog)
            seal.do(self.run, catalog)
        lines = [json.loads(line)["text"] for line in self.run.stdout.read_text().splitlines()]
        self.left, self.first, self.second = (json.loads(line) for line in lines)


def prill(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """One command, as a person would give it."""
    command = [sys.executable, "-m", "prill.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ))


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """The run, once."""
    return Checked(tmp_path_factory.mktemp("checked"))


def written(run: RunFolder) -> dict[str, Any]:
    """The one check's file."""
    [file] = (run.path / "selfchecks").iterdir()
    assert file.name == "1.json"
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_the_check_that_is_granted_tells_gates_and_margins(checked: Checked) -> None:
    """The first check comes back with a colour and a margin for each gate, and says that none is left."""
    code, printed, said = checked.first
    told = json.loads(printed)
    assert told["left"] == 0 and told["granted"] == 1
    gates = {gate["name"]: gate for gate in told["result"]["gates"]}
    assert gates["startup"]["state"] in ("green", "amber"), said
    assert gates["startup"]["margin"] == pytest.approx(gates["startup"]["limit"] - gates["startup"]["value"])
    assert gates["answered"]["state"] == gates["healthy_after"]["state"] == "green"
    assert told["result"]["passed"] == sum(gate["state"] in ("green", "amber") for gate in gates.values())
    assert told["result"]["gates_in_all"] == len(gates) == 10
    assert gates["readable"]["state"] == "amber"  # the base has never learnt to mark its answer
    assert (code, told["result"]["status"]) == (0, "passed_with_warnings")
    assert told["result"]["zero"]["of"] == told["result"]["score"]["of"] == 32


def test_the_second_check_is_refused_politely(checked: Checked) -> None:
    """With nothing left the door says so, nothing is run and no second file is written."""
    assert json.loads(checked.left[1]) == {"left": 1, "granted": 1}
    code, printed, said = checked.second
    assert code == 2
    assert "the only self-check is used" in said
    assert "0 of 1 self-checks left" in printed
    written(checked.run)


def test_the_wallet_pays_nothing_for_it(checked: Checked) -> None:
    """Not a line of the ledger comes from a self-check, and nothing of its work is left in the run folder."""
    assert checked.run.ledger.read_bytes() == b""
    assert not (checked.run.path / ".checking").exists()


def test_the_edit_makes_it_stale_by_name(checked: Checked) -> None:
    """The seal writes down whether the last passed check holds for what was sealed, and names what changed."""
    [event] = [event for event in checked.run.events() if event.event == "self_checked" and event.stage == "seal"]
    submission = checked.run.submission()
    assert submission is not None
    assert written(checked.run)["digest"] != submission.digest
    assert event.detail["warning"] == "CHANGED_SINCE_LAST_PASS"
    assert event.detail["changed"] == ["README.md"]


def test_the_agent_is_told_of_it(checked: Checked) -> None:
    """The prompt names the command and how many checks are granted; the story of the run names the stale pass."""
    assert "self-check" in checked.run.prompt_file.read_text()
    shown = prill("show", checked.run.path)
    assert "CHANGED_SINCE_LAST_PASS" in shown.stdout


def test_a_check_under_way_ends_with_the_door_and_does_not_count(tmp_path: Path) -> None:
    """When the agent's hours end in the middle of a check, nothing of it runs on, is left, or is used up."""
    run, catalog = planned(tmp_path)
    shutil.copytree(catalog.asset(str(run.spec().model.path)), run.workspace / "final_model")
    run.solving.mkdir()
    with Checks(run, 1, catalog, tmp_path / "check.sock") as checks, socket.socket(socket.AF_UNIX) as door:
        door.connect(str(tmp_path / "check.sock"))
        door.sendall(b'{"do": "check"}\n')
        with socket.socket(socket.AF_UNIX) as other, door.makefile("rb") as told:
            while b"starting the server" not in told.readline():
                pass
            other.connect(str(tmp_path / "check.sock"))
            other.sendall(b'{"do": "check"}\n')
            assert "under way" in json.loads(other.makefile("rb").readline())["refused"]
        program = checks.program
    assert program is not None and program.poll() is not None
    assert checks.used() == 0
    assert not (run.path / ".checking").exists() and not run.selfchecks.exists()


def test_a_check_leaves_with_whoever_started_it(tmp_path: Path) -> None:
    """When the keeper dies in the middle of a check, so does the check, with the server in its box."""
    run, catalog = planned(tmp_path)
    shutil.copytree(catalog.asset(str(run.spec().model.path)), run.workspace / "final_model")
    command = [sys.executable, "-m", "prill.selfcheck", str(run.path), "1", str(tmp_path / "world")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None and program.stdin is not None
        while b"starting the server" not in program.stdout.readline():
            pass
        while not (below := [number for number in everyone() if descends(number, program.pid)][1:]):
            time.sleep(0.05)
        program.stdin.close()
        assert program.wait() == 1
    assert not run.selfchecks.exists()
    for _ in range(200):
        if not [number for number in below if Path(f"/proc/{number}").exists()]:
            return
        time.sleep(0.05)
    raise AssertionError(f"{below} live on")
