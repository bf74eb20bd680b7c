"""Gemini: a request read, a reply as JSON and as events."""

from collections.abc import Iterator
from typing import Any

import msgspec

from prill.rehearsal.exchange import Answer, Asked, runs, text_of
from prill.rehearsal.scenario import Usage

KINDS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "FAILED_PRECONDITION", 403: "PERMISSION_DENIED"}
KINDS |= {404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}


def asked(body: dict[str, Any], path: str) -> Asked:
    """What a body asks for; model and manner stand in the path."""
    pieces: list[tuple[bool, str]] = []
    for content in body.get("contents", ()):
        results = [part["functionResponse"] for part in content.get("parts") or () if "functionResponse" in part]
        pieces.append((content.get("role") == "model", text_of([result.get("response") for result in results])))
    offered = [each for tool in body.get("tools") or () for each in tool.get("functionDeclarations") or ()]
    wanted = body.get("generationConfig") or {}
    return Asked(
        wire="gemini",
        model=path.rpartition("/")[2].partition(":")[0],
        stream="stream" in path.rpartition(":")[2],
        tools={tool["name"]: tool.get("parametersJsonSchema") or tool.get("parameters") for tool in offered},
        heard=runs(pieces),
        most_output=wanted.get("maxOutputTokens"),
        schema=wanted.get("responseJsonSchema") or wanted.get("responseSchema"),
    )


def tokens(usage: Usage) -> dict[str, Any]:
    """Usage in its own words: cached tokens are part of the prompt, thoughts stand beside the candidates."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": prompt + usage.output,
    }


def body(answer: Answer, parts: list[Any], last: bool) -> dict[str, Any]:
    """The body around some parts."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    candidate |= {"finishReason": "STOP"} if last else {}
    about = {"modelVersion": answer.model, "responseId": f"rehearsal-{answer.number:08d}"}
    return {"candidates": [candidate], "usageMetadata": tokens(answer.usage), **about}


def calls(answer: Answer) -> list[dict[str, Any]]:
    """The parts that call."""
    return [{"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}} for call in answer.calls]


def whole(answer: Answer) -> dict[str, Any]:
    """The reply as one body."""
    return body(answer, [*([{"text": answer.text}] if answer.text else []), *calls(answer)], True)


def events(answer: Answer, asked: Asked) -> Iterator[bytes]:
    """The reply as server-sent events. Each tells the whole usage."""
    parts: list[Any] = [{"text": piece} for piece in answer.pieces()] + calls(answer)
    for number, part in enumerate(parts or [{"text": ""}], 1):
        yield b"data: %s\r\n\r\n" % msgspec.json.encode(body(answer, [part], number >= len(parts)))


def error(status: int, words: str) -> dict[str, Any]:
    """An error's body."""
    return {"error": {"code": status, "message": words, "status": KINDS.get(status, "UNKNOWN")}}
