"""Engine `canned`: plays back replies written in advance; the double for tests, and never a model.

The model folder holds a `canned.json`: which replies, when, and with what misbehaviour (`prill/canned.py`). The server
is a real one, a program in the box that answers over HTTP.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prill import runtime
from prill.record import Contract
from prill.serving import free_port, server
from prill.sockets import Box, Command, Endpoint
from prill.spec import BaseModel


class Canned:
    """One server for one file of replies."""

    def __init__(self, start_seconds: float = 30.0) -> None:
        """`start_seconds`: until the first reply must have come."""
        self.start_seconds = start_seconds

    def folders(self) -> tuple[Path, ...]:
        """None: it runs in our own interpreter."""
        return ()

    @contextmanager
    def serve(
        self, submission: str, model: BaseModel, box: Box, logs: Path, contract: Contract | None = None
    ) -> Iterator[Endpoint]:
        """Serve until the context ends."""
        folder, port = box.path(submission), free_port()
        argv = ("python3", "-m", "prill.canned", f"{folder}/canned.json", str(port))
        command = Command(argv=argv, cwd=box.path("/tmp"), env={"PYTHONPATH": str(runtime.package_root())})
        url = f"http://127.0.0.1:{port}/v1"
        with server(box, command, url, "canned", logs, self.start_seconds, contract):
            yield Endpoint(url=url, model="canned", settings={"engine": "canned", "note": "replies written in advance"})


plugin = Canned()
