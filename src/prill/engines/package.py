"""Engine `package`: the submission brings its own server, started by its `serve.sh`, and answers for all that it does.

`bash serve.sh` runs in the package's folder, which cannot be written to, with `HOST` and `PORT`. `GET /health` must
answer 200 and one generation must have finished within 300 s (the wallet trial's limit, there for the health page
alone). Requests go to `/v1/chat/completions` and name the first model that `GET /v1/models` lists, or `model`.
`serve.sh` lasts as long as its server; whatever else it starts ends with the box.
Not covered: whether it answers with the package's weights (judge `inference`), and how it samples.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prill.errors import InfraError
from prill.record import Contract
from prill.serving import free_port, probed, wait
from prill.sockets import Box, Command, Endpoint, Keep, NotServed, Running
from prill.spec import BaseModel
from prill.submitted import START

LOG_BYTES = 64 << 20
"""Of what the server prints, for each stream; the rest is dropped."""


class Package:
    """One server for one package."""

    apart = True
    control = "transformers"

    def __init__(self, start_seconds: float = 300.0) -> None:
        """`start_seconds`: until the first generation must have finished."""
        self.start_seconds = start_seconds

    def folders(self) -> tuple[Path, ...]:
        """None: it runs in our own interpreter, or in what it brings."""
        return ()

    @contextmanager
    def serve(
        self, submission: str, model: BaseModel, box: Box, logs: Path, contract: Contract | None = None
    ) -> Iterator[Endpoint]:
        """Serve until the context ends. The server's output goes to `logs/server.txt` and `logs/server.err.txt`."""
        port = free_port()
        env = {"HOST": "127.0.0.1", "PORT": str(port), "PYTHONPATH": ""}
        command = Command(argv=("bash", START), cwd=box.path(submission), env=env)
        running = box.start(
            command, stdout=logs / "server.txt", stderr=logs / "server.err.txt", keep=Keep(most_bytes=LOG_BYTES)
        )
        try:
            name = self.ready(running, box, f"http://127.0.0.1:{port}", logs, contract)
            settings = {"engine": "package", "arguments": f"bash {START}"}
            yield Endpoint(url=f"http://127.0.0.1:{port}/v1", model=name, settings=settings, own=True)
        finally:
            running.stop()

    def ready(self, running: Running, box: Box, root: str, logs: Path, contract: Contract | None) -> str:
        """Wait for the health page, then for a generation: the name that requests bear. Raises `NotServed`."""
        began = time.monotonic()
        try:
            said = probed(running, box, ("healthy", root, str(self.start_seconds)), logs, self.start_seconds)
            name = str(json.loads(said))
            left = max(1.0, self.start_seconds - (time.monotonic() - began))
            wait(running, box, f"{root}/v1", name, logs, left, contract)
        except NotServed:
            ended = running.poll()
            if ended is not None and ended.exit_code == 0:
                why = f"{START} ended with exit code 0; it must last as long as its server, so end it with exec or wait"
                raise NotServed(why) from None
            raise
        except InfraError as error:  # the base in a fresh box will show whether the machine is to blame
            raise NotServed(f"nothing more can be started beside its server: {error}") from None
        except (ValueError, RecursionError):
            raise NotServed("a program of its box changed what the probe said") from None
        return name


plugin = Package()
