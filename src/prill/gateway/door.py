"""The door: a call of a model is let out once it is known, allowed and paid for at its worst. Then `carrying.py`
moves its bytes.

The box holds a token that is good for this door alone; the key is put in here and never goes in. A request leaves
byte for byte but for the key, hop-by-hop headers, `accept-encoding` (or its usage could not be read), a chat stream
that did not ask for its usage, and a limit of output that is lowered where the wallet would not pay for the one asked.
Not covered: what a provider does with a request beyond what its wire's file reads, and what its own tools reach.
"""

import asyncio
import hmac
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, Literal
from urllib.parse import parse_qsl
from uuid import uuid4

from multidict import CIMultiDict

from prill.errors import InfraError
from prill.gateway import anthropic, chat, gemini, prices, responses
from prill.gateway.ledger import Ledger, Passed, plain, text
from prill.gateway.wire import Asked, Refused, Seen, Wire, encoded, parsed
from prill.outside import Price, Prices, Provider, Purchase

Request = Any
"""aiohttp's `BaseRequest`; it is not imported with this module, because it is heavy."""
WIRES = {each.name: each for each in (anthropic.wire, responses.wire, chat.wire, gemini.wire)}
GATHER_SECONDS = 0.001
"""Between a hold and its fsync: the request goes out first."""
NOTED = 1_000
"""Lines for calls without a price; after that only each so-many-th is written."""
MOST_BODY = 64 << 20
"""Bytes of a request's body."""
PATH = re.compile(r"(?:/[\w.:~-]+)+/?")
QUERY = {"beta", "alt", "api-version", "client_version"}
"""What may stand in the query of a path that costs money."""
HOP = {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"}
HOP |= {"transfer-encoding", "upgrade"}
OURS = {"host", "content-length", "accept-encoding", "expect", "cookie", "authorization", "x-api-key", "x-goog-api-key"}
OURS |= {"x-http-method-override", "x-http-method", "x-method-override", "x-goog-user-project", "forwarded", "via"}
"""Headers of a request that we set, or that would make a provider take it for another one."""
LISTS = {"anthropic-beta", "openai-beta"}
"""Headers that are lists: what the provider's definition says and what the client says both count."""


@dataclass
class Visit:
    """One request on its way through."""

    request: Request
    path: str
    wire: Wire | None
    began: float
    id: str | None = None
    """Of its hold; `None` while nothing is held."""
    price: Price | None = None
    model: str | None = None
    sent: int = 0
    bore: Purchase | None = None
    """Whose key it showed."""
    host: str = ""
    settled: bool = False
    held: asyncio.Task[None] | None = None
    """Done once the hold is on disk."""


@dataclass(kw_only=True)
class Door:
    """Decides about each call; the same for all calls of one kind."""

    provider: Provider | None
    prices: Prices | None
    ledger: Ledger
    tokens: Mapping[Purchase, str]
    """The box's keys, by what they are for; this door is opened by its own `kind`'s."""
    secrets: Callable[[], str | None]
    upstream: str
    """Root of the API that calls go to."""
    step: Callable[[], int | None]
    tools: Collection[str] | None = None
    """The provider's own tools that may be used; `None`: all that have a price."""
    models: Collection[str] | None = None
    """Models that may be called; `None`: all that have a price."""
    kind: Purchase = "model"
    """What calls are in the ledger."""
    body_seconds: float = 120.0
    """For a request's body to come in."""
    queue_seconds: float = 60.0
    """For a call that the wallet would pay for once calls under way have given the rest of their holds back."""
    problem: InfraError | None = None
    """Why the ledger could no longer be written, if it could not."""
    broken: InfraError | None = None
    """Why a hold did not reach the disk; nothing is bought after that."""
    unpaid: int = 0
    """Calls that were refused or free so far."""
    under_way: set[str] = field(default_factory=set)
    """Holds of calls that may give something back; doors to one wallet share them, and `settled`."""
    writing: set[asyncio.Task[None]] = field(default_factory=set)
    """On their way to the disk."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    def visit(self, request: Request) -> Visit:
        """A request, with the wire that its path belongs to."""
        path = request.raw_path.partition("?")[0]
        wires = [WIRES[name] for name in (self.provider.wires if self.provider else ())]
        wire = next((each for each in wires if each.paths.fullmatch(path)), None)
        return Visit(request=request, path=path, wire=wire, began=time.monotonic())

    async def admit(self, visit: Visit) -> bytes:
        """The body to send, once all is allowed and what it may cost is held.

        The hold is in the ledger's file before the call leaves, so it outlives this process; it is on disk before the
        client sees a byte of the reply (`Visit.held`), since that wait may pass while the provider works. Raises
        `Refused`, and `InfraError` once the disk has failed.
        """
        self._place(visit)
        self._greet(visit)
        if self.broken is not None:
            raise self.broken
        body = await self._body(visit)
        if visit.wire is not None:
            body = await self._buy(visit, visit.wire, body)
            visit.held = asyncio.get_running_loop().create_task(self._to_disk())
            self.writing.add(visit.held)
            visit.held.add_done_callback(self.writing.discard)
        return body

    def _place(self, visit: Visit) -> None:
        """Whether there is such a place; asked before the token is, for programs look whether anybody is there."""
        request = visit.request
        if self.provider is None or self.prices is None:
            raise Refused(403, "this run has no provider: no model may be called")
        if not PATH.fullmatch(visit.path) or ".." in visit.path or "#" in request.raw_path:
            raise Refused(403, "this path is not allowed here")
        if visit.wire is None and not self._free(visit):
            raise Refused(403, f"{request.method} {visit.path} is not allowed here")
        if request.headers.get("upgrade"):
            raise Refused(426, "only HTTP requests pass here")
        if visit.wire is not None and request.method != "POST":
            raise Refused(405, f"{visit.path} takes POST")
        names = {name for name, _ in parse_qsl(request.raw_path.partition("?")[2], keep_blank_values=True)}
        if names & {"key", "access_token"} or (visit.wire is not None and names - QUERY):
            raise Refused(403, f"not allowed in the query here: {', '.join(sorted(names - QUERY))}")

    def _greet(self, visit: Visit) -> None:
        """Whose request it is, and whether its body can be read."""
        headers = visit.request.headers
        shown = [headers.get(name, "") for name in ("x-api-key", "x-goog-api-key")]
        shown += [headers.get("authorization", "").removeprefix("Bearer ")]
        words = [each.encode(errors="surrogateescape") for each in shown]
        known = [
            kind
            for kind, token in self.tokens.items()
            if any(hmac.compare_digest(word, token.encode()) for word in words)
        ]
        visit.bore = next((kind for kind in known if kind != self.kind), known[0] if known else None)
        if visit.bore != self.kind:
            whose = f"; one that is the {visit.bore}'s was shown" if visit.bore else ""
            raise Refused(401, f"this door is opened by the run's own token for it, in the provider's header{whose}")
        if headers.get("content-encoding", "identity") != "identity":
            raise Refused(415, "send the body as it is, without content-encoding")

    def _free(self, visit: Visit) -> bool:
        """Whether a path is one of those that cost nothing; `*` is any part of one."""
        patterns = self.provider.free if self.provider else ()
        fits = (re.fullmatch(re.escape(each).replace(r"\*", "[^/]*"), visit.path) for each in patterns)
        return visit.request.method in ("GET", "HEAD", "POST") and any(fits)

    async def _body(self, visit: Visit) -> bytes:
        """The whole body, up to what is allowed."""
        from aiohttp import ClientError, web

        found = bytearray()
        try:
            async with asyncio.timeout(self.body_seconds):
                async for piece in visit.request.content.iter_any():
                    found += piece
                    if len(found) > MOST_BODY:
                        raise Refused(413, f"the body has more than {MOST_BODY} bytes")
        except TimeoutError:
            raise Refused(408, f"the body was not here after {self.body_seconds:g} s") from None
        except (ClientError, web.RequestPayloadError, OSError):
            raise Refused(400, "the body did not come whole") from None
        visit.sent = len(found)
        return bytes(found)

    async def _buy(self, visit: Visit, wire: Wire, body: bytes) -> bytes:
        """Hold the most that the call may cost; the body, changed if it must be."""
        data = parsed(body)
        match = wire.paths.fullmatch(visit.path)
        asked = wire.asked(match.groupdict() if match else {}, data)
        visit.model, price = asked.model[:200], self.prices.models.get(asked.model) if self.prices else None
        if price is None:
            raise Refused(403, f"the list of prices has no model {visit.model!r}: it may not be called")
        if self.models is not None and asked.model not in self.models:
            raise Refused(403, f"{visit.model!r} may not be called here; allowed: {', '.join(sorted(self.models))}")
        barred = set(asked.tools) - set(asked.tools if self.tools is None else self.tools)
        if barred:
            raise Refused(403, f"not allowed here: {', '.join(sorted(barred))}")
        visit.price = price
        most, metered = prices.output_bound(price, asked), wire.metered(data)
        cap = await self._hold(visit, asked, price, body, most)
        if cap < most:
            return self._changed(visit, wire.capped(metered or data, cap))
        return body if metered is None else self._changed(visit, metered)

    async def _hold(self, visit: Visit, asked: Asked, price: Price, body: bytes, most: int) -> int:
        """The limit of output that is paid for, at most `most`; waits for calls under way before it says no."""
        assert visit.wire is not None
        before = prices.without_output(price, asked, len(body), prices.cache_writes(visit.wire.name, body))
        each = prices.dearest_output(price, asked, len(body))
        until = time.monotonic() + self.queue_seconds
        while True:
            self.settled.clear()
            cap = prices.fitting(self.ledger.room(self.kind), before, each, asked.replies, most)
            usd = before + each * asked.replies * (cap or 0)
            id = uuid4().hex
            if cap is not None and self.ledger.hold(
                id, usd, kind=self.kind, model=visit.model, step=self.step(), wait=False
            ):
                visit.id = id
                self.under_way.add(id)
                return cap
            if cap is None:
                left = until - time.monotonic()
                if not self.under_way or left <= 0:
                    least = before + each * asked.replies * min(most, prices.LEAST_OUTPUT)
                    raise Empty(least, self.ledger.room(self.kind))
                try:
                    async with asyncio.timeout(left):
                        await self.settled.wait()
                except TimeoutError:
                    continue

    def _changed(self, visit: Visit, data: dict[str, object]) -> bytes:
        """A changed body; its hold is given back where it cannot be written."""
        try:
            return encoded(data)
        except Refused:
            self.give_back(visit, "the request could not be written")
            raise

    # --- after ---

    def headers(self, visit: Visit) -> CIMultiDict[str]:
        """What is sent with a request: the client's own, the provider's, and the key in its place."""
        provider, key = self.provider, self.secrets()
        assert provider is not None
        if key is None and provider.header != "none":
            raise InfraError(f"no key for {provider.name}: set the variable {provider.key or provider.key_file}")
        named = {each.strip().lower() for each in visit.request.headers.get("connection", "").split(",")}
        dropped = HOP | OURS | named | {name.lower() for name in provider.headers}
        kept = [(name, value) for name, value in visit.request.headers.items() if name.lower() not in dropped]
        found = CIMultiDict([*kept, ("Accept-Encoding", "identity")])
        for name, value in provider.headers.items():
            given = visit.request.headers.get(name)
            found[name] = f"{value},{given}" if given and name.lower() in LISTS else value
        if key is not None and provider.header != "none":
            found[provider.header] = f"Bearer {key}" if provider.header == "authorization" else key
        return found

    def give_back(self, visit: Visit, why: str, passed: Passed | None = None) -> None:
        """The whole hold of a call that cost nothing."""
        if visit.id is not None:
            self._write(partial(self.ledger.refund, visit.id, why=why, passed=passed, wait=False))
            self._over(visit)

    def settle(self, visit: Visit, seen: Seen | None, passed: Passed) -> None:
        """The end of a call in the ledger: paid as the provider counted it, or in full where that is not known."""
        if visit.settled:
            return
        visit.settled = True
        if visit.id is None:
            self._note("free", visit, passed)
            return
        if seen is None:
            self.give_back(visit, f"the provider answered {passed.status}", passed)
            return
        assert visit.price is not None
        cost = prices.paid(visit.price, seen)
        kinds = {kind: number for kind, number in (seen.tokens or {}).items() if number}
        kinds |= {f"tool.{tool}": uses for tool, uses in seen.tools.items()}
        pay = partial(self.ledger.charge, visit.id, cost.usd, tokens=kinds, why=cost.alert, passed=passed, wait=False)
        self._write(pay)
        self._over(visit)

    def refuse(self, visit: Visit, no: Refused) -> None:
        """A line for a call that was not let out."""
        usd = no.usd if isinstance(no, Empty) else Decimal(0)
        self._note("refuse", visit, self.passed(visit, no.status), usd, str(no))

    def fault(self, visit: Visit, words: str) -> None:
        """A line for a call that a bug of ours stopped; it asks nothing that may have been the bug."""
        self._write(partial(self.ledger.note, "refuse", model=visit.model, why=words, passed=self.passed(visit, 500)))

    def _note(
        self, action: Literal["refuse", "free"], visit: Visit, passed: Passed, usd: Decimal = Decimal(0), why: str = ""
    ) -> None:
        """A line for a call without a price; of very many only some, or a box could fill the disk with them."""
        self.unpaid += 1
        if self.unpaid > NOTED and self.unpaid % NOTED:
            return
        if self.unpaid > NOTED:
            why = f"{why} (call {self.unpaid} without a price; each {NOTED}th is written down)"
        kept = partial(self.ledger.note, action, kind=self.kind, usd=usd, step=self.step())
        self._write(partial(kept, model=visit.model, why=why, passed=passed))

    def passed(self, visit: Visit, status: int, received: int = 0, cut: str = "") -> Passed:
        """How a call went."""
        provider = self.provider
        return Passed(
            method=plain(visit.request.method[:16]),
            path=plain(visit.path[:200]),
            host=visit.host,
            key=(provider.key or provider.key_file) if provider and visit.host else None,
            bore=visit.bore,
            status=status,
            sent=visit.sent,
            received=received,
            seconds=round(time.monotonic() - visit.began, 3),
            cut=cut,  # type: ignore[arg-type]
        )

    async def _to_disk(self) -> None:
        """The holds of this moment, with one fsync once their requests are out; where the disk fails, no other call
        is let out."""
        await asyncio.sleep(GATHER_SECONDS)
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.ledger.sync)
        except InfraError as error:
            self.problem = self.broken = error

    def sync(self) -> None:
        """What was written is on disk, or `problem` says why not; for a thread that nobody waits for."""
        self._write(self.ledger.sync)

    def _over(self, visit: Visit) -> None:
        self.under_way.discard(visit.id or "")
        self.settled.set()

    def _write(self, line: Callable[[], object]) -> None:
        """A line that nobody waits for; where it cannot be written its hold stands, and is charged in full later."""
        try:
            line()
        except InfraError as error:
            self.problem = error


class Empty(Refused):
    """The wallet does not pay for a call."""

    def __init__(self, usd: Decimal, room: Decimal) -> None:
        there = text(max(room, Decimal(0)))
        super().__init__(402, f"the wallet is empty: this call may cost ${text(usd)} and ${there} is left for calls")
        self.usd = usd
