"""Measuring from the command line to the record: boxes, a real server in them, seeds, the ladder, carrying on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from prill.folder import RunFolder, decode
from prill.items import item_line, items_digest
from prill.progress import at_pace
from prill.record import Measurement
from prill.sockets import Item

ITEMS = [Item(id=f"item-{n}", question=f"What is {n} + {n}?", answer=str(2 * n)) for n in range(6)]
BENCHMARK = """
name = "{name}"
title = "Sums"
prompt = "{{question}}"
grader = "number"
counts = "robust"
connections = 2
licence = "Apache-2.0"
source = "made up for tests"
{more}
[data]
path = "sums.jsonl"
count = 6
digest = "{digest}"
[sampling]
max_tokens = 64
{sampling}
"""
RIGHT = [{"if": f"{n} + {n}?", "text": f"ANSWER: {2 * n}"} for n in range(4)]
WRONG = {"text": "ANSWER: 99"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with definitions of a benchmark of six sums, once plain and once with two seeds and a ladder."""
    (tmp_path / "own" / "benchmarks").mkdir(parents=True)
    rows = [{"id": item.id, "question": item.question, "answer": item.answer} for item in ITEMS]
    (tmp_path / "own" / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, more, sampling in (("sums", "", ""), ("seeded", "seeds = [1, 2]", "ladder = [32, 16]")):
        text = BENCHMARK.format(name=name, more=more, sampling=sampling, digest=items_digest(ITEMS))
        (tmp_path / "own" / "benchmarks" / f"{name}.toml").write_text(text)
    return tmp_path


def canned(place: Path, *replies: dict[str, Any]) -> Path:
    """A model folder that plays these replies back."""
    folder = place / "model"
    folder.mkdir(exist_ok=True)
    (folder / "canned.json").write_text(json.dumps({"replies": replies}))
    return folder


def command(place: Path, folder: Path, *more: str) -> list[str]:
    """`prill measure` of a folder."""
    own = ["--definitions", str(place / "own"), "--to", str(place / "to")]
    return [sys.executable, "-m", "prill.cli", "measure", str(folder), *own, *more]


def measure(place: Path, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """`prill measure` of a folder, to its end."""
    return subprocess.run(command(place, folder, *more), capture_output=True, text=True, timeout=600)


def record(place: Path, name: str) -> Measurement:
    """The newest measurement."""
    return decode(RunFolder(place / "to").numbered("measurements", name)[-1], Measurement)


@pytest.mark.slow
def test_several_benchmarks_from_one_served_model(place: Path) -> None:
    """One command puts two benchmarks to one server in a box without a network, and keeps record and logs of each."""
    from inspect_ai.log import read_eval_log

    folder = canned(place, *RIGHT, WRONG)
    done = measure(place, folder, "--benchmark", "sums", "--benchmark", "seeded", "--engine", "canned")
    assert done.returncode == 0, done.stderr
    plain, seeded = record(place, "sums"), record(place, "seeded")
    assert plain.value == seeded.value == pytest.approx(4 / 6) and "0.6667" in done.stdout
    assert (plain.n, len(plain.items), plain.isolated, plain.seed) == (6, 6, True, None)
    assert [made.seed for made in seeded.passes] == [1, 2] and len(seeded.items) == 12 and seeded.n == 6
    assert seeded.stderr == pytest.approx(plain.stderr)  # equal passes tell nothing new
    assert seeded.settings["max_tokens"] == 64 and seeded.stops == {"stop": 12}
    logs = [read_eval_log(str(place / "to" / "measurements" / str(made.log))) for made in (plain, *seeded.passes)]
    assert {log.results.scores[0].metrics["mean"].value for log in logs if log.results} == {plain.value}
    assert not (place / "to" / ".measuring").exists()


def test_code_is_marked_within_limits_that_are_kept(place: Path) -> None:
    """A measurement of code says in which sandbox it ran and what one sample could use."""
    fields = {"test": "def check(candidate):\n    assert candidate(2) == 3", "entry_point": "up"}
    items = [Item(id="up", question="def up(n):\n", answer="    return n + 1\n", fields=fields)]
    (place / "own" / "sums.jsonl").write_bytes(b"".join(map(item_line, items)))
    text = BENCHMARK.format(name="code", more="", sampling="", digest=items_digest(items))
    text = text.replace('"number"', '"python_tests"').replace("count = 6", "count = 1")
    (place / "own" / "benchmarks" / "code.toml").write_text(text)
    right = {"text": "```python\ndef up(n):\n    return n + 1\n```"}
    done = measure(place, canned(place, right), "--benchmark", "code", "--engine", "canned")
    assert done.returncode == 0, done.stderr
    made = record(place, "code")
    limits = {"seconds": 30.0, "memory_bytes": 2 << 30, "processes": 32, "output_bytes": 16 << 20}
    assert made.value == 1.0 and made.settings["marking"] == {"sandbox": "bubblewrap", **limits}


def test_a_limit_is_told(place: Path) -> None:
    """With a limit only the first items are asked, and the record says of how many."""
    done = measure(place, canned(place, *RIGHT, WRONG), "--benchmark", "sums", "--engine", "canned", "--limit", "4")
    assert done.returncode == 0, done.stderr
    made = record(place, "sums")
    assert (made.value, made.n, made.limit) == (1.0, 4, 4) and made.why == "4 of 6 items asked and marked"


@pytest.mark.slow
def test_the_ladder_is_walked_where_nothing_fits(place: Path) -> None:
    """A window that holds no reply of the first two lengths is measured on the third, for every seed, and says so."""
    refusal = {"if": "What", "do": "400", "text": "maximum context length is 20 tokens", "times": 12}
    done = measure(place, canned(place, refusal, *RIGHT, WRONG), "--benchmark", "seeded", "--engine", "canned")
    assert done.returncode == 0, done.stderr
    made = record(place, "seeded")
    assert made.settings["max_tokens"] == 16 and made.value == pytest.approx(4 / 6)


@pytest.mark.slow
def test_a_server_that_spoils_an_item_leaves_no_number(place: Path) -> None:
    """A failure of the server's ends by name, with no record, and the same command again asks only what is missing."""
    folder = canned(place, {"if": "5 + 5", "do": "html", "times": 4}, *RIGHT, WRONG)
    failed = measure(place, folder, "--benchmark", "sums", "--engine", "canned")
    assert (
        failed.returncode == 1 and "item-5: HTML, not JSON" in failed.stderr and "5 answers are kept" in failed.stderr
    )
    assert not RunFolder(place / "to").numbered("measurements", "sums")
    again = measure(place, folder, "--benchmark", "sums", "--engine", "canned")
    assert again.returncode == 1 and "1 of 6 questions" in again.stderr


@pytest.mark.slow
def test_a_killed_measuring_carries_on(place: Path) -> None:
    """After SIGKILL the same command serves the model anew and asks only the items without a reply."""
    folder = canned(place, {"if": "5 + 5", "do": "429", "retry_after": "6", "times": 1}, *RIGHT, WRONG)
    options = ("--benchmark", "sums", "--engine", "canned")
    with subprocess.Popen(command(place, folder, *options), stderr=subprocess.DEVNULL) as process:
        kept = place / "to" / ".measuring" / "sums" / "unseeded" / "answers.jsonl"
        while not kept.exists() or kept.read_bytes().count(b"\n") < 6:
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    again = measure(place, folder, *options)
    assert again.returncode == 0, again.stderr
    assert record(place, "sums").settings["replies kept from an earlier try"] == 5


def test_a_folder_that_cannot_be_served_is_an_error(place: Path) -> None:
    """A server that never answers well is our error in its own words, with no record."""
    done = measure(place, canned(place, {"do": "500"}), "--benchmark", "sums", "--engine", "canned")
    assert done.returncode == 1 and "cannot serve it" in done.stderr and "500" in done.stderr
    assert not RunFolder(place / "to").numbered("measurements", "sums")


def test_a_judged_benchmark_needs_a_judge(place: Path) -> None:
    """A benchmark that a judge model marks says what is missing before anything is asked."""
    text = (place / "own" / "benchmarks" / "sums.toml").read_text()
    judged = '[asked]\nmodel = "judge"\nmax_tokens = 9\ntries = 1\nconnections = 1\n'
    changed = text.replace('"number"', '"rubric"').replace('"sums"', '"judged"') + judged
    (place / "own" / "benchmarks" / "judged.toml").write_text(changed)
    done = measure(place, canned(place, WRONG), "--benchmark", "judged", "--engine", "canned")
    assert done.returncode == 2 and "PRILL_JUDGE_URL" in done.stderr and len(done.stderr.splitlines()) == 1


def test_pace_is_told_in_words() -> None:
    """Progress says how many of how many, how fast, and how long it will take, as far as it is known."""
    pace = {"benchmark": "gsm8k", "seed": None, "done": 120, "total": 300, "per_second": 41.2, "seconds_left": 4.4}
    assert at_pace(pace) == "gsm8k 120 of 300, 41/s, 0:04 left"
    nothing = {**pace, "seed": 3, "done": 0, "per_second": None, "seconds_left": None}
    assert at_pace(nothing) == "gsm8k seed 3 0 of 300"
    marking = {**pace, "what": "marked", "per_second": 2.0, "seconds_left": 90.0}
    assert at_pace(marking) == "gsm8k 120 of 300 marked, 2/s, 1:30 left"
    assert at_pace({**pace, "per_second": 0.05, "seconds_left": 3600.0}) == "gsm8k 120 of 300, 3/min, 1:00:00 left"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "say which with --benchmark"),
        (("--benchmark", "sum"), "did you mean 'sums'"),
        (("--benchmark", "sums", "--limit", "0"), "at least 1"),
        (("--benchmark", "sums"), "CONFIG_MISSING"),
        (("--benchmark", "sums", "--engine", "canned", "--data", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_measured_is_one_line(place: Path, options: tuple[str, ...], words: str) -> None:
    """A wrong option, or a folder that is no model, is one line and exit code 2 before anything is served."""
    done = measure(place, canned(place, WRONG), *options)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert words in done.stderr


SMOKE = Path(__file__).parents[2] / "src/prill/smoke/base"


@pytest.mark.slow
def test_a_real_model_is_measured(place: Path) -> None:
    """`transformers serve` in a box gives the smoke suite's base model a number from its own replies."""
    done = measure(place, SMOKE, "--benchmark", "word-problems", "--limit", "40")
    assert done.returncode == 0, done.stderr
    made = record(place, "word-problems")
    assert made.n == 40 and sum(made.stops.values()) == 40 and made.isolated
    assert made.value is not None and made.value < 0.2 and made.settings["engine"] == "transformers"


@pytest.mark.parametrize(
    ("missing", "code"),
    [("config.json", "CONFIG_MISSING"), ("tokenizer.json", "TOKENIZER"), ("model.safetensors", "WEIGHTS_MISSING")],
)
def test_a_folder_without_its_files_is_refused(place: Path, missing: str, code: str) -> None:
    """A model folder without config, tokenizer or weights is refused by code before anything is served."""
    folder = place / "model"
    shutil.copytree(SMOKE, folder)
    (folder / missing).unlink()
    done = measure(place, folder, "--benchmark", "word-problems", "--limit", "4")
    assert done.returncode == 2 and code in done.stderr and len(done.stderr.splitlines()) == 1
