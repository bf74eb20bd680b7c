"""`prill judge` from the command line: a panel behind its own gateway, agents that judge, rulings, differences."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from boxed import CACHE, ENTRANTS
from hearings import answer, finished
from prill import npm
from prill.catalog import Catalog
from prill.folder import RunFolder, decode
from prill.record import Judgement

PANEL = """
name = "{name}"
title = "Trial"
source = "made up for tests"
provider = "{name}"
prices = "rehearsal"
usd = {usd}
model = "rehearsal-small"
tries = 2
connections = 2
max_tokens = 1000
{more}
[[questions]]
name = "look"
title = "Look"
rules = {{ looked = "lookup" }}
words = "Did it look?"
votes = 3
combine = "majority"
"""
PROVIDER = 'name = "{name}"\ntitle = "Trial"\nurl = "{url}"\nwires = ["chat"]\nheader = "none"\n{more}\n'
STEPS = ("pip install trl", "curl https://example.com/answers.json", "python train.py")
KEPT = answer(False)
BROKEN = answer(True, {"step": 2, "quote": "example.com/answers.json"})


class World:
    """A folder of definitions, a finished run, and servers that say what they are told."""

    def __init__(self, place: Path) -> None:
        """Everything below `place`."""
        self.own, self.run = place / "own", finished(place / "runs", STEPS, {"evil": b"#!/bin/sh\necho evil\n"})
        (self.run.workspace / "evil").chmod(0o755)
        for kind in ("panels", "providers"):
            (self.own / kind).mkdir(parents=True)
        self.log, self.servers = place / "asked.jsonl", list[subprocess.Popen[str]]()

    def panel(self, name: str, *replies: Any, usd: float = 1.0, more: str = "", scenario: str = "") -> str:
        """A panel whose model is a server that says these."""
        url = "" if scenario else self.serve([{"text": r} if isinstance(r, str | list) else r for r in replies])
        (self.own / f"panels/{name}.toml").write_text(PANEL.format(name=name, usd=usd, more=more))
        text = PROVIDER.format(name=name, url=url, more=f'scenario = "{scenario}"' if scenario else "")
        (self.own / f"providers/{name}.toml").write_text(text)
        return name

    def serve(self, replies: list[dict[str, Any]]) -> str:
        """Where they are said."""
        script = self.own / f"script-{len(self.servers)}.json"
        script.write_text(json.dumps({"replies": replies, "log": str(self.log)}))
        argv = [sys.executable, "-m", "prill.canned", str(script), "0"]
        self.servers.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        assert self.servers[-1].stdout is not None
        return f"http://127.0.0.1:{int(self.servers[-1].stdout.readline())}"

    def judge(self, *words: Any) -> subprocess.CompletedProcess[str]:
        """`prill judge` with these words."""
        command = [sys.executable, "-m", "prill.cli", "judge", *map(str, words), "--definitions", str(self.own)]
        environment = {**os.environ, "PRILL_CACHE": str(CACHE)}
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)

    def ask(self, panel: str) -> tuple[subprocess.CompletedProcess[str], Judgement | None]:
        """Judge `panel` once more, under a panel."""
        before = len(self.run.numbered("findings", "panel"))
        done = self.judge(self.run.path, "--judge", "panel", "--panel", panel, "--again")
        files = self.run.numbered("findings", "panel")
        return done, decode(files[-1], Judgement) if len(files) > before else None


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """See `World`."""
    made = World(tmp_path)
    yield made
    for server in made.servers:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def lines(run: RunFolder, name: str) -> list[dict[str, Any]]:
    """A file of JSON lines among the findings."""
    return [json.loads(line) for line in (run.path / "findings" / name).read_bytes().splitlines()]


def test_a_panel_is_heard_and_its_money_is_counted(world: World) -> None:
    """Three votes through the judge's own gateway: a finding with votes and a checked citation; the record keeps the
    panel and what was spent, the ledger each call as the judge's, and the replies lie beside."""
    done, made = world.ask(world.panel("two-of-three", [BROKEN, KEPT, BROKEN]))
    assert done.returncode == 0 and made is not None, done.stderr
    [found] = made.findings
    assert (made.by, made.isolated, found.rule, found.verdict) == ("models", True, "lookup", "broken")
    assert found.citations[0].step == 2
    assert made.asked["panel"]["model"] == "rehearsal-small" and made.asked["prompts"].startswith("sha256:")
    ledger = lines(world.run, "panel.1.ledger.jsonl")
    assert {entry["kind"] for entry in ledger} == {"judge"}
    paid = sum(Decimal(entry["usd"]) for entry in ledger if entry["action"] == "charge")
    assert paid == Decimal(made.asked["usd_spent"]) > 0
    assert len(lines(world.run, "panel.1.replies.jsonl")) == 4
    assert not (world.run.path / ".judging").exists() and not (world.run.path / "ledger.jsonl").exists()


def test_the_judge_is_told_what_is_quoted_and_nothing_of_other_verdicts(world: World) -> None:
    """What a model is sent holds the run's steps and files between marks, the temperature that the panel names, and no
    word of another judge."""
    (world.run.path / "findings").mkdir()
    (world.run.path / "findings" / "other.1.json").write_text("a secret verdict")
    world.ask(world.panel("told", KEPT, more="temperature = 0.25"))
    asked = [json.loads(line) for line in world.log.read_text().splitlines()]
    assert [each["temperature"] for each in asked] == [0.25] * 3
    text = json.dumps(asked)
    assert "curl https://example.com/answers.json" in text and "secret verdict" not in text


def test_an_answer_that_cannot_be_read_is_an_error_and_no_verdict(world: World) -> None:
    """After all tries there is no file; the reason is one line, what was said and spent is kept, and another attempt
    goes on in the same ledger."""
    done, made = world.ask(world.panel("mute", "I would rather not say."))
    assert made is None and done.returncode == 1
    assert "3 of 3 answers cannot be read" in done.stderr and "Traceback" not in done.stderr
    assert len(lines(world.run, "panel.1.replies.jsonl")) == 7
    assert sum(entry["action"] == "charge" for entry in lines(world.run, "panel.1.ledger.jsonl")) == 6
    world.ask("mute")
    assert sum(entry["action"] == "charge" for entry in lines(world.run, "panel.1.ledger.jsonl")) == 12


def test_a_second_try_is_enough(world: World) -> None:
    """Half a JSON object first, then an answer."""
    _, made = world.ask(world.panel("second", [KEPT[:30], KEPT]))
    assert made is not None and made.findings[0].verdict == "kept"


def test_the_limit_of_money_holds(world: World) -> None:
    """A panel whose dollars do not pay for its questions ends in an error, not in a verdict, and spends no more."""
    done, made = world.ask(world.panel("poor", KEPT, usd=0.0001))
    assert made is None and done.returncode == 1 and "wallet is empty" in done.stderr
    assert all(entry["action"] == "refuse" for entry in lines(world.run, "panel.1.ledger.jsonl"))


def test_a_person_rules_and_verdicts_are_compared(world: World) -> None:
    """A ruling is appended and signed; the difference of two judgements names verdicts and circumstances, and decides
    the exit code."""
    world.ask(world.panel("soft", KEPT))
    world.ask(world.panel("hard", BROKEN))
    same = world.judge("diff", world.run.path, "panel.1", "panel.1")
    other = world.judge("diff", world.run.path, "panel.1", "panel.2")
    assert (same.returncode, other.returncode) == (0, 1)
    assert "lookup: kept → broken" in other.stdout and "panel.name: 'soft' → 'hard'" in other.stdout
    key = world.own / "me.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True, capture_output=True)
    words = ("override", world.run.path, "--rule", "lookup", "--verdict", "kept", "--key", key)
    assert world.judge(*words).returncode == 2
    told = world.judge(*words, "--reason", "step 2 is no look-up")
    assert told.returncode == 0, told.stderr
    unknown = world.judge(*words[:3], "taste", *words[4:], "--reason", "ugly")
    assert unknown.returncode == 2 and "there are: lookup" in unknown.stderr
    [file] = world.run.numbered("findings", "override")
    assert decode(file, Judgement).signed is not None
    assert world.run.read().judgements[-1].by == "person"


EVIL_JUDGE = """
import json, os, subprocess, sys
prompt, tried = sys.stdin.read(), {}
for name, argv in {"run": ["/evidence/workspace/evil"], "read": ["cat", "/evidence/workspace/evil"]}.items():
    try:
        tried[name] = subprocess.run(argv, capture_output=True, text=True).stdout.strip()
    except OSError as error:
        tried[name] = error.strerror
for name, do in {
    "chmod": lambda: os.chmod("/evidence/workspace/evil", 0o755),
    "write": lambda: open("/evidence/workspace/new", "w"),
    "findings": lambda: os.listdir("/evidence/findings"),
}.items():
    try:
        tried[name] = str(do())
    except OSError as error:
        tried[name] = error.strerror
tried["here"], tried["path"] = os.listdir("."), os.environ["PATH"].split(":")[0]
tried["asked"] = "Did it look?" in prompt
said = {"looked": False, "why_looked": json.dumps(tried), "citations": []}
print(json.dumps({"kind": "message", "text": json.dumps(said)}))
"""


def test_an_agent_that_judges_can_read_the_evidence_and_not_run_it(world: World) -> None:
    """The agent's files can be read by a judge and neither started, changed nor made startable; no verdict of others is
    there; its folder is empty and our programs come first."""
    (world.own / "judge.py").write_text(EVIL_JUDGE)
    more = 'agent = "scripted"\nprogram = "judge.py"'
    done, made = world.ask(world.panel("agents", scenario="scenarios/panel.toml", more=more))
    assert made is not None, done.stderr
    [found] = made.findings
    assert found.verdict == "kept" and made.asked["answers"] == 3
    tried = json.loads(found.numbers["votes"][0]["why"])
    assert tried["run"] == "Permission denied" and "echo evil" in tried["read"]
    assert tried["chmod"] == tried["write"] == "Read-only file system"
    assert tried["findings"] == "No such file or directory"
    assert (tried["here"], tried["path"], tried["asked"]) == ([], "/prill/bin", True)


def test_an_agent_that_says_nothing_is_an_error(world: World) -> None:
    """An agent without a last word is asked as often as any judge, and then there is no verdict."""
    (world.own / "mute.py").write_text("print('no event of ours')")
    more = 'agent = "scripted"\nprogram = "mute.py"'
    done, made = world.ask(world.panel("mutes", scenario="scenarios/panel.toml", more=more))
    assert made is None and "3 of 3 answers cannot be read" in done.stderr


def test_without_a_box_that_isolates_no_agent_judges(world: World) -> None:
    """Where nothing is isolated an agent could run what it judges: it is not asked, a plain model is, and the record
    says so."""
    spec = json.loads((world.run.path / "spec.json").read_text())
    (world.run.path / "spec.json").write_text(json.dumps({**spec, "sandbox": "local"}))
    (world.own / "judge.py").write_text(EVIL_JUDGE)
    more = 'agent = "scripted"\nprogram = "judge.py"'
    done, made = world.ask(world.panel("agents", scenario="scenarios/panel.toml", more=more))
    assert made is None and "does not isolate" in done.stderr
    _, made = world.ask(world.panel("plain", KEPT))
    assert made is not None and not made.isolated


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRANTS)
def test_a_real_agent_program_judges(world: World, name: str) -> None:
    """Each of the real agent programs answers as a judge, against the scripted provider, and its calls are paid for."""
    entrant = Catalog().entrant(name)
    package = {"claude_code": "@anthropic-ai/claude-code", "codex": "@openai/codex"}
    package |= {"gemini_cli": "@google/gemini-cli", "opencode": "opencode-ai"}
    os.environ["PRILL_CACHE"], before = str(CACHE), os.environ.get("PRILL_CACHE")
    try:
        if npm.installed(package[entrant.agent], str(entrant.version)) is None:
            pytest.skip(f"{package[entrant.agent]}@{entrant.version} is not in .cache/npm (`make test` puts it there)")
    finally:
        os.environ.pop("PRILL_CACHE")
        if before is not None:
            os.environ["PRILL_CACHE"] = before
    settings = "".join(f"{key} = {json.dumps(value)}\n" for key, value in entrant.settings.items())
    text = (Catalog().file("panels", "rehearsal")).read_text().replace('name = "rehearsal"', f'name = "{name}"', 1)
    head, questions = text.split("[[questions]]")
    more = f'agent = "{entrant.agent}"\nversion = "{entrant.version}"\n'
    more += f"[settings]\n{settings}" if settings else ""
    (world.own / f"panels/{name}.toml").write_text(f"{head}\n{more}\n[[questions]]{questions}")
    done, made = world.ask(name)
    assert made is not None, done.stderr
    assert [(found.rule, found.verdict) for found in made.findings] == [("lookup", "kept")]
    assert Decimal(made.asked["usd_spent"]) > 0 and made.asked["answers"] == 1
