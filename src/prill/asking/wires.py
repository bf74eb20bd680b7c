"""A question in the words of another provider's API, and its reply as a chat completion. Chat passes as it is.

A question is a chat request without tools: `messages` of text, `max_completion_tokens`, `temperature`,
`reasoning_effort`. Not covered: streams, tools, pictures.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from prill.outside import Wire

HEADERS: dict[str, dict[str, str]] = {"anthropic": {"anthropic-version": "2023-06-01"}}
"""Wire → headers that every request of it bears."""
ENDS = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "content_filter",
    "completed": "stop", "incomplete": "length", "STOP": "stop", "MAX_TOKENS": "length",
    "SAFETY": "content_filter", "PROHIBITED_CONTENT": "content_filter", "RECITATION": "content_filter",
}  # fmt: skip
"""How a provider says that a reply ended → how a chat completion says it; anything else stays, and is no end."""


def request(wire: Wire, url: str, path: str, model: str, body: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Address and body. `url` ends in `/v1`; `path` is the chat wire's own."""
    if wire == "chat":
        return url + path, {"model": model, **body}
    system = "\n\n".join(each["content"] for each in body["messages"] if each["role"] == "system")
    said = [each for each in body["messages"] if each["role"] != "system"]
    most, effort = body.get("max_completion_tokens"), body.get("reasoning_effort")
    heat = {} if body.get("temperature") is None else {"temperature": body["temperature"]}
    if wire == "anthropic":
        sent: dict[str, Any] = {"model": model, "max_tokens": most, "messages": said, **heat}
        sent |= {"system": system} if system else {}
        return f"{url}/messages", sent | ({"output_config": {"effort": effort}} if effort else {})
    if wire == "responses":
        sent = {"model": model, "input": said, "max_output_tokens": most, "store": False, **heat}
        sent |= {"instructions": system} if system else {}
        return f"{url}/responses", sent | ({"reasoning": {"effort": effort}} if effort else {})
    roles = {"assistant": "model"}
    contents = [{"role": roles.get(each["role"], each["role"]), "parts": [{"text": each["content"]}]} for each in said]
    setting: dict[str, Any] = {"maxOutputTokens": most, **heat}
    setting |= {"thinkingConfig": {"thinkingLevel": effort}} if effort else {}
    sent = {"contents": contents, "generationConfig": setting}
    sent |= {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
    return f"{url.removesuffix('/v1')}/v1beta/models/{model}:generateContent", sent


def completion(wire: Wire, body: bytes) -> bytes:
    """A reply as the bytes of a chat completion; what is no reply of that wire comes back as it is. Total."""
    if wire == "chat":
        return body
    try:
        text, end, tokens = READERS[wire](msgspec.json.decode(body))
    except (msgspec.DecodeError, KeyError, TypeError, IndexError, AttributeError, ValueError, RecursionError):
        return body
    choice = {"finish_reason": ENDS.get(end, end), "message": {"content": text}}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return msgspec.json.encode({"choices": [choice], "usage": usage})


Told = tuple[str, str, tuple[int, int]]
"""Text, how it ended, tokens in and out."""


def of_anthropic(reply: dict[str, Any]) -> Told:
    """A message."""
    usage = reply["usage"]
    kinds = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    text = "".join(block["text"] for block in reply["content"] if block["type"] == "text")
    return text, reply["stop_reason"], (sum(usage.get(kind) or 0 for kind in kinds), usage["output_tokens"])


def of_responses(reply: dict[str, Any]) -> Told:
    """A response."""
    parts = [part for item in reply["output"] if item["type"] == "message" for part in item["content"]]
    text = "".join(part["text"] for part in parts if part["type"] == "output_text")
    end = "refusal" if any(part["type"] == "refusal" for part in parts) else reply.get("status", "completed")
    return text, end, (reply["usage"]["input_tokens"], reply["usage"]["output_tokens"])


def of_gemini(reply: dict[str, Any]) -> Told:
    """A body with candidates; its thoughts are left out of the text and counted."""
    [candidate, *_] = reply["candidates"]
    parts = (candidate.get("content") or {}).get("parts") or ()
    text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
    usage = reply["usageMetadata"]
    out = usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)
    return text, candidate["finishReason"], (usage["promptTokenCount"], out)


READERS = {"anthropic": of_anthropic, "responses": of_responses, "gemini": of_gemini}
