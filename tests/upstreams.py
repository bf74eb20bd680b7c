"""A provider for tests: a real HTTP server that answers as it is told and keeps what it was asked."""

import asyncio
import shutil
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from prill.gateway.ledger import Entry, entries
from prill.gateway.running import Gateway, Opening
from prill.outside import Price, Prices, Provider, Tier

OPENING = ("provider", "prices", "secrets", "tools", "models", "kind")
"""Settings of a gateway in tests that are its door's."""
TOKEN = "run-token"
KEY = "sk-real-key"
PRICES = Prices(
    name="test",
    title="Test",
    dated="2026-11-01",
    source="made up for tests",
    models={
        "m": Price(
            base=Tier(input="3", output="15", cache_read="0.3", cache_write_5m="3.75", cache_write_1h="6"),
            above={"200000": Tier(input="6", output="22.5", cache_read="0.6")},
            max_output_tokens=64_000,
            context_tokens=1_000_000,
            tools={"web_search": "0.01", "googleSearch": "0.014"},
        ),
        "cheap": Price(base=Tier(input="0.000001", output="0.000001"), max_output_tokens=1_000),
    },
)
PROVIDER = Provider(
    name="test",
    title="Test",
    url="http://127.0.0.1:9",
    wires=("anthropic", "responses", "chat", "gemini"),
    key="TEST_KEY",
    header="x-api-key",
    headers={"x-version": "1"},
    free=("/v1/messages/count_tokens", "/v1beta/models/*:countTokens", "/v1/models"),
)


@dataclass
class Upstream:
    """What was asked, and how the next calls are answered."""

    url: str = ""
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    answer: Callable[[web.BaseRequest, bytes], Awaitable[web.StreamResponse]] | None = None


@contextmanager
def upstream() -> Iterator[Upstream]:
    """A provider on a free port, in a thread of its own."""
    state, ready, loop = Upstream(), threading.Event(), asyncio.new_event_loop()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read() if request.can_read_body else b""
        state.asked.append((request.method, request.raw_path, dict(request.headers), body))
        assert state.answer is not None
        return await state.answer(request, body)

    def factory(*parts: Any) -> web.BaseRequest:
        return web.BaseRequest(*parts, loop, client_max_size=1 << 30)

    async def serve() -> None:
        server = web.Server(handle, request_factory=factory, access_log=None)
        listening = await loop.create_server(server, "127.0.0.1", 0)
        state.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"

    def run() -> None:
        loop.run_until_complete(serve())
        ready.set()
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield state
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def gateway(place: Path, url: str | None, limit: str | None = "100", **more: Any) -> Gateway:
    """A gateway with the test's provider and prices; its socket in a short folder, as paths of sockets must be."""
    folder = mkdtemp(prefix="door-")
    settings: dict[str, Any] = {"provider": PROVIDER, "prices": PRICES, "secrets": lambda: KEY, "upstream": url}
    settings |= {name: more.pop(name) for name in list(more) if name in OPENING}
    opening = Opening(**settings, token=TOKEN, socket=Path(folder, "s"))
    made = Gateway(
        opening,
        **{"step": lambda: 7, **more},
        limit_usd=None if limit is None else Decimal(limit),
        ledger=place / "ledger",
    )
    weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
    return made


@dataclass
class Reply:
    """What a client got."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool = True

    @property
    def json(self) -> Any:
        """The body, read."""
        return msgspec.json.decode(self.body)


async def fetch(
    door: Gateway,
    path: str,
    body: bytes | dict[str, Any] = b"",
    *,
    method: str = "POST",
    headers: dict[str, str] | None = None,
    leave_after: int | None = None,
    socket: Path | None = None,
) -> Reply:
    """One request through the first door, or that of a socket; `leave_after`: hang up after so many bytes."""
    sent = body if isinstance(body, bytes) else msgspec.json.encode(body)
    shown = {"authorization": f"Bearer {TOKEN}"} if headers is None else headers
    async with (
        aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(str(socket or door.socket)), auto_decompress=False
        ) as session,
        session.request(method, f"http://door{path}", data=sent or None, headers=shown) as reply,
    ):
        got, whole = bytearray(), True
        try:
            async for piece in reply.content.iter_any():
                got += piece
                if leave_after is not None and len(got) >= leave_after:
                    break
        except aiohttp.ClientError:
            whole = False
        return Reply(reply.status, reply.headers, bytes(got), whole)


def call(door: Gateway, path: str, body: bytes | dict[str, Any] = b"", **more: Any) -> Reply:
    """`fetch`, for who does not wait for several at a time."""
    return asyncio.run(fetch(door, path, body, **more))


def says(body: bytes | dict[str, Any], status: int = 200, **headers: str) -> Any:
    """An answer that is whole at once."""
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)

    shown = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(request: web.BaseRequest, asked: bytes) -> web.StreamResponse:
        return web.Response(body=data, status=status, headers=shown)

    return answer


def streams(*pieces: bytes, pause: float = 0.0, cut: bool = False) -> Any:
    """An answer in pieces, as events; `cut`: the connection is closed before its end."""

    async def answer(request: web.BaseRequest, asked: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(pause)
        if cut and request.transport is not None:
            await asyncio.sleep(0.05)
            request.transport.abort()
        return response

    return answer


def event(data: dict[str, Any]) -> bytes:
    """One event of a stream."""
    return b"event: x\ndata: " + msgspec.json.encode(data) + b"\n\n"


BODY: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
MESSAGE = {"type": "message", "usage": {"input_tokens": 10, "output_tokens": 5}}
COST = Decimal("0.000105")
START = event({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}})
TEXT = event({"type": "content_block_delta", "delta": {"text": "x" * 100}})
END = event({"type": "message_delta", "usage": {"output_tokens": 5}})
OPENAI = {"input_tokens": 10, "output_tokens": 5}
CHUNK = {"prompt_tokens": 10, "completion_tokens": 5}
GOOGLE = {"promptTokenCount": 10, "candidatesTokenCount": 5}
WAYS = {
    "anthropic": ("/v1/messages", BODY, MESSAGE, [START, TEXT, END]),
    "responses": (
        "/v1/responses",
        {"model": "m", "input": "hi"},
        {"status": "completed", "usage": OPENAI},
        [TEXT, event({"type": "response.completed", "response": {"usage": OPENAI}})],
    ),
    "chat": (
        "/v1/chat/completions",
        {"model": "m", "messages": []},
        {"choices": [{"finish_reason": "stop"}], "usage": CHUNK},
        [event({"choices": [{"finish_reason": "stop"}]}), event({"choices": [], "usage": CHUNK}), b"data: [DONE]\n\n"],
    ),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {"contents": []},
        {"candidates": [{"finishReason": "STOP"}], "usageMetadata": GOOGLE},
        [event({"candidates": [{"finishReason": "STOP"}], "usageMetadata": GOOGLE})],
    ),
}


def lines(place: Path, *actions: str) -> list[Entry]:
    """The ledger's entries of these actions."""
    return [entry for entry in entries(place / "ledger")[0] if entry.action in actions]
