"""Judged benchmarks from the command line to the record: a canned model in its box, a judge that is a real server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prill.asking.kept import answers
from prill.folder import RunFolder, decode
from prill.graders import pairwise, rubric
from prill.items import item_line, items_digest
from prill.record import Judged, Measurement
from prill.sockets import Item

DATA = Path(__file__).parents[3] / "shared" / "data" / "benchmarks"
ARENA, BY = "arena-hard-v2.0", "Qwen3-1.7B"
BENCHMARK = """
name = "{name}"
title = "{name}"
prompt = "{{question}}"
grader = "{grader}"
counts = "{counts}"
connections = 2
licence = "Apache-2.0"
source = "made up for tests"
[data]
path = "{name}.jsonl"
count = {count}
digest = "{digest}"
[sampling]
max_tokens = 64
[asked]
model = "the-judge"
effort = "medium"
max_tokens = 500
tries = 2
connections = 4
"""
YES, NO = ({"text": json.dumps({"explanation": "so it is", "criteria_met": met})} for met in (True, False))
SILENT = {"text": "I would rather not say."}
HELPFUL = {"text": "Rest, and see a doctor."}


def criterion(words: str, points: float) -> dict[str, Any]:
    """One criterion."""
    return {"criterion": words, "points": points, "tags": ["axis:accuracy"]}


def health(id: str, question: str, *rubrics: dict[str, Any]) -> Item:
    """One item of a rubric."""
    fields = {"conversation": [], "rubrics": list(rubrics), "tags": ["theme:hedging"]}
    return Item(id=id, question=question, answer="", fields=fields)


ILL = [
    health("ill", "My head aches.", criterion("kind", 6), criterion("odd", 2)),
    health("well", "I feel fine.", criterion("kind", 3), criterion("rude", -3)),
]
TALES = [Item(id=f"tale-{n}", question=f"Tell tale {n}.", answer=f"Reference {n}.") for n in range(3)]
Measure = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def measure(tmp_path: Path) -> Iterator[Measure]:
    """`prill measure` of one benchmark, for a model that always says one thing, with a judge that says these.

    What the judge is asked lies in `asked.jsonl`.
    """
    servers: list[subprocess.Popen[str]] = []

    def run(
        name: str, said: dict[str, Any], *judge: dict[str, Any], options: tuple[str, ...] = (), price: str = "0.25/2"
    ) -> subprocess.CompletedProcess[str]:
        model, script = tmp_path / "model", tmp_path / "judge.json"
        model.mkdir()
        (model / "canned.json").write_text(json.dumps({"replies": [said]}))
        script.write_text(json.dumps({"replies": judge, "log": str(tmp_path / "asked.jsonl")}))
        server = [sys.executable, "-m", "prill.canned", str(script), "0"]
        servers.append(subprocess.Popen(server, stdout=subprocess.PIPE, text=True))
        assert servers[-1].stdout is not None
        url = f"http://127.0.0.1:{int(servers[-1].stdout.readline())}/v1"
        command = [sys.executable, "-m", "prill.cli", "measure", str(model), "--benchmark", name, "--engine", "canned"]
        command += ["--definitions", str(tmp_path / "own"), "--to", str(tmp_path / "to"), *options]
        environment = {**os.environ, "PRILL_JUDGE_URL": url, "PRILL_JUDGE_PRICE": price}
        return subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)

    (tmp_path / "own").mkdir()
    yield run
    for process in servers:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def define(place: Path, grader: str, items: list[Item], counts: str = "robust") -> str:
    """A benchmark of these items, by its name."""
    own = place / "own"
    (own / "benchmarks").mkdir()
    (own / f"{grader}.jsonl").write_bytes(b"".join(map(item_line, items)))
    text = BENCHMARK.format(name=grader, grader=grader, counts=counts, count=len(items), digest=items_digest(items))
    (own / "benchmarks" / f"{grader}.toml").write_text(text)
    return grader


def record(place: Path, name: str) -> tuple[Measurement, Judged]:
    """The newest measurement, and what its judge made of the replies."""
    made = decode(RunFolder(place / "to").numbered("measurements", name)[-1], Measurement)
    assert made.judged is not None
    return made, made.judged


def kept(place: Path, judged: Judged) -> list[str]:
    """The judge's replies that lie beside the measurement."""
    assert not (place / "to" / ".measuring").exists()
    return [answer.text for answer in answers(place / "to" / "measurements" / str(judged.log))]


def test_a_rubric_is_judged_criterion_by_criterion(measure: Measure, tmp_path: Path) -> None:
    """One command gives the value, each criterion's verdict, the judge with its prompts and price, and its replies."""
    done = measure(define(tmp_path, "rubric", ILL), HELPFUL, {"if": "kind", **YES}, NO)
    assert done.returncode == 0, done.stderr
    made, judged = record(tmp_path, "rubric")
    assert made.value == made.robust == made.official == pytest.approx((6 / 8 + 3 / 3) / 2)
    assert (made.state, made.n, made.stops, made.limit) == ("measured", 2, {"stop": 2}, None)
    assert [[part["met"] for part in each.parts] for each in judged.items] == [[True, False], [True, False]]
    assert [each.value for each in judged.items] == [0.75, 1.0] and judged.numbers["ungraded"] == 0
    judge = judged.judge
    assert (judge["model"], judge["effort"], judge["prompt"]) == ("the-judge", "medium", rubric.DIGEST)
    assert (judge["calls"], judge["usd_why"]) == (4, "")
    assert judge["usd"] == pytest.approx((judge["tokens_in"] * 0.25 + judge["tokens_out"] * 2) / 1e6)
    asked = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    assert len(asked) == 4 and all(HELPFUL["text"] in sent["messages"][-1]["content"] for sent in asked)
    assert judged.log == "rubric.1.judge.jsonl" and sorted(kept(tmp_path, judged)) == sorted(
        [YES["text"], NO["text"]] * 2
    )


def test_an_ungraded_criterion_holds_the_measurement(measure: Measure, tmp_path: Path) -> None:
    """One criterion that the judge never grades leaves no number, says how many, and keeps what was judged."""
    done = measure(define(tmp_path, "rubric", ILL), HELPFUL, {"if": "odd", **SILENT}, YES, price="")
    assert done.returncode == 0, done.stderr
    made, judged = record(tmp_path, "rubric")
    assert (made.state, made.value, made.robust, made.stderr) == ("ungraded", None, None, None)
    assert "1 of 4 criteria have no grade" in made.why and "no number: 1 of 4" in done.stdout
    assert judged.numbers["ungraded"] == 1 and made.official == pytest.approx((6 / 8 + 0 / 3) / 2)
    odd = judged.items[0].parts[1]
    assert (odd["met"], odd["said"]) == (None, SILENT["text"]) and "after 2 tries" in odd["why"]
    assert judged.judge["calls"] == 5 and (judged.judge["usd"], judged.judge["usd_why"]) == (
        None, "no price is known for this model",
    )  # fmt: skip
    assert kept(tmp_path, judged).count(SILENT["text"]) == 2


def test_a_comparison_is_judged_in_both_orders(measure: Measure, tmp_path: Path) -> None:
    """One command gives the mean over votes, strong ones threefold, both verdicts of each request, and the judge."""
    better = {"if": "A's answer begins|>\nReference", "text": "[[B>>A]]"}
    done = measure(define(tmp_path, "pairwise", TALES), {"text": "Once upon a time."}, better, {"text": "[[A=B]]"})
    assert done.returncode == 0, done.stderr
    made, judged = record(tmp_path, "pairwise")
    assert made.value == made.robust == made.official == pytest.approx((3 * 1 + 0.5) / 4)
    assert [[part["verdict"] for part in each.parts] for each in judged.items] == [["B>>A", "A=B"]] * 3
    assert (judged.numbers["missing"], judged.numbers["votes"], judged.n) == (0, 12, 3)
    assert (judged.numbers["won_as_second"], judged.numbers["won_as_first"]) == (1.0, 0.5)
    assert judged.numbers["style_controlled"]["words"] is not None
    judge = judged.judge
    assert (judge["model"], judge["prompt"], judge["calls"]) == ("the-judge", pairwise.DIGEST, 6)
    assert judge["usd"] is not None and len(kept(tmp_path, judged)) == 6


def test_a_missing_verdict_is_counted(measure: Measure, tmp_path: Path) -> None:
    """A request that lacks a verdict is left out and counted; one of three is enough to hold the robust number."""
    name, mute = define(tmp_path, "pairwise", TALES, counts="official"), {"if": "tale 1", "do": "empty"}
    done = measure(name, {"text": "Once."}, mute, {"text": "[[B>A]]"})
    assert done.returncode == 0, done.stderr
    made, judged = record(tmp_path, "pairwise")
    assert (made.state, made.value, made.robust) == ("measured", 0.5, None)
    assert (judged.numbers["missing"], judged.numbers["missing_verdicts"], judged.n) == (1, 2, 2)
    assert [each.value for each in judged.items] == [0.5, None, 0.5] and "1 of 3 questions lack a verdict" in judged.why
    assert "official 0.5000, robust none" in done.stdout


def published(place: Path, files: dict[str, str]) -> str:
    """A folder for `--data` with the published questions under their benchmark's names."""
    for name, file in files.items():
        if not (DATA / file).is_file():
            pytest.skip(f"{file}: the published questions are not beside this checkout")
        (place / name).symlink_to(DATA / file)
    return str(place)


def test_published_health_questions_are_measured(measure: Measure, tmp_path: Path) -> None:
    """The shipped definition puts real questions to a model and each of their criteria to the judge that it names."""
    data = published(tmp_path, {"healthbench.jsonl": "healthbench-easy/healthbench.jsonl"})
    done = measure("healthbench", HELPFUL, YES, options=("--data", data, "--limit", "3"))
    assert done.returncode == 0, done.stderr
    made, judged = record(tmp_path, "healthbench")
    points = [[part["points"] for part in each.parts] for each in judged.items]
    worth = [sum(part) / sum(each for each in part if each > 0) for part in points]
    assert made.value == pytest.approx(min(1, max(0, sum(worth) / 3))) and (made.n, made.limit) == (3, 3)
    assert judged.judge["model"] == "gpt-5-mini" and judged.judge["replies"] == sum(map(len, points))


def test_published_requests_are_measured(measure: Measure, tmp_path: Path) -> None:
    """The shipped definition compares a model's answers to real requests with the published reference answers."""
    files = {
        "arenahardwriting.jsonl": f"{ARENA}/question.jsonl",
        "arenahardwriting.answers.jsonl": f"{ARENA}/{BY}.jsonl",
    }
    data = published(tmp_path, files)
    done = measure("arenahardwriting", {"text": "Once."}, {"text": "[[A=B]]"}, options=("--data", data, "--limit", "3"))
    assert done.returncode == 0, done.stderr
    made, judged = record(tmp_path, "arenahardwriting")
    assert (made.value, judged.numbers["votes"], judged.judge["effort"]) == (0.5, 6, "medium")
    style = judged.numbers["style_controlled"]
    assert style["reference_words"] > 10 * style["words"] and style["win_rate"] is not None
