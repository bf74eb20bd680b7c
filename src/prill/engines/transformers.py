"""Engine `transformers`: `transformers serve` with continuous batching, for CPUs and small GPUs.

Remote code is never trusted. On a CPU the cache of continuous batching is sized by hand, because automatic sizing
looks at GPU memory. Not covered: tool calls, and models that transformers cannot batch continuously.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from prill import runtime
from prill.sockets import Box, Command, Endpoint, NotServed, Running
from prill.spec import BaseModel

START_SECONDS = 300.0
BATCHING = (
    "--continuous-batching",
    "--cb-num-blocks",
    "1024",
    "--cb-block-size",
    "32",
    "--cb-max-batch-tokens",
    "1024",
)


class Transformers:
    """One server for one model folder."""

    @contextmanager
    def serve(self, submission: str, model: BaseModel, box: Box, logs: Path) -> Iterator[Endpoint]:
        """Serve until the context ends. The server's output goes to `logs/server.txt`."""
        folder, port = box.path(submission), free_port()
        options = ("--device", "auto", "--dtype", "bfloat16", "--host", "127.0.0.1", "--port", str(port), *BATCHING)
        argv = ("transformers", "serve", folder, *options)
        url = f"http://127.0.0.1:{port}/v1"
        log = logs / "server.txt"
        server = box.start(Command(argv=argv, cwd=box.path("/tmp")), stdout=log, stderr=logs / "server.err.txt")
        try:
            wait(server, box, url, folder, logs)
            settings = {"engine": "transformers", "transformers": version("transformers"), "torch": version("torch")}
            settings |= {"arguments": " ".join(options), "dtype": "bfloat16"}
            yield Endpoint(url=url, model=folder, settings=settings)
        finally:
            server.stop()


def wait(server: Running, box: Box, url: str, model: str, logs: Path) -> None:
    """Until one generation has finished. Raises `NotServed` as soon as the server dies or the time is over."""
    argv = ("python3", "-m", "prill.inside", "ready", url, model, str(START_SECONDS))
    command = Command(argv=argv, cwd=box.path("/tmp"), env={"PYTHONPATH": str(runtime.package_root())})
    probe = box.start(command, stdout=logs / "ready.txt", stderr=logs / "ready.err.txt")
    try:
        while True:
            if server.poll() is not None:
                raise NotServed(f"the server ended: {last_words(logs / 'server.err.txt')}")
            ended = probe.poll()
            if ended is not None and ended.exit_code == 0:
                return
            if ended is not None:
                raise NotServed(f"not ready: {last_words(logs / 'ready.err.txt')}")
            time.sleep(0.1)
    finally:
        probe.stop(grace_seconds=0.0)


def free_port() -> int:
    """A port that nobody listens on here; in a box with its own network any port is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def last_words(log: Path) -> str:
    """The last line that says something, for an error message."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:500] if lines else "it said nothing"


plugin = Transformers()
