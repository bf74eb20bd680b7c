"""Gemini: the path names the model, thoughts are counted beside the candidates, every chunk has the totals so far."""

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
    most,
    objects,
    only,
    replies,
    split_input,
)

CLIENT_TOOLS = ("functionDeclarations", "computerUse")
SAME_KINDS = ("image/", "text/", "application/pdf", "application/json")
"""Media whose tokens cost what text costs."""
CONFIG = ("generationConfig", "generation_config")
ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def camel(name: str) -> str:
    """A field's name in the spelling of JSON: Gemini takes `generation_config` for `generationConfig`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def spelt(value: Any) -> dict[str, Any]:
    """An object with its fields in one spelling; refused where one is given in both."""
    if not isinstance(value, dict):
        return {}
    found = {camel(name): each for name, each in value.items()}
    if len(found) < len(value):
        raise Refused(400, "a field is given in two spellings")
    return found


def asked(path: Mapping[str, str], body: dict[str, Any]) -> Asked:
    """What a Gemini request may cost by."""
    whole = spelt(body)
    known_keys(whole, "generationConfig", "contents", "tools", "cachedContent", "serviceTier", "systemInstruction")
    if not isinstance(whole.get("generationConfig") or {}, dict):
        raise Refused(400, "generationConfig must be an object")
    config = spelt(whole.get("generationConfig"))
    known_keys(config, "maxOutputTokens", "candidateCount")
    only(whole, {"serviceTier": ("standard",)})
    only(config, {"responseModalities": (["TEXT"], ["text"])})
    parts = [part for content in objects(whole.get("contents")) for part in inner(content)]
    blobs = [spelt(part["inlineData"]) for part in parts if "inlineData" in part]
    files = [spelt(part["fileData"]) for part in parts if "fileData" in part]
    if any(not str(each.get("mimeType")).startswith(SAME_KINDS) for each in blobs + files):
        raise Refused(403, "only pictures, texts and PDF may be sent: sound and film have prices that are not listed")
    pictures = [blob for blob in blobs if str(blob.get("mimeType")).startswith("image/")]
    points = len(pictures) < len(blobs) or bool(files)
    return Asked(
        model=path["model"],
        streamed=path["way"].startswith("stream"),
        images=len(pictures),
        image_bytes=sum(len(str(blob.get("data") or "")) for blob in pictures),
        bounded=not points and not whole.get("cachedContent"),
        most_output=limit(config, "maxOutputTokens"),
        replies=replies(config.get("candidateCount")),
        tools=server_tools(whole),
    )


def inner(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a content, those inside a function's response too."""
    found = [spelt(part) for part in objects(content.get("parts"))]
    inside = [spelt(part["functionResponse"]) for part in found if "functionResponse" in part]
    return found + [spelt(part) for each in inside for part in objects(each.get("parts"))]


def server_tools(whole: dict[str, Any]) -> dict[str, int]:
    """The provider's own tools → how often each may be used."""
    tools = whole.get("tools")
    listed = objects(tools if isinstance(tools, list) else [tools])
    names = {name for tool in listed for name in spelt(tool)}
    return dict.fromkeys(sorted(names - set(CLIENT_TOOLS)), TOOL_USES)


def capped(body: dict[str, Any], tokens: int) -> dict[str, Any]:
    """With a lower `maxOutputTokens`, in the spelling that is there."""
    place = next((name for name in CONFIG if name in body), CONFIG[0])
    config = body.get(place) or {}
    name = "max_output_tokens" if "max_output_tokens" in config else "maxOutputTokens"
    return {**body, place: {**config, name: tokens}}


def take(seen: Seen, data: dict[str, Any]) -> None:
    """Totals so far; they are the last word once a candidate has said why it ended, or the prompt was blocked."""
    found = list(objects(data.get("candidates")))
    blocked = isinstance(data.get("promptFeedback"), dict) and data["promptFeedback"].get("blockReason")
    seen.ended = seen.ended or bool(blocked) or any(each.get("finishReason") for each in found)
    searches = [each["groundingMetadata"].get("webSearchQueries") for each in found if grounded(each)]
    most(seen.tools, "googleSearch", sum(len(each) for each in searches if isinstance(each, list)))
    usage = data.get("usageMetadata")
    if isinstance(usage, dict):
        whole, output = count(usage, "promptTokenCount"), count(usage, "candidatesTokenCount")
        thought, tool = count(usage, "thoughtsTokenCount") or 0, count(usage, "toolUsePromptTokenCount") or 0
        cached = count(usage, "cachedContentTokenCount") or 0
        seen.tokens = None if whole is None else split_input(whole + tool, cached, 0, 0, (output or 0) + thought)
    seen.final = seen.ended and seen.tokens is not None


def grounded(candidate: dict[str, Any]) -> bool:
    """Whether a candidate tells of searches."""
    return isinstance(candidate.get("groundingMetadata"), dict)


def refusal(status: int, words: str) -> dict[str, Any]:
    """An error as Google writes it."""
    return {"error": {"code": status, "message": words, "status": ERRORS.get(status, "INTERNAL")}}


wire = Wire(
    name="gemini",
    paths=re.compile(r"/v1(?:beta|alpha)?/models/(?P<model>[\w.-]+):(?P<way>generateContent|streamGenerateContent)"),
    asked=asked,
    capped=capped,
    take=take,
    refusal=refusal,
)
