"""Raw output becomes steps: nothing raises, nothing is lost, numbers and bytes hold."""

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.trajectory import parse, steps
from prill.trajectory.lines import pieces
from prill.trajectory.reading import FORMATS, format_of

USAGE = {"input_tokens": 12, "output_tokens": 1, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1}


def claude(kind: str, *blocks: Any, **more: Any) -> dict[str, Any]:
    """A line of Claude Code's stream."""
    return {"type": kind, "message": {"id": "m1", "role": kind, "content": list(blocks), "usage": USAGE}, **more}


STREAMS: dict[str, list[dict[str, Any]]] = {
    "claude_code": [
        {"type": "system", "subtype": "init", "session_id": "s1", "model": "m-1", "claude_code_version": "2.1.197"},
        claude("assistant", {"type": "text", "text": "I will."}),
        claude("assistant", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls -la"}}),
        claude("user", {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a\nb"}]}),
        claude("assistant", {"type": "text", "text": "Done."}),
        {"type": "result", "subtype": "success", "is_error": False, "total_cost_usd": 0.25,
         "usage": {"input_tokens": 24, "output_tokens": 60, "cache_read_input_tokens": 8}},
    ],
    "codex": [
        {"type": "thread.started", "thread_id": "s1"},
        {"type": "item.completed", "item": {"id": "i0", "type": "error", "message": "metadata not found"}},
        {"type": "turn.started"},
        {"type": "item.started", "item": {"id": "i1", "type": "command_execution", "command": "ls -la"}},
        {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "command": "ls -la",
                                            "aggregated_output": "a\nb", "exit_code": 0}},
        {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "Done."}},
        {"type": "turn.completed", "usage": {"input_tokens": 24, "cached_input_tokens": 8, "output_tokens": 60}},
    ],
    "gemini_cli": [
        {"type": "init", "session_id": "s1", "model": "m-1"},
        {"type": "message", "role": "user", "content": "Go"},
        {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t1", "parameters": {"command": "ls -la"}},
        {"type": "tool_result", "tool_id": "t1", "status": "success", "output": "a\nb"},
        {"type": "message", "role": "assistant", "content": "Do", "delta": True},
        {"type": "message", "role": "assistant", "content": "ne.", "delta": True},
        {"type": "result", "status": "success",
         "stats": {"total_tokens": 90, "input_tokens": 24, "output_tokens": 60, "cached": 8}},
    ],
    "opencode": [
        {"type": "step_start", "timestamp": 1795972851067, "sessionID": "s1", "part": {}},
        {"type": "tool_use", "sessionID": "s1", "part": {"tool": "bash", "callID": "t1", "state": {
            "status": "completed", "input": {"command": "ls -la"}, "output": "a\nb"}}},
        {"type": "text", "sessionID": "s1", "part": {"text": "Done."}},
        {"type": "step_finish", "sessionID": "s1", "part": {"reason": "stop", "cost": 0.25, "tokens": {
            "input": 24, "output": 60, "reasoning": 0, "cache": {"read": 8, "write": 0}}}},
    ],
}  # fmt: skip


def raw(events: list[dict[str, Any]]) -> bytes:
    """Events as JSON lines."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@pytest.mark.parametrize("agent", STREAMS)
def test_each_format_tells_the_command_its_result_and_the_end(agent: str) -> None:
    """The command is the real command line, the result is paired with it by id, and usage and status are read."""
    told = parse(agent, raw(STREAMS[agent]))
    found = list(steps(agent, io.BytesIO(raw(STREAMS[agent]))))
    commands = [step for step in found if step.kind == "command"]
    results = [step for step in found if step.kind == "result"]
    assert [step.text for step in commands] == ["ls -la"] and [step.text.strip() for step in results] == ["a\nb"]
    assert commands[0].call == results[0].call and commands[0].call
    assert (told.status, told.final_text, told.tool_calls, told.session_id) == ("success", "Done.", 1, "s1")
    assert told.usage is not None and (told.usage["input"], told.usage["output"]) == (24, 60)
    assert told.cost_usd == (0.25 if agent in ("claude_code", "opencode") else None)
    assert told.unknown_events == 0 and told.n_steps == len(found)


@pytest.mark.parametrize("agent", STREAMS)
def test_a_format_is_known_by_its_events_alone(agent: str) -> None:
    """Whatever the order of keys and however late the first event, each event is read as the format that it has."""
    turned = [dict(reversed(event.items())) for event in STREAMS[agent]]
    told = parse("any", b"noise\n" * 300 + raw(turned))
    assert (told.agent, told.noise_lines, told.status) == (agent, 300, "success")
    assert {format_of(event) for event in STREAMS[agent]} <= {agent, None}


@pytest.mark.parametrize("agent", STREAMS)
def test_a_stream_cut_at_any_byte_is_incomplete_and_costs_an_unknown_amount(agent: str) -> None:
    """Without its closing event no output is a success, and what was cut is neither an event nor lost."""
    whole = raw(STREAMS[agent])
    last = whole[:-1].rfind(b"\n") + 1
    for cut in range(1, last, 7):
        told = parse(agent, whole[:cut])
        assert told.status == "incomplete" and told.cost_usd is None
        tail = whole[:cut].rpartition(b"\n")[2]
        assert told.truncated_tail == (tail != b"" and tail + b"\n" not in whole)
    told = parse(agent, whole[: last + 20])
    assert told.truncated_tail and told.n_events == len(STREAMS[agent]) - 1 and told.noise_lines == 0


def test_a_message_in_parts_is_one_step_over_all_its_bytes() -> None:
    """Parts of a reply that follow each other are one step with one text."""
    stream = raw(STREAMS["gemini_cli"])
    said = [step for step in steps("gemini_cli", io.BytesIO(stream)) if step.kind == "message"]
    assert [step.text for step in said] == ["Done."]
    assert stream[said[0].offset : said[0].offset + said[0].length].count(b'"delta"') == 2


@pytest.mark.parametrize(
    ("line", "events", "noise"),
    [
        (b'{"type":"a"}{"type":"b"}', 2, 0),
        (b'warn {"type":"a"} more {"type":"b"}', 2, 1),
        (b'[2026-04-03T14:05:32Z] {"type":"a"}', 1, 0),
        (b'\xef\xbb\xbf{"type":"a"}\r', 1, 0),
        (b'\x1b[2K\x1b[1G{"type":"a"}\x1b[0m', 1, 0),
        (b'{"type":"assist{"type":"b","c":[{"type":"d"}]}', 1, 1),
        (b'{"type":"a","message":{"content":[{"type":"text","text":"x"}],"usa', 0, 1),
        (b'{"a" {"type":"x"},"b":1}', 0, 1),
        (b'[{"type":"a"}]', 0, 1),
        (b'{"type":"a","x":"\xff\xfe"}', 1, 0),
        (b'{"type":"a","x":"\xe2\x80\xa8 \xc2\x85 \x0b"}', 1, 0),
        (b'{"type":"a","x":"\\ud83d"}', 1, 0),
        (b'{"x":1}', 0, 1),
        (b"  \r", 0, 0),
        (b"null", 0, 1),
        (b"}{}{", 0, 1),
    ],
)
def test_objects_are_recovered_from_what_stands_round_them(line: bytes, events: int, noise: int) -> None:
    """Glued, stamped, coloured and damaged lines give the events that they hold, and other text is noise once."""
    told = parse("claude_code", line + b'\n{"type":"system"}\n')
    assert (told.n_events, told.noise_lines, told.truncated_tail) == (events + 1, noise, False)


def test_only_the_last_total_of_a_thread_counts_and_a_drop_begins_another() -> None:
    """Codex's totals grow within a thread; threads are added."""
    turns = [(100, 10), (250, 30), (40, 5)]
    stream = raw([{"type": "turn.completed", "usage": {"input_tokens": a, "output_tokens": b}} for a, b in turns])
    told = parse("codex", stream)
    assert told.usage is not None and (told.usage["input"], told.usage["output"]) == (290, 35)


def test_the_cost_of_each_claude_process_is_added() -> None:
    """A result replaces an earlier one of its process, and a process that was started again adds its own."""
    init = {"type": "system", "subtype": "init"}
    ends = [{"type": "result", "subtype": "success", "total_cost_usd": usd} for usd in (0.25, 0.5, 0.125)]
    assert parse("claude", raw([init, ends[0], ends[1], init, ends[2]])).cost_usd == 0.625


def test_a_cost_of_nothing_for_tokens_is_unknown() -> None:
    """A price of 0 where tokens were used is no authority."""
    events = json.loads(json.dumps(STREAMS["opencode"]))
    events[-1]["part"]["cost"] = 0
    told = parse("opencode", raw(events))
    assert told.cost_usd is None and "no authority" in told.cost_why


def test_background_tasks_that_are_open_at_the_end_are_an_early_end() -> None:
    """A command put in the background counts as open until a look at it, a stop or a notice shows its end."""
    go = claude("assistant", {"type": "tool_use", "id": "t1", "name": "Bash",
                              "input": {"command": "train", "run_in_background": True}})  # fmt: skip
    answer = "Command running in background with ID: bash_1"
    back = claude("user", {"type": "tool_result", "tool_use_id": "t1", "content": answer})
    look = claude("assistant", {"type": "tool_use", "id": "t2", "name": "BashOutput", "input": {"bash_id": "bash_1"}})
    runs = claude("user", {"type": "tool_result", "tool_use_id": "t2", "content": "<status>running</status>"})
    over = claude("user", {"type": "tool_result", "tool_use_id": "t2", "content": "<status>completed</status>"})
    end = {"type": "result", "subtype": "success", "is_error": False}
    early = parse("claude", raw([go, back, look, runs, end]))
    assert (early.open_background_tasks, early.early_end) == (1, True)
    whole = parse("claude", raw([go, back, look, over, end]))
    assert (whole.open_background_tasks, whole.early_end) == (0, False)


@pytest.mark.parametrize(
    ("agent", "end", "kind"),
    [
        ("claude", {"type": "result", "subtype": "success", "is_error": True, "result": "429 Too Many Requests"},
         "api_rate_limit"),
        ("claude", {"type": "result", "subtype": "error_max_turns"}, "agent_loop_abort"),
        ("codex", {"type": "turn.failed", "error": {"message": "insufficient_quota"}}, "api_quota"),
        ("gemini", {"type": "result", "status": "error", "error": {"message": "Loop detected"}}, "agent_loop_abort"),
        ("opencode", {"type": "error", "sessionID": "s", "error": {"data": {"message": "invalid_api_key"}}},
         "api_auth"),
    ],
)  # fmt: skip
def test_an_error_that_ends_it_is_told_in_a_word(agent: str, end: dict[str, Any], kind: str) -> None:
    """A terminal error gives the status, and its kind where it is one that we know."""
    told = parse(agent, raw([end]))
    assert (told.status, told.error_kind) == ("error", kind)


@pytest.mark.parametrize(
    ("agent", "events"),
    [
        ("codex", [{"type": "turn.started"}, {"type": "error", "message": "Reconnecting... 1/5"}]),
        ("codex", [{"type": "turn.failed", "error": {"message": "x"}}, {"type": "turn.started"}]),
        ("claude", [{"type": "result", "subtype": "success"}, claude("assistant", {"type": "text", "text": "And"})]),
        ("gemini", [{"type": "error", "message": "x"}, {"type": "message", "role": "assistant", "content": "And"}]),
    ],
)
def test_what_goes_on_after_an_end_has_not_ended(agent: str, events: list[dict[str, Any]]) -> None:
    """A new try, or a word after a terminal event, leaves the output incomplete until it ends again."""
    assert parse(agent, raw(events)).status == "incomplete"


def test_a_program_that_stops_itself_is_no_success() -> None:
    """Gemini calls the result a success when its loop detector has stopped it, and that is an error here."""
    events = [{"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"},
              {"type": "result", "status": "success", "stats": {}}]  # fmt: skip
    told = parse("gemini", raw(events))
    assert (told.status, told.error_kind) == ("error", "agent_loop_abort")


def test_nothing_is_no_output_and_noise_is_incomplete() -> None:
    """An output without a word is not the same as one without an event."""
    assert parse("codex", b"").status == parse("codex", b" \n\n").status == "no_output"
    assert parse("codex", b"Segmentation fault\n").status == "incomplete"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
WORDS = sorted({word for events in STREAMS.values() for event in events for word in json.dumps(event).split('"')})
SHAPED = st.recursive(
    JSON | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=12,
)
EVENTS = st.dictionaries(st.sampled_from(WORDS), SHAPED, max_size=5).flatmap(
    lambda event: st.sampled_from([*(name for own in FORMATS.values() for name in own.TYPES), 5, None, []]).map(
        lambda kind: {**event, "type": kind}
    )
)
LINES = EVENTS.map(lambda event: json.dumps(event).encode()) | st.binary(max_size=60) | JSON.map(
    lambda value: json.dumps(value).encode()
)  # fmt: skip


@given(st.sampled_from([*FORMATS, "any"]), st.lists(LINES, max_size=6), st.integers(0, 200), st.booleans())
@settings(max_examples=250, deadline=None)
def test_no_bytes_make_the_parser_raise_or_lose_a_line(agent: str, lines: list[bytes], cut: int, whole: bool) -> None:
    """Steps are numbered in order, are valid text, and cover every line that is not blank."""
    data = b"\n".join(lines) if whole else b"\n".join(lines)[:cut]
    found = list(steps(agent, io.BytesIO(data)))
    told = parse(agent, data)
    json.dumps([told.final_text, told.error, told.model]).encode()
    assert [step.step for step in found] == list(range(1, len(found) + 1)) and told.n_steps == len(found)
    covered = bytearray(len(data))
    for step in found:
        step.text.encode()
        assert step.offset >= 0 and step.offset + step.length <= len(data)
        covered[step.offset : step.offset + step.length] = b"\1" * step.length
    for line in io.BytesIO(data):
        place = data.find(line)
        assert (
            not line.strip(b" \t\r\n\x0b\x0c\0")
            or b"\x1b" in line
            or b"\xef\xbb\xbf" in line
            or any(covered[place : place + len(line)])
            or not line.decode(errors="replace").strip(
                "\ufeff\0 \t\r\n\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u3000"
            )
        )


@pytest.mark.parametrize(
    "line",
    [
        b"{" * 50_000,
        b'{"a":' * 20_000,
        b'{"type":"a","x":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"' * 50_000,
        b"[" * 90_000,
    ],
)
def test_hostile_lines_are_read_like_any_other(line: bytes) -> None:
    """Lines made to be slow or deep become steps, and the next line is read."""
    told = parse("claude_code", line + b'\n{"type":"result","subtype":"success"}\n')
    assert told.status == "success"


def test_bytes_of_pieces_are_where_they_say() -> None:
    """Offsets and lengths cut each object out of the raw bytes, also behind letters of several bytes."""
    data = 'é {"type":"a","x":"ü"} — {"type":"b"}\n'.encode() + b'\xff{"type":"c"}\n'
    found = [data[piece.offset : piece.offset + piece.length] for piece in pieces(io.BytesIO(data)) if piece.event]
    assert [json.loads(part)["type"] for part in found] == ["a", "b", "c"]
