"""Events of Claude Code's `--output-format stream-json`, and of its session files.

`assistant` lines repeat the usage with which a message began, once for each block of its content: the last line of an
id counts, and the closing `result` outweighs them. `total_cost_usd` is that of one process.
"""

import re
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from prill.trajectory.told import (
    SHELLS,
    Draft,
    Kind,
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

TYPES = frozenset(
    (
        *("system", "assistant", "user", "result", "stream_event", "rate_limit_event", "tool_progress", "auth_status"),
        *("control_request", "control_response", "keep_alive", "tool_use_summary", "prompt_suggestion"),
        *("queue-operation", "attachment", "summary", "last-prompt", "progress", "file-history-snapshot", "mode"),
        *("permission-mode", "custom-title", "ai-title", "agent-name"),
    )
)
_BACKGROUND = re.compile(r"(?:running in (?:the )?background with ID|task_id|Task ID|agentId)\W{1,4}([\w-]{1,80})")
_OVER = re.compile(r"<status>\s*(?:completed|failed|killed|stopped)|\bstatus\W{1,4}(?:completed|failed|killed|stopped)")
_STARTED, _ENDED = (
    re.compile(r"(?:task|background)\w*_started\Z"),
    re.compile(r"_(?:completed|failed|killed|stopped)\Z"),
)
_STOPS = ("KillShell", "KillBash", "TaskStop")
_LOOKS = ("BashOutput", "TaskOutput", "AgentOutputTool")


class _Text(Struct, gc=False):
    text: str


class _Block(Struct, gc=False):
    type: str
    text: str | None = None
    thinking: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    content: str | list[_Text] | None = None


class _Message(Struct, gc=False):
    content: list[_Block]


class _Event(Struct, gc=False):
    type: str
    message: _Message


class _Command(Struct, gc=False):
    command: str


_event = msgspec.json.Decoder(_Event).decode
_command = msgspec.json.Decoder(_Command).decode


def said(line: bytes) -> list[tuple[Kind, str]] | None:
    """Kind and text of the steps of a line as `read` makes them, where it is a message of a usual shape; else `None`.

    What else the line holds is read over, so this takes half the time.
    """
    try:
        event = _event(line)
        if event.type == "assistant":
            return _spoken(event.message.content)
        return _heard(event.message.content) if event.type == "user" else None
    except (msgspec.DecodeError, orjson.JSONDecodeError, RecursionError):
        return None


def _spoken(content: list[_Block]) -> list[tuple[Kind, str]] | None:
    found: list[tuple[Kind, str]] = []
    for block in content:
        if block.type == "text":
            if block.text:
                found.append(("message", block.text))
        elif block.type == "tool_use" and block.name and block.input:
            shell = block.name.lower() in SHELLS
            text = _command(block.input).command if shell else call_text(block.name, orjson.loads(block.input))
            found.append(("command", text))
        elif block.type == "thinking" and block.thinking:
            found.append(("message", block.thinking))
        else:
            return None
    return found or None


def _heard(content: list[_Block]) -> list[tuple[Kind, str]] | None:
    found: list[tuple[Kind, str]] = []
    for block in content:
        told = block.content
        if block.type != "tool_result":
            return None
        if isinstance(told, list):
            told = "\n".join([inner.text for inner in told if inner.text])
        found.append(("result", told or ""))
    return found or None


def read(event: dict[str, Any], told: Told) -> list[Draft]:
    """The steps of one event."""
    kind = event.get("type")
    if kind == "assistant":
        return _assistant(event, told)
    if kind == "user":
        return _user(event, told)
    if kind == "system":
        _system(event, told)
    elif kind == "result":
        _result(event, told)
    elif kind not in TYPES:
        told.unknown_events += 1
    return []


def tokens_of(usage: Any) -> dict[str, int | None]:
    """Tokens by kind; the four are disjoint."""
    return {
        "input": count(part(usage, "input_tokens")),
        "output": count(part(usage, "output_tokens")),
        "cache_read": count(part(usage, "cache_read_input_tokens")),
        "cache_write": count(part(usage, "cache_creation_input_tokens")),
    }


def _assistant(event: dict[str, Any], told: Told) -> list[Draft]:
    message = event.get("message")
    if not isinstance(message, dict):
        message = {"content": message}
    model, at = words(message.get("model")), words(event.get("timestamp"))
    inner = event.get("parent_tool_use_id") is not None or event.get("isSidechain") is True
    if told.session is None:
        told.session = words(event.get("session_id")) or words(event.get("sessionId"))
    if told.version is None:
        told.version = words(event.get("version"))
    if told.model is None and model != "<synthetic>":
        told.model = model
    told.status = None  # whatever ended before, it goes on
    usage = message.get("usage")
    if isinstance(usage, dict):
        messages = told.memory.setdefault("messages", {})
        messages[words(message.get("id")) or len(messages)] = usage
    content = message.get("content")
    drafts = []
    for block in content if isinstance(content, list) else [content]:
        draft = _block(block, told, model, at)
        if draft is not None:
            drafts.append(draft)
            if not inner and draft.kind == "message" and not draft.thought:
                told.final_text = draft.text
    if "error" in event or "isApiErrorMessage" in event:
        told.memory["error"] = text_of(content)
    return drafts


def _block(block: Any, told: Told, model: str | None, at: str | None) -> Draft | None:
    if isinstance(block, str):
        return Draft("message", block, model=model, at=at) if block else None
    if not isinstance(block, dict):
        return None if block is None else Draft("other", text_of(block), model=model, at=at)
    kind = block.get("type")
    if kind == "text":
        text = words(block.get("text"))
        return Draft("message", text, model=model, at=at) if text else None
    if kind == "thinking" and words(block.get("thinking")):
        return Draft("message", block["thinking"], thought=True, model=model, at=at)
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        tool, given = words(block.get("name")) or "tool", block.get("input")
        call = told.called(words(block.get("id")))
        if part(given, "run_in_background") is True:
            told.background.add(call)
        if tool in _STOPS or tool in _LOOKS:
            names = [words(part(given, name)) for name in ("shell_id", "bash_id", "task_id", "agentId")]
            told.memory.setdefault("looks", {})[call] = (tool in _STOPS, next(filter(None, names), ""))
        return Draft(
            "command", call_text(tool, given), call=call, tool=tool, arguments=as_arguments(given), model=model, at=at
        )
    if isinstance(kind, str) and kind.endswith("_tool_result"):
        return Draft("result", text_of(block.get("content")), "system", call=words(block.get("tool_use_id")), at=at)
    return Draft("other", text_of(block), model=model, at=at)


def _user(event: dict[str, Any], told: Told) -> list[Draft]:
    content, at = part(event, "message", "content"), words(event.get("timestamp"))
    if told.session is None:
        told.session = words(event.get("session_id")) or words(event.get("sessionId"))
    drafts = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            call, text = words(block.get("tool_use_id")), text_of(block.get("content"))
            if told.background or "looks" in told.memory or "running in" in text[:200]:
                _background(call, text, told)
            drafts.append(Draft("result", text, "system", call=call, at=at))
        elif block is not None:
            drafts.append(Draft("other", text_of(block), "user", at=at))
    return drafts


def _background(call: str | None, text: str, told: Told) -> None:
    """Follow a background command from its start to the look, or the stop, that shows its end."""
    names = told.memory.setdefault("background", {})
    found = _BACKGROUND.search(text[:4000])
    if call in told.background or (call and found and found[0].startswith("running in")):
        told.background.add(call)
        if found:
            names[found[1]] = call
    look = told.memory.get("looks", {}).pop(call, None)
    if look is not None and (look[0] or _OVER.search(text[:4000])):
        told.background.discard(names.get(look[1], look[1]))


def _system(event: dict[str, Any], told: Told) -> None:
    subtype = event.get("subtype")
    if subtype == "init":
        told.session = words(event.get("session_id")) or told.session
        told.model = words(event.get("model")) or told.model
        told.version = words(event.get("claude_code_version")) or told.version
        told.memory["fresh"] = True
        told.status = None
    task = next(filter(None, (words(event.get(name)) for name in ("task_id", "bash_id", "shell_id"))), None)
    if task is None:
        return
    names = told.memory.setdefault("background", {})
    call = names.setdefault(task, words(event.get("tool_use_id")) or task)
    if _STARTED.search(words(subtype) or ""):
        told.background.add(call)
    if event.get("status") in ("completed", "failed", "killed", "stopped") or _ENDED.search(words(subtype) or ""):
        told.background.discard(call)
        told.background.discard(task)


def _result(event: dict[str, Any], told: Told) -> None:
    """The end of one turn or process. A process that was told before is replaced, another one is added."""
    subtype = words(event.get("subtype")) or ""
    failed = event.get("is_error") is True or subtype.startswith("error")
    text = text_of(event.get("result")) or text_of(event.get("errors"))
    kind = "agent_loop_abort" if subtype == "error_max_turns" else "api_quota" if "budget" in subtype else None
    told.ended("error" if failed else "success", text or subtype, kind)
    results = told.memory.setdefault("results", [])
    if results and not told.memory.get("fresh"):
        results.pop()
    told.memory["fresh"] = False
    results.append((tokens_of(event.get("usage")), amount(event.get("total_cost_usd"))))
    told.session = words(event.get("session_id")) or told.session
    models = event.get("modelUsage")
    told.model = told.model or (next(iter(models), None) if isinstance(models, dict) else None)


def finish(told: Told) -> None:
    """Usage and cost over all messages and processes."""
    results = told.memory.get("results", [])
    if results and all(known(tokens) for tokens, _ in results):
        for tokens, _ in results:
            told.usage = added(told.usage, tokens)
        told.usage_why = "the closing result"
    else:
        for usage in told.memory.get("messages", {}).values():
            tokens = tokens_of(usage)
            if known(tokens):
                told.usage = added(told.usage, tokens)
        told.usage_why = (
            "the last line of each message, which may tell less than was used"
            if told.usage
            else ("no message and no result told the tokens")
        )
    if not results:
        told.usd_why = "there is no closing result"
    elif any(usd is None for _, usd in results):
        told.usd_why = "a closing result does not tell the cost"
    else:
        told.usd, told.usd_why = sum(usd for _, usd in results), "the closing result of each process"
    if told.status is None and told.memory.get("error"):
        told.error = told.memory["error"]
