"""Engine `endpoint`: a server that already runs. Nothing is started, nothing is stopped, nothing is known of it.

`PRILL_ENDPOINT_URL` is its OpenAI-compatible root, ending in /v1; `PRILL_ENDPOINT_MODEL` the name that it serves under.
It works only where programs of the box reach it, so not in a box without a network: use `--sandbox local`.
Not covered: servers that want a key, and whether what answers is the submission; records say `endpoint`, and that
nobody checked it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prill.errors import DefinitionError
from prill.record import Contract
from prill.serving import wait
from prill.sockets import Box, Endpoint
from prill.spec import BaseModel

URL, MODEL = "PRILL_ENDPOINT_URL", "PRILL_ENDPOINT_MODEL"


class Running:
    """See the module's docstring."""

    def __init__(self, start_seconds: float = 60.0) -> None:
        """`start_seconds`: until one generation must have finished."""
        self.start_seconds = start_seconds

    def folders(self) -> tuple[Path, ...]:
        """None."""
        return ()

    @contextmanager
    def serve(
        self, submission: str, model: BaseModel, box: Box, logs: Path, contract: Contract | None = None
    ) -> Iterator[Endpoint]:
        """The endpoint, once it has finished one generation."""
        url, name = os.environ.get(URL, "").rstrip("/"), os.environ.get(MODEL, "")
        if not url.startswith(("http://", "https://")) or not url.endswith("/v1") or not name:
            raise DefinitionError(
                f"engine endpoint needs {URL} (now {url or 'not set'!r}; an http address that ends in /v1) and {MODEL} "
                f"(now {name or 'not set'!r})"
            )
        if box.isolated:
            raise DefinitionError(f"engine endpoint: this box has no door to {url}; use `--sandbox local`")
        wait(None, box, url, name, logs, self.start_seconds, contract)
        settings = {"engine": "endpoint", "url": url, "checked": "nobody checked that this serves the submission"}
        yield Endpoint(url=url, model=name, settings=settings)


plugin = Running()
