"""A whole solve under one wallet: model, machine, teacher and storage in one ledger, to its limit and no further."""

import json
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from prill import plugins
from prill.catalog import Catalog
from prill.folder import RunFolder, create
from prill.gateway.ledger import Entry, entries
from prill.run import expected
from prill.sockets import Evidence
from prill.solving import keep, rented
from prill.stages import solve

pytestmark = pytest.mark.slow

WALLET = "0.9"
KEPT_BYTES = 3 << 20
BUYER = '''
"""Buys a little at both doors, keeps a file for a while, then races for the last cent with 32 threads."""
import json, os, time, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor

OWN = (os.environ["PRILL_DOOR"] + "/v1", os.environ["PRILL_TOKEN"], "rehearsal-large")
TAUGHT = (os.environ["PRILL_TEACHER_URL"], os.environ["PRILL_TEACHER_KEY"], "rehearsal-small")

def ask(url, key, model):
    body = {"model": model, "max_tokens": 4000, "messages": [{"role": "user", "content": "hi"}]}
    headers = {"authorization": "Bearer " + key, "content-type": "application/json"}
    request = urllib.request.Request(url + "/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as reply:
            json.load(reply)
            return 200
    except urllib.error.HTTPError as error:
        return error.code

def until_refused(who):
    statuses = []
    while not statuses or statuses[-1] == 200:
        statuses.append(ask(*who))
    return statuses

def say(**words):
    print(json.dumps({"kind": "message", "text": json.dumps(words)}), flush=True)

with open("kept", "wb") as file:
    file.write(b"x" * KEPT)
say(first=[ask(*OWN), ask(*TAUGHT), ask(*TAUGHT)])
say(wrong=[ask(TAUGHT[0], OWN[1], "rehearsal-small"), ask(OWN[0], TAUGHT[1], "rehearsal-large"),
           ask(*TAUGHT[:2], "rehearsal-large")])
print(TAUGHT[1], flush=True)
time.sleep(3)
with ThreadPoolExecutor(32) as many:
    say(race=list(many.map(until_refused, [OWN, TAUGHT] * 16)))
'''
SUITE = f"""
name = "purse"
title = "Purse"
models = ["smoke-base"]
benchmarks = ["word-problems"]
entrants = ["buyer"]
prompt = "smoke"
rules = []
judges = ["hosted_api", "credentials"]
prices = "rehearsal"
teacher = "taught"
teacher_models = ["rehearsal-small"]
engine = "transformers"
policy = {{ no_submission = "zero", broken_submission = "zero", hosted_api = "zero", credentials = "zero" }}
score = {{ weights = {{ word-problems = 1.0 }} }}
[budget]
hours = 0.05
usd = {WALLET}
gpu_usd_per_hour = "3.60"
storage_usd_per_gb_hour = "50"
disk_gb = 0.5
grace_seconds = 2.0
"""
PROVIDER = 'title = "x"\nurl = ""\nwires = ["chat"]\nheader = "none"\nscenario = "play.toml"\n'
FILES = {
    "suites/purse.toml": SUITE,
    "entrants/buyer.toml": 'name = "buyer"\ntitle = "Buyer"\nagent = "scripted"\nprogram = "buyer.py"\n'
    'provider = "asked"\nmodel = "rehearsal-large"\n',
    "providers/asked.toml": f'name = "asked"\n{PROVIDER}',
    "providers/taught.toml": f'name = "taught"\nbase = "/v1"\n{PROVIDER}',
    "play.toml": 'title = "Play"\n[[turns]]\nsay = "Hello."\nusage = { input = 2000, output = 3000 }\n',
    "buyer.py": BUYER.replace("KEPT", str(KEPT_BYTES)),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The run, solved by a keeper in this process, whose looks at the disk and payments come each second."""
    folder = tmp_path_factory.mktemp("purse")
    for name, text in FILES.items():
        (folder / "world" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "world" / name).write_text(text)
    catalog = Catalog([folder / "world"])
    made = create(folder / "runs", expected(catalog, catalog.suite("purse"), ["buyer"], [0])[0])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keep, "RENT_SECONDS", 1.0)
        patched.setattr(rented, "LOOK_SECONDS", 0.2)
        with made.keeping():
            keep.keep(made, catalog, threading.Event())
    with made.lock():
        solve.do(made, catalog)
    return made


def paid(run: RunFolder) -> dict[str, list[Entry]]:
    """What was charged, by kind."""
    found: dict[str, list[Entry]] = {}
    for entry in entries(run.ledger)[0]:
        if entry.action == "charge":
            found.setdefault(entry.kind, []).append(entry)
    return found


def total(found: list[Entry]) -> Decimal:
    """Their sum."""
    return sum((Decimal(entry.usd) for entry in found), Decimal(0))


def truth(file: Path) -> Decimal:
    """What a scripted provider says that it charged, at the prices of the list."""
    prices, usd = Catalog().prices("rehearsal").models, Decimal(0)
    for line in file.read_bytes().splitlines():
        told = json.loads(line)
        if told["usage"]:
            price = prices[told["model"]].base
            usd += told["usage"]["input"] * Decimal(price.input) + told["usage"]["output"] * Decimal(price.output)
    return usd / 1_000_000


def said(run: RunFolder) -> dict[str, Any]:
    """What the agent told."""
    found: dict[str, Any] = {}
    for line in run.stdout.read_text().splitlines():
        if line.startswith("{"):
            found |= json.loads(json.loads(line)["text"])
    return found


def test_one_ledger_holds_all_that_is_bought(run: RunFolder) -> None:
    """Each kind's sum is what its seller says, or what its lines say that passed, to the last digit."""
    found = paid(run)
    assert set(found) == {"model", "teacher", "gpu", "storage"}
    assert total(found["model"]) == truth(run.provider) > 0 and total(found["teacher"]) == truth(run.teacher) > 0
    for entry in found["gpu"]:
        assert Decimal(entry.usd) == Decimal("3.6") * Decimal(entry.why.split(" s at ")[0]) / 3600
    for entry in found["storage"]:
        seconds, words = entry.why.split(" s of ")
        size = Decimal(words.split(" bytes")[0])
        assert Decimal(entry.usd) == Decimal(50) * (size / 2**30) * Decimal(seconds) / 3600
    assert any(f" of {KEPT_BYTES} bytes" in entry.why for entry in found["storage"])
    assert all(entry.step is not None for entry in [*found["teacher"][2:], *found["model"][2:]])


def test_the_limit_holds_where_all_race_for_the_last_cent(run: RunFolder) -> None:
    """Thirty-two threads at both doors spend all but the machine's next minutes, and are then refused; the machine goes
    on, so that the agent ends by itself."""
    everything, outcome, told = [entry for each in paid(run).values() for entry in each], run.outcome(), said(run)
    assert Decimal("0.45") < total(everything) <= Decimal(WALLET) and not any(entry.flagged for entry in everything)
    assert told["first"] == [200, 200, 200] and told["wrong"] == [401, 401, 403]
    assert {statuses[-1] for statuses in told["race"]} == {402} and outcome is not None
    assert outcome.evidence["stopped_by"] == "itself", outcome
    refused = {entry.kind for entry in entries(run.ledger)[0] if entry.action == "refuse" and Decimal(entry.usd)}
    assert refused == {"model", "teacher"}


def test_the_outcome_and_the_story_tell_it_by_kind(run: RunFolder) -> None:
    """`outcome.json` has the sum of each kind, and `prill show` says it in words."""
    outcome, found = run.outcome(), paid(run)
    assert outcome is not None
    assert {kind: Decimal(each.usd or "-1") for kind, each in outcome.bought.items()} == {
        kind: total(each) for kind, each in found.items()
    }
    shown = subprocess.run(
        [sys.executable, "-m", "prill.cli", "show", str(run.path)], capture_output=True, text=True, timeout=60
    )
    words = " ".join(shown.stdout.split())
    assert " of $0.90; " in words and "spent on model $" in words and "; teacher $" in words, shown.stdout
    assert "; storage under $0.01" in words


def test_the_box_s_key_for_the_teacher_is_told_to_nobody_else(run: RunFolder) -> None:
    """What the agent prints of it becomes its name, and the prompt names the variables alone."""
    assert "[PRILL_TEACHER_KEY]" in run.stdout.read_text()
    assert "$PRILL_TEACHER_URL with $PRILL_TEACHER_KEY; rehearsal-small" in run.prompt_file.read_text()


def test_the_judges_read_who_showed_which_key(run: RunFolder) -> None:
    """The harness's own key, tried at the teacher's door, is a broken rule by the gateway's own line."""
    given = Evidence(run=run.read(), folder=run.path, items={}, base=run.path / "none", siblings={})
    [keys] = plugins.get("judges", "credentials")(given)
    assert keys.verdict == "broken" and "the teacher's door, 1 times" in keys.why
    [hosted] = plugins.get("judges", "hosted_api")(given)
    assert hosted.verdict != "broken" and hosted.numbers["teachers_by_the_ledger"]["rehearsal-small"] > 2
