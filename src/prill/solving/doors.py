"""The doors out of an agent's box: the gateway to a model and to a teacher, the proxy to other hosts, the front of the
hub, self-checks.

Each listens on a UNIX socket in a folder that is mounted into the network-less box, where a relay gives it a port of
the box's own loopback. The box cannot write the folder, nor the ledger and logs that the doors keep.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
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
from prill.gateway.running import Gateway, Opening
from prill.items import cache
from prill.outside import Provider, Purchase
from prill.sockets import DOOR, EGRESS, HUB, TEACHER, Box, Command
from prill.solving.checks import Checks
from prill.solving.place import CHECK, DOORS, GIVEN
from prill.spec import RunSpec

START_SECONDS = 30.0
SOCKETS = {
    "model": (DOOR, "model.sock"),
    "egress": (EGRESS, "egress.sock"),
    "hub": (HUB, "hub.sock"),
    "teacher": (TEACHER, "teacher.sock"),
}


@dataclass
class Doors:
    """What is open, and where."""

    folder: Path
    """On the host; mounted into the box."""
    ledger: Ledger
    step: Callable[[], int | None]
    names: list[str] = field(default_factory=list)
    """Which of `SOCKETS` are there."""
    teacher_key: str = field(default="", repr=False)
    """The box's own key for the teacher's door; empty where there is none."""

    def ports(self, box: Box) -> dict[str, int]:
        """The port of each door in the box: fixed, or, where the loopback is everybody's, one that is free."""
        return {name: urlsplit(SOCKETS[name][0]).port or 0 if box.isolated else free_port() for name in self.names}

    def told(self, teacher: Provider | None, ports: Mapping[str, int]) -> dict[str, str]:
        """What a box finds in its environment about its teacher; nothing where it has none."""
        if teacher is None:
            return {}
        url = f"http://127.0.0.1:{ports['teacher']}{teacher.base}"
        return {"PRILL_TEACHER_URL": url, "PRILL_TEACHER_KEY": self.teacher_key}

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
        doors = sold(run, spec, catalog, folder, token, step, last)
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


def sold(
    run: RunFolder, spec: RunSpec, catalog: Catalog, folder: Path, token: str, step: Callable[[], int | None],
    last: ExitStack,
) -> Doors:  # fmt: skip
    """The ledger, and the gateway's doors to the agent's own model and to its teacher, as far as the spec has them."""
    limit = None if spec.budget.usd is None else Decimal(str(spec.budget.usd))
    teacher_key = f"prill_{secrets.token_hex(24)}"
    # A provider's own search leaves by the provider's network, past the policy for hosts.
    tools = None if spec.hosts and spec.hosts.otherwise == "allow" else ()

    def opening(kind: Purchase, provider: Provider, key: str, truth: Path) -> Opening:
        played = rehearsed(run, catalog.asset(provider.scenario), truth) if provider.scenario else None
        return Opening(
            provider=provider,
            prices=spec.prices,
            token=key,
            socket=folder / SOCKETS[kind][1],
            secrets=keys(provider),
            upstream=last.enter_context(played) if played else None,
            tools=tools,
            models=spec.teacher_models if kind == "teacher" else None,
            kind=kind,
        )

    openings = [opening("model", spec.provider, token, run.provider)] if spec.provider else []
    openings += [opening("teacher", spec.teacher, teacher_key, run.teacher)] if spec.teacher else []
    if not openings:
        return Doors(folder, last.enter_context(Ledger(run.ledger, limit, beside=spec.budget.beside)), step)
    gateway = Gateway(*openings, limit_usd=limit, ledger=run.ledger, step=step, beside=spec.budget.beside)
    names: list[str] = [each.kind for each in openings]
    return Doors(folder, last.enter_context(gateway).ledger, step, names, teacher_key)


@contextmanager
def rehearsed(run: RunFolder, scenario: Path, truth: Path) -> Iterator[str]:
    """A scripted provider that plays a scenario on this machine: its root while the context lasts. What it says that it
    charged goes to the file `truth`."""
    said = run.solving / f"{truth.stem}.txt"
    argv = [sys.executable, "-m", "prill.rehearsal", str(scenario), "--port", "0", "--attached"]
    argv += ["--truth", str(truth)]
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
