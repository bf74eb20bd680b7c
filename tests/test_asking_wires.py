"""A judge model asked in each provider's own words, against the scripted provider; and how the gateway meters them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearings import answer
from prill.asking.wires import completion, request
from prill.gateway.door import WIRES as METERED
from prill.judge_model import JudgeModel
from prill.outside import Wire
from prill.panel.answer import read
from prill.sockets import Inquiry
from prill.spec import Asked
from rehearsing import served

WIRES: tuple[Wire, ...] = ("chat", "anthropic", "responses", "gemini")
CHAT = {
    "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": "Did it look?"}],
    "max_completion_tokens": 500,
    "temperature": 0.5,
    "reasoning_effort": "high",
}


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_is_asked_on_every_wire(tmp_path: Path, wire: Wire) -> None:
    """The same question and the same answer in four formats, with the tokens of each."""
    scenario = tmp_path / "play.toml"
    scenario.write_text(f"title = 'one'\n[usage]\ninput = 1200\noutput = 60\n[[turns]]\nsay = '{answer(False)}'\n")
    with served(scenario, tmp_path) as (root, _):
        asked = Asked(model="rehearsal-small", effort="high", max_tokens=500, tries=1, connections=1)
        ask = JudgeModel(f"{root}/v1", asked, tmp_path / "kept", wire=wire, temperature=0.5)
        [opinion] = ask([Inquiry(user="Did it look?", system="Judge.")], lambda text: read(text, ("looked",)))
    assert opinion.value is not None and opinion.value.values == {"looked": False}
    assert (ask.spent()["tokens_in"], ask.spent()["tokens_out"]) == (1200, 60)


@pytest.mark.parametrize("wire", WIRES)
def test_the_gateway_can_meter_what_is_sent(wire: Wire) -> None:
    """Each wire's request has a path and a limit of output that the gateway knows, and bears system and user words."""
    url, body = request(wire, "http://door/v1", "/chat/completions", "the-model", CHAT)
    meter = METERED[wire]
    match = meter.paths.fullmatch(url.removeprefix("http://door"))
    assert match is not None
    asked = meter.asked(match.groupdict(), body)
    assert (asked.model, asked.most_output, asked.streamed, list(asked.tools)) == ("the-model", 500, False, [])
    text = msgspec.json.encode(body).decode()
    assert "Judge." in text and "Did it look?" in text and "high" in text and "0.5" in text


@pytest.mark.parametrize(
    ("wire", "reply", "stop"),
    [
        ("anthropic", {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}],
                       "stop_reason": "max_tokens", "usage": {"input_tokens": 1, "output_tokens": 2}}, "length"),
        ("anthropic", {"content": [], "stop_reason": "refusal",
                       "usage": {"input_tokens": 1, "output_tokens": 2}}, "content_filter"),
        ("responses", {"output": [{"type": "reasoning", "summary": []}], "status": "incomplete",
                       "usage": {"input_tokens": 1, "output_tokens": 2}}, "length"),
        ("gemini", {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}, "finishReason": "SAFETY"}],
                    "usageMetadata": {"promptTokenCount": 1, "thoughtsTokenCount": 2}}, "content_filter"),
        ("gemini", {"candidates": [{"finishReason": "OTHER"}], "usageMetadata": {"promptTokenCount": 1}}, "OTHER"),
    ],
)  # fmt: skip
def test_how_a_reply_ended_is_kept(wire: Wire, reply: dict[str, Any], stop: str) -> None:
    """A reply that was cut or refused did not end; an end that nobody knows stays unknown; thoughts are no text."""
    found = msgspec.json.decode(completion(wire, msgspec.json.encode(reply)))
    assert found["choices"][0]["finish_reason"] == stop
    assert "hm" not in found["choices"][0]["message"]["content"]


@given(st.sampled_from(WIRES), st.one_of(st.binary(max_size=60), st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(
        st.sampled_from(["content", "usage", "output", "candidates", "type", "text", "status"]), inner, max_size=4)),
    max_leaves=10).map(msgspec.json.encode)))  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_any_reply_is_read_or_left_as_it_is(wire: Wire, body: bytes) -> None:
    """Whatever a server sends is a completion or comes back unchanged."""
    found = completion(wire, body)
    assert found == body or "choices" in msgspec.json.decode(found)
