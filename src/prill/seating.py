"""Whoever answers for a panel: a model behind a gateway of the judge's own, or an agent in a fresh box for each answer.

The key stays outside every box, and the judge's ledger holds what an answer may cost before it is asked. An agent that
judges sees copies of the evidence, read-only and without the right to run, an empty folder of its own, our programs
first on its PATH, and no network but the gateway. Not covered: what it makes of the evidence (`panel/` checks that).
"""

import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from prill import npm, plugins, runtime
from prill.catalog import Catalog
from prill.errors import DefinitionError, InfraError
from prill.folder import RunFolder
from prill.gateway.keys import keys
from prill.gateway.ledger import Ledger, entries, text
from prill.gateway.running import Gateway, Opening
from prill.headless import TASK
from prill.panel.inquiry import EVIDENCE
from prill.panels import Panel
from prill.sockets import Agent, Box, Inquiry, Keep, Mount, Need
from prill.solving import preflight
from prill.solving.doors import SOCKETS, Doors, rehearsed
from prill.solving.place import DOORS, GIVEN, HOME, TOOLS, placed
from prill.spec import Entrant

OUTPUT_BYTES = 64 << 20
"""Of an agent that judges."""


@dataclass
class Seat:
    """A panel's seat: the doors to whoever answers, and what lies in a box that reaches them."""

    panel: Panel
    catalog: Catalog
    sandbox: str
    scratch: Path
    doors: Doors
    token: str
    answers: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """The relay lies ready."""
        given = self.scratch / "given"
        for name in ("bin", "doors", "nothing"):
            made(given / name)
        shutil.copyfile(runtime.PACKAGE / "tools" / TOOLS["relay"], given / "bin" / "relay")

    def mounts(self) -> list[Mount]:
        """The relay and the doors, for any box that asks."""
        given = self.scratch / "given"
        return [Mount(source=given, target=GIVEN), Mount(source=self.doors.folder, target=DOORS)]

    def opened(self, box: Box, scratch: Path) -> dict[str, int]:
        """The doors in a box, once they can be used: name → port."""
        ports = self.doors.ports(box)
        self.doors.relay(box, ports, runtime.environment(), scratch)
        return ports

    def spent(self) -> dict[str, Any]:
        """What the judge's ledger says, as decimal text."""
        rows, _ = entries(self.doors.ledger.path)
        tokens: dict[str, int] = {}
        for row in rows:
            for kind, number in row.tokens.items():
                tokens[kind] = tokens.get(kind, 0) + number
        calls = sum(row.action == "charge" for row in rows)
        return {**self.doors.money(), "usd_spent": text(self.doors.ledger.spent), "calls": calls, "tokens": tokens}

    # --- an agent ---

    def answer(self, inquiries: list[Inquiry]) -> list[str]:
        """An answer to each, by an agent in a fresh box, some at a time."""
        with ThreadPoolExecutor(max(1, self.panel.connections)) as pool:
            return list(pool.map(self.one, inquiries))

    def one(self, inquiry: Inquiry) -> str:
        """One agent, one box, one answer: the last words that it says."""
        entrant = entrant_of(self.panel, self.catalog)
        agent: Agent = plugins.get("agents", entrant.agent)
        command = agent.command(entrant, f"{inquiry.system}\n\n{inquiry.user}")
        room = Path(tempfile.mkdtemp(prefix="seat-", dir=self.scratch))
        programs = (npm.folder(agent.package, str(entrant.version)),) if agent.package else ()
        out = room / "stdout"
        mounts = [
            *self.mounts(),
            Mount(source=made(room / "task"), target=TASK, writable=True),
            Mount(source=self.scratch / "evidence", target=EVIDENCE),
            *(Mount(source=made(room / place.removeprefix(HOME)[1:]), target=place, writable=True)
              for place in command.kept),
            *(Mount(source=self.catalog.asset(source), target=target) for target, source in command.files.items()),
            *(Mount(source=self.scratch / "given" / "nothing", target=str(path)) for path in runtime.hidden()),
        ]  # fmt: skip
        need = Need(
            mounts=tuple(mounts),
            runtime=(*runtime.folders(), *programs, *(npm.runtime_folders() if programs else ())),
            processes=512,
        )
        with plugins.get("sandboxes", self.sandbox).open(need) as box:
            if not box.isolated:
                raise InfraError(
                    f"sandbox {self.sandbox} does not isolate: an agent that judges could run what it judges; ask a "
                    "plain model (a panel without `agent`), or use a sandbox that isolates"
                )
            ports = self.opened(box, room)
            own = runtime.environment()
            path = ":".join([box.path(f"{GIVEN}/bin"), *(str(each / npm.COMMANDS) for each in programs), own["PATH"]])
            ready = placed(command, box, {**own, "PATH": path, "HOME": box.path(HOME)}, self.token, ports, room)
            if programs:
                preflight.starts(box, ready, room)
            keep = Keep(most_bytes=OUTPUT_BYTES)
            box.run(ready, stdout=out, stderr=room / "stderr", limit_seconds=self.panel.answer_seconds, keep=keep)
        with out.open("rb") as lines:
            said = [step.text for step in agent.read(lines) if is_word(step)]
        with self.lock:
            self.answers += 1
            with (self.scratch / "replies").open("ab") as kept:
                kept.write(msgspec.json.encode({"id": str(self.answers), "text": said[-1] if said else ""}) + b"\n")
        return said[-1] if said else ""


def is_word(step: Any) -> bool:
    """Whether a step is something that the agent says."""
    return step.kind == "message" and step.source == "agent" and not step.thought and bool(step.text.strip())


def made(folder: Path) -> Path:
    """An empty folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def entrant_of(panel: Panel, catalog: Catalog) -> Entrant:
    """The panel's agent, as an agent plug-in wants it. `DefinitionError` where the panel has none."""
    if panel.agent is None:
        raise DefinitionError(f"panels/{panel.name}: it has no agent")
    provider = catalog.provider(panel.provider)
    return Entrant(
        name=f"panel-{panel.name}",
        title=panel.title,
        agent=panel.agent,
        model=panel.model,
        effort=panel.effort,
        account="subscription" if provider.key_file else "api",
        provider=panel.provider,
        program=panel.program,
        version=panel.version,
        settings=panel.settings,
    )


@contextmanager
def seated(panel: Panel, catalog: Catalog, sandbox: str, scratch: Path, ledger: Path) -> Iterator[Seat]:
    """Open the gateway of a panel; its last entries are on disk when the context ends. Raises `InfraError`."""
    provider, prices = catalog.provider(panel.provider), catalog.prices(panel.prices)
    if panel.agent is None and panel.wire not in provider.wires:
        raise DefinitionError(f"panels/{panel.name}: provider {provider.name} has no wire {panel.wire!r}")
    if panel.model not in prices.models:
        raise DefinitionError(f"panels/{panel.name}: prices/{prices.name} has no model {panel.model!r}")
    preflight.answers(provider)
    token = f"prill_{secrets.token_hex(24)}"
    with ExitStack() as last:
        folder = Path(tempfile.mkdtemp(prefix="prill-"))  # short: a socket's path has a hundred letters at most
        last.callback(shutil.rmtree, folder, ignore_errors=True)
        upstream = None
        if provider.scenario:
            stage = RunFolder(scratch)
            made(stage.solving)
            upstream = last.enter_context(rehearsed(stage, catalog.asset(provider.scenario), stage.provider))
        door = Opening(
            provider=provider,
            prices=prices,
            token=token,
            socket=folder / SOCKETS["model"][1],
            secrets=keys(provider),
            upstream=upstream,
            tools=(),
            kind="judge",
        )
        limit = Decimal(str(panel.usd))
        gateway = Gateway(door, limit_usd=limit, ledger=ledger, patience_seconds=panel.answer_seconds)
        kept: Ledger = last.enter_context(gateway).ledger
        yield Seat(panel, catalog, sandbox, scratch, Doors(folder, kept, lambda: None, ["model"]), token)


def described(panel: Panel, words: str) -> dict[str, Any]:
    """A panel as a judgement keeps it; `words` is the digest of what it says."""
    return {"panel": msgspec.to_builtins(panel), "prompts": words}
