"""The gateway as a thread: it listens on a UNIX socket until it is told to stop, and keeps the run's ledger.

Whatever is still coming from the provider when it stops is waited for a while; then it is paid in full. A client may
open so many connections, and must say something on each: a box cannot exhaust the process that guards it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack, ExitStack
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from prill.errors import DefinitionError, InfraError
from prill.gateway.background import Background
from prill.gateway.carrying import Carrier
from prill.gateway.door import Door
from prill.gateway.ledger import Kind, Ledger
from prill.gateway.prices import faults
from prill.outside import Prices, Provider

MOST_CONNECTIONS = 256
GREETING_SECONDS = 60.0
"""For the first request of a connection."""
KEEPALIVE_SECONDS = 3.0
"""An idle connection to the provider is not used again after this: it may have been closed there, and a call that is
lost that way is a call paid in full."""


class Gateway(Background):
    """The door of one run, and its ledger, which others (judges, tools, rented machines) may use from other threads.

    `socket` is where the door listens; `upstream` takes the place of the provider's `url`; `secrets` gives the key at
    this moment, `step` the trajectory's step. `beside`: see `Ledger`; `tools` and `kind`: see `Door`. Raises
    `InfraError` where it cannot start, `DefinitionError` for a list that cannot be reckoned by; `problem` is why the
    ledger could not be written, if so.
    """

    ledger: Ledger

    def __init__(
        self,
        *,
        provider: Provider | None,
        prices: Prices | None,
        limit_usd: Decimal | None,
        token: str,
        ledger: Path,
        socket: Path,
        secrets: Callable[[], str | None],
        upstream: str | None = None,
        step: Callable[[], int | None] = lambda: None,
        beside: Collection[Kind] = (),
        tools: Collection[str] | None = None,
        kind: Kind = "model",
        patience_seconds: float = 600.0,
        drain_seconds: float = 30.0,
    ) -> None:
        self.socket, self._patience, self._drain = socket, patience_seconds, drain_seconds
        self._prices = prices
        self._own_upstream = upstream is not None
        self._ledger = partial(Ledger, ledger, limit_usd, beside=beside)
        self._door: Callable[[Ledger], Door] = partial(
            lambda kept, **rest: Door(ledger=kept, **rest),
            provider=provider,
            prices=prices,
            token=token,
            secrets=secrets,
            upstream=upstream or (provider.url if provider else ""),
            step=step,
            tools=tools,
            kind=kind,
        )
        self._last = ExitStack()

    def __enter__(self) -> "Gateway":
        wrong = faults(self._prices) if self._prices else []
        if wrong:
            raise DefinitionError("; ".join(wrong[:3]))
        with self._last:
            self.ledger = self._last.enter_context(self._ledger())
            self.door = self._door(self.ledger)
            super().__enter__()
            self._last = self._last.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._last:
            super().__exit__(kind, error, trace)

    @property
    def problem(self) -> InfraError | None:
        """Why the ledger could no longer be written, if it could not: nothing was bought since."""
        return self.door.problem

    async def _open(self) -> None:
        import aiohttp
        from aiohttp import web

        self._ends = AsyncExitStack()
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
            trust_env=not self._own_upstream,
        )
        carrier = Carrier(self.door, await self._ends.enter_async_context(session), self._patience)
        quiet = logging.Logger("prill.gateway")
        quiet.addHandler(logging.NullHandler())  # what a box sends wrongly is its own affair, not our terminal's
        server = web.Server(carrier.handle, access_log=None, logger=quiet, auto_decompress=False, keepalive_timeout=75)
        self._ends.push_async_callback(server.shutdown, 1.0)
        self._ends.push_async_callback(carrier.drained, self._drain)
        try:
            listening = await self.loop.create_unix_server(guarded(server, self.loop), str(self.socket))
        except OSError as error:
            raise InfraError(f"the gateway cannot listen on {self.socket}: {error}") from None
        self._ends.callback(listening.close)

    async def _close(self) -> None:
        await self._ends.aclose()


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
