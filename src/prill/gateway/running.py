"""The gateway as a thread: it listens on UNIX sockets until it is told to stop, and keeps the run's ledger.

Whatever is still coming from the provider when it stops is waited for a while; then it is paid in full. A client may
open so many connections, and must say something on each: a box cannot exhaust the process that guards it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from prill.errors import DefinitionError, InfraError
from prill.gateway.background import Background
from prill.gateway.carrying import Carrier
from prill.gateway.door import Door
from prill.gateway.ledger import Ledger
from prill.gateway.prices import faults
from prill.outside import Prices, Provider, Purchase

MOST_CONNECTIONS = 256
GREETING_SECONDS = 60.0
"""For the first request of a connection."""
KEEPALIVE_SECONDS = 3.0
"""An idle connection to the provider is not used again after this: it may have been closed there, and a call that is
lost that way is a call paid in full."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """A door to open: who answers behind it, where it listens, which key of the box's opens it."""

    provider: Provider | None
    prices: Prices | None
    token: str
    socket: Path
    secrets: Callable[[], str | None]
    """Gives the provider's key at this moment."""
    upstream: str | None = None
    """In the place of the provider's `url`."""
    tools: Collection[str] | None = None
    models: Collection[str] | None = None
    """This and `tools`: see `Door`."""
    kind: Purchase = "model"
    """No two doors of a gateway are of one kind."""


class Gateway(Background):
    """The doors of one run, and its ledger, which others (judges, tools, rented machines) may use from other threads.

    `step` gives the trajectory's step at this moment; `beside`: see `Ledger`. Raises `InfraError` where it cannot
    start, `DefinitionError` for a list that cannot be reckoned by; `problem` is why the ledger could not be written,
    if so.
    """

    ledger: Ledger

    def __init__(
        self,
        *openings: Opening,
        limit_usd: Decimal | None,
        ledger: Path,
        step: Callable[[], int | None] = lambda: None,
        beside: Collection[Purchase] = (),
        patience_seconds: float = 600.0,
        drain_seconds: float = 30.0,
    ) -> None:
        self.openings, self.socket = openings, openings[0].socket
        self._step, self._patience, self._drain = step, patience_seconds, drain_seconds
        self._ledger = partial(Ledger, ledger, limit_usd, beside=beside)
        self._last = ExitStack()

    @property
    def sockets(self) -> tuple[Path, ...]:
        """One for each door."""
        return tuple(opening.socket for opening in self.openings)

    def __enter__(self) -> "Gateway":
        wrong = [fault for each in self.openings if each.prices for fault in faults(each.prices)]
        if wrong:
            raise DefinitionError("; ".join(wrong[:3]))
        with self._last:
            self.ledger = self._last.enter_context(self._ledger())
            self.doors = self._doors()
            super().__enter__()
            self._last = self._last.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._last:
            super().__exit__(kind, error, trace)

    def _doors(self) -> list[Door]:
        """A door for each opening; calls at one wait for the rest of what is held at the other."""
        tokens, under_way, settled = {each.kind: each.token for each in self.openings}, set[str](), asyncio.Event()
        return [
            Door(
                provider=each.provider,
                prices=each.prices,
                ledger=self.ledger,
                tokens=tokens,
                secrets=each.secrets,
                upstream=each.upstream or (each.provider.url if each.provider else ""),
                step=self._step,
                tools=each.tools,
                models=each.models,
                kind=each.kind,
                under_way=under_way,
                settled=settled,
            )
            for each in self.openings
        ]

    @property
    def problem(self) -> InfraError | None:
        """Why the ledger could no longer be written, if it could not: nothing was bought since."""
        return next((door.problem for door in self.doors if door.problem), None)

    async def _open(self) -> None:
        self._ends = [AsyncExitStack() for _ in self.doors]
        for opening, door, ends in zip(self.openings, self.doors, self._ends, strict=True):
            await self._listen(opening, door, ends)

    async def _listen(self, opening: Opening, door: Door, ends: AsyncExitStack) -> None:
        import aiohttp
        from aiohttp import web

        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
            trust_env=opening.upstream is None,
        )
        carrier = Carrier(door, await ends.enter_async_context(session), self._patience)
        quiet = logging.Logger("prill.gateway")
        quiet.addHandler(logging.NullHandler())  # what a box sends wrongly is its own affair, not our terminal's
        server = web.Server(carrier.handle, access_log=None, logger=quiet, auto_decompress=False, keepalive_timeout=75)
        ends.push_async_callback(server.shutdown, 1.0)
        ends.push_async_callback(carrier.drained, self._drain)
        try:
            listening = await self.loop.create_unix_server(guarded(server, self.loop), str(opening.socket))
        except OSError as error:
            raise InfraError(f"the gateway cannot listen on {opening.socket}: {error}") from None
        ends.callback(listening.close)

    async def _close(self) -> None:
        await asyncio.gather(*(ends.aclose() for ends in self._ends))


def guarded(server: Any, loop: asyncio.AbstractEventLoop) -> Callable[[], asyncio.BaseProtocol]:
    """A server that takes no more connections than it may, and drops those that say nothing."""

    def connect() -> asyncio.BaseProtocol:
        if len(server.connections) >= MOST_CONNECTIONS:
            return Full()
        protocol = server()
        loop.call_later(GREETING_SECONDS, drop_silent, protocol)
        return protocol  # type: ignore[no-any-return]

    return connect


def drop_silent(protocol: Any) -> None:
    """Close a connection whose first request has not come."""
    if protocol.transport is not None and not getattr(protocol, "_request_count", 1):
        protocol.transport.abort()


class Full(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Closed at once."""
        transport.abort()  # type: ignore[attr-defined]
