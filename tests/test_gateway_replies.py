"""Replies of the four wires without a network: what they did cost, however they come, and hostile bytes."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.source import words
from prill.gateway import prices, responses
from prill.gateway.door import WIRES
from prill.gateway.replies import Reading
from prill.gateway.wire import Asked, Seen
from upstreams import PRICES, event

ANTHROPIC, RESPONSES, CHAT, GEMINI = (WIRES[name] for name in ("anthropic", "responses", "chat", "gemini"))
PRICE = PRICES.models["m"]
GEMINI_PATH = {"model": "m", "way": "generateContent"}
PICTURE = "A" * 4_000
FIELDS = words(
    "model max_tokens messages content type tools input output image_url source data parts contents inlineData "
    "generationConfig stream context_management edits candidates usage usageMetadata message response item choices "
    "groundingMetadata server_tool_use"
)


def asks(wire: Any, body: dict[str, Any]) -> Asked:
    """What a wire reads out of a body."""
    found: Asked = wire.asked(GEMINI_PATH if wire is GEMINI else {}, body)
    return found


def read(wire: Any, data: bytes, kind: str = "text/event-stream", encoding: str = "") -> Seen:
    """What a wire reads out of a reply that comes byte by byte at first."""
    reading = Reading(wire.take, kind, encoding)
    for at in range(min(50, len(data))):
        reading.feed(data[at : at + 1])
    reading.feed(data[50:])
    return reading.end()


# --- replies ------------------------------------------------------------------------------------------------------

START = {
    "type": "message_start",
    "message": {"usage": {"input_tokens": 9, "cache_read_input_tokens": 3, "output_tokens": 1}},
}
DELTA = {"type": "message_delta", "usage": {"output_tokens": 42, "server_tool_use": {"web_search_requests": 2}}}
OPENAI = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5}
WRITTEN = {"cached_tokens": 2, "cache_write_tokens": 5, "cache_write_tokens_details": {"ttl_12h_tokens": 4}}
CHUNK = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}
GOOGLE = {"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}
SEARCHED = {"finishReason": "STOP", "groundingMetadata": {"webSearchQueries": ["a", "b"]}}
TOLD = {"input": 6, "cache_read": 4, "cache_write_5m": 0, "cache_write_1h": 0, "output": 5}


@pytest.mark.parametrize(
    ("wire", "events", "tokens", "tools"),
    [
        (ANTHROPIC, [START, DELTA], {**TOLD, "input": 9, "cache_read": 3, "output": 42}, {"web_search": 2}),
        (RESPONSES, [{"type": "response.completed", "response": {"status": "completed", "usage": OPENAI}}], TOLD, {}),
        (
            RESPONSES,
            [
                {"type": "response.output_item.done", "item": {"type": "web_search_call"}},
                {"type": "response.incomplete", "response": {"usage": {**OPENAI, "input_tokens_details": WRITTEN}}},
            ],
            {"input": 3, "cache_read": 2, "cache_write_5m": 1, "cache_write_1h": 4, "output": 5},
            {"web_search": 1},
        ),
        (CHAT, [{"choices": [{"finish_reason": "stop"}], "usage": None}, {"choices": [], "usage": CHUNK}], TOLD, {}),
        (CHAT, [{"choices": [{"finish_reason": "stop"}], "usage": CHUNK}], TOLD, {}),
        (
            GEMINI,
            [{"usageMetadata": {"promptTokenCount": 10}}, {"candidates": [SEARCHED], "usageMetadata": GOOGLE}],
            TOLD,
            {"googleSearch": 2},
        ),
    ],
)
def test_a_stream_tells_its_usage(wire: Any, events: list[Any], tokens: Any, tools: Any) -> None:
    """Each wire's closing words are the usage, with CR or without, however the bytes are cut."""
    for data in (b"".join(map(event, events)), b": hi\r\n\r\n" + b"".join(map(event, events)).replace(b"\n", b"\r\n")):
        seen = read(wire, data)
        assert (seen.tokens, seen.tools, seen.final) == (tokens, tools, True)
    half = read(wire, b"".join(map(event, events[:-1])))
    assert not half.final and prices.paid(PRICE, half).usd is None


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (
            ANTHROPIC,
            {"type": "message", "usage": {"input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 5}},
        ),
        (RESPONSES, {"status": "completed", "usage": OPENAI}),
        (CHAT, {"choices": [{"finish_reason": "stop"}], "usage": CHUNK}),
        (GEMINI, {"candidates": [{}], "usageMetadata": GOOGLE}),
        (GEMINI, [{"usageMetadata": {}}, {"candidates": [{"finishReason": "STOP"}], "usageMetadata": GOOGLE}]),
    ],
)
def test_a_whole_reply_tells_its_usage(wire: Any, body: Any) -> None:
    """One JSON text, or Gemini's list of chunks, is read the same; cut in half it tells nothing."""
    data = msgspec.json.encode(body)
    seen = read(wire, data, "application/json")
    assert (seen.tokens, seen.final) == (TOLD, True)
    assert read(wire, data[: len(data) // 2], "application/json").tokens is None


def test_parts_that_are_more_than_the_whole_are_unknown() -> None:
    """A usage that contradicts itself is none."""
    wrong = {**OPENAI, "input_tokens_details": {"cached_tokens": 11}}
    assert read(RESPONSES, msgspec.json.encode({"usage": wrong}), "application/json").tokens is None
    creation = {"ephemeral_1h_input_tokens": 5}
    usage = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 4, "cache_creation": creation}
    assert read(ANTHROPIC, msgspec.json.encode({"type": "message", "usage": usage}), "application/json").tokens is None


def test_totals_never_shrink() -> None:
    """A closing event that says 0 where the opening one said more does not take it back."""
    shrunk = {"type": "message_delta", "usage": {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 42}}
    assert read(ANTHROPIC, event(START) + event(shrunk)).tokens == {**TOLD, "input": 9, "cache_read": 3, "output": 42}


def test_running_totals_are_not_the_last_word() -> None:
    """A chat stream that tells its usage on the way is cut until it has said why it ended, or that it is done."""
    chunks = event({"choices": [{"delta": {}}], "usage": CHUNK})
    assert not read(CHAT, chunks).final and read(CHAT, chunks + b"data: [DONE]\n\n").final


def test_a_stated_cost_counts_and_a_free_one_does_not() -> None:
    """What a provider says that a call cost is its cost, unless it says nothing."""
    for cost, usd in ((0.5, "0.5"), (0, "0.0000942"), ("NaN", "0.0000942")):
        body = {"choices": [{"finish_reason": "stop"}], "usage": {**CHUNK, "cost": cost}}
        assert prices.paid(PRICE, read(CHAT, msgspec.json.encode(body), "application/json")).usd == Decimal(usd)


def test_packed_replies_are_read_and_unknown_packing_is_not() -> None:
    """A provider that packs although it was asked not to is still metered; what we cannot unpack is unknown."""
    import gzip

    data = msgspec.json.encode({"usage": OPENAI})
    assert read(RESPONSES, gzip.compress(data), "application/json", "gzip").tokens == TOLD
    assert read(RESPONSES, data, "application/json", "br").tokens is None
    assert read(RESPONSES, b"no gzip" * 20, "application/json", "gzip").tokens is None
    bomb = gzip.compress(
        b"data: " + b"x" * (80 << 20) + b"\n\n" + event({"type": "response.done", "response": {"usage": OPENAI}})
    )
    assert read(RESPONSES, bomb, "text/event-stream", "gzip").tokens == TOLD


@given(
    st.lists(st.binary(max_size=40) | st.sampled_from([b"\n\n", b"data: ", b'{"usage":{"input_tokens":1}}', b"\r\n"]))
)
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_a_reply(pieces: list[bytes]) -> None:
    """Whatever comes, in whatever pieces, the readers neither fail nor make a bill out of nothing."""
    for wire in WIRES.values():
        for kind in ("text/event-stream", "application/json"):
            for encoding in ("", "gzip"):
                reading = Reading(wire.take, kind, encoding)
                for piece in pieces:
                    reading.feed(piece)
                assert prices.paid(PRICE, reading.end()).usd is None


@given(st.binary(max_size=30), st.lists(st.integers(0, 400), max_size=6))
@settings(max_examples=60, deadline=None)
def test_usage_survives_any_text_and_any_cut(noise: bytes, cuts: list[int]) -> None:
    """Invalid UTF-8 in an event beside the usage, and any way of cutting the bytes, change nothing."""
    wild = b'data: {"type":"content_block_delta","text":"' + noise.replace(b"\n", b"").replace(b"\r", b"") + b'"}\n\n'
    data, places = wild + event(START) + wild + event(DELTA), sorted({0, *cuts})
    reading = Reading(ANTHROPIC.take, "text/event-stream", "")
    for begin, end in zip(places, [*places[1:], len(data)], strict=True):
        reading.feed(data[begin : max(begin, end)])
    assert reading.end().tokens == {**TOLD, "input": 9, "cache_read": 3, "output": 42}


def test_only_the_provider_s_own_tools_are_paid_for() -> None:
    """Calls of the client's tools, and a search that only opens a page, cost nothing beside their tokens."""
    types = ["function_call", "custom_tool_call", "local_shell_call", "web_search_call", "reasoning", "message"]
    items = [{"type": name} for name in types] + [{"type": "web_search_call", "action": {"type": "open_page"}}]
    body = {"status": "completed", "usage": OPENAI, "output": items}
    done = b"".join(event({"type": "response.output_item.done", "item": item}) for item in items)
    for seen in (
        read(RESPONSES, msgspec.json.encode(body), "application/json"),
        read(RESPONSES, done + event({"type": "response.completed", "response": body})),
    ):
        assert seen.tools == {"web_search": 1} and prices.paid(PRICE, seen).usd is not None


def test_a_providers_tool_is_found_wherever_it_is_offered() -> None:
    """A search that an item of the input adds, or that stands in a name space, is counted as one of the request's."""
    search, own = {"type": "web_search"}, {"type": "function", "name": "f"}
    added = [{"type": "additional_tools", "tools": [own, {"type": "namespace", "name": "n", "tools": [own, search]}]}]
    assert responses.server_tools({"input": added, "max_tool_calls": 3}) == {"web_search": 3}
    assert responses.server_tools({"input": added[:0], "tools": [{"type": "namespace", "tools": [search]}]})
    assert responses.server_tools({"input": [{"type": "additional_tools", "tools": [own]}]}) == {}
