"""What of ours runs inside a box: `python -m prill.inside exam|judge|count JOB OUT`, `… ready URL MODEL SECONDS`
and `… healthy ROOT SECONDS`.

A job and its result are JSON files in folders that the stage mounts; nothing else crosses. Exit code 3 with one line
on standard error is an `InfraError` for the stage to raise; any other failure is a bug of ours.
"""

import http.client
import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import msgspec

from prill import plugins
from prill.errors import PrillError
from prill.panels import Panel
from prill.sockets import Evidence, Judge, Value
from prill.spec import Asked

OURS = 3
UNNAMED = "model"
"""What requests name where a server lists no model."""
LONGEST_NAME = 200
LIST_SECONDS = 20.0
"""For a server's list of models."""


class Desk(Value, frozen=True, kw_only=True):
    """Of whom a judge may ask: of a model at an address, or of whoever answers the letters in a folder."""

    panel: Panel
    url: str | None
    """Root of the gateway as this box reaches it; `None`: by letters."""
    token: str
    folder: Path
    """Where replies are kept, letters lie, and copies of the evidence for an agent."""


class JudgeJob(Value, frozen=True, kw_only=True):
    """Which judge, on which evidence, and of whom it may ask if it is one that asks."""

    judge: str
    evidence: Evidence
    desk: Desk | None = None


class CountJob(Value, frozen=True, kw_only=True):
    """Which texts, by which `tokenizer.json`."""

    tokenizer: Path
    texts: tuple[str, ...]


def main(argv: list[str]) -> int:
    """Do one job; see the module's docstring."""
    try:
        if argv[0] == "ready":
            return ready(argv[1], argv[2], float(argv[3]), *argv[4:])
        if argv[0] == "healthy":
            return healthy(argv[1], float(argv[2]))
        job, out = Path(argv[1]).read_bytes(), Path(argv[2])
        result = {"exam": exam, "judge": judge, "count": count}[argv[0]](job)
        out.write_bytes(msgspec.json.encode(result))
    except PrillError as error:
        print(error, file=sys.stderr)
        return OURS
    return 0


def exam(job: bytes) -> object:
    """Put a benchmark to an endpoint."""
    from prill.exam import Exam, sit

    return sit(msgspec.json.decode(job, type=Exam, dec_hook=decode_path))


def judge(job: bytes) -> object:
    """Let one judge speak."""
    decoded = msgspec.json.decode(job, type=JudgeJob, dec_hook=decode_path)
    plugin: Judge = plugins.get("judges", decoded.judge)
    return plugin(decoded.evidence) if decoded.desk is None else asking(decoded.judge, decoded.evidence, decoded.desk)


def asking(judge: str, evidence: Evidence, desk: Desk) -> object:
    """Let one judge speak that asks."""
    from prill.judge_model import JudgeModel
    from prill.panel.given import copy
    from prill.panel.letters import Letters

    panel, plugin = desk.panel, plugins.get("judges", judge)
    if desk.url is None:
        copy(evidence.folder, desk.folder / "evidence")
        return plugin(evidence, panel, Letters(desk.folder, panel.model, panel.tries, panel.answer_seconds * 2))
    asked = Asked(
        model=panel.model,
        effort=panel.effort,
        max_tokens=panel.max_tokens,
        tries=panel.tries,
        connections=panel.connections,
    )
    ask = JudgeModel(
        f"{desk.url}/v1",
        asked,
        desk.folder / "replies",
        key=desk.token,
        request_seconds=panel.answer_seconds,
        wire=panel.wire,
        temperature=panel.temperature,
    )
    findings = plugin(evidence, panel, ask)
    (desk.folder / "spent.json").write_bytes(msgspec.json.encode(ask.spent()))
    return findings


def count(job: bytes) -> object:
    """Tokens of the longest text. The file is a stranger's; it is read here because nothing here can be harmed."""
    from tokenizers import Tokenizer

    decoded = msgspec.json.decode(job, type=CountJob, dec_hook=decode_path)
    tokenizer = Tokenizer.from_file(str(decoded.tokenizer))
    return max(len(tokenizer.encode(text, add_special_tokens=False).ids) for text in decoded.texts)


def decode_path(kind: type, value: object) -> object:
    """Paths cross as text."""
    if kind is Path:
        return Path(str(value))
    raise NotImplementedError(kind)


def encode_path(value: object) -> object:
    """Paths cross as text."""
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value))


def ready(url: str, model: str, seconds: float, how: str = "chat/completions") -> int:
    """Wait until the server has finished one generation: 0; or until it refuses or the time is over: 1.

    The last problem stands on standard error at any time, for whoever ends this program from outside.
    """
    asked: dict[str, object] = {"messages": [{"role": "user", "content": "1"}]}
    asked = {"prompt": "1"} if how == "completions" else asked
    body = json.dumps({"model": model, **asked, "max_tokens": 1}).encode()
    deadline = time.monotonic() + seconds
    last, times = "", 0
    while time.monotonic() < deadline:
        problem, final = probe(f"{url}/{how}", body, min(60.0, max(1.0, deadline - time.monotonic())))
        if not problem:
            return 0
        kind = problem.partition(":")[0]  # the rest may name the request
        if kind != last:
            print(problem, file=sys.stderr, flush=True)
        # One failure may be a server that is still coming up; the same one three times on end is its answer.
        last, times = kind, times + 1 if final and kind == last else 1
        if times == 3:
            break
        time.sleep(0.2)
    return 1


def healthy(root: str, seconds: float) -> int:
    """Wait until `/health` answers 200 and print the name that requests must bear: 0; or until the time is over: 1.

    The last problem stands on standard error at any time, as with `ready`.
    """
    deadline, last = time.monotonic() + seconds, ""
    while time.monotonic() < deadline:
        try:
            patience = min(60.0, max(1.0, deadline - time.monotonic()))
            with urllib.request.urlopen(f"{root}/health", timeout=patience) as page:
                problem = "" if page.status == 200 else f"its health page answers {page.status}"
        except urllib.error.HTTPError as error:
            problem = f"its health page answers {error.code}"
        except (OSError, ValueError, http.client.HTTPException) as error:
            problem = f"its health page does not answer: {getattr(error, 'reason', error)}"[:500]
        if not problem:
            print(json.dumps(named(root)))
            return 0
        if problem != last:
            print(problem, file=sys.stderr, flush=True)
        last = problem
        time.sleep(0.2)
    return 1


def named(root: str) -> str:
    """The first model that a server lists; `UNNAMED` where it lists none that has a bearable name."""
    try:
        with urllib.request.urlopen(f"{root}/v1/models", timeout=LIST_SECONDS) as answer:
            name = json.loads(whole(answer, time.monotonic() + LIST_SECONDS))["data"][0]["id"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError, http.client.HTTPException):
        return UNNAMED
    return name if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable() else UNNAMED


def probe(url: str, body: bytes, seconds: float) -> tuple[str, bool]:
    """What is wrong with the answer to one request, and whether the server itself said so; empty where nothing is."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            [choice, *_] = json.loads(whole(answer, time.monotonic() + seconds))["choices"]
            return ("", False) if choice["finish_reason"] else ("the generation did not finish", True)
    except urllib.error.HTTPError as error:
        words = error.read(500).decode(errors="replace")
        loading = error.code in (408, 425, 429, 502, 503, 504) and " dead " not in words
        return f"{error.code}: {words}", not loading
    except TimeoutError:
        return f"it accepts a request and does not answer it within {seconds:.0f} s", False
    except OSError as error:
        return str(getattr(error, "reason", error)), False
    except (ValueError, KeyError, TypeError, http.client.HTTPException) as error:
        return f"it answers, but not as an OpenAI-compatible server ({type(error).__name__}: {error})"[:500], True


def whole(answer: http.client.HTTPResponse, deadline: float, most: int = 1 << 20) -> bytes:
    """A body of bounded length. Raises `TimeoutError` at the deadline, even if it comes byte by byte."""
    body = b""
    while len(body) < most and (piece := answer.read1(most)):
        body += piece
        if time.monotonic() > deadline:
            raise TimeoutError
    if answer.length and len(body) < most:
        raise http.client.IncompleteRead(body, answer.length)
    return body


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
