"""Steps as an ATIF document that its own models accept, session files as a second source, and money told three ways."""

import io
import json
from decimal import Decimal
from typing import Any

import atif
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.trajectory import parse, steps
from prill.trajectory.atif import steps_of, trajectory
from prill.trajectory.reconcile import disjoint, purchases, reconcile
from prill.trajectory.sessions import lacking, read
from samples import SPEC
from test_trajectory import LINES, STREAMS, claude, raw


def written(agent: str, data: bytes) -> dict[str, Any]:
    """The document of an output, as it reads from disk."""
    made = trajectory(SPEC.id, agent, "1.0", None, steps(agent, io.BytesIO(data)), parse(agent, data))
    document: dict[str, Any] = json.loads(msgspec.json.encode(made))
    return document


@pytest.mark.parametrize("agent", STREAMS)
def test_a_document_is_valid_and_reads_back_as_the_same_steps(agent: str) -> None:
    """ATIF's models accept the document, and no field of any step is lost in it."""
    document = written(agent, raw(STREAMS[agent]))
    atif.Trajectory.model_validate(document)
    assert list(steps_of(document)) == list(steps(agent, io.BytesIO(raw(STREAMS[agent]))))


@pytest.mark.parametrize("agent", STREAMS)
def test_a_call_cites_its_result_in_the_same_step(agent: str) -> None:
    """Each tool call has an observation that names it and the step in which its result stands."""
    document = written(agent, raw(STREAMS[agent]))
    (call,) = [step for step in document["steps"] if "tool_calls" in step]
    (result,) = call["observation"]["results"]
    assert result["source_call_id"] == call["tool_calls"][0]["tool_call_id"]
    assert document["steps"][result["extra"]["step"] - 1]["message"].strip() == "a\nb"
    assert call["tool_calls"][0]["arguments"]["command"] == "ls -la"


def test_the_prompt_s_tokens_have_what_was_cached_in_them() -> None:
    """ATIF counts cached tokens as part of the prompt, whichever way a program counts them."""
    for agent, prompt in {"claude_code": 32, "codex": 24, "gemini_cli": 24, "opencode": 32}.items():
        final = written(agent, raw(STREAMS[agent]))["final_metrics"]
        assert (final["total_prompt_tokens"], final["total_cached_tokens"]) == (prompt, 8)


def test_an_output_without_a_step_is_valid_and_has_none() -> None:
    """A run that printed nothing has a document that ATIF accepts, and no step."""
    document = written("codex", b"")
    atif.Trajectory.model_validate(document)
    assert list(steps_of(document)) == [] and document["final_metrics"]["total_steps"] == 0


@given(st.sampled_from([*STREAMS, "any"]), st.lists(LINES, max_size=5))
@settings(max_examples=100, deadline=None)
def test_any_output_makes_a_valid_document(agent: str, lines: list[bytes]) -> None:
    """Whatever was printed, the document is valid and its steps read back."""
    data = b"\n".join(lines)
    document = written(agent, data)
    atif.Trajectory.model_validate(document)
    assert [step.text for step in steps_of(document)] == [step.text for step in steps(agent, io.BytesIO(data))]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5) | st.just("steps"),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["steps", "extra", "tool_calls", "message", "seconds"]), inner)
        ),
    )
)
@settings(max_examples=100, deadline=None)
def test_a_foreign_document_is_read_as_far_as_it_goes(document: Any) -> None:
    """No document makes reading raise."""
    list(steps_of(document))
    list(steps_of({"steps": [document]}))


# --- session files ------------------------------------------------------------------------------------------------

CODEX_SESSION = [
    {"type": "session_meta", "payload": {"id": "s1", "cli_version": "0.171.0"}},
    {"type": "turn_context", "payload": {"model": "m-1"}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text",
                                                                                          "text": "Go"}]}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "exec_command", "call_id": "c1",
                                          "arguments": '{"cmd": "ls -la"}'}},
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c1",
                                          "output": "Exit 0\nOutput:\na\nb"}},
    {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": {
        "input_tokens": 24, "cached_input_tokens": 8, "output_tokens": 60}}}},
    {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "Done."}]}},
]  # fmt: skip
CALL = {"id": "t1", "name": "run_shell_command", "args": {"command": "ls -la"}, "result": [
    {"functionResponse": {"response": {"output": "a\nb"}}}]}  # fmt: skip
TOKENS = {"input": 24, "output": 60, "cached": 8, "thoughts": 6}
GEMINI_SESSION = [
    {"sessionId": "s1", "kind": "main"},
    {"$set": {"messages": [{"id": "u0", "type": "user", "content": [{"text": "Go"}]}]}},
    {"id": "g1", "type": "gemini", "content": "", "tokens": TOKENS, "model": "m-1"},
    {"id": "g1", "type": "gemini", "content": "", "tokens": TOKENS, "model": "m-1", "toolCalls": [CALL]},
    {"id": "g1", "type": "gemini", "content": "Done.", "tokens": TOKENS, "model": "m-1", "toolCalls": [CALL]},
    {"$set": {"lastUpdated": "2026-01-01T00:00:00Z"}},
]
OPENCODE_EXPORT = [
    {"info": {"id": "s1", "version": "1.18", "model": {"id": "m-1"}, "tokens": {
        "input": 24, "output": 60, "reasoning": 0, "cache": {"read": 8, "write": 0}}},
     "messages": [
         {"info": {"role": "user"}, "parts": [{"type": "text", "text": "Go"}]},
         {"info": {"role": "assistant"}, "parts": [
             {"type": "tool", "tool": "bash", "callID": "t1",
              "state": {"status": "completed", "input": {"command": "ls -la"}, "output": "a\nb"}},
             {"type": "text", "text": "Done."}]}]},
]  # fmt: skip
CLAUDE_SESSION = [
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "s1"},
    claude(
        "assistant", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls -la"}}, version="2.1"
    ),
    claude("user", {"type": "tool_result", "tool_use_id": "t1", "content": "a\nb"}),
    claude("assistant", {"type": "text", "text": "Done."}, sessionId="s1"),
]
SESSIONS: dict[str, list[dict[str, Any]]] = {
    "claude_code": CLAUDE_SESSION, "codex": CODEX_SESSION, "gemini_cli": GEMINI_SESSION, "opencode": OPENCODE_EXPORT,
}  # fmt: skip


@pytest.mark.parametrize("agent", SESSIONS)
def test_a_session_tells_what_a_killed_stream_lacks(agent: str) -> None:
    """With the stream lost, the session has the command, the result and the last word, each once."""
    session = read(agent, io.BytesIO(raw(SESSIONS[agent])))
    lost = [(step.kind, step.text) for step in lacking(session.steps, [])]
    assert sorted(lost) == [("command", "ls -la"), ("message", "Done."), ("result", "a\nb")]
    assert session.usage is not None and session.usage["output"] in (60, 1) and session.session_id == "s1"


@pytest.mark.parametrize("agent", SESSIONS)
def test_a_whole_stream_lacks_nothing_of_its_session(agent: str) -> None:
    """What the stream has is not told as lacking, even where a program names its calls differently in both."""
    session = read(agent, io.BytesIO(raw(SESSIONS[agent])))
    assert lacking(session.steps, steps(agent, io.BytesIO(raw(STREAMS[agent])))) == []


@given(st.sampled_from([*SESSIONS, "any"]), st.lists(LINES, max_size=5))
@settings(max_examples=100, deadline=None)
def test_no_session_file_makes_reading_raise(agent: str, lines: list[bytes]) -> None:
    """Any bytes are a session, if an empty one, and writing its steps works."""
    session = read(agent, io.BytesIO(b"\n".join(lines)))
    msgspec.json.encode(session.steps)


# --- money --------------------------------------------------------------------------------------------------------

PRICES = {"m-1": {"input": "2", "cache_read": "0.5", "cache_write_5m": "2.5", "output": "10"}}
BOUGHT = {"call": "a", "model": "m-1", "tokens": {"input": 16, "cache_read": 8, "cache_write": 0, "output": 60}}


def test_three_ways_that_agree_have_nothing_between_them() -> None:
    """Tokens and dollars of program, ledger and table are equal to the last digit where they tell the same calls."""
    told = parse("codex", raw(STREAMS["codex"]))
    found = reconcile(told, [{**BOUGHT, "usd": "0.000636"}], PRICES)
    assert found.tokens_apart == {"input": 0, "cache_read": 0, "cache_write": None, "output": 0}
    assert found.table.usd == found.ledger.usd == Decimal("0.000636") and found.table_apart == 0
    assert found.usd_apart is None and "codex does not tell" in found.program.why


def test_a_call_that_the_program_does_not_tell_is_the_difference() -> None:
    """What stands in the ledger alone is what is apart, with the other model named."""
    told = parse("opencode", raw(STREAMS["opencode"]))
    title = {"call": "b", "model": "small", "tokens": {"input": 5, "output": 7}, "usd": "0.01"}
    found = reconcile(told, [{**BOUGHT, "tokens": {**BOUGHT["tokens"], "input": 24}, "usd": "0.25"}, title], PRICES)
    assert found.tokens_apart["output"] == 7 and found.usd_apart == Decimal("0.01")
    assert found.table.usd is None and "no price for 'small'" in found.table.why
    assert any("names the session" in note for note in found.notes)


def test_without_a_gateway_the_table_prices_what_the_program_told() -> None:
    """No ledger is unknown, not zero, and the program's own tokens are priced instead."""
    found = reconcile(parse("codex", raw(STREAMS["codex"])), None, PRICES, model="m-1")
    assert found.ledger.usd is None and found.ledger.calls is None and found.usd_apart is None
    assert found.table.usd == Decimal("0.000636")


def test_a_killed_program_tells_nothing_and_the_ledger_does() -> None:
    """Without a closing event the program's cost is unknown with its reason, and the output is called incomplete."""
    found = reconcile(parse("claude", raw(STREAMS["claude_code"][:-1])), [{**BOUGHT, "usd": "1"}], PRICES)
    assert found.program.usd is None and "closing result" in found.program.why and found.ledger.usd == 1
    assert any("incomplete" in note for note in found.notes)


def test_a_ledger_s_lines_become_purchases() -> None:
    """Charges of the agent's own model count once each, with the model of their hold; holds and refusals do not."""
    lines = [
        {"id": "a", "action": "hold", "kind": "model", "usd": "1", "model": "m-1"},
        {"id": "g", "action": "charge", "kind": "gpu", "usd": "5"},
        {"id": "a", "action": "charge", "kind": "model", "usd": "0.5", "tokens": {"input": 3, "cache_write_1h": 2}},
        {"id": "b", "action": "refuse", "kind": "model", "usd": "9"},
    ]
    (bought,) = purchases(lines)
    assert (bought["call"], bought["model"], bought["usd"]) == ("a", "m-1", "0.5")
    found = reconcile(parse("claude", b""), [bought], {"m-1": {"input": 1, "output": 1, "cache_write_1h": 4}})
    assert found.ledger.tokens == {"input": 3, "cache_read": 0, "cache_write": 2, "output": 0}
    assert found.table.usd == Decimal("0.000011")


def test_kinds_of_tokens_are_made_disjoint() -> None:
    """What a program counts within another kind is taken out of it, and what it counts beside is put in."""
    usage = {"input": 100, "cache_read": 40, "output": 10, "reasoning": 5}
    assert disjoint("codex", usage)["input"] == 60 and disjoint("codex", usage)["output"] == 10
    assert disjoint("claude_code", usage)["input"] == 100 and disjoint("opencode", usage)["output"] == 15
    assert disjoint("codex", None) == dict.fromkeys(("input", "cache_read", "cache_write", "output"))
