"""The doors out of an agent's box: the gateway to a model, the proxy to other hosts, the front of the hub, self-checks.

Each listens on a UNIX socket in a folder that is mounted into the network-less box, where a relay gives it a port of
the box's own loopback. The box cannot write the folder, nor the ledger and logs that the doors keep.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from socket import socket
from typing import Any
from urllib.parse import urlsplit

from prill.catalog import Catalog
from prill.errors import InfraError
from prill.folder import RunFolder
from prill.gateway.egress import Egress
from prill.gateway.hub import HubFront
from prill.gateway.hubpaths import denied_of
from prill.gateway.keys import keys
from prill.gateway.ledger import Ledger, text
from prill.gateway.running import Gateway
from prill.items import cache
from prill.sockets import DOOR, EGRESS, HUB, Box, Command
from prill.solving.checks import Checks
from prill.solving.place import CHECK, DOORS, GIVEN
from prill.spec import RunSpec

START_SECONDS = 30.0
SOCKETS = {"model": (DOOR, "model.sock"), "egress": (EGRESS, "egress.sock"), "hub": (HUB, "hub.sock")}


@dataclass
class Doors:
    """What is open, and where."""

    folder: Path
    """On the host; mounted into the box."""
    ledger: Ledger
    step: Callable[[], int | None]
    names: list[str] = field(default_factory=list)
    """Which of `SOCKETS` are there."""

    def ports(self, box: Box) -> dict[str, int]:
        """The port of each door in the box: fixed, or, where the loopback is everybody's, one that is free."""
        return {name: urlsplit(SOCKETS[name][0]).port or 0 if box.isolated else free_port() for name in self.names}

    def relay(self, box: Box, ports: dict[str, int], env: dict[str, str], scratch: Path) -> None:
        """Start the relay in the box and wait until it listens."""
        if not ports:
            return
        pairs = [f"{port}={box.path(f'{DOORS}/{SOCKETS[name][1]}')}" for name, port in ports.items()]
        said = scratch / "relay"
        argv = ("python3", box.path(f"{GIVEN}/bin/relay"), "--ready", "-", *pairs)
        running = box.start(Command(argv=argv, env=env, cwd=box.path("/tmp")), stdout=said, stderr=said)
        until = time.monotonic() + START_SECONDS
        while b"ready" not in said.read_bytes():
            if time.monotonic() > until or running.poll():
                raise InfraError(f"the relay in the box did not start: {said.read_text(errors='replace')[-500:]}")
            time.sleep(0.02)

    def money(self) -> dict[str, Any]:
        """What the wallet says, as decimal text; a limit of `None` is no limit."""
        limit, left = self.ledger.limit, self.ledger.left
        told = {"usd_limit": limit, "usd_spent": self.ledger.spent, "usd_held": self.ledger.held, "usd_left": left}
        return {name: None if amount is None else text(amount) for name, amount in told.items()}

    def empty(self) -> bool:
        """Whether nothing is left in the wallet."""
        return self.ledger.limit is not None and (self.ledger.left or 0) <= 0


def free_port() -> int:
    """A port of the loopback that nobody has at this moment."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def opened(
    run: RunFolder, spec: RunSpec, catalog: Catalog, token: str, step: Callable[[], int | None]
) -> Iterator[Doors]:
    """Open the doors that the spec wants; they close, with their last entries on disk, when the context ends."""
    with ExitStack() as last:
        folder = Path(tempfile.mkdtemp(prefix="prill-"))  # short: a socket's path has a hundred letters at most
        last.callback(shutil.rmtree, folder, ignore_errors=True)
        limit = None if spec.budget.usd is None else Decimal(str(spec.budget.usd))
        if spec.provider is None:
            doors = Doors(folder, last.enter_context(Ledger(run.ledger, limit, beside=spec.budget.beside)), step)
        else:
            provider = spec.provider
            upstream = (
                last.enter_context(rehearsed(run, catalog.asset(provider.scenario))) if provider.scenario else None
            )
            gateway = Gateway(
                provider=provider,
                prices=spec.prices,
                limit_usd=limit,
                beside=spec.budget.beside,
                token=token,
                ledger=run.ledger,
                socket=folder / SOCKETS["model"][1],
                secrets=keys(provider),
                upstream=upstream,
                step=step,
                # A provider's own search leaves by the provider's network, past the policy for hosts.
                tools=None if spec.hosts and spec.hosts.otherwise == "allow" else (),
            )
            doors = Doors(folder, last.enter_context(gateway).ledger, step, ["model"])
        if spec.hosts is not None:
            last.enter_context(
                Egress(policy=spec.hosts, log=run.egress, socket=folder / SOCKETS["egress"][1], step=step)
            )
            doors.names.append("egress")
            if spec.hosts.hub:
                denied, flagged = denied_of(spec)
                front = HubFront(
                    upstream=spec.hosts.hub,
                    cache=cache() / "hub",
                    log=run.hub,
                    socket=folder / SOCKETS["hub"][1],
                    denied=denied,
                    flagged=flagged,
                    key=lambda: os.environ.get("HF_TOKEN"),
                    step=step,
                )
                last.enter_context(front)
                doors.names.append("hub")
        if spec.budget.self_checks:
            last.enter_context(Checks(run, spec.budget.self_checks, catalog, folder / CHECK))
        yield doors


@contextmanager
def rehearsed(run: RunFolder, scenario: Path) -> Iterator[str]:
    """A scripted provider that plays a scenario on this machine: its root while the context lasts."""
    said = run.solving / "provider.txt"
    argv = [sys.executable, "-m", "prill.rehearsal", str(scenario), "--port", "0", "--attached"]
    argv += ["--truth", str(run.provider)]
    with said.open("wb") as out:
        program = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, stderr=out)  # it dies with us
    try:
        until = time.monotonic() + START_SECONDS
        while b"\n" not in said.read_bytes():
            if time.monotonic() > until or program.poll() is not None:
                raise InfraError(f"the scripted provider did not start: {said.read_text(errors='replace')[-500:]}")
            time.sleep(0.02)
        yield said.read_text().split()[-1]
    finally:
        program.terminate()
        try:
            program.wait(10)
        except subprocess.TimeoutExpired:
            program.kill()
