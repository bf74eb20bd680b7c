"""Events of `codex exec --json`. Usage is cumulative for a thread, and its input includes what was cached.

An item of type `error` is a warning; a failed turn, or an `error` event that no turn follows, is an error.
"""

import re
from typing import Any

from prill.trajectory.told import (
    Draft,
    Told,
    added,
    as_arguments,
    call_text,
    count,
    dumped,
    known,
    part,
    text_of,
    words,
)

TYPES = frozenset(
    (
        *("thread.started", "turn.started", "turn.completed", "turn.failed", "error"),
        *("item.started", "item.updated", "item.completed"),
    )
)
_TOOLS = frozenset(("command_execution", "mcp_tool_call", "web_search", "file_change"))
_TRIES_AGAIN = re.compile(r"reconnecting|retrying", re.IGNORECASE)
_SAID = frozenset(("agent_message", "assistant_message"))
_OTHER = frozenset(("todo_list", "error", "collab_tool_call", "plan_update"))


def read(event: dict[str, Any], told: Told) -> list[Draft]:
    """The steps of one event."""
    kind = event.get("type")
    if kind in ("item.started", "item.updated", "item.completed"):
        return _item(event.get("item"), kind, told)
    if kind == "thread.started":
        told.session = words(event.get("thread_id")) or told.session
    elif kind == "turn.started":
        told.status = None
    elif kind == "turn.completed":
        told.ended("success")
        tokens = tokens_of(event.get("usage"))
        if known(tokens):
            _cumulative(tokens, told)
    elif kind in ("turn.failed", "error"):
        message = text_of(part(event, "error", "message")) or text_of(event.get("message"))
        if kind == "turn.failed" or not _TRIES_AGAIN.search(message):
            told.ended("error", message)
    else:
        told.unknown_events += 1
    return []


def tokens_of(usage: Any) -> dict[str, int | None]:
    """Tokens by kind as Codex counts them: `cache_read` is part of `input`, `reasoning` of `output`."""
    return {
        "input": count(part(usage, "input_tokens")),
        "output": count(part(usage, "output_tokens")),
        "cache_read": count(part(usage, "cached_input_tokens")),
        "cache_write": count(part(usage, "cache_write_input_tokens")),
        "reasoning": count(part(usage, "reasoning_output_tokens")),
    }


def _cumulative(tokens: dict[str, int | None], told: Told) -> None:
    """Totals grow within a thread: the last one counts, and one that drops began another (Y4)."""
    totals = told.memory.setdefault("totals", [])
    if totals and not any((tokens[name] or 0) < (totals[-1][name] or 0) for name in ("input", "output")):
        totals.pop()
    totals.append(tokens)


def _item(item: Any, stage: str, told: Told) -> list[Draft]:
    told.status = None  # whatever ended before, it goes on
    kind, done = words(part(item, "type")) or words(part(item, "item_type")), stage == "item.completed"
    name = words(part(item, "id"))
    if kind in _SAID and done:
        text = text_of(part(item, "text"))
        told.final_text = text or told.final_text
        return [Draft("message", text)]
    if kind == "reasoning" and done:
        return [Draft("message", text_of(part(item, "text")) or text_of(part(item, "summary")), thought=True)]
    if kind in _TOOLS:
        return _tool(item, kind, name, stage, told)
    if kind not in _OTHER and kind not in _SAID and kind != "reasoning":
        told.unknown_events += 1
    return []


def _tool(item: Any, kind: str, name: str | None, stage: str, told: Told) -> list[Draft]:
    """A tool's start is the command; its end is the result, and the command too where no start was told."""
    open_items = told.memory.setdefault("open", set())
    drafts = []
    if stage == "item.updated":
        return []
    if name is None or name not in open_items:
        call = told.called(name)
        tool, given = _given(item, kind)
        drafts.append(Draft("command", call_text(tool, given), call=call, tool=tool, arguments=given))
    else:
        call = name
    if stage == "item.started":
        open_items.add(call)
        told.background.add(call)
        return drafts
    open_items.discard(call)
    told.background.discard(call)
    drafts.append(Draft("result", _outcome(item, kind), "system", call=call))
    return drafts


def _given(item: Any, kind: str) -> tuple[str, dict[str, Any]]:
    if kind == "command_execution":
        return "shell", {"command": part(item, "command")}
    if kind == "mcp_tool_call":
        return words(part(item, "tool")) or "mcp", as_arguments(part(item, "arguments"))
    if kind == "web_search":
        return "web_search", {"query": part(item, "query")}
    return "apply_patch", {"changes": part(item, "changes")}


def _outcome(item: Any, kind: str) -> str:
    if kind == "command_execution":
        return text_of(part(item, "aggregated_output"))
    found = part(item, "error", "message") or part(item, "result", "content")
    return text_of(found) or (dumped(part(item, "status")) if part(item, "status") else "")


def finish(told: Told) -> None:
    """Usage over all threads."""
    for tokens in told.memory.get("totals", []):
        told.usage = added(told.usage, tokens)
    told.usage_why = "the last total of each thread" if told.usage else "no turn was completed"
    told.usd_why = "codex does not tell what it cost"
