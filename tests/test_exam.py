"""One exam against a real server process: what is asked, what counts, what is kept."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import fmean, stdev, variance
from typing import Any

import pytest
from msgspec.structs import replace

from prill import inspect_tasks, plugins
from prill.asking.reading import Answer
from prill.catalog import Catalog
from prill.errors import InfraError
from prill.exam import Exam, body, mark, mark_one, settings_of, sit, standard_error
from prill.items import items_digest
from prill.record import Mark, Reply
from prill.seeds import request_seed
from prill.sockets import Endpoint, Item, Need
from prill.spec import Sampling
from samples import BENCHMARK, DIGEST

ITEMS = tuple(Item(id=f"item-{n}", question=f"What is {n} + {n}?", answer=str(2 * n)) for n in range(4))
REPLIES = (
    {"if": "0 + 0", "text": "ANSWER: 0"},
    {"if": "1 + 1", "text": "It is 3.\n\nANSWER: 3"},
    {"if": "2 + 2", "do": "empty"},
    {"if": "3 + 3", "text": "Let me think", "finish": "length"},
)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Exam]]:
    """An exam of four sums at a server that says these replies."""
    running = []

    def start(*replies: dict[str, Any], **changes: Any) -> Exam:
        script = tmp_path / f"replies-{len(running)}.json"
        script.write_text(json.dumps({"replies": replies, "log": str(tmp_path / "asked.jsonl")}))
        command = [sys.executable, "-m", "prill.canned", str(script), "0"]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert running[-1].stdout is not None
        return made(tmp_path, int(running[-1].stdout.readline()), **changes)

    yield start
    for process in running:
        process.kill()
        process.wait()


def made(folder: Path, port: int = 1, **changes: Any) -> Exam:
    """An exam of four sums."""
    endpoint = Endpoint(url=f"http://127.0.0.1:{port}/v1", model="m", settings={"arguments": f"--port {port}"})
    fields = {"benchmark": BENCHMARK, "items": ITEMS, "seed": None, "max_tokens": 16, "subject": DIGEST} | changes
    return Exam(endpoint=endpoint, folder=folder / "exam", **fields)


def test_every_item_counts(served: Callable[..., Exam]) -> None:
    """Wrong, empty and cut-off replies stay in the denominator, in the order of the items."""
    result = sit(served(*REPLIES))
    assert [(mark.item, mark.robust, mark.stop) for mark in result.items] == [
        ("item-0", 1.0, "stop"), ("item-1", 0.0, "stop"), ("item-2", 0.0, "empty"), ("item-3", 0.0, "length"),
    ]  # fmt: skip
    assert result.stops == {"stop": 2, "empty": 1, "length": 1} and result.no_room is None


def test_the_log_is_inspect_s_and_says_the_same(served: Callable[..., Exam]) -> None:
    """Inspect reads the log, and its mean, samples, scores, settings and usage are those of the exam."""
    from inspect_ai.log import read_eval_log

    exam = served(*REPLIES, seed=7)
    result = sit(exam)
    log = read_eval_log(str(exam.folder / str(result.log)))
    assert log.status == "success" and log.results is not None and log.samples is not None
    assert log.results.scores[0].metrics["mean"].value == fmean(mark.robust for mark in result.items)
    assert [sample.id for sample in log.samples] == [item.id for item in ITEMS]
    assert [sample.scores["number"].value for sample in log.samples if sample.scores] == [1.0, 0.0, 0.0, 0.0]
    assert [sample.output.stop_reason for sample in log.samples] == ["stop", "stop", "stop", "max_tokens"]
    assert (
        log.samples[1].output.completion == "It is 3.\n\nANSWER: 3" and log.samples[1].input[0].text == "What is 1 + 1?"
    )
    assert log.eval.model_generate_config.max_tokens == 16 and log.eval.metadata["subject"] == DIGEST
    assert log.stats.model_usage[log.eval.model].output_tokens == sum(mark.tokens or 0 for mark in result.items)


def test_the_log_opens_with_inspect_itself(served: Callable[..., Exam]) -> None:
    """`inspect log dump` prints the log."""
    exam = served(*REPLIES)
    log = exam.folder / str(sit(exam).log)
    command = [str(Path(sys.executable).with_name("inspect")), "log", "dump", str(log)]
    dumped = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert dumped["status"] == "success" and len(dumped["samples"]) == len(ITEMS)


def test_what_the_benchmark_leaves_open_is_not_sent(served: Callable[..., Exam], tmp_path: Path) -> None:
    """A request holds the rung's tokens and what the benchmark fixes, and nothing else that decides a reply."""
    fixed = replace(BENCHMARK, sampling=Sampling(max_tokens=64, temperature=0.0))
    sit(served({"text": "ANSWER: 4"}, benchmark=fixed, items=ITEMS[:1]))
    asked = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    message = {"role": "user", "content": "What is 0 + 0?"}
    assert asked == [{"model": "m", "messages": [message], "max_tokens": 16, "temperature": 0.0}]


def test_each_request_has_a_seed_of_its_own(tmp_path: Path) -> None:
    """A seeded pass derives the seed of a request from the pass's and the item's id; an unseeded one sends none."""
    seeded = made(tmp_path, seed=3)
    assert [body(seeded, item)["seed"] for item in ITEMS] == [request_seed(3, item.id) for item in ITEMS]
    assert "seed" not in body(made(tmp_path), ITEMS[0])


def test_settings_are_all_that_decides_a_reply(tmp_path: Path) -> None:
    """The digest of settings forgets the port and changes with subject, tokens, seed, prompt and engine."""
    plain = made(tmp_path, 4711)
    assert settings_of(plain) == settings_of(made(tmp_path, 4712))
    others = [
        made(tmp_path, subject="other"),
        made(tmp_path, max_tokens=8),
        made(tmp_path, seed=1),
        made(tmp_path, benchmark=replace(BENCHMARK, prompt="Say: {question}")),
        made(tmp_path, items=ITEMS[1:]),
        replace(plain, endpoint=replace(plain.endpoint, settings={"dtype": "float32"})),
    ]
    assert len({settings_of(each) for each in (plain, *others)}) == 1 + len(others)


def test_a_window_that_is_too_small_leads_down_the_ladder(served: Callable[..., Exam]) -> None:
    """Where nothing could be generated there is no number above the lowest rung, and cut-off replies on it."""
    refusal = {"do": "400", "text": "This model's maximum context length is 8 tokens"}
    above = sit(served(refusal, last=False))
    assert above.no_room and "context length is 8" in above.no_room and not above.memory and above.items == ()
    lowest = sit(served(refusal))
    assert lowest.no_room is None and lowest.stops == {"length": 4}
    some = sit(served({"if": "0 + 0", **refusal}, {"text": "ANSWER: 4"}, last=False, subject="another"))
    assert some.no_room is None and some.stops == {"length": 1, "stop": 3}


def test_a_lack_of_memory_is_no_number(served: Callable[..., Exam]) -> None:
    """A server without memory gives no marks, on any rung, and is said to lack memory."""
    result = sit(served({"do": "500", "text": "CUDA out of memory"}))
    assert result.memory and result.items == () and "CUDA" in str(result.no_room)


def test_a_server_that_fails_gives_no_number(served: Callable[..., Exam]) -> None:
    """One item that the server keeps spoiling ends the exam by its name."""
    with pytest.raises(InfraError, match="item-2"):
        sit(served({"if": "2 + 2", "do": "404"}, {"text": "ANSWER: 4"}))


def test_a_grader_s_crash_is_never_a_zero() -> None:
    """A grader that raises, or gives a mark outside 0..1, ends the exam and names grader and item."""

    def broken(reply: Reply, item: Item) -> Mark:
        raise KeyError("oops")

    def odd(reply: Reply, item: Item) -> Mark:
        return Mark(official=2.0, robust=0.0, answer=None)

    pair = Answer(id="item-0", stop="stop", text="x"), ITEMS[0]
    with pytest.raises(InfraError, match="grader odd failed on item item-0: KeyError"):
        mark_one(broken, "odd", pair)
    with pytest.raises(InfraError, match=r"grader odd gave item item-0 a mark outside 0\.\.1"):
        mark_one(odd, "odd", pair)


# --- several seeds -----------------------------------------------------------------------------------------


def test_one_seed_is_the_plain_standard_error() -> None:
    """With one pass it is sd/√n, with fewer than two items there is none, and equal marks have none to tell."""
    marks = [1.0, 0.0, 0.0, 1.0, 1.0]
    assert standard_error([marks]) == pytest.approx(stdev(marks) / 5**0.5)
    assert standard_error([[1.0]]) is None and standard_error([[]]) is None and standard_error([]) is None
    assert standard_error([[1.0, 1.0]]) == 0.0


def test_equal_passes_do_not_make_the_error_smaller() -> None:
    """Repeating a greedy pass adds nothing to what is known."""
    marks = [1.0, 0.0, 0.0, 1.0, 1.0]
    assert standard_error([marks] * 5) == pytest.approx(standard_error([marks]))


def test_the_error_by_hand() -> None:
    """Two passes over three items, worked out on paper: 1/12 between items and 1/18 more between seeds."""
    first, second = [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]
    # item means 1, ½, ½: variance 1/12, over 3 items 1/36. Seed means 1, ⅓: variance 2/9, times 3 items ⅔.
    # Residuals ±⅓, ∓⅙, ∓⅙: squares sum to ⅓, over 2 degrees of freedom ⅙. Between seeds (⅔ − ⅙)/6 = 1/12.
    assert standard_error([first, second]) == pytest.approx((1 / 36 + 1 / 12) ** 0.5)


def test_the_error_is_right_on_average() -> None:
    """Over many simulated measurements its square averages to the true variance of the mean, seeds and items drawn."""
    chance = Random(0)
    squares, means = [], []
    for _ in range(2000):
        items, seeds = [chance.gauss(0, 1) for _ in range(12)], [chance.gauss(0, 0.7) for _ in range(4)]
        passes = [[item + seed + chance.gauss(0, 1) for item in items] for seed in seeds]
        squares.append((standard_error(passes) or 0.0) ** 2)
        means.append(fmean(map(fmean, passes)))
    truth = 1 / 12 + 0.49 / 4 + 1 / 48
    assert fmean(squares) == pytest.approx(truth, rel=0.05) and variance(means) == pytest.approx(truth, rel=0.1)


# --- as a task of Inspect ----------------------------------------------------------------------------------


def test_benchmarks_are_tasks_of_inspect(served: Callable[..., Exam], tmp_path: Path) -> None:
    """The same items, prompt and grader under Inspect's own loop give the same marks as a measuring."""
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import get_model

    rows = [json.dumps({"id": item.id, "question": item.question, "answer": item.answer}) for item in ITEMS]
    (tmp_path / "sums.jsonl").write_text("\n".join(rows) + "\n")
    data = replace(BENCHMARK.data, count=4, digest=items_digest(ITEMS))
    exam = served(*REPLIES, seed=5)
    task = inspect_tasks.as_task(Catalog(), replace(BENCHMARK, data=data), tmp_path / "sums.jsonl", seed=5)
    model = get_model("openai-api/prill/m", base_url=exam.endpoint.url, api_key="none")
    [log] = inspect_eval(task, model=model, log_dir=str(tmp_path), display="none")
    assert log.status == "success" and log.samples is not None, log.error and log.error.message
    theirs = {sample.id: sample.scores["number"].value for sample in log.samples if sample.scores}
    assert theirs == {mark.item: mark.robust for mark in sit(exam).items}
    asked = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    assert sorted(request["seed"] for request in asked[:4]) == sorted(request["seed"] for request in asked[4:])


def test_inspect_finds_every_benchmark_by_name() -> None:
    """Inspect's registry has `prill/NAME` for each benchmark once the entry point is loaded."""
    from inspect_ai._util.entrypoints import ensure_entry_points
    from inspect_ai._util.registry import registry_lookup

    ensure_entry_points("prill")
    for name in Catalog().names("benchmarks"):
        assert registry_lookup("task", f"prill/{name}") is not None


def test_code_is_marked_outside_the_exam_s_box(served: Callable[..., Exam]) -> None:
    """An exam whose grader runs code stops at the replies, and is marked by whoever can open boxes."""
    try:
        with plugins.get("sandboxes", "bubblewrap").open(Need()):
            pass
    except InfraError as error:
        pytest.skip(str(error))
    fields = {"test": "def check(candidate):\n    assert candidate(2) == 3", "entry_point": "up"}
    items = tuple(
        Item(id=name, question=f"def up(n):  # {name}\n", answer="", fields=fields) for name in ("one", "two")
    )
    replies = [{"if": name, "text": f"```python\ndef up(n):\n    return n + {name}\n```"} for name in ("one", "two")]
    replies[0]["text"] = replies[0]["text"].replace("one", "1")
    exam = served(*replies, items=items, benchmark=replace(BENCHMARK, grader="python_tests"))
    asked = sit(exam)
    assert asked.items == () and asked.log is None
    assert json.loads((exam.folder / "pace.json").read_text())["what"] == "asked"
    result = mark(exam, asked)
    pace = json.loads((exam.folder / "pace.json").read_text())
    assert (pace["what"], pace["done"], pace["total"]) == ("marked", 2, 2)
    assert [(each.item, each.robust, each.official) for each in result.items] == [("one", 1.0, 1.0), ("two", 0.0, 0.0)]
    assert result.log is not None
