"""The four real agent programs through the whole path, against the scripted provider: box, gateway, wallet, score."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from boxed import CACHE, ENTRANTS
from prill import npm, plugins
from prill.catalog import Catalog
from prill.folder import RunFolder
from prill.trajectory import parse
from small_world import FEW, small_world

pytestmark = pytest.mark.slow
MILLION = Decimal(1_000_000)


def prill(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """One command, as a person would give it, with the programs of the project's own cache."""
    return subprocess.run(
        [sys.executable, "-m", "prill.cli", *map(str, arguments)],
        env={**os.environ, "PRILL_CACHE": str(CACHE)},
        capture_output=True,
        text=True,
        timeout=1800,
    )


@pytest.fixture(scope="session", autouse=True)
def programs() -> None:
    """Skips, by name, where a program is not there."""
    os.environ["PRILL_CACHE"], before = str(CACHE), os.environ.get("PRILL_CACHE")
    try:
        for name in ENTRANTS:
            entrant = Catalog().entrant(name)
            package, version = str(plugins.get("agents", entrant.agent).package), str(entrant.version)
            if npm.installed(package, version) is None:
                pytest.skip(f"{package}@{version} is not in .cache/npm (`make test` puts it there, with npm)")
    finally:
        os.environ.pop("PRILL_CACHE")
        if before is not None:
            os.environ["PRILL_CACHE"] = before


def charged(run: RunFolder) -> Decimal:
    """What the provider says that it charged, at the prices of the list, in dollars."""
    prices, total = Catalog().prices("rehearsal").models, Decimal(0)
    for line in (run.path / "provider.jsonl").read_bytes().splitlines():
        told = json.loads(line)
        if told["usage"] is not None:
            price, usage = prices[told["model"]].base, told["usage"]
            rates = (price.input, price.cache_read, price.cache_write_5m, price.output)
            kinds = ("input", "cache_read", "cache_write", "output")
            total += sum(usage[kind] * Decimal(str(rate)) for kind, rate in zip(kinds, rates, strict=True)) / MILLION
    return total


def ledger(run: RunFolder) -> list[dict[str, Any]]:
    """All entries of a run's ledger."""
    return [json.loads(line) for line in run.ledger.read_bytes().splitlines()]


def paid(run: RunFolder) -> Decimal:
    """The ledger's total."""
    return sum((Decimal(entry["usd"]) for entry in ledger(run) if entry["action"] == "charge"), Decimal(0))


# --- the whole path --------------------------------------------------------------------------------------------------

STEPS = 48
"""Of training, of the scenario's 120: with them most of the first items are right, of which the base has none."""


@pytest.fixture(scope="session")
def shorter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Definitions whose scenario trains for `STEPS`, whose benchmark has few items, and whose time is long enough for a
    machine that does much else."""
    text = Catalog().asset("scenarios/smoke.toml").read_text()
    assert '"STEPS", "120"' in text
    folder = small_world(tmp_path_factory.mktemp("shorter"))
    (folder / "scenarios").mkdir()
    (folder / "scenarios/smoke.toml").write_text(text.replace('"STEPS", "120"', f'"STEPS", "{STEPS}"'))
    text = Catalog().file("suites", "rehearsal").read_text()
    (folder / "suites/rehearsal.toml").write_text(re.sub(r"(?m)^hours = .*", "hours = 0.5", text))
    return folder


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory, shorter: Path) -> Path:
    """The suite `rehearsal`, run once: four programs that train the smoke base model and submit it."""
    runs = tmp_path_factory.mktemp("rehearsal") / "runs"
    done = prill("run", "--suite", "rehearsal", "--definitions", shorter, "--runs", runs, "--jobs", "2")
    assert done.returncode == 0, done.stderr + done.stdout
    return runs


@pytest.fixture(scope="session")
def cells(whole: Path, shorter: Path) -> dict[str, dict[str, Any]]:
    """Each entrant's only cell."""
    scored = prill("score", "rehearsal", "--definitions", shorter, "--runs", whole, "--format", "json")
    return {row["entrant"]: row["cells"][0] for row in json.loads(scored.stdout)["standings"]}


@pytest.fixture(params=ENTRANTS)
def run(request: pytest.FixtureRequest, whole: Path) -> RunFolder:
    """The run of each entrant."""
    found = [RunFolder(path) for path in whole.glob("2*")]
    return next(run for run in found if run.spec().entrant.name == request.param)


def test_a_program_trains_submits_and_is_scored(run: RunFolder, cells: dict[str, dict[str, Any]]) -> None:
    """The program ends by itself and its submission, trained in the box, is sealed and measured well above the base."""
    outcome = run.outcome()
    assert outcome is not None and outcome.ended == "finished", outcome
    assert outcome.isolated and outcome.agent_version == run.spec().entrant.version
    cell = cells[run.spec().entrant.name]
    assert (cell["state"], cell["n"]) == ("measured", FEW), cell
    assert cell["value"] >= 0.6


def test_the_ledger_is_the_provider_s_truth(run: RunFolder) -> None:
    """The ledger's total is what the provider charged, to the last digit, and no call is missing."""
    assert paid(run) == charged(run) > 0
    truth = [json.loads(line) for line in (run.path / "provider.jsonl").read_bytes().splitlines()]
    calls = [entry for entry in ledger(run) if entry["action"] == "charge" and entry["kind"] == "model"]
    assert len(calls) == sum(told["usage"] is not None for told in truth)


def test_the_program_tells_no_more_than_was_asked(run: RunFolder) -> None:
    """What the program says that it used is at most what passed the gateway: its own count is a lower bound."""
    parsed = parse(run.spec().entrant.agent, run.stdout.read_bytes())
    passed = [entry["tokens"] for entry in ledger(run) if entry["action"] == "charge" and entry["kind"] == "model"]
    assert parsed.usage is not None
    output = parsed.usage.get("output")
    assert output is not None and 0 < output <= sum(tokens["output"] for tokens in passed)


# --- an empty wallet -------------------------------------------------------------------------------------------------

SUITE = (Path(__file__).parents[2] / "src/prill/definitions/suites/rehearsal.toml").read_text()
WALLET = "1.0"
USAGE = "[usage]\ninput = 50000\noutput = 10000\n"
"""Thirty cents a call, so that a few calls empty the wallet."""


@pytest.fixture(scope="session")
def poor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same programs with one dollar each and a provider that always has another command for them."""
    folder = tmp_path_factory.mktemp("poor")
    for kind in ("suites", "entrants", "providers", "scenarios"):
        (folder / "definitions" / kind).mkdir(parents=True)
    suite = SUITE.replace('name = "rehearsal"', 'name = "poor"').replace("usd = 5.0", f"usd = {WALLET}")
    entrants = [name.replace("rehearsal-", "poor-") for name in ENTRANTS]
    for name, own in zip(ENTRANTS, entrants, strict=True):
        suite = suite.replace(f'"{name}"', f'"{own}"')
        text = Catalog().file("entrants", name).read_text()
        text = text.replace(f'name = "{name}"', f'name = "{own}"').replace('"rehearsal"', '"endless"')
        (folder / "definitions/entrants" / f"{own}.toml").write_text(text)
    (folder / "definitions/suites/poor.toml").write_text(suite)
    provider = Catalog().file("providers", "rehearsal").read_text()
    provider = provider.replace('name = "rehearsal"', 'name = "endless"').replace("smoke.toml", "endless.toml")
    (folder / "definitions/providers/endless.toml").write_text(provider)
    turns = "".join(f'[[turns]]\n[[turns.calls]]\ncommand = "echo {n} >> counted"\n' for n in range(200))
    (folder / "definitions/scenarios/endless.toml").write_text(f'title = "Endless"\n{USAGE}{turns}')
    done = prill("run", "--suite", "poor", "--runs", folder / "runs", "--definitions", folder / "definitions")
    assert done.returncode == 0, done.stderr + done.stdout
    return folder / "runs"


@pytest.mark.parametrize("name", ENTRANTS)
def test_an_empty_wallet_ends_a_program(poor: Path, name: str) -> None:
    """Refused a call for want of money, the program ends by itself within 15 seconds; no cent too much is spent."""
    own = name.replace("rehearsal-", "poor-")
    run = next(run for run in map(RunFolder, poor.glob("2*")) if run.spec().entrant.name == own)
    outcome = run.outcome()
    assert outcome is not None and outcome.evidence["stopped_by"] in ("itself", "money"), outcome
    assert 0 < charged(run) == paid(run) <= Decimal(WALLET)
    refused = next(entry["at"] for entry in ledger(run) if entry["action"] == "refuse" and Decimal(entry["usd"]))
    ended = next(event.at for event in run.events() if event.event == "ended" and event.stage == "solve")
    assert ended - refused < 15


# --- a dead keeper ---------------------------------------------------------------------------------------------------

LONG = """
title = "A long command, then the submission"
[[turns]]
say = "I begin."
[[turns.calls]]
command = "echo begun >> marks; sleep 8; echo slept >> marks"
seconds = 60
[[turns]]
say = "I submit the base."
[[turns.calls]]
command = 'cp -r "$PRILL_BASE_MODEL" final_model; echo submitted >> marks'
[[turns]]
say = "Done."
"""
SOLVE = """
import sys
import time
from pathlib import Path
from prill.catalog import Catalog
from prill.folder import RunFolder
from prill.stages import solve
run = RunFolder(Path(sys.argv[1]))
with run.lock():
    solve.do(run, Catalog([Path(sys.argv[2])]))
"""


@pytest.mark.parametrize("name", ["rehearsal-claude-code", "rehearsal-codex"])
def test_a_dead_keeper_s_program_goes_on_in_its_session(tmp_path: Path, name: str) -> None:
    """Killed with its keeper in mid-command, the program goes on in its own session, in another box."""
    definitions, runs = tmp_path / "definitions", tmp_path / "runs"
    (definitions / "scenarios").mkdir(parents=True)
    (definitions / "scenarios/smoke.toml").write_text(LONG)
    planned = prill("plan", "rehearsal", "--entrant", name, "--runs", runs, "--definitions", definitions)
    assert planned.returncode == 0, planned.stderr
    run = RunFolder(next(runs.glob("2*")))
    argv = [sys.executable, "-c", SOLVE, str(run.path), str(definitions)]
    env = {**os.environ, "PRILL_CACHE": str(CACHE)}
    with subprocess.Popen(argv, env=env, stderr=subprocess.PIPE) as first:
        marks = run.workspace / "marks"
        while not marks.exists() and first.poll() is None:
            time.sleep(0.05)
        assert first.poll() is None, first.stderr and first.stderr.read()
        os.kill(int((run.solving / "keeper.pid").read_text()), signal.SIGKILL)
        _, words = first.communicate(timeout=300)  # it finds the keeper dead, and begins another
    assert first.returncode == 0, words
    outcome = run.outcome()
    assert outcome is not None and (outcome.ended, outcome.resumed) == ("finished", 1), outcome
    assert "submitted" in marks.read_text() and (run.workspace / "final_model" / "config.json").exists()
    prompts = [entry for entry in ledger(run) if entry["action"] == "charge"]
    assert len(prompts) >= 3 and paid(run) >= charged(run)
