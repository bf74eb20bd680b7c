"""Steps → a document of the Agent Trajectory Interchange Format, ATIF 1.7; and back.

One of our steps is one of ATIF's, under the same number. A result is a step of its own there too, as a `system` step
with its text; the step of the call cites it in `observation`, so call and result are a pair without the text standing
twice. What ATIF has no word for is in `extra`: kind, offset, length, seconds, call.
A run without a single step gets one `system` step that says so, since ATIF needs one; it counts as none.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, get_type_hints

import msgspec

from prill.record import Step
from prill.spec import RunSpec
from prill.trajectory.reading import Parsed

SCHEMA = "ATIF-v1.7"
NOTHING = "nothing was printed"
_INCLUDES_CACHED = ("codex", "gemini_cli")
"""Whose count of input has what was cached in it, as ATIF's has."""


def document(
    spec: RunSpec, steps: Iterable[Step], version: str | None = None, told: Parsed | None = None
) -> dict[str, Any]:
    """The trajectory of a run. `version`: of the agent's program; `told`: what its output says as a whole."""
    return trajectory(spec.id, spec.entrant.agent, version, spec.entrant.model, steps, told)


def trajectory(
    session_id: str,
    agent_name: str,
    agent_version: str | None,
    model_name: str | None,
    steps: Iterable[Step],
    told: Parsed | None = None,
) -> dict[str, Any]:
    """A document that ATIF's validators accept, of plain values. Numbers of steps must run from 1 on."""
    steps = list(steps)
    results = {step.call: step.step for step in reversed(steps) if step.kind == "result" and step.call}
    version = agent_version or (told.cli_version if told else None) or "unknown"
    agent: dict[str, Any] = {"name": agent_name, "version": version}
    if model_name or (told and told.model):
        agent["model_name"] = model_name or (told.model if told else None)
    written = [_written(step, results, agent_name) for step in steps]
    if not written:
        extra = {"kind": "other", "offset": 0, "length": 0, "seconds": None}
        written = [{"step_id": 1, "source": "system", "message": NOTHING, "extra": extra}]
    return {
        "schema_version": SCHEMA,
        "session_id": session_id,
        "agent": agent,
        "steps": written,
        "final_metrics": _final(len(steps), agent_name, told),
    }


def _written(step: Step, results: Mapping[str, int], agent: str) -> dict[str, Any]:
    extra: dict[str, Any] = {
        "kind": step.kind,
        "offset": step.offset,
        "length": step.length,
        "seconds": step.seconds,
    }
    made: dict[str, Any] = {"step_id": step.step, "source": step.source, "message": step.text, "extra": extra}
    if step.call:
        extra["call"] = step.call
    if step.thought:
        extra["thought"] = True
    if _iso(step.at):
        made["timestamp"] = step.at
    elif step.at:
        extra["at"] = step.at
    if step.source != "agent":
        if step.tokens is not None or step.usd is not None:
            extra |= {"tokens": step.tokens, "usd": step.usd}
        return made
    if step.model:
        made["model_name"] = step.model
    if step.kind == "command":
        call = step.call or f"step-{step.step}"
        arguments = step.arguments if step.arguments is not None else {"command": step.text}
        tool = step.tool or "command"
        made["tool_calls"] = [{"tool_call_id": call, "function_name": tool, "arguments": arguments}]
        if step.call and step.call in results:
            made["observation"] = {"results": [{"source_call_id": call, "extra": {"step": results[step.call]}}]}
    if step.tokens or step.usd is not None:
        made["metrics"] = _metrics(step.tokens or {}, step.usd, agent)
    return made


def _iso(at: str | None) -> bool:
    """Whether ATIF takes it for a time stamp."""
    try:
        return at is not None and datetime.fromisoformat(at.replace("Z", "+00:00")) is not None
    except ValueError:
        return False


def _metrics(tokens: Mapping[str, int | None], usd: float | None, agent: str) -> dict[str, Any]:
    """Tokens in ATIF's words, where the prompt has what was cached in it; unknown is left out."""
    plain, read, wrote = tokens.get("input"), tokens.get("cache_read"), tokens.get("cache_write")
    if plain is not None and agent not in _INCLUDES_CACHED:
        plain += (read or 0) + (wrote or 0)
    thought, output = tokens.get("reasoning"), tokens.get("output")
    if output is not None and agent in ("opencode", "gemini_cli"):
        output += thought or 0
    made = {"prompt_tokens": plain, "completion_tokens": output, "cached_tokens": read, "cost_usd": usd}
    return {name: number for name, number in made.items() if number is not None}


def _final(steps: int, agent: str, told: Parsed | None) -> dict[str, Any]:
    made: dict[str, Any] = {"total_steps": steps}
    if told is not None:
        metrics = _metrics(told.usage or {}, told.cost_usd, agent)
        made |= {f"total_{name}": number for name, number in metrics.items()}
        made["extra"] = {
            "status": told.status,
            "error_kind": told.error_kind,
            "usage_why": told.usage_why,
            "cost_why": told.cost_why,
            "unknown_events": told.unknown_events,
            "noise_lines": told.noise_lines,
            "early_end": told.early_end,
        }
    return made


def steps_of(document: Any) -> Iterator[Step]:
    """The steps of a document that was written here, with all their fields; of any other what can be told. Total."""
    entries = document.get("steps") if isinstance(document, dict) else None
    for number, entry in enumerate(entries if isinstance(entries, list) else [], 1):
        step = _read(entry if isinstance(entry, dict) else {"message": str(entry)}, number)
        if step.text == NOTHING and step.length == 0 and step.source == "system":
            continue
        yield step


def _read(entry: dict[str, Any], number: int) -> Step:
    extra = entry["extra"] if isinstance(entry.get("extra"), dict) else {}
    calls = entry["tool_calls"] if isinstance(entry.get("tool_calls"), list) else []
    call = calls[0] if calls and isinstance(calls[0], dict) else {}
    message = entry.get("message")
    fields = {
        "kind": extra.get("kind") or ("command" if calls else "message" if entry.get("source") == "agent" else "other"),
        "text": message if isinstance(message, str) else "" if message is None else str(message),
        "offset": extra.get("offset", 0),
        "length": extra.get("length", 0),
        "seconds": extra.get("seconds"),
        "source": entry.get("source", "agent"),
        "thought": extra.get("thought", False),
        "call": extra.get("call"),
        "tool": call.get("function_name"),
        "arguments": call.get("arguments"),
        "model": entry.get("model_name"),
        "at": entry.get("timestamp") or extra.get("at"),
        "tokens": extra.get("tokens"),
        "usd": extra.get("usd"),
    }
    kept = {}
    for name, value in fields.items():
        try:
            kept[name] = msgspec.convert(value, _TYPES[name])
        except msgspec.ValidationError:
            kept[name] = _ELSE.get(name)
    return Step(step=number, **kept)


_TYPES = get_type_hints(Step)
_ELSE: dict[str, Any] = {
    "kind": "other", "text": "", "offset": 0, "length": 0, "source": "agent", "thought": False
}  # fmt: skip
