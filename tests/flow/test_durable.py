"""The agent's hours outlive whoever watches them: kills at every event, money and bytes counted afterwards."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from prill.catalog import Catalog
from prill.folder import RunFolder, create
from prill.gateway.ledger import entries
from prill.run import expected

pytestmark = pytest.mark.slow

CALLS = 6
KILLS = int(os.environ.get("PRILL_KILLS", "14"))
"""`make kills` kills a hundred times."""
AGENT = f"""
import json, os, time, urllib.request
door, token = os.environ["PRILL_DOOR"], os.environ["PRILL_TOKEN"]
copy = open("printed", "ab", buffering=0)
for number in range({CALLS}):
    body = {{"model": "rehearsal-large", "max_tokens": 64, "messages": [{{"role": "user", "content": str(number)}}]}}
    head = {{"authorization": "Bearer " + token, "content-type": "application/json"}}
    request = urllib.request.Request(door + "/v1/chat/completions", json.dumps(body).encode(), head)
    said = json.load(urllib.request.urlopen(request, timeout=60))["choices"][0]["message"]["content"]
    line = json.dumps({{"kind": "message", "text": f"{{number}}: {{said}} " + "x" * 3000}}).encode() + b"\\n"
    os.write(1, line); copy.write(line)
    time.sleep(0.05)
print(json.dumps({{"kind": "message", "text": "the key is " + token}}), flush=True)
os.makedirs("final_model"); open("final_model/config.json", "w").write("{{}}")
"""
WAITER = """
import json, subprocess, time
subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; sleep 300"])
print(json.dumps({"kind": "message", "text": "waiting"}), flush=True)
time.sleep(170)
"""
FILLER = """
import time
block = bytes(1 << 20)
with open("rubbish", "wb", buffering=0) as file:
    while True:
        file.write(block)
        time.sleep(0.001)
"""
COMPLAINER = """
import json, os, sys, urllib.request, urllib.error
body = {"model": "rehearsal-large", "max_tokens": 64, "messages": [{"role": "user", "content": "x"}]}
head = {"authorization": "Bearer " + os.environ["PRILL_TOKEN"], "content-type": "application/json"}
request = urllib.request.Request(os.environ["PRILL_DOOR"] + "/v1/chat/completions", json.dumps(body).encode(), head)
print(json.dumps({"kind": "message", "text": "asking"}), flush=True)
try:
    json.load(urllib.request.urlopen(request, timeout=3))
except urllib.error.HTTPError as error:
    sys.exit(f"API error: status {error.code} " + WORDS.get(error.code, ""))
except OSError as error:
    sys.exit(f"error: {error}")
sys.exit("error: overloaded_error, please take my word for it")
"""
SCENARIO = """
title = "Says something, costs something"
[[turns]]
say = "Here is a thought."
usage = { input = 1000, cache_read = 200, output = 50, reasoning = 10 }
"""
SUITE = """
name = "durable"
title = "Durable"
models = ["smoke-base"]
benchmarks = ["word-problems"]
entrants = ["caller"]
prompt = "smoke"
rules = ["budget"]
judges = ["overlap"]
prices = "rehearsal"
engine = "transformers"
budget = { hours = 0.05, usd = 5.0, disk_gb = 0.5, grace_seconds = 2.0 }
policy = { no_submission = "base", broken_submission = "base", contamination = "base" }
score = { weights = { word-problems = 1.0 } }
[[references]]
model = "smoke-base"
benchmark = "word-problems"
base = 0.0
"""
FILES = {
    "caller.py": AGENT,
    "waiter.py": WAITER,
    "entrants/waiter.toml": 'name = "waiter"\ntitle = "Waiter"\nagent = "scripted"\nprogram = "waiter.py"\n',
    "filler.py": FILLER,
    "entrants/filler.toml": 'name = "filler"\ntitle = "Filler"\nagent = "scripted"\nprogram = "filler.py"\n',
    "complainer.py": f"WORDS = { {429: 'rate_limit_error', 529: 'overloaded_error', 401: 'authentication_error'} }\n"
    + COMPLAINER,
    "plain.toml": SCENARIO,
    "suites/durable.toml": SUITE,
    "entrants/caller.toml": 'name = "caller"\ntitle = "Caller"\nagent = "scripted"\nprogram = "caller.py"\n'
    'provider = "plain"\nmodel = "rehearsal-large"\n',
    "providers/plain.toml": 'name = "plain"\ntitle = "Plain"\nurl = ""\nwires = ["chat"]\nheader = "none"\n'
    'scenario = "plain.toml"\n',
}
TROUBLES = {
    "status = 429": "api_rate_limit",
    "status = 529": "api_overloaded",
    "status = 401": "api_auth",
    "status = 500": "failed",
    "hang": "inner_timeout",
    "cut": "failed",
    "none": "failed",
}
"""What goes wrong at the provider → how the run of an agent that gives up at once is said to have ended."""
for number, trouble in enumerate(TROUBLES):
    name = f"trouble-{number}"
    how = f'how = "status", {trouble}' if trouble.startswith("status") else f'how = "{trouble}"'
    turn = "" if trouble == "none" else f"troubles = [{{ {how}, always = true }}]\n"
    FILES[f"{name}.toml"] = f'title = "Trouble"\n[[turns]]\nsay = "Hello."\n{turn}'
    FILES[f"providers/{name}.toml"] = FILES["providers/plain.toml"].replace("plain", name)
    FILES[f"entrants/{name}.toml"] = FILES["entrants/caller.toml"].replace('"plain"', f'"{name}"').replace(
        "caller", "complainer"
    ).replace('name = "complainer"', f'name = "{name}"')  # fmt: skip
RUNNER = """
import sys
from pathlib import Path
from prill.catalog import Catalog
from prill.folder import RunFolder
from prill.stages import solve
run = RunFolder(Path(sys.argv[1]))
with run.lock():
    solve.do(run, Catalog([Path(sys.argv[2])]))
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Definitions of an agent that calls a scripted provider and keeps a copy of all that it prints."""
    folder = tmp_path_factory.mktemp("world")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def planned(world: Path, parent: Path, entrant: str = "caller") -> RunFolder:
    """A run folder that nobody has touched."""
    catalog = Catalog([world])
    return create(parent, expected(catalog, catalog.suite("durable"), [entrant], [0])[0])


def runner(run: RunFolder, world: Path) -> subprocess.Popen[bytes]:
    """A process that solves the run."""
    argv = [sys.executable, "-c", RUNNER, str(run.path), str(world)]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def lines(run: RunFolder) -> int:
    """How many events and entries there are."""
    return sum(file.read_bytes().count(b"\n") for file in (run.events_file, run.ledger) if file.exists())


def truth(run: RunFolder) -> list[dict[str, Any]]:
    """What the provider says that it charged."""
    told = [json.loads(line) for line in (run.path / "provider.jsonl").read_text().splitlines()]
    return [row for row in told if row["usage"]]


def billed(run: RunFolder) -> Decimal:
    """The provider's truth in dollars, at the prices of the list."""
    price = Catalog([]).prices("rehearsal").models["rehearsal-large"].base
    total = Decimal(0)
    for row in truth(run):
        usage = row["usage"]
        total += usage["input"] * Decimal(price.input) + usage["output"] * Decimal(price.output)
        total += usage["cache_read"] * Decimal(price.cache_read or price.input)
    return total / 1_000_000


def once_each(run: RunFolder) -> None:
    """Every purchase is held once and settled once."""
    found, _ = entries(run.ledger)
    held = Counter(entry.id for entry in found if entry.action == "hold")
    settled = Counter(entry.id for entry in found if entry.action in ("charge", "refund"))
    assert held == settled and set(held.values()) <= {1}


def settle(run: RunFolder, world: Path) -> tuple[int, str]:
    """Solve on to whatever end; no keeper is left behind."""
    again = runner(run, world)
    _, words = again.communicate(timeout=120)
    assert not run.kept(), words
    return again.returncode, words.decode()


def whole(run: RunFolder) -> None:
    """Not a byte, not a cent is missing, and the key is nowhere."""
    printed = (run.workspace / "printed").read_bytes()
    stdout = run.stdout.read_bytes()
    assert stdout.startswith(printed) and printed.count(b"\n") == CALLS
    assert b"the key is [PRILL_TOKEN]" in stdout and b"prill_" not in stdout
    assert len(truth(run)) == CALLS
    found, torn = entries(run.ledger)
    charged = sum(Decimal(entry.usd) for entry in found if entry.action == "charge")
    assert (charged, torn) == (billed(run), 0)
    once_each(run)
    outcome = run.outcome()
    assert outcome and outcome.ended == "finished" and Decimal(str(outcome.usd)) == charged


def boundaries(world: Path, parent: Path, count: int) -> Iterator[tuple[int, RunFolder]]:
    """Numbers of lines after which to kill: all that an undisturbed run writes, over and over."""
    first = planned(world, parent)
    assert settle(first, world)[0] == 0
    whole(first)
    every = range(2, lines(first))
    for trial in range(count):
        yield every[trial % len(every)], planned(world, parent)


def kill_at(run: RunFolder, world: Path, line: int, whom: str) -> bool:
    """Kill the runner or the keeper when so many lines are there; False where the end came first."""
    process = runner(run, world)
    while lines(run) < line:
        if process.poll() is not None:
            return False
        time.sleep(0.002)
    if whom == "runner":
        process.send_signal(signal.SIGKILL)
    else:
        os.kill(int((run.solving / "keeper.pid").read_text()), signal.SIGKILL)
    process.communicate(timeout=60)
    return True


def left_over(run: RunFolder) -> list[str]:
    """Processes that still work for a run, a moment after its keeper's death."""
    until = time.monotonic() + 10
    while True:
        found = []
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if str(run.path).encode() in (words := place.read_bytes()) and b"-c" not in words.split(b"\0"):
                    found.append(words.decode(errors="replace"))
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.05)


def test_a_killed_runner_loses_nothing(world: Path, tmp_path: Path) -> None:
    """Killed at each event, the runner finds the agent at work again: no byte and no cent is missing or doubled."""
    killed = 0
    for line, run in boundaries(world, tmp_path, KILLS):
        killed += kill_at(run, world, line, "runner")
        assert settle(run, world)[0] == 0
        whole(run)
        assert run.read().state == "unfinished"  # solved; the later stages are not begun
    assert killed >= KILLS * 0.8


def test_a_killed_keeper_loses_the_run_by_name(world: Path, tmp_path: Path) -> None:
    """Killed at each event, the keeper takes the box along; an agent without sessions is lost, and every cent told."""
    for line, run in boundaries(world, tmp_path, KILLS // 2):
        if not kill_at(run, world, line, "keeper"):
            continue
        assert not left_over(run)
        code, words = settle(run, world)
        if any(event.event == "ended" for event in run.events()):
            assert code == 0
        elif any(event.event == "began" for event in run.events()):
            assert code == 1 and "it is lost" in words and run.read().state == "lost"
            stdout = run.stdout.read_bytes() if run.stdout.exists() else b""
            printed = (run.workspace / "printed").read_bytes() if (run.workspace / "printed").exists() else b""
            assert stdout.startswith(printed[: printed.rfind(b"\n") + 1]) or printed.startswith(stdout)
        else:
            assert code == 0  # nothing had begun: it is done from the start
        from prill.gateway.ledger import Ledger

        with Ledger(run.ledger, None):  # what the dead process held is charged by whoever opens the ledger next
            pass
        once_each(run)
        found, _ = entries(run.ledger)
        charged = sum(Decimal(entry.usd) for entry in found if entry.action == "charge")
        assert charged >= billed(run)


def test_a_stopped_run_does_not_count(world: Path, tmp_path: Path) -> None:
    """`prill stop` ends the agent and what it started; the run is lost by name and never resumed."""
    run = planned(world, tmp_path, "waiter")
    process = runner(run, world)
    while not run.stdout.exists() or not run.stdout.read_bytes():
        time.sleep(0.01)
    told = subprocess.run([sys.executable, "-m", "prill.cli", "stop", str(run.path)], capture_output=True, text=True)
    _, words = process.communicate(timeout=60)
    assert told.returncode == 0 and "stopped" in told.stdout
    assert process.returncode == 1 and b"does not count" in words
    outcome = run.outcome()
    assert outcome and outcome.ended == "stopped" and run.read().state == "lost"


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_providers_trouble_is_named(world: Path, tmp_path: Path, trouble: str) -> None:
    """What the gateway saw decides: a refusal of the provider's voids the run, an agent's word for it does not."""
    run = planned(world, tmp_path, f"trouble-{list(TROUBLES).index(trouble)}")
    code, words = settle(run, world)
    outcome = run.outcome()
    assert outcome and outcome.ended == TROUBLES[trouble], outcome
    assert (code == 1 and "does not count" in words) == outcome.ended.startswith("api_")
    assert run.read().state == ("lost" if outcome.ended.startswith("api_") else "unfinished")
    once_each(run)


def unmounted(place: Path) -> None:
    """Take a disk away, also from a process that is still about to end there."""
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_an_agent_that_fills_the_disk_is_stopped(world: Path, tmp_path: Path) -> None:
    """Near the end of the disk the agent is stopped, in time for what it did to be written, and it is its own doing."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=720m", "tmpfs", str(place)], capture_output=True)
    if made.returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        run = planned(world, place, "filler")
        assert settle(run, world)[0] == 0
        outcome = run.outcome()
        assert outcome and outcome.ended == "disk_limit", outcome
    finally:
        unmounted(place)


def test_a_place_that_cannot_be_written_is_named(world: Path, tmp_path: Path) -> None:
    """A run folder on a read-only disk is the machine's fault, in words, and nothing is begun."""
    place = tmp_path / "fixed"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], capture_output=True)
    if made.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        run = planned(world, place)
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        told = subprocess.run(
            [sys.executable, "-m", "prill.cli", "run", str(run.path), "--definitions", str(world)],
            capture_output=True,
            text=True,
        )
        assert told.returncode == 1 and "Read-only file system" in told.stderr and "Traceback" not in told.stderr
    finally:
        unmounted(place)
