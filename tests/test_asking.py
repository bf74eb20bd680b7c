"""Asking, against a real server process that misbehaves on demand (`prill.canned`)."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prill.asking.kept import answers
from prill.asking.loop import Asking, NoMemory, Pace, Question, Tally, ask, counted
from prill.asking.reading import Answer, Lapse, complaint, read, retry_after
from prill.errors import DefinitionError, InfraError

Serve = Callable[..., str]
CLIENT = """
import sys
from pathlib import Path
from prill.asking.loop import Asking, Question, ask
url, file, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
body = lambda n: lambda: {"messages": [{"role": "user", "content": f"number {n} please"}]}
questions = [Question(id=str(n), body=body(n), expected=-n) for n in range(count)]
print(ask(questions, Asking(url=url, model="m", connections=2, request_seconds=60), file, sys.argv[4]).resumed)
"""


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server that says these replies; returns its address."""
    running = []

    def start(*replies: dict[str, Any]) -> str:
        script = tmp_path / f"replies-{len(running)}.json"
        script.write_text(json.dumps({"replies": replies, "log": str(tmp_path / "asked.jsonl")}))
        command = [sys.executable, "-m", "prill.canned", str(script), "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        return f"http://127.0.0.1:{int(process.stdout.readline())}/v1"

    yield start
    for process in running:
        process.kill()
        process.wait()


def put(url: str, tmp_path: Path, *contents: str, settings: str = "one", **how: Any) -> tuple[Tally, dict[str, Answer]]:
    """Ask; the tally and the answers by what was asked."""
    questions = [
        Question(id=words, body=lambda words=words: {"messages": [{"role": "user", "content": words}]})
        for words in contents
    ]
    patience = {"connections": 4, "request_seconds": 20.0, "backoff_seconds": 0.01} | how
    file = tmp_path / "answers.jsonl"
    tally = ask(questions, Asking(url=url, model="m", **patience), file, settings)
    return tally, {answer.id: answer for answer in answers(file)}


def asked(tmp_path: Path) -> list[str]:
    """What the server was asked, in order."""
    lines = (tmp_path / "asked.jsonl").read_text().splitlines()
    return [json.loads(line)["messages"][0]["content"] for line in lines]


# --- what the model owns -----------------------------------------------------------------------------------


def test_what_the_model_owns_is_an_answer(serve: Serve, tmp_path: Path) -> None:
    """Cut off, empty, refused, over the cap and over the context window are answers beside good ones."""
    context = "This model's maximum context length is 512 tokens. However, you requested 900"
    url = serve(
        {"if": "long", "text": "so far", "finish": "length"},
        {"if": "empty", "do": "empty"},
        {"if": "filtered", "text": "", "finish": "content_filter"},
        {"if": "refused", "message": {"refusal": "no"}},
        {"if": "big", "text": "word " * 1000},
        {"if": "window", "do": "400", "text": context},
        {"if": "tool", "message": {"tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]}},
        {"text": "42"},
    )
    contents = ("fine", "long", "empty", "filtered", "refused", "big", "window", "tool")
    tally, found = put(url, tmp_path, *contents, reply_bytes=4000)
    assert {words: answer.stop for words, answer in found.items()} == {
        "fine": "stop", "long": "length", "empty": "empty", "filtered": "refused", "refused": "refused",
        "big": "length", "window": "length", "tool": "stop",
    }  # fmt: skip
    assert found["fine"].text == "42" and found["fine"].tokens_out == 1 and found["refused"].text == "no"
    assert not found["window"].room and found["long"].room
    assert [(call.name, call.arguments) for call in found["tool"].calls] == [("f", '{"a": 1}')]
    assert tally.stops == {"stop": 2, "length": 3, "empty": 1, "refused": 2} and tally.retries == {}


@pytest.mark.parametrize("how", ["hang", "hang-200", "drip"])
def test_a_reply_that_takes_too_long_is_the_model_s(serve: Serve, tmp_path: Path, how: str) -> None:
    """A request over its time limit is a timeout of the model's while the server answers one token."""
    url = serve({"if": "slow", "do": how}, {"text": "42"})
    tally, found = put(url, tmp_path, "slow", request_seconds=0.5)
    assert found["slow"].stop == "timeout" and tally.stops == {"timeout": 1}


def test_a_reply_of_ten_megabytes_is_not_read_to_its_end(serve: Serve, tmp_path: Path) -> None:
    """A reply over the cap counts as cut off, with none of its text kept."""
    url = serve({"if": "big", "do": "big"}, {"text": "42"})
    _, found = put(url, tmp_path, "big", "small")
    assert (found["big"].stop, found["big"].text, found["small"].text) == ("length", "", "42")


@pytest.mark.parametrize(
    ("reply", "stop"),
    [({"do": "hang"}, "timeout"), ({"do": "drip"}, "timeout"), ({"do": "500"}, "server"), ({"do": "404"}, "server"),
     ({"do": "drop"}, "server"), ({"do": "html"}, "server"), ({"do": "500", "text": "CUDA out of memory"}, "server"),
     ({"do": "429", "retry_after": "999"}, "server")],
    ids=lambda value: value if isinstance(value, str) else " ".join(value.values()),
)  # fmt: skip
def test_a_submission_s_own_server_owns_all_that_it_spoils(
    serve: Serve, tmp_path: Path, reply: dict[str, Any], stop: str
) -> None:
    """Whatever such a server does, to however many requests, each has an answer and nothing is an error."""
    tally, _ = put(serve(reply), tmp_path, *"abcdefghijkl", own=True, request_seconds=1.5)
    assert tally.stops == {stop: 12}


def test_a_submission_s_own_server_that_is_gone_is_answered_for(tmp_path: Path) -> None:
    """Where nobody listens any more every request ends as the server's doing."""
    tally, found = put("http://127.0.0.1:9/v1", tmp_path, *"abcdefghijkl", own=True, request_seconds=5.0)
    assert tally.stops == {"server": 12} and "no connection" in found["a"].why


# --- what the machine owns ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("drop", "dropped stream"), ("html", "HTML, not JSON"), ("json", "wrong JSON"), ("not-json", "not JSON"),
        ("not-utf8", "not UTF-8"), ("500", "status 500"), ("503", "status 503"),
    ],
)  # fmt: skip
def test_what_the_machine_spoils_is_asked_again(serve: Serve, tmp_path: Path, how: str, kind: str) -> None:
    """A failure of the server's is asked again, counted by kind, and leaves a good answer in the end."""
    url = serve({"if": "odd", "do": how, "times": 2}, {"text": "42"})
    tally, found = put(url, tmp_path, "odd", "even")
    assert found["odd"].text == found["even"].text == "42"
    assert tally.retries == {kind: 2} and found["odd"].attempts == 3 and tally.stops == {"stop": 2}


@pytest.mark.parametrize(
    ("how", "kind"),
    [("html", "HTML, not JSON"), ("not-utf8", "not UTF-8"), ("404", "status 404"), ("401", "status 401")],
)
def test_what_stays_spoiled_ends_by_name(serve: Serve, tmp_path: Path, how: str, kind: str) -> None:
    """A failure that asking again does not mend ends in an error that names kind and item, after all others."""
    url = serve({"if": "odd", "do": how}, {"text": "42"})
    with pytest.raises(InfraError, match=rf"1 of 3 questions \(1 × {kind}\); item odd: {kind}"):
        put(url, tmp_path, "a", "odd", "b")
    assert {answer.id for answer in answers(tmp_path / "answers.jsonl")} == {"a", "b"}


def test_retry_after_is_obeyed_and_bounded(serve: Serve, tmp_path: Path) -> None:
    """A 429 is waited out as its header says, and a wait beyond our patience is an error."""
    url = serve(
        {"if": "soon", "do": "429", "retry_after": "0.1", "times": 6},
        {"if": "never", "do": "429", "retry_after": "86400"},
        {"text": "42"},
    )
    tally, found = put(url, tmp_path, "soon")
    assert found["soon"].text == "42" and tally.retries == {"status 429": 6} and found["soon"].attempts == 1
    with pytest.raises(InfraError, match="status 429"):
        put(url, tmp_path, "never", patience_seconds=60.0)


def test_retry_after_is_a_number_or_a_date() -> None:
    """Seconds and HTTP dates are understood, a date that has passed is no wait, and nonsense says nothing."""
    assert retry_after("7", 0.0) == 7.0 and retry_after("0.5", 0.0) == 0.5
    assert retry_after("Thu, 01 Jan 1970 00:00:30 GMT", 10.0) == 20.0
    assert retry_after("Thu, 01 Jan 1970 00:00:30 GMT", 99.0) == 0.0
    assert [retry_after(words, 0.0) for words in ("", "soon", "-3", "1e9", "9" * 30, "Thu, 99 Foo 1970")] == [None] * 6


def test_no_server_is_an_error(tmp_path: Path) -> None:
    """A server that is not there is given up by name, with nothing kept."""
    with pytest.raises(InfraError, match="no connection"):
        put("http://127.0.0.1:1/v1", tmp_path, *"abcdefghij", attempts=2)
    assert list(answers(tmp_path / "answers.jsonl")) == []


def test_a_server_that_hangs_for_everybody_is_an_error(serve: Serve, tmp_path: Path) -> None:
    """Where not even one token comes, a timeout is the machine's and no answer."""
    with pytest.raises(InfraError, match="2 × hangs"):
        put(serve({"do": "hang"}), tmp_path, "a", "b", request_seconds=0.3)
    assert list(answers(tmp_path / "answers.jsonl")) == []


def test_a_lack_of_memory_is_told_from_other_failures(serve: Serve, tmp_path: Path) -> None:
    """A server that says it is out of memory ends the asking at once, as `NoMemory`."""
    with pytest.raises(NoMemory, match="CUDA out of memory"):
        put(serve({"do": "500", "text": "CUDA out of memory. Tried to allocate 2 GiB"}), tmp_path, "a", "b")


def test_ids_are_unique(tmp_path: Path) -> None:
    """Two questions of one id are refused before anything is asked."""
    with pytest.raises(DefinitionError, match="'a'"):
        put("http://127.0.0.1:1/v1", tmp_path, "a", "a")


# --- order, pace, carrying on ------------------------------------------------------------------------------


def test_the_longest_is_asked_first(serve: Serve, tmp_path: Path) -> None:
    """One worker asks in order of expected length, longest first, equal ones in the order given."""
    url = serve({"text": "42"})
    body = {name: {"messages": [{"role": "user", "content": name}]} for name in "abcd"}
    expected = {"a": 1.0, "b": 3.0, "c": 2.0, "d": 2.0}
    questions = [Question(id=name, body=lambda name=name: body[name], expected=expected[name]) for name in "abcd"]
    paces: list[Pace] = []
    how = Asking(url=url, model="m", connections=1, request_seconds=20)
    ask(questions, how, tmp_path / "answers.jsonl", "s", paces.append)
    assert asked(tmp_path) == ["b", "c", "d", "a"]
    assert (paces[-1].done, paces[-1].total, paces[-1].seconds_left) == (4, 4, 0.0)


def test_a_killed_asking_carries_on_where_it_stopped(serve: Serve, tmp_path: Path) -> None:
    """After SIGKILL the same command asks only what has no answer yet, and a cut last line is asked again."""
    slow = {"if": "number 4 ", "do": "hang", "times": 1}
    url, file = serve(slow, {"text": "42"}), tmp_path / "answers.jsonl"
    command = [sys.executable, "-c", CLIENT, url, str(file), "5", "settings"]
    with subprocess.Popen(command) as process:
        while not file.exists() or len(list(answers(file))) < 4:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    file.write_bytes(file.read_bytes()[:-5])
    done = [answer.id for answer in answers(file)]
    assert len(done) == 3
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.strip() == "3"
    assert sorted(answer.id for answer in answers(file)) == ["0", "1", "2", "3", "4"]
    assert len(asked(tmp_path)) == 5 + 2


def test_other_settings_start_over(serve: Serve, tmp_path: Path) -> None:
    """Answers that were given under other settings are not used."""
    url = serve({"text": ["old", "new"]})
    assert put(url, tmp_path, "a", settings="one")[1]["a"].text == "old"
    assert put(url, tmp_path, "a", settings="one")[0].resumed == 1
    assert put(url, tmp_path, "a", settings="two")[1]["a"].text == "new"


def test_pace_is_of_what_is_asked_now(serve: Serve, tmp_path: Path) -> None:
    """Answers to other questions that the file holds count neither as done nor as resumed."""
    url, paces = serve({"text": "42"}), list[Pace]()
    put(url, tmp_path, "a", "b", "c")
    how = Asking(url=url, model="m", connections=1, request_seconds=20)
    body = {"messages": [{"role": "user", "content": "x"}]}
    questions = [Question(id=name, body=lambda: body) for name in "cd"]
    tally = ask(questions, how, tmp_path / "answers.jsonl", "one", paces.append)
    assert (tally.total, tally.resumed) == (2, 1)
    assert (paces[0].done, paces[-1].done, paces[-1].total) == (1, 2, 2)


def test_things_are_counted_as_they_come() -> None:
    """What is counted passes through unchanged, and the first and the last word about it say none and all."""
    paces: list[Pace] = []
    assert list(counted(iter("abc"), 3, paces.append)) == ["a", "b", "c"]
    assert [(pace.done, pace.total) for pace in (paces[0], paces[-1])] == [(0, 3), (3, 3)]
    assert list(counted([], 0, paces.append)) == [] and paces[-1].per_second is None


# --- reading -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"null", b'{"choices": []}', b'{"choices": [{"finish_reason": null, "message": {}}]}',
        b'{"choices": [{"finish_reason": "abort", "message": {"content": "x"}}]}',
        b'{"choices": [{"message": {"content": "x"}}]}', b'{"choices": "x"}', b'{"error": "x"}',
        b'{"choices": [{"finish_reason": "stop", "message": {"content": 5}}]}', b"\x00\xff", b"data: {}\n\n",
    ],
)  # fmt: skip
def test_what_is_no_completion_is_no_answer(body: bytes) -> None:
    """Bytes of any other shape are a lapse, never an empty reply."""
    with pytest.raises(Lapse):
        read("x", body)


def test_plain_completions_and_objects_as_arguments_are_read() -> None:
    """Text completions, tool arguments that came as an object, and separate reasoning are understood."""
    assert read("x", b'{"choices": [{"finish_reason": "stop", "text": " 42"}]}').text == " 42"
    call = b'{"function": {"name": "f", "arguments": {"a": 1}}}'
    found = read("x", b'{"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [' + call + b"]}}]}")
    assert (found.stop, found.calls[0].arguments) == ("stop", '{"a":1}')
    thought = b'{"choices": [{"finish_reason": "stop", "message": {"content": "4", "reasoning_content": "2+2"}}]}'
    assert read("x", thought).reasoning == "2+2"


def test_only_a_refusal_that_names_the_window_is_the_model_s() -> None:
    """A 400 is an answer only where it speaks of the context window, and memory only where the server broke."""
    assert not complaint("x", 400, {}, b"maximum context length is 512").room
    for status, words, kind in (
        (400, b"bad field", "status 400"),
        (500, b"context length", "status 500"),
        (400, b"out of memory", "status 400"),
        (507, b"CUDA out of memory", "memory"),
    ):
        with pytest.raises(Lapse) as lapse:
            complaint("x", status, {}, words)
        assert lapse.value.kind == kind and lapse.value.again == (status == 500)
