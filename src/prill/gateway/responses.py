"""OpenAI Responses: cached and written tokens are part of the input, reasoning of the output; the last event of a
stream has the whole reply with its usage (Y2, Y3)."""

import re
from collections.abc import Mapping
from typing import Any

from prill.gateway.wire import (
    TOOL_USES,
    Asked,
    Seen,
    Wire,
    count,
    known_keys,
    limit,
    model_of,
    most,
    objects,
    only,
    split_input,
)

CLIENT_TOOLS = ("function", "custom", "local_shell", "apply_patch", "namespace", "computer", "computer_use_preview")
"""Tools that the client runs itself; all others are the provider's own."""
CLIENT_CALLS = ("function", "custom_tool", "local_shell", "shell", "apply_patch", "computer", "tool_search")
"""What the items of a reply are called that use them; a `shell` of the provider's has no price and is refused."""
SEARCHES = ("web_search_preview", "web_search_2025_08_26", "web_search_preview_2025_03_11")
ELSEWHERE = ("previous_response_id", "conversation", "prompt", "context_management")
"""What makes the provider read more than the body."""
SAME_PRICE: dict[str, tuple[Any, ...]] = {"service_tier": ("auto", "default"), "background": (False,)}
ERRORS = {402: "insufficient_quota", 401: "invalid_api_key", 403: "not_allowed", 404: "not_found", 504: "timeout"}


def asked(path: Mapping[str, str], body: dict[str, Any]) -> Asked:
    """What a Responses request may cost by."""
    known_keys(body, "model", "max_output_tokens", "stream", "input", "tools", *ELSEWHERE, *SAME_PRICE)
    only(body, SAME_PRICE)
    items = list(objects(body.get("input")))
    parts = [part for item in items for part in inner(item)]
    pictures = [str(part.get("image_url") or "") for part in parts if "image" in str(part.get("type"))]
    points = [item for item in items if item.get("type") in ("item_reference", "input_file")]
    points += [part for part in parts if part.get("type") in ("input_file", "input_audio")]
    return Asked(
        model=model_of(body),
        streamed=body.get("stream") is True,
        images=len(pictures),
        image_bytes=sum(len(each) for each in pictures if each.startswith("data:image/")),
        bounded=not points and not any(body.get(name) for name in ELSEWHERE),
        most_output=limit(body, "max_output_tokens"),
        tools=server_tools(body),
    )


def inner(item: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of an item, where the provider looks for pictures."""
    output = item.get("output")
    screen = [output] if isinstance(output, dict) else []
    shown = [{"type": "input_image", "image_url": part.get("image_url")} for part in screen]
    return [*objects(item.get("content")), *objects(output), *shown]


def server_tools(body: dict[str, Any]) -> dict[str, int]:
    """The provider's own tools → how often each may be used."""
    uses = limit(body, "max_tool_calls") or TOOL_USES
    found = {}
    for tool in offered(body):
        name = str(tool.get("type"))
        where = tool.get("environment")
        ours = name == "shell" and (where is None or (isinstance(where, dict) and where.get("type") == "local"))
        ours = ours or (name == "tool_search" and tool.get("execution") == "client")
        if name not in CLIENT_TOOLS and not ours:
            found["web_search" if name in SEARCHES else name] = uses
    return found


def offered(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Every tool of a request: its own, those that an item of the input adds, and those in their name spaces."""
    found = [*objects(body.get("tools"))]
    for item in objects(body.get("input")):
        if item.get("type") == "additional_tools":
            found += objects(item.get("tools"))
    for tool in found:  # which grows while it is gone through
        found += objects(tool.get("tools"))
    return found


def tokens(usage: dict[str, Any]) -> dict[str, int] | None:
    """Tokens by kind, from either of OpenAI's shapes; what is written for long counts as `cache_write_1h`."""
    whole, output = count(usage, "input_tokens", "prompt_tokens"), count(usage, "output_tokens", "completion_tokens")
    details = usage.get("input_tokens_details") or usage.get("prompt_tokens_details") or {}
    thought = count(usage, "output_tokens_details.reasoning_tokens", "completion_tokens_details.reasoning_tokens")
    if whole is None or output is None or (thought or 0) > output:
        return None
    cached, written = count(details, "cached_tokens") or 0, count(details, "cache_write_tokens") or 0
    long_written = count(details, "cache_write_tokens_details.ttl_12h_tokens") or 0
    return split_input(whole, cached, written, long_written, output)


def tool_used(item: Any) -> str | None:
    """The provider's own tool that an item of a reply is a use of; only a web search's searches are paid for."""
    name = str(item.get("type")) if isinstance(item, dict) else ""
    action = item.get("action") if isinstance(item, dict) else None
    if not name.endswith("_call") or name.removesuffix("_call") in CLIENT_CALLS:
        return None
    looked = isinstance(action, dict) and action.get("type") not in ("search", None)
    return None if name == "web_search_call" and looked else name.removesuffix("_call")


def take(seen: Seen, data: dict[str, Any]) -> None:
    """A finished item may be the use of a tool; the closing event, or a whole reply, has the usage."""
    kind = data.get("type")
    if kind == "response.output_item.done":
        used = tool_used(data.get("item"))
        if used is not None:
            seen.raw[used] = seen.raw.get(used, 0) + 1
            most(seen.tools, used, seen.raw[used])
        return
    closing = kind in ("response.completed", "response.incomplete", "response.failed", "response.done")
    reply = data.get("response") if closing else data if kind is None else None
    usage = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(reply, dict) or not isinstance(usage, dict):
        return
    seen.tokens, seen.final = tokens(usage), reply.get("status") not in ("queued", "in_progress")
    calls = [used for item in objects(reply.get("output")) if (used := tool_used(item)) is not None]
    for name in set(calls):
        most(seen.tools, name, calls.count(name))


def refusal(status: int, words: str) -> dict[str, Any]:
    """An error as OpenAI writes it."""
    code = ERRORS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    kind = code if status == 402 else "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": words, "type": kind, "param": None, "code": code}}


wire = Wire(
    name="responses",
    paths=re.compile(r"(?:/api/v1|/v1|/backend-api/codex)?/responses(?:/compact)?"),
    asked=asked,
    capped=lambda body, most: {**body, "max_output_tokens": most},
    take=take,
    refusal=refusal,
)
