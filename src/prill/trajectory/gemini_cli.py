"""Events of Gemini CLI's `--output-format stream-json`.

Input includes what was cached; thoughts are in no count but the total. A reply may come in parts (`delta`), which are
one message together.
"""

import re
from typing import Any

from prill.trajectory.told import Draft, Told, as_arguments, call_text, count, known, part, text_of, words

_ABORTED = re.compile(r"loop detected|stopping execution|max\w* .{0,20}turns", re.IGNORECASE)
"""The program stops itself, and calls the result a success."""
TYPES = frozenset(("init", "message", "tool_use", "tool_result", "error", "result"))


def read(event: dict[str, Any], told: Told) -> list[Draft]:
    """The steps of one event."""
    kind, at = event.get("type"), words(event.get("timestamp"))
    if kind in ("message", "tool_use", "tool_result"):
        told.status = None  # whatever ended before, it goes on
        told.memory.pop("aborted", None)
    if kind == "message":
        return _message(event, told, at)
    told.memory["open"] = False
    if kind == "tool_use":
        tool, given = words(event.get("tool_name")) or "tool", event.get("parameters")
        call = told.called(words(event.get("tool_id")))
        return [Draft("command", call_text(tool, given), call=call, tool=tool, arguments=as_arguments(given), at=at)]
    if kind == "tool_result":
        text = text_of(event.get("output")) or text_of(part(event, "error", "message"))
        return [Draft("result", text, "system", call=words(event.get("tool_id")), at=at)]
    if kind == "init":
        told.session = words(event.get("session_id")) or told.session
        told.model = words(event.get("model")) or told.model
    elif kind == "result":
        _result(event, told)
    elif kind == "error":
        told.memory["error"] = text_of(event.get("message")) or text_of(event.get("error"))
        if _ABORTED.search(told.memory["error"]):
            told.memory["aborted"] = told.memory["error"]
        if event.get("severity") != "warning":
            told.ended("error", told.memory["error"])
    else:
        told.unknown_events += 1
    return []


def _message(event: dict[str, Any], told: Told, at: str | None) -> list[Draft]:
    text = text_of(event.get("content"))
    if event.get("role") not in ("assistant", "model", "gemini"):
        told.memory["open"] = False
        return [Draft("other", text, "user", at=at)]
    grows = event.get("delta") is True
    told.final_text = (told.final_text or "") + text if grows and told.memory.get("open") else text
    told.memory["open"] = grows
    return [Draft("message", text, model=told.model, at=at, grows=grows)]


def _result(event: dict[str, Any], told: Told) -> None:
    error = text_of(part(event, "error", "message")) or text_of(event.get("error"))
    aborted = told.memory.get("aborted")
    if event.get("status") == "success" and not aborted:
        told.ended("success")
    else:
        told.ended("error", aborted or error or told.memory.get("error", ""))
    stats = event.get("stats")
    tokens = {
        "input": count(part(stats, "input_tokens")),
        "output": count(part(stats, "output_tokens")),
        "cache_read": count(part(stats, "cached")),
    }
    if known(tokens):
        total, used = count(part(stats, "total_tokens")), (tokens["input"] or 0) + (tokens["output"] or 0)
        tokens["reasoning"] = total - used if total is not None and total >= used else None
        told.usage, told.usage_why = tokens, "the closing result"
    models = part(stats, "models")
    if told.model is None and isinstance(models, dict):
        told.model = next(iter(models), None)


def finish(told: Told) -> None:
    """Why there is no usage or cost."""
    if told.usage is None:
        told.usage_why = "there is no closing result with tokens"
    told.usd_why = "gemini does not tell what it cost"
