"""The four wires without a network: what a request may cost, by what list, and hostile bodies."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.source import words
from prill.catalog import Catalog
from prill.gateway import prices
from prill.gateway.door import WIRES
from prill.gateway.replies import Reading
from prill.gateway.wire import IMAGE_TOKENS, Asked, Refused, Seen, encoded, parsed
from prill.outside import Price, Prices, Tier
from upstreams import PRICES

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


# --- requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "body", "most"),
    [
        (ANTHROPIC, {"model": "m", "max_tokens": 5}, 5),
        (RESPONSES, {"model": "m", "max_output_tokens": 5}, 5),
        (CHAT, {"model": "m", "max_tokens": 9, "max_completion_tokens": 5}, 5),
        (CHAT, {"model": "m"}, None),
        (GEMINI, {"generationConfig": {"maxOutputTokens": 5}}, 5),
        (GEMINI, {"generation_config": {"max_output_tokens": 5}}, 5),
    ],
)
def test_the_limit_of_output_is_read_and_lowered(wire: Any, body: dict[str, Any], most: int | None) -> None:
    """Each wire's own field is read, and a lower limit is read back from it."""
    assert asks(wire, body).most_output == most
    assert asks(wire, wire.capped(body, 3)).most_output == 3


def test_thinking_stays_below_a_lowered_limit() -> None:
    """A budget for thinking that would not fit is lowered with the limit."""
    body = {"model": "m", "max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 8000}}
    assert ANTHROPIC.capped(body, 4000)["thinking"]["budget_tokens"] == 2976


IN_RESULT = {"type": "tool_result", "content": [{"type": "image", "source": {"type": "base64", "data": PICTURE}}]}


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (ANTHROPIC, {"model": "m", "messages": [{"content": [IN_RESULT]}]}),
        (
            RESPONSES,
            {"model": "m", "input": [{"content": [{"type": "input_image", "image_url": f"data:image/png,{PICTURE}"}]}]},
        ),
        (
            RESPONSES,
            {
                "model": "m",
                "input": [{"output": {"type": "computer_screenshot", "image_url": f"data:image/png,{PICTURE}"}}],
            },
        ),
        (
            CHAT,
            {
                "model": "m",
                "messages": [{"content": [{"type": "image_url", "image_url": {"url": f"data:image/png,{PICTURE}"}}]}],
            },
        ),
        (GEMINI, {"contents": [{"parts": [{"inline_data": {"mime_type": "image/png", "data": PICTURE}}]}]}),
    ],
)
def test_a_picture_counts_as_one(wire: Any, body: dict[str, Any]) -> None:
    """The bytes of a picture are no text: it counts as many tokens as any picture may have."""
    asked = asks(wire, body)
    assert asked.images == 1 and asked.image_bytes >= len(PICTURE) and asked.bounded
    size = len(encoded(body))
    assert IMAGE_TOKENS < prices.prompt_bound(PRICE, asked, size) < IMAGE_TOKENS + prices.FRAME_TOKENS + 500


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (ANTHROPIC, {"model": "m", "messages": [{"content": [{"type": "document", "source": {"type": "url"}}]}]}),
        (RESPONSES, {"model": "m", "previous_response_id": "r"}),
        (RESPONSES, {"model": "m", "input": [{"content": [{"type": "input_file", "file_id": "f"}]}]}),
        (CHAT, {"model": "m", "messages": [{"content": [{"type": "file", "file": {"file_id": "f"}}]}]}),
        (GEMINI, {"cachedContent": "c"}),
        (GEMINI, {"contents": [{"parts": [{"fileData": {"fileUri": "u", "mimeType": "application/pdf"}}]}]}),
    ],
)
def test_what_points_beyond_the_body_counts_the_whole_context(wire: Any, body: dict[str, Any]) -> None:
    """A request that makes the provider read more than it holds is bounded by the context, or refused."""
    asked = asks(wire, body)
    assert prices.prompt_bound(PRICE, asked, 10) == PRICE.context_tokens
    with pytest.raises(Refused, match="nothing bounds"):
        prices.prompt_bound(PRICES.models["cheap"], asked, 10)


@pytest.mark.parametrize(
    ("wire", "body", "words"),
    [
        (ANTHROPIC, {"model": "m", "speed": "fast"}, "speed may only be"),
        (ANTHROPIC, {"model": "m", "inference_geo": "us"}, "inference_geo"),
        (ANTHROPIC, {"model": "m", "context_management": {"edits": [{"type": "compact_20260112"}]}}, "compaction"),
        (RESPONSES, {"model": "m", "service_tier": "priority"}, "service_tier"),
        (RESPONSES, {"model": "m", "background": True}, "background"),
        (CHAT, {"model": "m", "models": ["x"]}, "models"),
        (CHAT, {"model": "m", "modalities": ["text", "audio"]}, "modalities"),
        (GEMINI, {"generationConfig": {"responseModalities": ["AUDIO"]}}, "responseModalities"),
        (GEMINI, {"contents": [{"parts": [{"fileData": {"fileUri": "a film"}}]}]}, "sound and film"),
        (GEMINI, {"contents": [{"parts": [{"inlineData": {"mimeType": "audio/wav"}}]}]}, "sound and film"),
        (CHAT, {"model": "m", "n": 0}, "number of replies"),
        (CHAT, {"Model": "x", "model": "m"}, "write 'model'"),
        (CHAT, {"model": ["m"]}, "names no model"),
        (GEMINI, {"generationConfig": {}, "generation_config": {}}, "two spellings"),
        (GEMINI, {"generationConfig": []}, None),
        (GEMINI, {"generationConfig": [1]}, "must be an object"),
        (RESPONSES, {"model": "m", "max_output_tokens": -1}, "above 0"),
    ],
)
def test_what_has_another_price_is_refused(wire: Any, body: dict[str, Any], words: str | None) -> None:
    """Settings that change the price, and ways of hiding them, do not pass."""
    if words is None:
        assert asks(wire, body).most_output is None
        return
    with pytest.raises(Refused, match=words):
        asks(wire, body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"a","model":"b"}',
        b'{"x":NaN}',
        b"[]",
        b"{",
        b"\xff\xfe{}",
        b"[" * 100_000,
        '{"m":1}'.encode("utf-16"),
    ],
)
def test_a_body_that_two_readers_read_differently_is_refused(body: bytes) -> None:
    """Double keys, other encodings, what is no number and what is no JSON are refused."""
    with pytest.raises(Refused):
        parsed(body)


@pytest.mark.parametrize(
    ("wire", "body", "tools"),
    [
        (ANTHROPIC, {"tools": [{"type": "web_search_20250305", "max_uses": 3}, {"name": "x"}]}, {"web_search": 3}),
        (ANTHROPIC, {"tools": [{"type": "bash_20250124"}], "mcp_servers": [{}]}, {"mcp": 10}),
        (
            RESPONSES,
            {"tools": [{"type": "web_search_preview"}, {"type": "shell"}], "max_tool_calls": 2},
            {"web_search": 2},
        ),
        (RESPONSES, {"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}, {"shell": 10}),
        (CHAT, {"web_search_options": {}, "tools": [{"type": "function"}]}, {"web_search": 10}),
        (GEMINI, {"tools": {"google_search": {}, "functionDeclarations": []}}, {"googleSearch": 10}),
    ],
)
def test_the_provider_s_own_tools_are_seen(wire: Any, body: dict[str, Any], tools: dict[str, int]) -> None:
    """Tools that the provider runs are told from those that the client runs, with how often they may be used."""
    assert asks(wire, {"model": "m", **body}).tools == tools


def test_a_tool_without_a_price_is_refused() -> None:
    """Only tools of the list may be used, and they are held for."""
    searching = Asked(model="m", streamed=False, tools={"web_search": 2})
    prompt = prices.FRAME_TOKENS + 2 * prices.TOOL_TOKENS
    assert prices.without_output(PRICE, searching, 0, ()) == Decimal("0.02") + Decimal(prompt) * 3 / 1_000_000
    with pytest.raises(Refused, match="mcp"):
        prices.without_output(PRICE, Asked(model="m", streamed=False, tools={"mcp": 2}), 0, ())


@given(st.text(max_size=200))
def test_a_text_has_no_more_tokens_than_its_json_has_bytes(text: str) -> None:
    """The bound of the prompt holds for the tightest vocabulary of bytes there is."""
    body = encoded({"model": "m", "messages": [{"role": "user", "content": text}]})
    assert prices.prompt_bound(PRICE, asks(CHAT, parsed(body)), len(body)) >= len(text.encode(errors="replace"))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(sorted(FIELDS)),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=150, deadline=None)
def test_no_body_or_reply_is_a_surprise(value: Any) -> None:
    """Whatever JSON a box sends or a provider answers, a request is read or refused, and a reply is read or left."""
    body = value if isinstance(value, dict) else {"model": "m", "messages": value, "input": value, "contents": value}
    for wire in WIRES.values():
        try:
            asked = asks(wire, body)
            assert prices.prompt_bound(PRICE, asked, 10_000) >= 0
        except Refused as no:
            assert 400 <= no.status < 500
        seen = Seen()
        wire.take(seen, body)
        assert seen.tokens is None or all(number >= 0 for number in seen.tokens.values())


def test_escapes_hide_no_cache() -> None:
    """Writing to the cache is held for where the request asks for it, or may ask for it in escapes."""
    assert prices.cache_writes("anthropic", b"{}") == () == prices.cache_writes("gemini", b"{}")
    assert prices.cache_writes("anthropic", b'{"cache_control":{"ttl":"1h"}}') == ("cache_write_5m", "cache_write_1h")
    assert prices.cache_writes("anthropic", rb'{"cache\u005fcontrol":1}') == ("cache_write_5m", "cache_write_1h")
    assert prices.cache_writes("responses", b"{}") == ("cache_write_5m",)


# --- prices -------------------------------------------------------------------------------------------------------


def test_a_long_prompt_has_the_prices_of_its_tier() -> None:
    """Above a threshold the whole call has the higher prices; a hold that may get there assumes them."""
    kinds = {"input": 1, "cache_read": 200_000, "cache_write_5m": 0, "cache_write_1h": 0, "output": 10}
    assert prices.paid(PRICE, Seen(tokens=kinds, final=True)).usd == Decimal("0.120231")
    kinds["cache_read"] -= 1
    assert prices.paid(PRICE, Seen(tokens=kinds, final=True)).usd == Decimal("0.0601527")
    assert prices.dearest_output(PRICE, Asked(model="m", streamed=False), 200_000) == Decimal("0.0000225")


@given(st.decimals(0, 10, places=6), st.decimals(0, 2, places=6), st.decimals(0, "0.001", places=8), st.integers(1, 4))
def test_a_lowered_limit_is_paid_for(room: Decimal, before: Decimal, each: Decimal, replies: int) -> None:
    """The limit that fits a room costs no more than the room, and no lower one than is of use is given."""
    found = prices.fitting(room, before, each, replies, 64_000)
    assert found is None or (before + each * replies * found <= room and prices.LEAST_OUTPUT <= found <= 64_000)
    if found is None:
        assert before + each * replies * prices.LEAST_OUTPUT > room


def test_a_short_limit_is_never_made_shorter() -> None:
    """A reply that was meant to be short is paid for whole or not at all."""
    assert prices.fitting(Decimal(5), Decimal(0), Decimal(1), 1, 5) == 5
    assert prices.fitting(Decimal(4), Decimal(0), Decimal(1), 1, 5) is None


# --- the list -----------------------------------------------------------------------------------------------------


def test_the_list_agrees_with_genai_prices() -> None:
    """Where an independent table knows a model of ours, both price the same usage alike."""
    genai = pytest.importorskip("genai_prices", reason="genai-prices is not installed")
    known = 0
    for name, price in Catalog().prices("2026-11").models.items():
        family = {"claude": "anthropic", "gpt": "openai", "gemini": "google"}.get(name.partition("-")[0])
        for fresh in (1_000, 300_000):
            kinds = {"input": fresh, "cache_read": 5_000, "cache_write_5m": 0, "cache_write_1h": 0, "output": 700}
            usage = genai.Usage(input_tokens=fresh + 5_000, cache_read_tokens=5_000, output_tokens=700)
            try:
                theirs = genai.calc_price(usage, name, provider_id=family).total_price
            except LookupError:
                continue
            assert prices.paid(price, Seen(tokens=kinds, final=True)).usd == theirs, name
            known += 1
    assert known > 80


def test_every_price_of_the_list_can_be_reckoned_with() -> None:
    """Each model bounds and prices a call, and every definition of a provider names a variable and a wire."""
    catalog = Catalog()
    for name, price in catalog.prices("2026-11").models.items():
        asked = Asked(model=name, streamed=False, bounded=False)
        assert prices.without_output(price, asked, 1, ("cache_write_1h",)) > 0 < prices.dearest_output(price, asked, 1)
    for name in catalog.names("providers"):
        provider = catalog.provider(name)
        assert provider.scenario or ((provider.key is None) != (provider.key_file is None) and provider.wires)


def test_a_changed_body_keeps_its_meaning() -> None:
    """A chat stream is asked to tell its usage, and nothing else about it changes."""
    body = {"model": "m", "stream": True, "stream_options": {"x": 1}, "messages": [{"content": "ü\u2028"}], "t": 1e-7}
    changed = CHAT.metered(body)
    assert changed is not None and json.loads(encoded(changed)) == {
        **body,
        "stream_options": {"x": 1, "include_usage": True},
    }
    assert CHAT.metered({"stream": True, "stream_options": {"include_usage": True}}) is None is CHAT.metered({})


def test_a_list_that_cannot_be_reckoned_by_is_told() -> None:
    """An amount that is none, a threshold that is no number and a length of nothing are named."""
    assert prices.faults(PRICES) == []
    bad = Price(base=Tier(input="1", output="-2"), above={"x": Tier(input="one", output="1")}, max_output_tokens=0)
    found = prices.faults(Prices(name="p", title="", dated="", source="", models={"m": bad}))
    assert [fault.split()[2] for fault in found] == [
        *("above.x", "above.x.cache_read", "above.x.cache_write_1h", "above.x.cache_write_5m", "above.x.input"),
        *("base.output", "max_output_tokens"),
    ]
    for name in Catalog().names("prices"):
        assert prices.faults(Catalog().prices(name)) == []
