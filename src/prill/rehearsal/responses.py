"""OpenAI Responses: a request read, a reply as JSON and as events."""

from collections.abc import Iterator
from typing import Any

import msgspec

from prill.rehearsal.exchange import Answer, Asked, runs, text_of
from prill.rehearsal.scenario import Usage

KINDS = {400: "invalid_request_error", 401: "invalid_request_error", 402: "billing_error", 429: "rate_limit_error"}


def asked(body: dict[str, Any], path: str) -> Asked:
    """What a body asks for. Results are the items whose type ends in `_output`."""
    pieces: list[tuple[bool, str]] = []
    offered = list(body.get("tools") or ())
    items = body.get("input")
    for item in items if isinstance(items, list) else ():
        kind = str(item.get("type", "message"))
        output = kind.endswith("_output")
        ours = kind == "reasoning" or kind.endswith("_call") or item.get("role") == "assistant"
        pieces.append((ours, text_of(item.get("output")) if output else ""))
        if kind == "additional_tools":
            offered += item.get("tools") or ()
    return Asked(
        wire="responses",
        model=str(body.get("model")),
        stream=bool(body.get("stream")),
        tools=named(offered),
        heard=runs(pieces),
        most_output=body.get("max_output_tokens"),
        schema=((body.get("text") or {}).get("format") or {}).get("schema"),
    )


def named(offered: list[Any], namespace: str | None = None) -> dict[str, Any]:
    """Tools by name, those of namespaces too; one that takes plain text has its namespace in place of a schema."""
    found: dict[str, Any] = {}
    for tool in offered:
        name = str(tool.get("name", tool.get("type")))
        if tool.get("type") == "namespace":
            found |= named(tool.get("tools") or [], name)
        elif tool.get("type") == "custom":
            found[name] = {"namespace": namespace}
        else:
            found[name] = tool.get("parameters")
    return found


def tokens(usage: Usage) -> dict[str, Any]:
    """Usage in its own words: cached tokens are part of the input, reasoning is part of the output."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": prompt + usage.output,
    }


def words_item(answer: Answer, text: str, status: str = "completed") -> dict[str, Any]:
    """The item that holds the words."""
    content = [{"type": "output_text", "text": text, "annotations": []}] if status == "completed" else []
    about = {"id": f"msg_{answer.number:08d}", "type": "message", "role": "assistant", "status": status}
    return {**about, "content": content}


def items(answer: Answer) -> list[dict[str, Any]]:
    """All items of the reply."""
    made = [words_item(answer, answer.text)] if answer.text else []
    for call in answer.calls:
        if call.script:
            about = {"id": f"ctc_{call.id}", "type": "custom_tool_call", "status": "completed", "call_id": call.id}
            space = {"namespace": call.namespace} if call.namespace else {}
            made.append({**about, **space, "name": call.name, "input": call.script})
            continue
        about = {"id": f"fc_{call.id}", "type": "function_call", "status": "completed", "call_id": call.id}
        made.append({**about, "name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()})
    return made


def response(answer: Answer, status: str, output: list[Any], usage: dict[str, Any] | None) -> dict[str, Any]:
    """The response around some items."""
    about = {"id": f"resp_{answer.number:08d}", "object": "response", "created_at": 1_700_000_000, "error": None}
    return {**about, "status": status, "model": answer.model, "output": output, "usage": usage}


def whole(answer: Answer) -> dict[str, Any]:
    """The reply as one body."""
    return response(answer, "completed", items(answer), tokens(answer.usage))


def events(answer: Answer, asked: Asked) -> Iterator[bytes]:
    """The reply as server-sent events. Only the last tells its usage."""
    number = 0

    def event(kind: str, **fields: Any) -> bytes:
        nonlocal number
        body = msgspec.json.encode({"type": kind, "sequence_number": number, **fields})
        number += 1
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), body)

    begun = response(answer, "in_progress", [], None)
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, item in enumerate(items(answer)):
        at = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            part = {"type": "output_text", "text": "", "annotations": []}
            blank = words_item(answer, "", "in_progress")
            yield event("response.output_item.added", output_index=index, item=blank)
            yield event("response.content_part.added", **at, content_index=0, part=part)
            for piece in answer.pieces():
                yield event("response.output_text.delta", **at, content_index=0, delta=piece, logprobs=[])
            yield event("response.output_text.done", **at, content_index=0, text=answer.text, logprobs=[])
            yield event("response.content_part.done", **at, content_index=0, part={**part, "text": answer.text})
        elif item["type"] == "custom_tool_call":
            blank = {**item, "input": "", "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=blank)
            yield event("response.custom_tool_call_input.delta", **at, delta=item["input"])
            yield event("response.custom_tool_call_input.done", **at, input=item["input"])
        else:
            blank = {**item, "arguments": "", "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=blank)
            yield event("response.function_call_arguments.delta", **at, delta=item["arguments"])
            yield event("response.function_call_arguments.done", **at, arguments=item["arguments"], name=item["name"])
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=whole(answer))


def error(status: int, words: str) -> dict[str, Any]:
    """An error's body."""
    return {"error": {"message": words, "type": KINDS.get(status, "server_error"), "param": None, "code": None}}
