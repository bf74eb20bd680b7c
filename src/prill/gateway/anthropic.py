"""Anthropic Messages: all kinds of input are told apart, and a stream's last `message_delta` has the totals (Y1)."""

import re
from collections.abc import Mapping
from typing import Any

from prill.gateway.wire import (
    TOOL_USES,
    Asked,
    Refused,
    Seen,
    Wire,
    count,
    known_keys,
    limit,
    model_of,
    most,
    objects,
    only,
)

CLIENT_TOOLS = ("custom", "bash", "text_editor", "computer", "memory")
"""Tools that the client runs itself; all others are the provider's own."""
DATED = re.compile(r"_\d{8}$")
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    504: "timeout_error",
}
SAME_PRICE = {"service_tier": ("auto", "standard_only"), "speed": ("standard",), "inference_geo": ("global",)}


def asked(path: Mapping[str, str], body: dict[str, Any]) -> Asked:
    """What a Messages request may cost by."""
    known_keys(body, "model", "max_tokens", "stream", "messages", "tools", "mcp_servers", *SAME_PRICE)
    only(body, SAME_PRICE)
    edits = body.get("context_management")
    if any(
        "compact" in str(each.get("type")) for each in objects(edits.get("edits") if isinstance(edits, dict) else 0)
    ):
        raise Refused(403, "compaction at the provider may not be used here: it is billed beside the reply")
    blocks = [block for message in objects(body.get("messages")) for block in inner(message)]
    images = [block for block in blocks if block.get("type") == "image"]
    points = any(block.get("type") in ("document", "container_upload") for block in blocks)
    return Asked(
        model=model_of(body),
        streamed=body.get("stream") is True,
        images=len(images),
        image_bytes=sum(len(str(source.get("data") or "")) for each in images if (source := source_of(each))),
        bounded=not points and body.get("container") is None,
        most_output=limit(body, "max_tokens"),
        tools=server_tools(body),
    )


def inner(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a message, those inside a tool's result too: where the provider looks for pictures."""
    found = list(objects(message.get("content")))
    for block in list(found):
        if block.get("type") == "tool_result":
            found += objects(block.get("content"))
    return found


def source_of(block: dict[str, Any]) -> dict[str, Any]:
    """Where a picture's bytes are; nothing unless they are in the body."""
    source = block.get("source")
    return source if isinstance(source, dict) and source.get("type") == "base64" else {}


def server_tools(body: dict[str, Any]) -> dict[str, int]:
    """The provider's own tools → how often each may be used."""
    found = {"mcp": TOOL_USES} if body.get("mcp_servers") else {}
    for tool in objects(body.get("tools")):
        name = DATED.sub("", str(tool.get("type") or "custom"))
        if name not in CLIENT_TOOLS:
            found[name] = limit(tool, "max_uses") or TOOL_USES
    return found


def capped(body: dict[str, Any], tokens: int) -> dict[str, Any]:
    """With a lower `max_tokens`; a budget for thinking must stay below it."""
    changed = {**body, "max_tokens": tokens}
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and (count(thinking, "budget_tokens") or 0) >= tokens:
        changed["thinking"] = {**thinking, "budget_tokens": max(1024, tokens - 1024)}
    return changed


FIELDS = {
    "input_tokens": "input",
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "written",
    "cache_creation.ephemeral_1h_input_tokens": "cache_write_1h",
    "cache_creation.ephemeral_5m_input_tokens": "five",
    "output_tokens": "output",
}


def take(seen: Seen, data: dict[str, Any]) -> None:
    """Totals only grow, so of each field the highest counts; a `message_delta` or a whole message is the last word."""
    kind = data.get("type")
    message = data.get("message") if kind == "message_start" else data
    usage = message.get("usage") if isinstance(message, dict) else None
    if kind not in ("message_start", "message_delta", "message") or not isinstance(usage, dict):
        return
    told = {ours: found for theirs, ours in FIELDS.items() if (found := count(usage, theirs)) is not None}
    raw = seen.raw = {**seen.raw, **{name: max(number, seen.raw.get(name, 0)) for name, number in told.items()}}
    five, hour = raw.get("five", 0), raw.get("cache_write_1h", 0)
    total = raw.get("written", five + hour)
    most(seen.tools, "web_search", count(usage, "server_tool_use.web_search_requests"))
    most(seen.tools, "web_fetch", count(usage, "server_tool_use.web_fetch_requests"))
    if "input" not in raw or "output" not in raw or five + hour > total:
        seen.tokens = None
        return
    kinds = {"input": raw["input"], "cache_read": raw.get("cache_read", 0), "cache_write_5m": total - hour}
    seen.tokens = {**kinds, "cache_write_1h": hour, "output": raw["output"]}
    seen.final = kind != "message_start"


def refusal(status: int, words: str) -> dict[str, Any]:
    """An error as Anthropic writes it."""
    return {"type": "error", "error": {"type": ERRORS.get(status, "api_error"), "message": words}}


wire = Wire(
    name="anthropic",
    paths=re.compile(r"(?:/api)?/v1/messages"),
    asked=asked,
    capped=capped,
    take=take,
    refusal=refusal,
)
