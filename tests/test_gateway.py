"""The door with a real provider of ours behind it: what passes, what it costs, what is refused."""

import asyncio
import gzip
import socket
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from prill.errors import InfraError
from prill.gateway.keys import keys
from prill.gateway.ledger import entries
from prill.gateway.running import Gateway
from upstreams import (
    BODY,
    COST,
    KEY,
    MESSAGE,
    PROVIDER,
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


@pytest.mark.parametrize("way", WAYS)
def test_a_call_passes_and_is_paid(way: str, up: Upstream, tmp_path: Path) -> None:
    """On each wire, whole or as a stream, the reply comes unchanged and costs what its tokens cost."""
    path, body, reply, events = WAYS[way]
    streamed = (path.replace("generate", "streamGenerate") + "?alt=sse", body)
    if way != "gemini":
        streamed = (path, {**body, "stream": True, "stream_options": {"include_usage": True}})
    with gateway(tmp_path, up.url) as door:
        up.answer = says(reply)
        got = call(door, path, body)
        assert (got.status, got.json) == (200, reply)
        up.answer = streams(*events)
        got = call(door, *streamed)
        assert got.body == b"".join(events) and "event-stream" in got.headers["Content-Type"]
        assert door.ledger.spent == 2 * COST and not door.ledger.held
    [first, second] = lines(tmp_path, "charge")
    assert (first.step, first.model, first.tokens, first.flagged) == (7, "m", {"input": 10, "output": 5}, False)
    assert second.passed is not None and (second.passed.key, second.passed.status) == ("TEST_KEY", 200)
    assert KEY.encode() not in (tmp_path / "ledger").read_bytes()


def test_what_is_sent_is_what_was_asked(up: Upstream, tmp_path: Path) -> None:
    """Path, query, body and headers go through byte for byte; the token becomes the key and hop-by-hop headers stay."""
    body = b'{ "model":"m" ,"max_tokens":100,\n"messages":[{"role":"user","content":"\xc3\xa4 \\u00e4 1.0"}]}'
    headers = {"x-api-key": TOKEN, "anthropic-version": "2023-06-01", "Connection": "x-hop", "x-hop": "1", "TE": "x"}
    headers |= {"user-agent": "cli/1", "cookie": "a=b", "x-http-method-override": "PUT", "accept-encoding": "br"}
    with gateway(tmp_path, up.url) as door:
        up.answer = says(MESSAGE, request_id="r-1", connection="close", x_strange="\u00e4")
        got = call(door, "/v1/messages?beta=true", body, headers=headers)
    [(method, path, sent, data)] = up.asked
    sent = {name.lower(): value for name, value in sent.items()}
    assert (method, path, data) == ("POST", "/v1/messages?beta=true", body)
    assert (sent["x-api-key"], sent["user-agent"], sent["anthropic-version"]) == (KEY, "cli/1", "2023-06-01")
    assert (sent["x-version"], sent["accept-encoding"]) == ("1", "identity")
    assert not {"authorization", "x-hop", "te", "cookie", "x-http-method-override"} & set(sent)
    assert (got.headers["request-id"], got.headers["x-strange"]) == ("r-1", "\u00e4")


def test_a_packed_reply_passes_as_it_is(up: Upstream, tmp_path: Path) -> None:
    """A provider that packs its reply although it was asked not to is passed on packed, and metered."""
    packed = gzip.compress(msgspec.json.encode(MESSAGE))
    up.answer = says(packed, content_encoding="gzip")
    with gateway(tmp_path, up.url) as door:
        got = call(door, "/v1/messages", BODY)
        assert (got.body, got.headers["content-encoding"], door.ledger.spent) == (packed, "gzip", COST)
        assert call(door, "/v1/models", method="HEAD").body == b""


def test_a_chat_stream_is_asked_to_tell_its_usage(up: Upstream, tmp_path: Path) -> None:
    """A stream that would be silent about its usage is made to tell, and nothing else of it is changed."""
    up.answer = streams(*WAYS["chat"][3])
    with gateway(tmp_path, up.url) as door:
        call(door, "/v1/chat/completions", {"model": "m", "stream": True, "messages": []})
    asked = msgspec.json.decode(up.asked[0][3])
    assert asked == {"model": "m", "stream": True, "messages": [], "stream_options": {"include_usage": True}}


def test_a_subscription_s_token_is_a_bearer_that_may_change(up: Upstream, tmp_path: Path) -> None:
    """The key is asked for anew at each call, and lists of betas are joined."""
    keys = iter(["one", "two", None])
    provider = msgspec.structs.replace(PROVIDER, header="authorization", headers={"anthropic-beta": "oauth"})
    with gateway(tmp_path, up.url, provider=provider, secrets=lambda: next(keys)) as door:
        call(door, "/v1/messages", BODY)
        call(door, "/v1/messages", BODY, headers={"x-api-key": TOKEN, "anthropic-beta": "tools"})
        got = call(door, "/v1/messages", BODY)
        assert door.ledger.held == 0
    sent = [{name.lower(): value for name, value in headers.items()} for _, _, headers, _ in up.asked]
    assert [each["authorization"] for each in sent] == ["Bearer one", "Bearer two"]
    assert [each["anthropic-beta"] for each in sent] == ["oauth", "oauth,tools"]
    assert got.status == 503 and "TEST_KEY" in got.body.decode()


# --- refusals -----------------------------------------------------------------------------------------------------

SHAPES = {
    "anthropic": lambda error: (error["type"], error["error"]["type"]) == ("error", "billing_error"),
    "responses": lambda error: error["error"]["code"] == "insufficient_quota",
    "chat": lambda error: error["error"]["type"] == "insufficient_quota",
    "gemini": lambda error: (error["error"]["code"], error["error"]["status"]) == (402, "FAILED_PRECONDITION"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream", [False, True])
def test_an_empty_wallet_says_402_in_the_provider_s_shape(way: str, stream: bool, up: Upstream, tmp_path: Path) -> None:
    """What the wallet cannot pay for is refused with 402, for streams too, and nothing is sent or spent."""
    path, body, _, _ = WAYS[way]
    body = {**body, "stream": True} if stream and way != "gemini" else body
    path = path.replace("generate", "streamGenerate") if stream else path
    with gateway(tmp_path, up.url, "0.001") as door:
        got = call(door, path, body)
        assert got.status == 402 and SHAPES[way](got.json) and got.headers["x-should-retry"] == "false"
        assert door.ledger.spent == 0 and not up.asked
    [line] = lines(tmp_path, "refuse")
    assert Decimal(line.usd) > Decimal("0.001") and "the wallet is empty" in line.why


@pytest.mark.parametrize(
    ("path", "body", "more", "status"),
    [
        ("/v1/messages", BODY, {"headers": {"x-api-key": "wrong"}}, 401),
        ("/v1/messages", BODY, {"headers": {}}, 401),
        ("/v1/messages?key=x", BODY, {}, 403),
        ("/v1/messages?fields=x", BODY, {}, 403),
        ("/v1/messages/batches", BODY, {}, 403),
        ("/v1/files", b"x", {}, 403),
        ("/v1/messages/../files", BODY, {}, 403),
        ("//v1/messages", BODY, {}, 403),
        ("/v1/messages%2fbatches", BODY, {}, 403),
        ("/v1beta/models/m:batchGenerateContent", {}, {}, 403),
        ("/v1/messages", BODY, {"method": "PUT"}, 405),
        ("/v1/messages", BODY, {"headers": {"x-api-key": TOKEN, "upgrade": "websocket"}}, 426),
        ("/v1/messages", BODY, {"headers": {"x-api-key": TOKEN, "content-encoding": "gzip"}}, 415),
        ("/v1/messages", {**BODY, "model": "gpt"}, {}, 403),
        ("/v1beta/models/gpt:generateContent", {}, {}, 403),
        ("/v1/messages", {**BODY, "tools": [{"type": "code_execution_20250825"}]}, {}, 403),
        ("/v1/messages", b"{", {}, 400),
        ("/v1/messages", {**BODY, "max_tokens": "9"}, {}, 400),
    ],
)
def test_what_is_not_allowed_is_not_sent(
    path: str, body: Any, more: dict[str, Any], status: int, up: Upstream, tmp_path: Path
) -> None:
    """A wrong token, path, method, query, model, tool or body is refused in words, written down, and never sent."""
    with gateway(tmp_path, up.url) as door:
        shown = more.pop("headers", {"x-api-key": TOKEN})

        async def raw() -> int:
            async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(door.socket))) as session:
                data = body if isinstance(body, bytes) else msgspec.json.encode(body)
                url = aiohttp.client.URL("http://door" + path, encoded=True)
                async with session.request(more.get("method", "POST"), url, data=data, headers=shown) as reply:
                    assert (await reply.json())["error"]["message"]
                    return reply.status

        assert asyncio.run(raw()) == status
    assert not up.asked and not lines(tmp_path, "hold") and len(lines(tmp_path, "refuse")) == 1


def test_only_named_tools_of_the_provider_may_be_used(up: Upstream, tmp_path: Path) -> None:
    """Where a run may use none of the provider's own tools, one with a price is refused too."""
    body = {**BODY, "tools": [{"type": "web_search_20250305", "max_uses": 1}]}
    up.answer = says({**MESSAGE, "usage": {**MESSAGE["usage"], "server_tool_use": {"web_search_requests": 1}}})  # type: ignore[dict-item]
    with gateway(tmp_path, up.url) as door:
        assert call(door, "/v1/messages", body).status == 200 and door.ledger.spent == COST + Decimal("0.01")
    with gateway(tmp_path, up.url, tools=()) as door:
        assert call(door, "/v1/messages", body).status == 403


def test_paths_that_cost_nothing_pass_without_a_hold(up: Upstream, tmp_path: Path) -> None:
    """Counting tokens is let through for any model, and written down as free, also with an empty wallet."""
    up.answer = says({"input_tokens": 3})
    with gateway(tmp_path, up.url, "0") as door:
        assert call(door, "/v1/messages/count_tokens", {"model": "x"}).status == 200
        assert call(door, "/v1beta/models/x:countTokens", {}).status == 200
        assert call(door, "/v1/models", method="GET").status == 200
    assert [line.action for line in entries(tmp_path / "ledger")[0]] == ["free"] * 3


def test_a_run_without_a_provider_calls_no_model(tmp_path: Path) -> None:
    """With no provider every call is refused in words, and the ledger still serves others."""
    with gateway(tmp_path, None, provider=None, prices=None) as door:
        assert call(door, "/v1/chat/completions", BODY).status == 403
        assert door.ledger.hold("x", Decimal(1), kind="teacher")


def test_very_many_refusals_do_not_fill_the_disk(up: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first lines only each so-many-th refusal is written down, with how many there were."""
    monkeypatch.setattr("prill.gateway.door.NOTED", 3)
    with gateway(tmp_path, up.url) as door:
        for _ in range(9):
            call(door, "/v1/files")
    assert [line.why[-60:] for line in lines(tmp_path, "refuse")][3:] == [
        f"is not allowed here (call {n} without a price; each 3th is written down)"[-60:] for n in (6, 9)
    ]


# --- the wallet ---------------------------------------------------------------------------------------------------


def test_near_the_end_the_limit_of_output_is_lowered(up: Upstream, tmp_path: Path) -> None:
    """A call that the wallet would not pay for at its longest goes out with the longest reply that it does pay for."""
    with gateway(tmp_path, up.url, "0.05") as door:
        assert call(door, "/v1/messages", {**BODY, "max_tokens": 30_000}).status == 200
        held = Decimal(lines(tmp_path, "hold")[0].usd)
        assert Decimal("0.0499") < held <= Decimal("0.05")
    sent = msgspec.json.decode(up.asked[0][3])
    assert 1_024 <= sent["max_tokens"] < 3_000 and sent["messages"] == BODY["messages"]


def test_calls_at_the_cap_overspend_nothing(up: Upstream, tmp_path: Path) -> None:
    """However many call at once, the provider's own bill stays within the limit and equals the ledger's sum."""
    chance, bill = Random(0), []

    async def answer(request: web.BaseRequest, asked: bytes) -> web.StreamResponse:
        wanted = msgspec.json.decode(asked)["max_tokens"]
        tokens = chance.choice([wanted, wanted, 1])
        bill.append(Decimal(10) * 3 / 1_000_000 + Decimal(tokens) * 15 / 1_000_000)
        await asyncio.sleep(0.01)
        return web.json_response({"type": "message", "usage": {"input_tokens": 10, "output_tokens": tokens}})

    up.answer = answer

    async def everyone(door: Gateway) -> list[int]:
        calls = [fetch(door, "/v1/messages", {**BODY, "max_tokens": 500}) for _ in range(40)]
        return [reply.status for reply in await asyncio.gather(*calls)]

    with gateway(tmp_path, up.url, "0.1") as door:
        statuses = asyncio.run(everyone(door))
        assert door.ledger.spent == sum(bill) <= Decimal("0.1") and door.ledger.held == 0
    assert set(statuses) == {200, 402} and statuses.count(200) == len(bill)


def test_a_call_waits_for_money_that_comes_back(up: Upstream, tmp_path: Path) -> None:
    """With all money held by calls under way, the next one waits for their rest instead of being refused."""

    async def answer(request: web.BaseRequest, asked: bytes) -> web.StreamResponse:
        await asyncio.sleep(0.1)
        return web.json_response(MESSAGE)

    up.answer = answer

    async def both(door: Gateway) -> list[int]:
        calls = [fetch(door, "/v1/messages", BODY) for _ in range(3)]
        return [reply.status for reply in await asyncio.gather(*calls)]

    with gateway(tmp_path, up.url, "0.02") as door:
        assert asyncio.run(both(door)) == [200, 200, 200]


def test_a_ledger_goes_on_where_it_was(up: Upstream, tmp_path: Path) -> None:
    """A second gateway on the same ledger knows what the first has spent."""
    for number in (1, 2):
        with gateway(tmp_path, up.url) as door:
            call(door, "/v1/messages", BODY)
            assert door.ledger.spent == number * COST


def test_hostile_heads_and_names_are_refused_in_words(up: Upstream, tmp_path: Path) -> None:
    """Bytes that are no characters, in a header, a path or a model's name, are refused and written down."""
    body = rb'{"model":"\ud800","tools":[{"type":"\ud801"}]}'
    heads = [f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {TOKEN}\r\n".encode()]
    heads += [b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: \xff\xfe\r\n"]
    heads += [f"POST /v1/\xff HTTP/1.1\r\nhost: x\r\nx-api-key: {TOKEN}\r\n".encode("latin-1")]
    with gateway(tmp_path, up.url) as door:
        for head in heads:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(door.socket))
                client.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
                assert b" 40" in client.recv(4000)[:12]
    assert not up.asked and len(lines(tmp_path, "refuse")) >= 2


def test_a_key_is_read_from_its_variable_or_its_file(tmp_path: Path) -> None:
    """A token's file may be bare or the JSON of a known program, and is read anew; without a token it is our fault."""
    assert keys(PROVIDER, {"TEST_KEY": "k"})() == "k" and keys(PROVIDER, {})() is None
    file, provider = tmp_path / "token", msgspec.structs.replace(PROVIDER, key=None, key_file="TEST_FILE")
    ask = keys(provider, {"TEST_FILE": str(file)})
    for text, token in (
        ("a\n", "a"),
        ('{"claudeAiOauth":{"accessToken":"b"}}', "b"),
        ('{"tokens":{"access_token":"c"}}', "c"),
    ):
        file.write_text(text)
        assert ask() == token
    for text in ("", "{", "{}", "two words", "\x00"):
        file.write_text(text)
        with pytest.raises(InfraError, match="log in again"):
            ask()
    file.unlink()
    with pytest.raises(InfraError, match="cannot be read"):
        ask()
    assert keys(provider, {})() is None


def test_a_fault_of_ours_is_told_and_written_down(up: Upstream, tmp_path: Path) -> None:
    """What nobody foresaw gives the hold back, answers 500 in the provider's shape and is in the ledger by its name."""

    def broken() -> int:
        raise LookupError("no step")

    with gateway(tmp_path, up.url, step=broken) as door:
        assert call(door, "/v1/messages", BODY).status == 500 and door.ledger.held == 0
    assert not up.asked and "LookupError" in lines(tmp_path, "refuse")[0].why
