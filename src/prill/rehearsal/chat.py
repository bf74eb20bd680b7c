"""OpenAI Chat Completions: a request read, a reply as JSON and as events."""

from collections.abc import Iterator
from typing import Any

import msgspec

from prill.rehearsal.exchange import Answer, Asked, runs, text_of
from prill.rehearsal.responses import error as error
from prill.rehearsal.scenario import Usage


def asked(body: dict[str, Any], path: str) -> Asked:
    """What a body asks for."""
    pieces: list[tuple[bool, str]] = []
    for message in body.get("messages", ()):
        result = text_of(message.get("content")) if message.get("role") == "tool" else ""
        pieces.append((message.get("role") == "assistant", result))
    functions = [tool.get("function") or {} for tool in body.get("tools") or ()]
    return Asked(
        wire="chat",
        model=str(body.get("model")),
        stream=bool(body.get("stream")),
        tools={function["name"]: function.get("parameters") for function in functions if "name" in function},
        heard=runs(pieces),
        most_output=body.get("max_completion_tokens") or body.get("max_tokens"),
        schema=((body.get("response_format") or {}).get("json_schema") or {}).get("schema"),
        usage_wanted=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def tokens(usage: Usage) -> dict[str, Any]:
    """Usage in its own words: cached tokens are part of the prompt, reasoning is part of the completion."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def calls(answer: Answer) -> list[dict[str, Any]]:
    """The calls of the reply."""
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
        }
        for call in answer.calls
    ]


def about(answer: Answer, kind: str) -> dict[str, Any]:
    """What every body and every chunk begins with."""
    made = {"id": f"chatcmpl-{answer.number:08d}", "object": kind, "created": 1_700_000_000}
    return {**made, "model": answer.model}


def reason(answer: Answer) -> str:
    """Why the reply ended."""
    return "tool_calls" if answer.calls else "stop"


def whole(answer: Answer) -> dict[str, Any]:
    """The reply as one body."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    message |= {"tool_calls": calls(answer)} if answer.calls else {}
    choice = {"index": 0, "message": message, "finish_reason": reason(answer), "logprobs": None}
    return {**about(answer, "chat.completion"), "choices": [choice], "usage": tokens(answer.usage)}


def events(answer: Answer, asked: Asked) -> Iterator[bytes]:
    """The reply as server-sent events. Usage is told only where it was asked for."""

    def event(choices: list[Any], **more: Any) -> bytes:
        body = {**about(answer, "chat.completion.chunk"), "choices": choices, **more}
        return b"data: %s\n\n" % msgspec.json.encode(body)

    def delta(said: dict[str, Any], reason: str | None = None) -> bytes:
        return event([{"index": 0, "delta": said, "finish_reason": reason}])

    yield delta({"role": "assistant", "content": ""})
    for piece in answer.pieces():
        yield delta({"content": piece})
    for index, call in enumerate(calls(answer)):
        yield delta({"tool_calls": [{"index": index, **call}]})
    yield delta({}, reason(answer))
    if asked.usage_wanted:
        yield event([], usage=tokens(answer.usage))
    yield b"data: [DONE]\n\n"
