"""Events of `opencode run --format json`. Input excludes what was cached; each step tells its own cost.

The call that names the session is in no step, so the sum is less than what was spent. A cost of nothing for tokens
that were used is no authority (Y3): the model had no price there.
"""

from datetime import UTC, datetime
from typing import Any

from prill.trajectory.told import (
    Draft,
    Told,
    added,
    amount,
    as_arguments,
    call_text,
    count,
    known,
    part,
    text_of,
    words,
)

TYPES = frozenset(("step_start", "step_finish", "tool_use", "text", "reasoning", "error"))


def read(event: dict[str, Any], told: Told) -> list[Draft]:
    """The steps of one event."""
    kind, inside, at = event.get("type"), event.get("part"), moment(event.get("timestamp"))
    told.session = told.session or words(event.get("sessionID"))
    if kind == "text":
        text = text_of(part(inside, "text"))
        told.final_text = text or told.final_text
        return [Draft("message", text, at=at)]
    if kind == "reasoning":
        return [Draft("message", text_of(part(inside, "text")), thought=True, at=at)]
    if kind == "tool_use":
        return _tool(inside, told, at)
    if kind == "step_start":
        told.status = None
    elif kind == "step_finish":
        return _finished(inside, told, at)
    elif kind == "error":
        error = event.get("error")
        message = part(error, "data", "message") or part(error, "message")
        told.ended("error", text_of(message) or text_of(error))
    elif kind not in TYPES:
        told.unknown_events += 1
    return []


def tokens_of(tokens: Any) -> dict[str, int | None]:
    """Tokens by kind; `reasoning` is beside `output`."""
    return {
        "input": count(part(tokens, "input")),
        "output": count(part(tokens, "output")),
        "cache_read": count(part(tokens, "cache", "read")),
        "cache_write": count(part(tokens, "cache", "write")),
        "reasoning": count(part(tokens, "reasoning")),
    }


def moment(milliseconds: Any) -> str | None:
    """Milliseconds since 1970 as ISO 8601."""
    number = count(milliseconds)
    if number is None or number > 4_000_000_000_000:
        return None
    return datetime.fromtimestamp(number / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _tool(inside: Any, told: Told, at: str | None) -> list[Draft]:
    """Calls are told when they are over; one that runs on is told before, and its result later."""
    tool, state = words(part(inside, "tool")) or "tool", part(inside, "state")
    name, given = words(part(inside, "callID")), part(state, "input")
    drafts = []
    if name is None or name not in told.tool_calls:
        call = told.called(name)
        drafts.append(
            Draft("command", call_text(tool, given), call=call, tool=tool, arguments=as_arguments(given), at=at)
        )
    else:
        call = name
    if part(state, "status") in ("running", "pending"):
        told.background.add(call)
        return drafts
    told.background.discard(call)
    text = text_of(part(state, "output")) or text_of(part(state, "error"))
    return [*drafts, Draft("result", text, "system", call=call, at=at)]


def _finished(inside: Any, told: Told, at: str | None) -> list[Draft]:
    reason, tokens, usd = part(inside, "reason"), tokens_of(part(inside, "tokens")), amount(part(inside, "cost"))
    if reason == "stop":
        told.ended("success")
    elif reason in ("error", "length", "content-filter"):
        told.ended("error", f"the last step ended with: {reason}")
    sums = told.memory.setdefault("steps", [0, 0, 0.0])
    sums[0] += 1
    if usd is not None:
        sums[1], sums[2] = sums[1] + 1, sums[2] + usd
    if known(tokens):
        told.usage = added(told.usage, tokens)
    return [Draft("other", f"step finished: {text_of(reason)}", "system", tokens=known(tokens), usd=usd, at=at)]


def finish(told: Told) -> None:
    """Cost over all steps."""
    steps, priced, usd = told.memory.get("steps", (0, 0, 0.0))
    told.usage_why = "the sum over all steps" if told.usage else "no step was finished"
    if not steps:
        told.usd_why = "no step was finished"
    elif priced < steps:
        told.usd_why = "a step does not tell its cost"
    else:
        told.usd, told.usd_why = usd, "the sum over all steps"
