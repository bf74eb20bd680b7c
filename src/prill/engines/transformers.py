"""Engine `transformers`: `transformers serve` with continuous batching, for CPUs and small GPUs.

Remote code is never trusted. On a CPU the cache of continuous batching is sized by hand, because automatic sizing
looks at GPU memory. Continuous batching decodes *every* request with the sampling of the first one, so a request's
own temperature is not heard; under a contract the folder is therefore served with a generation_config.json that says
what the contract says, and one server keeps one sampling only. A suite's chat template is laid over in the same way.
Not covered: tool calls, and models that transformers cannot batch continuously.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prill.record import Contract
from prill.serving import free_port, overlaid, server
from prill.sockets import Box, Command, Endpoint
from prill.spec import BaseModel

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

    def __init__(self, start_seconds: float = 300.0) -> None:
        """`start_seconds`: until the first generation must have finished."""
        self.start_seconds = start_seconds

    def folders(self) -> tuple[Path, ...]:
        """None: it runs in our own interpreter."""
        return ()

    @contextmanager
    def serve(
        self, submission: str, model: BaseModel, box: Box, logs: Path, contract: Contract | None = None
    ) -> Iterator[Endpoint]:
        """Serve until the context ends. The server's output goes to `logs/server.txt`."""
        folder, port = box.path(submission), free_port()
        if contract is not None:
            folder = overlaid(box, submission, "/tmp/served", laid_over(contract), logs)
        options = ("--device", "auto", "--dtype", "bfloat16", "--host", "127.0.0.1", "--port", str(port), *BATCHING)
        command = Command(argv=("transformers", "serve", folder, *options), cwd=box.path("/tmp"))
        url = f"http://127.0.0.1:{port}/v1"
        with server(box, command, url, folder, logs, self.start_seconds, contract):
            settings = {"engine": "transformers", "transformers": version("transformers"), "torch": version("torch")}
            settings |= {"arguments": " ".join(options), "dtype": "bfloat16"}
            yield Endpoint(url=url, model=folder, settings=settings)


def laid_over(contract: Contract) -> dict[str, str]:
    """The files of a model folder that say how to decode, in the contract's words."""
    generation: dict[str, Any] = {"eos_token_id": list(contract.stop_ids)} if contract.stop_ids else {}
    generation["do_sample"] = not contract.greedy
    if not contract.greedy:
        generation |= contract.sampling
    files = {"generation_config.json": json.dumps(generation, indent=1)}
    if contract.suite_template is not None:
        files["chat_template.jinja"] = contract.suite_template
    return files


plugin = Transformers()
