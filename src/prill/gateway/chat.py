"""OpenAI Chat Completions, and what speaks it: a stream tells its usage only when asked to, in its last chunk (Y3)."""

import re
from collections.abc import Mapping
from typing import Any

from prill.gateway.responses import refusal, tokens
from prill.gateway.wire import (
    TOOL_USES,
    Asked,
    Refused,
    Seen,
    Wire,
    known_keys,
    limit,
    model_of,
    objects,
    only,
    replies,
)

SAME_PRICE: dict[str, tuple[Any, ...]] = {
    "service_tier": ("auto", "default"),
    "models": (),
    "route": (),
    "prediction": (),
    "audio": (),
    "modalities": (["text"],),
}
"""`models` and `route` let a provider choose another model than the one that is priced; a wrong prediction is billed
beyond the limit of output; sound has prices of its own."""


def asked(path: Mapping[str, str], body: dict[str, Any]) -> Asked:
    """What a Chat Completions request may cost by."""
    known_keys(body, "model", "max_tokens", "max_completion_tokens", "n", "stream", "stream_options", "messages")
    known_keys(body, "tools", "web_search_options", "plugins", *SAME_PRICE)
    only(body, SAME_PRICE)
    parts = [part for message in objects(body.get("messages")) for part in objects(message.get("content"))]
    pictures = [link(part) for part in parts if part.get("type") == "image_url"]
    return Asked(
        model=model_of(body),
        streamed=body.get("stream") is True,
        images=len(pictures),
        image_bytes=sum(len(each) for each in pictures if each.startswith("data:image/")),
        bounded=all(part.get("type") in ("text", "image_url", "refusal", None) for part in parts),
        most_output=limit(body, "max_tokens", "max_completion_tokens"),
        replies=replies(body.get("n")),
        tools=server_tools(body),
    )


def link(part: dict[str, Any]) -> str:
    """Where a picture is: its own bytes as a `data:` link, or elsewhere."""
    found = part.get("image_url")
    return str(found.get("url") if isinstance(found, dict) else found)


def server_tools(body: dict[str, Any]) -> dict[str, int]:
    """The provider's own tools → how often each may be used."""
    found = {} if body.get("web_search_options") is None else {"web_search": TOOL_USES}
    if body.get("plugins"):
        found["plugins"] = TOOL_USES
    names = (str(tool.get("type") or "function") for tool in objects(body.get("tools")))
    return found | {name: TOOL_USES for name in names if name not in ("function", "custom")}


def metered(body: dict[str, Any]) -> dict[str, Any] | None:
    """A stream that is asked to tell its usage."""
    options = body.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise Refused(400, "stream_options must be an object")
    if body.get("stream") is not True or (options or {}).get("include_usage") is True:
        return None
    return {**body, "stream_options": {**(options or {}), "include_usage": True}}


def capped(body: dict[str, Any], most: int) -> dict[str, Any]:
    """With a lower limit, under the names that it had; newer models know only `max_completion_tokens`."""
    given = [name for name in ("max_tokens", "max_completion_tokens") if body.get(name) is not None]
    return {**body, **dict.fromkeys(given or ["max_completion_tokens"], most)}


def take(seen: Seen, data: dict[str, Any]) -> None:
    """The usage of the last chunk that has one counts; it is the last word once a reply has said why it ended."""
    choices = list(objects(data.get("choices")))
    seen.ended = seen.ended or any(choice.get("finish_reason") for choice in choices)
    usage = data.get("usage")
    if not isinstance(usage, dict):
        return
    seen.tokens, seen.stated = tokens(usage), usage.get("cost")
    seen.final = seen.ended or not choices


wire = Wire(
    name="chat",
    paths=re.compile(r"(?:/api/v1|/v1|/v1beta/openai)?/chat/completions"),
    asked=asked,
    capped=capped,
    take=take,
    refusal=refusal,
    metered=metered,
)
