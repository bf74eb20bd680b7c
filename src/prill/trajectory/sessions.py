"""Session files of the four programs: a second source for what an agent did, which outlives a killed stream.

Claude Code keeps JSON lines a session, Codex a rollout, Gemini CLI JSON lines with `$set` patches, OpenCode one
exported JSON object. `read` gives their steps, `lacking` those that the stream does not have. Offsets point into the
session file. Not covered: thoughts that a provider keeps encrypted, and subagents' files, which are sessions of their
own.
"""

import re
from collections.abc import Iterable
from typing import Any

import orjson
from msgspec import Struct

from prill.record import Step
from prill.trajectory import claude_code, opencode
from prill.trajectory.lines import Piece, clean, pieces
from prill.trajectory.reading import ALIASES, numbered
from prill.trajectory.told import Draft, Told, added, as_arguments, call_text, count, known, part, text_of, words


class Session(Struct, frozen=True, kw_only=True):
    """What one session file says."""

    steps: tuple[Step, ...]
    usage: dict[str, int | None] | None
    """Tokens by kind, as the program counts them."""
    usage_why: str
    session_id: str | None
    model: str | None
    cli_version: str | None


def read(agent: str, lines: Iterable[bytes]) -> Session:
    """One session file, as lines with their ends. Total: what is not known becomes a step of kind `other`."""
    agent, told = ALIASES.get(agent, agent), Told()
    if agent == "opencode":
        found = list(_opencode(b"".join(lines), told))
    else:
        read_one = {"claude_code": _claude, "codex": _codex, "gemini_cli": _gemini}.get(agent, _unknown)
        found = []
        for piece in pieces(lines):
            drafts = read_one(piece.event, told) if piece.event is not None else []
            found += [(piece, draft) for draft in drafts or [Draft("other", piece.text, "system")]]
    if agent == "claude_code":
        claude_code.finish(told)
    if agent == "gemini_cli":
        found = _latest(found)
    return Session(
        steps=tuple(
            numbered(number, piece.offset, piece.length, draft) for number, (piece, draft) in enumerate(found, 1)
        ),
        usage=told.usage,
        usage_why=told.usage_why if told.usage is None else "the session file",
        session_id=told.session,
        model=told.model,
        cli_version=told.version,
    )


def lacking(session: Iterable[Step], stream: Iterable[Step]) -> list[Step]:
    """Steps of a session (messages, commands, results) that the stream does not have, in the session's order.

    A call and its result are known by the call's id, or else, like a message, by what they say: once in the stream
    accounts for once in the session.
    """
    calls: set[tuple[str, str]] = set()
    said: dict[tuple[str, str], int] = {}
    for step in stream:
        if step.call:
            calls.add((step.kind, step.call))
        for text in _texts(step):
            said[step.kind, text] = said.get((step.kind, text), 0) + 1
    missing = []
    for step in session:
        if step.kind == "other" or (step.call and (step.kind, step.call) in calls):
            continue
        key = next(((step.kind, text) for text in _texts(step) if said.get((step.kind, text))), None)
        if key is None:
            missing.append(step)
        else:
            said[key] -= 1
    return missing


def _texts(step: Step) -> list[str]:
    """What a step says, without what programs put round it."""
    text = " ".join((_IN_SHELL.sub("", step.text).removesuffix("'") if step.kind == "command" else step.text).split())
    inner = text.partition("Output: ")[2].removesuffix("</untrusted_context>").strip()
    return [text, *([inner] if inner and step.kind == "result" else [])]


_IN_SHELL = re.compile(r"\A(?:/\S*/)?(?:ba|z)?sh -l?c '")


def _unknown(event: dict[str, Any], told: Told) -> list[Draft]:
    return []


def _claude(event: dict[str, Any], told: Told) -> list[Draft]:
    """The lines of a stream, with other names for the session, and none at the end."""
    return claude_code.read(event, told) if isinstance(event.get("type"), str) else []


def _codex(event: dict[str, Any], told: Told) -> list[Draft]:
    """Response items are what the model was sent and said; the events beside them tell the same once more."""
    kind, load, at = event.get("type"), event.get("payload"), words(event.get("timestamp"))
    if kind == "session_meta":
        told.session, told.version = words(part(load, "id")), words(part(load, "cli_version"))
    elif kind == "turn_context":
        told.model = words(part(load, "model")) or told.model
    elif kind == "event_msg" and part(load, "type") == "token_count":
        total = part(load, "info", "total_token_usage")
        tokens = {
            "input": count(part(total, "input_tokens")),
            "output": count(part(total, "output_tokens")),
            "cache_read": count(part(total, "cached_input_tokens")),
            "cache_write": count(part(total, "cache_write_input_tokens")),
            "reasoning": count(part(total, "reasoning_output_tokens")),
        }
        told.usage = tokens if known(tokens) else told.usage
    if kind != "response_item":
        return []
    inner, call = part(load, "type"), words(part(load, "call_id"))
    if inner == "message" and part(load, "role") == "assistant":
        return [Draft("message", text_of(part(load, "content")), model=told.model, at=at)]
    if inner == "message":
        return [Draft("other", text_of(part(load, "content")), "user", at=at)]
    if inner == "reasoning":
        text = text_of(part(load, "content")) or text_of(part(load, "summary"))
        return [Draft("message", text, thought=True, at=at)] if text else []
    if inner in ("function_call", "custom_tool_call", "local_shell_call"):
        given = as_arguments(part(load, "arguments") or part(load, "input") or part(load, "action"))
        tool = words(part(load, "name")) or "shell"
        return [Draft("command", call_text(tool, given), call=call, tool=tool, arguments=given, at=at)]
    if isinstance(inner, str) and inner.endswith("_output"):
        text = text_of(part(load, "output"))
        text = text.partition("\nOutput:\n")[2] or text
        return [Draft("result", text, "system", call=call, at=at)]
    return []


def _gemini(event: dict[str, Any], told: Told) -> list[Draft]:
    """A message is written again, whole, each time that it grows; `_latest` keeps the last of each."""
    told.session = words(event.get("sessionId")) or told.session
    messages = part(event, "$set", "messages")
    if isinstance(messages, list):
        return [draft for message in messages if isinstance(message, dict) for draft in _gemini_message(message, told)]
    return _gemini_message(event, told)


def _gemini_message(event: dict[str, Any], told: Told) -> list[Draft]:
    at, name, model = words(event.get("timestamp")), words(event.get("id")), words(event.get("model"))
    if event.get("type") == "user":
        answers = [part(block, "functionResponse") for block in _list(event.get("content"))]
        if any(answers):
            return []  # the result stands with its call
        return [Draft("other", text_of(event.get("content")), "user", at=at)]
    if event.get("type") != "gemini":
        return []
    told.model = model or told.model
    tokens = {
        "input": count(part(event, "tokens", "input")),
        "output": count(part(event, "tokens", "output")),
        "cache_read": count(part(event, "tokens", "cached")),
        "reasoning": count(part(event, "tokens", "thoughts")),
    }
    if name and known(tokens):
        told.memory.setdefault("messages", {})[name] = tokens
        told.usage = None
        for each in told.memory["messages"].values():
            told.usage = added(told.usage, each)
    drafts = [
        Draft("message", text_of(thought), thought=True, model=model, at=at) for thought in _list(event.get("thoughts"))
    ]
    if words(event.get("content")):
        drafts.append(Draft("message", event["content"], model=model, at=at))
    for tool_call in _list(event.get("toolCalls")):
        tool, given, call = (
            words(part(tool_call, "name")) or "tool",
            part(tool_call, "args"),
            words(part(tool_call, "id")),
        )
        drafts.append(
            Draft(
                "command",
                call_text(tool, given),
                call=call,
                tool=tool,
                arguments=as_arguments(given),
                model=model,
                at=at,
            )
        )
        answers = [part(block, "functionResponse", "response") for block in _list(part(tool_call, "result"))]
        if answers:
            drafts.append(Draft("result", "\n".join(map(text_of, answers)), "system", call=call, at=at))
    return drafts


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _latest(found: list[tuple[Piece, Draft]]) -> list[tuple[Piece, Draft]]:
    """Each message, call and result once, at the place where it was last written."""
    last = {_same(piece, draft): place for place, (piece, draft) in enumerate(found)}
    return [pair for place, pair in enumerate(found) if last[_same(*pair)] == place]


def _same(piece: Piece, draft: Draft) -> tuple[Any, ...]:
    if draft.call:
        return draft.kind, draft.call
    name = words(part(piece.event, "id"))
    return (draft.kind, draft.text, name) if name else (piece.offset, draft.kind, draft.text)


def _opencode(data: bytes, told: Told) -> Iterable[tuple[Piece, Draft]]:
    """An export is one object; its steps share its bytes."""
    try:
        export = clean(orjson.loads(data))
    except orjson.JSONDecodeError:
        export = None
    whole = Piece(0, len(data), export if isinstance(export, dict) else None, data, 0, len(data))
    if whole.event is None:
        if data.strip():
            yield whole, Draft("other", whole.text, "system")
        return
    told.session, told.version = words(part(export, "info", "id")), words(part(export, "info", "version"))
    told.model = words(part(export, "info", "model", "id"))
    tokens = opencode.tokens_of(part(export, "info", "tokens"))
    told.usage = tokens if known(tokens) else None
    for message in _list(part(export, "messages")):
        said_by_agent = part(message, "info", "role") == "assistant"
        for inside in _list(part(message, "parts")):
            event = {"type": _AS_STREAMED.get(str(part(inside, "type"))), "part": inside}
            if not said_by_agent:
                yield whole, Draft("other", text_of(part(inside, "text")), "user")
                continue
            for draft in opencode.read(event, Told()) if event["type"] else []:
                yield whole, draft


_AS_STREAMED = {"text": "text", "reasoning": "reasoning", "tool": "tool_use"}
