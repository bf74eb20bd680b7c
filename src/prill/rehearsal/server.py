"""The server: which reply a request gets, what goes wrong with it, and the truth about what it was charged with."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from prill.rehearsal import anthropic, chat, gemini, responses
from prill.rehearsal.exchange import Answer, Asked, made, sample
from prill.rehearsal.scenario import Scenario, Trouble, Turn, Usage, place, trouble

if TYPE_CHECKING:
    from aiohttp import web

LARGEST_REQUEST = 64 << 20
GARBAGE = b'data: {"type": "nonsense\n\n\x00\xff\xfe<html>\n\ndata: [1, {"\n\n'
BEARERS = ("x-api-key", "authorization", "x-goog-api-key")
WIRES: dict[str, ModuleType] = {"anthropic": anthropic, "responses": responses, "chat": chat, "gemini": gemini}


class Told(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """One line of the truth: a request, and what it was charged with."""

    number: int
    at: float
    """Seconds since 1970."""
    path: str
    wire: str
    kind: str
    """`turn`, `side` (beside the conversation), `free` (costs nothing) or `refused`."""
    model: str
    stream: bool = False
    turn: int | None = None
    status: int = 200
    trouble: str | None = None
    usage: Usage | None = None
    """`None`: nothing was charged."""
    bears: str | None = None
    """The header in which its key stands, or `key` for one in the address."""
    key: str | None = None
    """The first 12 digits of the SHA-256 of what the request bore as its key."""


class Provider:
    """One play of a scenario. All that it remembers is how often each turn was asked for."""

    def __init__(self, scenario: Scenario, truth: Path | None = None) -> None:
        self.scenario = scenario
        self._truth: BinaryIO | None = truth.open("ab", buffering=0) if truth else None
        self._number = 0
        self._asked: Counter[int] = Counter()

    def application(self) -> web.Application:
        """All paths of all wires."""
        from aiohttp import web

        application = web.Application(client_max_size=LARGEST_REQUEST)
        application.add_routes(
            [
                web.post("/v1/messages", self.asking(anthropic)),
                web.post("/v1/responses", self.asking(responses)),
                web.post("/backend-api/codex/responses", self.asking(responses)),
                web.post("/v1/chat/completions", self.asking(chat)),
                web.post("/v1/messages/count_tokens", self.counting("input_tokens")),
                web.post(
                    r"/{version:v1beta|v1}/models/{model}:{how:generateContent|streamGenerateContent}",
                    self.asking(gemini),
                ),
                web.post(r"/{version:v1beta|v1}/models/{model}:countTokens", self.counting("totalTokens")),
                web.head("/", self.nothing),
                web.get("/v1/models", self.models),
                web.get("/v1beta/models", self.models),
                web.route("*", "/{rest:.*}", self.unknown),
            ]
        )
        return application

    # --- conversation ------------------------------------------------------------------------------------------------

    def asking(self, wire: ModuleType) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler of one wire."""

        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                body = msgspec.json.decode(await request.read())
                asked: Asked = wire.asked(body, request.path)
            except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
                return self.refuse(request, wire, 400, f"not a request of this wire: {error!r}")
            if self.scenario.key is not None and self.scenario.key not in borne(request).values():
                return self.refuse(request, wire, 401, "no such key")
            return await self.reply(request, wire, asked)

        return handle

    async def reply(self, request: web.Request, wire: ModuleType, asked: Asked) -> web.StreamResponse:
        """Find the turn, tell the truth, and play it."""
        self._number += 1
        number = self._number
        at, again = place(self.scenario.turns, asked.heard)
        turn = self.scenario.turns[at]
        calls = [made(call, asked.tools, f"call_{number:08d}_{n}", again) for n, call in enumerate(turn.calls)]
        if asked.schema is not None or None in calls or (not asked.tools and self.calls_anywhere()):
            text = msgspec.json.encode(sample(asked.schema)).decode() if asked.schema is not None else "Rehearsal"
            answer = Answer(
                number=number, model=asked.model, text=text, calls=(), usage=as_charged(self.scenario.side, asked)
            )
            self.tell(request, asked.wire, kind="side", model=asked.model, stream=asked.stream, usage=answer.usage)
            return await self.send(request, wire, asked, answer, Turn(), None)
        wrong = trouble(turn, self._asked[at])
        self._asked[at] += 1
        usage = as_charged(turn.usage or self.scenario.usage, asked)
        never = wrong is not None and (wrong.how == "status" or (wrong.how == "hang" and not wrong.after))
        self.tell(
            request,
            asked.wire,
            kind="turn",
            model=asked.model,
            stream=asked.stream,
            turn=at,
            status=wrong.status if wrong and wrong.how == "status" else 200,
            trouble=wrong.how if wrong else None,
            usage=None if never else usage,
        )
        fitting = tuple(call for call in calls if call is not None)
        answer = Answer(number=number, model=asked.model, text=turn.say, calls=fitting, usage=usage)
        return await self.send(request, wire, asked, answer, turn, wrong)

    def calls_anywhere(self) -> bool:
        """Whether the conversation is one with tools, so that a request without any stands beside it."""
        return any(turn.calls for turn in self.scenario.turns)

    async def send(
        self, request: web.Request, wire: ModuleType, asked: Asked, answer: Answer, turn: Turn, wrong: Trouble | None
    ) -> web.StreamResponse:
        """The bytes of a reply, well or badly."""
        from aiohttp import web

        await asyncio.sleep(turn.wait_seconds)
        if wrong is not None and wrong.how == "status":
            headers = {} if wrong.retry_after_seconds is None else {"Retry-After": str(wrong.retry_after_seconds)}
            return said(wire.error(wrong.status, wrong.message), status=wrong.status, headers=headers)
        if wrong is not None and wrong.how == "hang" and not wrong.after:
            await asyncio.Event().wait()
        if asked.stream:
            pieces = wire.events(answer, asked)
            kind = "text/event-stream"
            if asked.wire == "gemini" and request.query.get("alt") != "sse":
                pieces, kind = listed(pieces), "application/json"
        else:
            text = msgspec.json.encode(wire.whole(answer))
            pieces, kind = iter((text[: len(text) // 2], text[len(text) // 2 :])), "application/json"
        response = web.StreamResponse(headers={"Content-Type": kind, "request-id": f"req_{answer.number:08d}"})
        await response.prepare(request)
        for index, piece in enumerate(pieces):
            if wrong is not None and index >= wrong.after:
                return await self.spoil(request, response, wrong)
            await response.write(piece)
            await asyncio.sleep(turn.pause_seconds)
        if wrong is not None:  # it had fewer events than that
            return await self.spoil(request, response, wrong)
        await response.write_eof()
        return response

    async def spoil(self, request: web.Request, response: web.StreamResponse, wrong: Trouble) -> web.StreamResponse:
        """A reply that goes wrong after it has begun."""
        if wrong.how == "garbage":
            await response.write(GARBAGE)
            await response.write_eof()
        elif wrong.how == "hang":
            await asyncio.Event().wait()
        elif request.transport is not None:
            request.transport.abort()
        return response

    # --- beside it ---------------------------------------------------------------------------------------------------

    def counting(self, field: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler that counts tokens: a quarter of the bytes."""

        async def handle(request: web.Request) -> web.StreamResponse:
            size = len(await request.read())
            self.tell(request, "", kind="free")
            return said({field: max(1, size // 4)})

        return handle

    async def models(self, request: web.Request) -> web.StreamResponse:
        """The list of models, in the words of all providers at once."""
        self.tell(request, "", kind="free")
        names = self.scenario.models
        if request.path.startswith("/v1beta"):
            return said({"models": [{"name": f"models/{name}", "displayName": name} for name in names]})
        about = {"type": "model", "object": "model", "created_at": "2026-01-01T00:00:00Z", "owned_by": "rehearsal"}
        listed = [{"id": name, "display_name": name, **about} for name in names]
        return said({"object": "list", "data": listed, "has_more": False})

    async def nothing(self, request: web.Request) -> web.StreamResponse:
        """What some clients ask for to warm a connection."""
        self.tell(request, "", kind="free")
        return said({})

    async def unknown(self, request: web.Request) -> web.StreamResponse:
        """Any other path."""
        return self.refuse(request, responses, 404, f"no such path here: {request.path}")

    def refuse(self, request: web.Request, wire: ModuleType, status: int, words: str) -> web.StreamResponse:
        """An error of the client's."""
        self.tell(request, "", kind="refused", status=status)
        return said(wire.error(status, words), status=status)

    def tell(self, request: web.Request, wire: str, *, kind: str, model: str = "", **more: Any) -> None:
        """A line of the truth, in one write, before the client gets a byte."""
        if self._truth is None:
            return
        place, key = next(iter(borne(request).items()), (None, None))
        digest = None if key is None else hashlib.sha256(key.encode()).hexdigest()[:12]
        about: dict[str, Any] = {"number": self._number, "at": time.time(), "path": request.path}
        told = Told(wire=wire, kind=kind, model=model, bears=place, key=digest, **about, **more)
        self._truth.write(msgspec.json.encode(told) + b"\n")


def as_charged(usage: Usage, asked: Asked) -> Usage:
    """Usage of a reply: never longer than was asked for; only Anthropic charges for writing to a cache."""
    if isinstance(asked.most_output, int) and 0 < asked.most_output < usage.output:
        most = asked.most_output
        usage = replace(usage, output=most, reasoning=min(usage.reasoning, most))
    if asked.wire == "anthropic":
        return usage
    return replace(usage, input=usage.input + usage.cache_write, cache_write=0)


def said(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A reply in JSON."""
    from aiohttp import web

    return web.json_response(value, status=status, headers=headers)


def borne(request: web.Request) -> dict[str, str]:
    """What the request bears as its key, by the place where it stands."""
    found = {name: request.headers.get(name, "") for name in BEARERS} | {"key": request.query.get("key", "")}
    return {place: value.removeprefix("Bearer ").strip() for place, value in found.items() if value}


def listed(events: Iterable[bytes]) -> Iterator[bytes]:
    """Gemini's stream as one growing JSON list, for whoever does not ask for events."""
    first = True
    for event in events:
        yield (b"[" if first else b",") + event.removeprefix(b"data: ").strip()
        first = False
    yield b"]"


async def serve(provider: Provider, socket: str | None, port: int | None, ready: Callable[[str], None]) -> None:
    """Serve until cancelled, on a socket of the file system or a port of 127.0.0.1 (0: any). `ready` gets the place."""
    from aiohttp import web

    runner = web.AppRunner(provider.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        if socket is not None:
            Path(socket).unlink(missing_ok=True)
            await web.UnixSite(runner, socket).start()
            ready(socket)
        else:
            await web.TCPSite(runner, "127.0.0.1", port or 0).start()
            ready("http://{}:{}".format(*runner.addresses[0][:2]))
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
