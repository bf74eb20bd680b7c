"""Anthropic Messages: a request read, a reply as JSON and as events."""

from collections.abc import Iterator
from typing import Any

import msgspec

from prill.rehearsal.exchange import Answer, Asked, runs, text_of
from prill.rehearsal.scenario import Usage

KINDS = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error"}
KINDS |= {404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}


def asked(body: dict[str, Any], path: str) -> Asked:
    """What a body asks for."""
    pieces: list[tuple[bool, str]] = []
    for message in body.get("messages", ()):
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        results = [block for block in blocks if block.get("type") == "tool_result"]
        pieces.append((message.get("role") == "assistant", text_of([block.get("content") for block in results])))
    shape = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    return Asked(
        wire="anthropic",
        model=str(body.get("model")),
        stream=bool(body.get("stream")),
        tools={tool["name"]: tool.get("input_schema") for tool in body.get("tools") or () if "name" in tool},
        heard=runs(pieces),
        most_output=body.get("max_tokens"),
        schema=shape.get("schema"),
    )


def tokens(usage: Usage, output: int) -> dict[str, Any]:
    """Usage in its own words."""
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }


def message(answer: Answer, content: list[Any], output: int, reason: str | None) -> dict[str, Any]:
    """The message around some content."""
    return {
        "id": f"msg_{answer.number:08d}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": tokens(answer.usage, output),
    }


def reason(answer: Answer) -> str:
    """Why the reply ended."""
    return "tool_use" if answer.calls else "end_turn"


def whole(answer: Answer) -> dict[str, Any]:
    """The reply as one body."""
    content: list[Any] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in answer.calls]
    return message(answer, content, answer.usage.output, reason(answer))


def events(answer: Answer, asked: Asked) -> Iterator[bytes]:
    """The reply as server-sent events. The first tells the prompt's usage, the last but one the reply's."""
    yield event("message_start", message=message(answer, [], 1, None))
    index = 0
    if answer.text:
        yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
        yield event("ping")
        for piece in answer.pieces():
            yield event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
        yield event("content_block_stop", index=index)
        index += 1
    for call in answer.calls:
        start = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield event("content_block_start", index=index, content_block=start)
        text = msgspec.json.encode(call.arguments).decode()
        for part in (text[: len(text) // 2], text[len(text) // 2 :]):
            yield event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": part})
        yield event("content_block_stop", index=index)
        index += 1
    end = {"stop_reason": reason(answer), "stop_sequence": None}
    yield event("message_delta", delta=end, usage=tokens(answer.usage, answer.usage.output))
    yield event("message_stop")


def event(kind: str, **fields: Any) -> bytes:
    """One event."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **fields}))


def error(status: int, words: str) -> dict[str, Any]:
    """An error's body."""
    return {"type": "error", "error": {"type": KINDS.get(status, "api_error"), "message": words}}
