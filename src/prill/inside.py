"""What of ours runs inside a box: `python -m prill.inside exam|judge JOB OUT` and `… ready URL MODEL`.

A job and its result are JSON files in folders that the stage mounts; nothing else crosses. Exit code 3 with one line
on standard error is an `InfraError` for the stage to raise; any other failure is a bug of ours.
"""

import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import msgspec

from prill import plugins
from prill.errors import PrillError
from prill.sockets import Evidence, Judge, Value

OURS = 3


class JudgeJob(Value, frozen=True, kw_only=True):
    """Which judge, on which evidence."""

    judge: str
    evidence: Evidence


def main(argv: list[str]) -> int:
    """Do one job; see the module's docstring."""
    try:
        if argv[0] == "ready":
            return ready(argv[1], argv[2], float(argv[3]))
        job, out = Path(argv[1]).read_bytes(), Path(argv[2])
        result = {"exam": exam, "judge": judge}[argv[0]](job)
        out.write_bytes(msgspec.json.encode(result))
    except PrillError as error:
        print(error, file=sys.stderr)
        return OURS
    return 0


def exam(job: bytes) -> object:
    """Put a benchmark to an endpoint."""
    from prill.catalog import read_items
    from prill.exam import Exam, sit

    decoded = msgspec.json.decode(job, type=Exam, dec_hook=decode_path)
    return sit(decoded, read_items(decoded.items, decoded.benchmark))


def judge(job: bytes) -> object:
    """Let one judge speak."""
    decoded = msgspec.json.decode(job, type=JudgeJob, dec_hook=decode_path)
    plugin: Judge = plugins.get("judges", decoded.judge)
    return plugin(decoded.evidence)


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


def ready(url: str, model: str, seconds: float) -> int:
    """Wait until the server has finished one generation: 0; or until the time is over: 1."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "1"}], "max_tokens": 1}).encode()
    deadline = time.monotonic() + seconds
    problem = "no answer"
    while time.monotonic() < deadline:
        request = urllib.request.Request(f"{url}/chat/completions", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                if json.load(answer)["choices"]:
                    return 0
        except urllib.error.HTTPError as error:
            problem = f"{error.code}: {error.read(500).decode(errors='replace')}"
            if error.code < 500:
                break
        except (OSError, ValueError, KeyError) as error:
            problem = str(error)
        time.sleep(0.2)
    print(problem, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
