"""What engines that start a server have in common: start it in the box, wait until it has answered, stop it.

Ready means one finished generation, tried by a program in the same box. Every wait has an end: a server that dies, that
refuses, that answers 200 and hangs or drips is `NotServed`, with the words that say most about why.
Not covered: a server that answers once and never again; then it is the questions that fail.
"""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prill import runtime
from prill.record import Contract
from prill.sockets import Box, Command, Ended, Keep, NotServed, Running

REASON = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Interrupt)\b: ?\S|\b[Ee]rror: ?\S")
"""A line that says why a Python program ended."""
SLACK_SECONDS = 20.0
"""For the probe to come up and to end by itself, before it is ended."""
READ_BYTES = 1 << 18
"""Of a log, from its end."""
NO_MEMORY = "its box ran out of memory"
PROBE_BYTES = 1 << 20
"""Of what a program of ours says that runs beside a server, which may be anybody's."""


@contextmanager
def server(
    box: Box, command: Command, url: str, model: str, logs: Path, seconds: float, contract: Contract | None = None
) -> Iterator[None]:
    """A server that is ready within so many seconds and gone at the end. Its output goes to `logs/server*.txt`."""
    running = box.start(command, stdout=logs / "server.txt", stderr=logs / "server.err.txt")
    try:
        wait(running, box, url, model, logs, seconds, contract)
        yield
    finally:
        running.stop()


def wait(
    running: Running | None, box: Box, url: str, model: str, logs: Path, seconds: float, contract: Contract | None
) -> None:
    """Until one generation has finished. Raises `NotServed` as soon as the server dies, or when the time is over."""
    how = "completions" if contract is not None and not contract.chat else "chat/completions"
    probed(running, box, ("ready", url, model, str(seconds), how), logs, seconds)


def probed(running: Running | None, box: Box, words: tuple[str, ...], logs: Path, seconds: float) -> str:
    """Until a probe of `prill.inside` has succeeded: what it printed. Raises `NotServed` as `wait` does."""
    argv = ("python3", "-m", "prill.inside", *words)
    command = Command(argv=argv, cwd=box.path("/tmp"), env={"PYTHONPATH": str(runtime.package_root())})
    out, err = logs / f"{words[0]}.txt", logs / f"{words[0]}.err.txt"
    probe = box.start(command, stdout=out, stderr=err, keep=Keep(most_bytes=PROBE_BYTES))
    deadline = time.monotonic() + seconds + SLACK_SECONDS
    try:
        while True:
            if running is not None and running.poll() is not None:
                last = why(running.poll(), logs / "server.err.txt", logs / "server.txt")
                raise NotServed(f"the server ended: {last}")
            ended = probe.poll()
            if ended is not None and ended.exit_code == 0:
                return out.read_text(encoding="utf-8", errors="replace")
            if ended is not None:
                raise NotServed(f"not ready: {why(ended, err)}")
            if time.monotonic() > deadline:
                raise NotServed(f"not ready within {seconds:g} s: {last_words(err)}")
            time.sleep(0.05)
    finally:
        probe.stop(grace_seconds=0.0)


def free_port() -> int:
    """A port that nobody listens on here; in a box with its own network any port is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def why(ended: Ended | None, *logs: Path) -> str:
    """Why a program ended."""
    return NO_MEMORY if ended is not None and ended.oom_killed else last_words(*logs)


def last_words(*logs: Path) -> str:
    """The last line that gives a reason, of the first log that has one; else the last line that says something."""
    lines = [line for log in logs for line in tail(log)]
    reasons = [line for line in lines if REASON.search(line)]
    said = next(iter([*reversed(reasons), *reversed(lines)]), "it said nothing")
    return said[:500]


def tail(log: Path) -> list[str]:
    """The last lines of a log that are not empty."""
    if not log.is_file():
        return []
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - READ_BYTES))
        return [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]


def overlaid(box: Box, folder: str, target: str, files: dict[str, str], logs: Path) -> str:
    """A second face of a folder of the box: links to everything in it, but for these files with our own text.

    `target` is a place of the box that can be written to. Returns the new folder as programs spell it.
    """
    there = box.path(target)
    names = " ".join(f'"$1/{name}"' for name in files)
    script = f'mkdir -p "$1" && cp -rs "$0"/. "$1" && chmod u+w "$1" && rm -f {names or "--"}'
    ended = box.run(
        Command(argv=("/bin/sh", "-c", script, box.path(folder), there), cwd=box.path("/tmp")),
        stdout=logs / "overlay.txt",
        stderr=logs / "overlay.err.txt",
        limit_seconds=60,
    )
    if ended.exit_code != 0:
        raise NotServed(f"the folder cannot be linked: {last_words(logs / 'overlay.err.txt')}")
    for name, text in files.items():
        (logs / name).write_text(text, encoding="utf-8")
        box.put(logs / name, f"{target}/{name}")
    return there
