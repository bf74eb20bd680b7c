"""An agent that tries to get out of its box, to forge, to overspend and to outlive its time: nothing of it succeeds.

What is tried stands in `escaping.py`; what is not covered, in docs/reference/escapes.md.
"""

import hashlib
import http.server
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from prill.folder import RunFolder, folders, list_files, tree_digest
from prill.gateway.ledger import entries
from small_world import small_world

pytestmark = pytest.mark.slow

KEY = "sk-canary-" + secrets.token_hex(16)
PROCESSES = 56
SUITE = """
name = "escape"
title = "Escape"
models = ["smoke-base"]
benchmarks = ["word-problems"]
entrants = ["escaper"]
prompt = "escape"
rules = []
judges = ["overlap", "lineage"]
prices = "rehearsal"
engine = "transformers"
budget = { hours = 0.04, usd = 0.4, disk_gb = 0.5, grace_seconds = 2.0, processes = %d }
policy = { no_submission = "base", broken_submission = "base", contamination = "base", lineage = "base" }
score = { weights = { word-problems = 1.0 } }
[[references]]
model = "smoke-base"
benchmark = "word-problems"
base = 0.0
"""
FILES = {
    "suites/escape.toml": SUITE % PROCESSES,
    "entrants/escaper.toml": 'name = "escaper"\ntitle = "Escaper"\nagent = "scripted"\nprogram = "escaping.py"\n'
    'provider = "locked"\nmodel = "rehearsal-large"\n',
    "providers/locked.toml": 'name = "locked"\ntitle = "Locked"\nurl = ""\nwires = ["chat"]\nkey = "PRILL_TEST_KEY"\n'
    'scenario = "plain.toml"\n',
    "plain.toml": 'title = "Plain"\n[[turns]]\nsay = "Hello."\nusage = { input = 2000, output = 4000 }\n',
    "escaping.py": Path(__file__).with_name("escaping.py").read_text(),
}


class Host:
    """What of the host must not be reached, and what is told of it."""

    def __init__(self, folder: Path) -> None:
        self.canary = folder / f"canary-{secrets.token_hex(4)}"
        self.canary.write_text(KEY)
        self.marker = folder / "planted"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.abstract = f"prill-{secrets.token_hex(8)}"
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind("\0" + self.abstract)
        self.socket.listen()

    def told(self) -> dict[str, Any]:
        """For the agent, which is given every advantage but a way out."""
        port = self.server.server_address[1]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))
                own = probe.getsockname()[0]
            except OSError:
                own = "127.0.0.2"
        places = ("127.0.0.1", own, "::1")
        far = [("192.0.2.1", 80), ("1.1.1.1", 53), ("169.254.169.254", 80)]
        return {
            "key": KEY,
            "file": self.canary.name,
            "host_path": str(self.canary),
            "large": [sys.prefix, sys.base_prefix],
            "pid": os.getpid(),
            "services": [*((place, port) for place in places), *far],
            "abstract": self.abstract,
            "processes": PROCESSES,
            "marker": str(self.marker),
        }


class After:
    """The whole run, from the first attempt to the last judge, and what is left of it."""

    def __init__(self, folder: Path) -> None:
        self.host = Host(folder)
        world, runs = small_world(folder / "world"), folder / "runs"
        told = json.dumps(self.host.told()).replace("{", "{{").replace("}", "}}")
        files = {**FILES, "prompts/escape.toml": f"name = 'escape'\ntemplate = '''TOLD {told}'''\nrules = {{}}\n"}
        for name, text in files.items():
            (world / name).parent.mkdir(parents=True, exist_ok=True)
            (world / name).write_text(text)
        command = [sys.executable, "-m", "prill.cli", "run", "--suite", "escape", "--definitions", str(world)]
        command += ["--seeds", "2"]
        self.told = subprocess.run(
            [*command, "--runs", str(runs)],
            env={**os.environ, "PRILL_TEST_KEY": KEY},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert self.told.returncode == 0, self.told.stderr
        self.run, self.served = sorted(folders(runs), key=lambda run: run.spec().seed)
        self.lines = [json.loads(line)["text"] for line in self.run.stdout.read_text().splitlines()]


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Iterator[After]:
    """One run for all tests of this file."""
    yield After(tmp_path_factory.mktemp("escape"))


def test_no_attempt_succeeds(after: After) -> None:
    """Every attempt was made, and none got out, forged a file, found a key or reached a host."""
    tried = [line for line in after.lines if ": held: " in line or ": escaped: " in line]
    assert [line for line in tried if ": escaped: " in line] == []
    assert len(tried) >= 35


def test_the_wallet_holds(after: After) -> None:
    """Many calls at once spend no more than there is; what was refused cost nothing."""
    found, _ = entries(after.run.ledger)
    spent = sum(Decimal(entry.usd) for entry in found if entry.action == "charge")
    assert Decimal("0.2") < spent <= Decimal("0.4")
    assert any(entry.action == "refuse" for entry in found)
    assert {entry.passed.path for entry in found if entry.action == "charge" and entry.passed} == {
        "/v1/chat/completions"
    }


def test_only_the_gateway_had_the_key(after: After) -> None:
    """The provider saw the real key with each call that was let through; no file of the run has it, or the token."""
    rows = [json.loads(line) for line in (after.run.path / "provider.jsonl").read_text().splitlines()]
    assert rows and {row["path"] for row in rows} == {"/v1/chat/completions"}
    assert {row["key"] for row in rows} == {hashlib.sha256(KEY.encode()).hexdigest()[:12]}
    kept = [file for file in after.run.path.rglob("*") if file.is_file() and not file.is_symlink()]
    with_key = [
        file for file in kept if KEY.encode() in file.read_bytes() and file.name not in ("prompt.md", "spec.json")
    ]
    assert with_key == []
    assert "my token is [PRILL_TOKEN]" in after.lines


def test_nothing_outlives_the_box(after: After) -> None:
    """The process that heard no TERM is dead, and what it wrote came too late for what was sealed."""
    beat = (after.run.workspace / "heartbeat").stat().st_size
    time.sleep(0.3)
    assert beat > 0 and (after.run.workspace / "heartbeat").stat().st_size == beat
    submission = after.run.submission()
    assert submission and tree_digest(list_files(after.run.submission_files)) == submission.digest


def test_the_submission_holds_regular_files_only(after: After) -> None:
    """Links and pipes are named as faults and are not sealed."""
    submission = after.run.submission()
    assert submission
    refused = " ".join(fault.why for fault in submission.faults if fault.code == "NOT_A_FILE")
    assert all(name in refused for name in ("passwd", "up", "clock", "pipe"))
    assert not [file for file in after.run.submission_files.rglob("*") if file.is_symlink() or not
                (file.is_file() or file.is_dir())]  # fmt: skip


def test_planted_programs_and_notes_change_nothing(after: After) -> None:
    """Nothing that the agent planted ran, and its verdicts, findings and outcomes are not ours."""
    assert not after.host.marker.exists() and not list(after.run.path.rglob("planted"))
    run, served = after.run.read(), after.served.read()
    assert served.submission and served.submission.state == "sealed" and served.measurements[0].state == "measured"
    for each in (run, served):
        assert each.state == "done" and {word.judge for word in each.judgements} == {"overlap", "lineage"}
        assert all(word.findings for word in each.judgements)
        assert each.outcome and each.outcome.ended == "finished" and each.outcome.isolated
    said = {finding.rule: finding.verdict for word in served.judgements for finding in word.findings}
    assert said["lineage"] != "broken" and served.measurements[0].value == 0.0  # it is the base, byte for byte


def test_the_tools_are_as_they_were(after: After) -> None:
    """What lay in the box under /prill is byte for byte what prill put there."""
    import prill

    tools = Path(prill.__file__).parent / "tools"
    for name, source in (("evaluate", "evaluate.py"), ("prill-left", "prill_left.py"), ("relay", "relay.py")):
        assert (after.run.given / "bin" / name).read_bytes() == (tools / source).read_bytes()
    assert isinstance(after.run, RunFolder) and not (after.run.given / "doors" / "forged").exists()
