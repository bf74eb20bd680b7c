"""Calls that are broken off by either side or by nobody, and what a box cannot use up."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from prill.errors import DefinitionError, InfraError
from prill.gateway.running import Gateway, Opening
from prill.outside import Price, Prices, Tier
from upstreams import (
    BODY,
    COST,
    END,
    KEY,
    MESSAGE,
    PRICES,
    PROVIDER,
    START,
    TEXT,
    TOKEN,
    WAYS,
    Upstream,
    call,
    fetch,
    gateway,
    lines,
    says,
    streams,
    upstream,
)


@pytest.fixture
def up() -> Iterator[Upstream]:
    """A provider that says ten tokens in, five out."""
    with upstream() as state:
        state.answer = says(MESSAGE)
        yield state


# --- broken off ---------------------------------------------------------------------------------------------------


def test_a_client_that_hangs_up_is_billed_in_full(up: Upstream, tmp_path: Path) -> None:
    """The reply is read to its end although nobody takes it, and costs what the provider says at the end."""
    up.answer = streams(START, *[TEXT] * 20, END, pause=0.01)
    with gateway(tmp_path, up.url) as door:
        got = call(door, "/v1/messages", {**BODY, "stream": True}, leave_after=10)
        assert len(got.body) < 1000
    [line] = lines(tmp_path, "charge")
    assert (Decimal(line.usd), line.flagged) == (COST, False)
    assert line.passed is not None and line.passed.cut == "client"


def test_a_client_that_never_reads_does_not_stop_the_bill(
    up: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that takes nothing counts as gone after a while, and the reply is read on."""
    monkeypatch.setattr("prill.gateway.carrying.STALLED_SECONDS", 0.2)
    up.answer = streams(START, *[TEXT * 1000] * 100, END)
    body = msgspec.json.encode({**BODY, "stream": True})
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {TOKEN}\r\ncontent-length: {len(body)}\r\n\r\n"
    with gateway(tmp_path, up.url) as door, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(door.socket))
        client.sendall(head.encode() + body)
        while not lines(tmp_path, "charge"):
            threading.Event().wait(0.05)
    [line] = lines(tmp_path, "charge")
    assert (Decimal(line.usd), line.passed and line.passed.cut) == (COST, "client")


def test_a_client_that_leaves_before_its_call_is_sent_pays_nothing(up: Upstream, tmp_path: Path) -> None:
    """Half a request that ends is refused, not a fault of ours, and holds nothing."""
    with gateway(tmp_path, up.url) as door:
        for head in (b"content-length: 100\r\n\r\n{", b"transfer-encoding: chunked\r\n\r\nzz\r\n"):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(door.socket))
                client.sendall(f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {TOKEN}\r\n".encode() + head)
        while not lines(tmp_path, "refuse"):
            threading.Event().wait(0.02)
        assert call(door, "/v1/messages", BODY).status == 200
    assert len(up.asked) == 1 and not any("failed" in line.why for line in lines(tmp_path, "refuse"))


@pytest.mark.parametrize("way", ["anthropic", "responses", "chat", "gemini"])
def test_a_stream_cut_by_the_provider_is_paid_in_full_and_cut_for_the_client(
    way: str, up: Upstream, tmp_path: Path
) -> None:
    """Without the provider's last word the whole hold is paid, flagged, and the client sees that it is not whole."""
    path, body, _, events = WAYS[way]
    up.answer = streams(*events[:-1], TEXT, cut=True) if way != "chat" else streams(events[0], cut=True)
    path = path.replace("generate", "streamGenerate")
    with gateway(tmp_path, up.url) as door:
        got = call(door, path, {**body, "stream": True})
        assert not got.whole
    [hold, charge] = lines(tmp_path, "hold", "charge")
    assert charge.flagged and charge.usd == hold.usd and charge.passed is not None and charge.passed.cut == "provider"


def test_a_reply_without_usage_is_paid_in_full(up: Upstream, tmp_path: Path) -> None:
    """An answer that says nothing of its cost takes the whole hold, flagged."""
    up.answer = says(b"<html>")
    with gateway(tmp_path, up.url) as door:
        assert call(door, "/v1/messages", BODY).body == b"<html>"
    [hold, charge] = lines(tmp_path, "hold", "charge")
    assert charge.flagged and charge.usd == hold.usd and "no usage" in charge.why


@pytest.mark.parametrize("status", [400, 401, 429, 500, 503, 529])
def test_the_provider_s_errors_pass_and_cost_nothing(status: int, up: Upstream, tmp_path: Path) -> None:
    """Errors come as they are, with their headers, and the hold is given back, with the status."""
    up.answer = says({"error": {"message": "no"}}, status, retry_after="7")
    with gateway(tmp_path, up.url) as door:
        got = call(door, "/v1/messages", BODY)
        assert (got.status, got.headers["retry-after"], got.json) == (status, "7", {"error": {"message": "no"}})
        assert door.ledger.spent == door.ledger.held == 0
    [line] = lines(tmp_path, "refund")
    assert line.passed is not None and line.passed.status == status


def test_a_provider_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    """Where no connection can be made, that is 502 in the provider's shape and the hold is given back."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with gateway(tmp_path, f"http://127.0.0.1:{unused.getsockname()[1]}") as door:
            got = call(door, "/v1/messages", BODY)
            assert (got.status, got.json["type"], door.ledger.spent) == (502, "error", 0)


def test_a_provider_that_hangs_is_504_and_paid_in_full(up: Upstream, tmp_path: Path) -> None:
    """Silence ends after a while; since the call may have been made, its whole hold is paid, flagged."""
    stop = threading.Event()

    async def answer(request: web.BaseRequest, asked: bytes) -> web.StreamResponse:
        while not stop.is_set():
            await asyncio.sleep(0.02)
        return web.Response()

    up.answer = answer
    with gateway(tmp_path, up.url, patience_seconds=0.2) as door:
        got = call(door, "/v1/messages", BODY)
        assert (got.status, got.json["error"]["type"]) == (504, "timeout_error")
    stop.set()
    [hold, charge] = lines(tmp_path, "hold", "charge")
    assert charge.flagged and charge.usd == hold.usd and charge.passed is not None and charge.passed.cut == "time"


def test_a_provider_that_falls_silent_in_the_middle_cuts_the_client(up: Upstream, tmp_path: Path) -> None:
    """A stream that stops without ending ends after a while, for the client too, paid in full."""
    up.answer = streams(START, TEXT, TEXT, pause=0.6)
    with gateway(tmp_path, up.url, patience_seconds=0.2) as door:
        assert not call(door, "/v1/messages", {**BODY, "stream": True}).whole
    [line] = lines(tmp_path, "charge")
    assert line.flagged and line.passed is not None and line.passed.cut == "time"


def test_a_provider_that_closes_without_a_word_is_paid_in_full(up: Upstream, tmp_path: Path) -> None:
    """A connection that closes before any answer leaves the cost open, so the whole hold is paid."""

    async def answer(request: web.BaseRequest, asked: bytes) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    up.answer = answer
    with gateway(tmp_path, up.url) as door:
        assert call(door, "/v1/messages", BODY).status == 502
    [line] = lines(tmp_path, "charge")
    assert line.flagged


def test_stopping_waits_for_what_is_coming_and_then_pays_in_full(up: Upstream, tmp_path: Path) -> None:
    """A short rest is waited for and paid as told; a long one is cut and its whole hold paid."""
    for pause, cut, flagged in ((0.05, "client", False), (0.9, "shutdown", True)):
        place = tmp_path / str(pause)
        place.mkdir()
        up.answer = streams(START, TEXT, END, pause=pause)
        with gateway(place, up.url, drain_seconds=0.5) as door:
            call(door, "/v1/messages", {**BODY, "stream": True}, leave_after=1)
        [line] = lines(place, "charge")
        assert (line.flagged, line.passed and line.passed.cut) == (flagged, cut)


# --- bounds -------------------------------------------------------------------------------------------------------


def test_ten_megabytes_pass(up: Upstream, tmp_path: Path) -> None:
    """Large requests and replies pass whole and are metered."""
    up.answer = says({**MESSAGE, "content": "y" * (10 << 20)})
    with gateway(tmp_path, up.url) as door:
        got = call(door, "/v1/messages", {**BODY, "messages": [{"content": "x" * (10 << 20)}]})
        assert len(got.body) > 10 << 20 and door.ledger.spent == COST
    assert len(up.asked[0][3]) > 10 << 20


def test_a_body_beyond_the_limit_is_refused(up: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is too large, or that never comes to its end, is refused and holds nothing."""
    monkeypatch.setattr("prill.gateway.door.MOST_BODY", 1000)
    with gateway(tmp_path, up.url) as door:
        assert call(door, "/v1/messages", b"x" * 2000).status == 413
        door.doors[0].body_seconds = 0.2
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(door.socket))
            client.sendall(f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {TOKEN}\r\n".encode())
            client.sendall(b"content-length: 100\r\n\r\n{")
            assert b" 408 " in client.recv(1000)
    assert not up.asked and not lines(tmp_path, "hold")


def test_a_box_cannot_use_up_the_connections(up: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections beyond the limit are closed at once, silent ones after a while, and then others are served."""
    monkeypatch.setattr("prill.gateway.running.MOST_CONNECTIONS", 5)
    monkeypatch.setattr("prill.gateway.running.GREETING_SECONDS", 0.3)
    with gateway(tmp_path, up.url) as door:
        silent = [socket.socket(socket.AF_UNIX) for _ in range(8)]
        for each in silent:
            each.connect(str(door.socket))
        assert [each.recv(1) for each in silent] == [b""] * 8
        assert call(door, "/v1/messages", BODY).status == 200
        for each in silent:
            each.close()


def test_a_ledger_that_cannot_be_written_buys_nothing(up: Upstream, tmp_path: Path) -> None:
    """With a full disk calls are answered 503, none is sent, and the gateway says why."""
    with gateway(tmp_path, up.url) as door:
        kept, full = os.dup(door.ledger._file), os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, door.ledger._file)
        assert call(door, "/v1/messages", BODY).status == 503 and not up.asked
        assert call(door, "/v1/files", BODY).status == 403 and door.problem is not None
        os.dup2(kept, door.ledger._file)
        assert call(door, "/v1/messages", BODY).status == 200
        os.close(full)
        os.close(kept)


def test_a_disk_that_fails_makes_this_call_the_last(up: Upstream, tmp_path: Path) -> None:
    """A hold that is written but never reaches the disk lets its own call through, and no other."""
    with gateway(tmp_path, up.url) as door:
        kept, (far, near) = os.dup(door.ledger._file), os.pipe()  # a pipe takes what is written and has no disk
        os.dup2(near, door.ledger._file)
        assert call(door, "/v1/messages", BODY).status == 200
        assert call(door, "/v1/messages", BODY).status == 503 and len(up.asked) == 1
        os.dup2(kept, door.ledger._file)
        for each in (kept, far, near):
            os.close(each)


def test_waiting_for_money_ends(up: Upstream, tmp_path: Path) -> None:
    """A call whose money does not come back in time is refused, while the other still runs."""

    async def both(door: Gateway) -> list[int]:
        first = asyncio.create_task(fetch(door, "/v1/messages", {**BODY, "stream": True}))
        while not lines(tmp_path, "hold"):
            await asyncio.sleep(0.01)
        second = await fetch(door, "/v1/messages", BODY)
        return [second.status, (await first).status]

    up.answer = streams(START, *[TEXT] * 10, END, pause=0.1)
    with gateway(tmp_path, up.url, "0.015") as door:
        door.doors[0].queue_seconds = 0.2
        assert asyncio.run(both(door)) == [402, 200]


def test_where_it_cannot_listen_it_does_not_start(tmp_path: Path) -> None:
    """A path that is too long or taken is our fault, in words, and the ledger is free again."""

    def opened(place: Path, prices: Prices = PRICES) -> Gateway:
        door = Opening(provider=PROVIDER, prices=prices, token=TOKEN, secrets=lambda: KEY, socket=place)
        return Gateway(door, limit_usd=None, ledger=tmp_path / "l")

    (tmp_path / "taken").write_text("x")
    for place in (tmp_path / ("x" * 120), tmp_path / "taken"):
        with pytest.raises(InfraError, match="socket"), opened(place):
            pass
    assert (tmp_path / "taken").read_text() == "x"
    wrong = msgspec.structs.replace(PRICES, models={"m": Price(base=Tier(input="", output=""), max_output_tokens=1)})
    with pytest.raises(DefinitionError, match=r"is no amount"), opened(tmp_path / "s", wrong):
        pass
