"""What the gateway must know of a way of asking a model: what a request may cost at most, what a reply did cost.

A wire is a value of this shape; each of the four stands in a file of its own. The readers of replies are total: what
they do not understand they leave out, and then the usage is not known.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prill.wallet import Style as Style

IMAGE_TOKENS = 16_384
"""More than any priced model counts for one picture (the dearest counts about 10,000)."""
FRAME_TOKENS = 4_096
"""For what a provider puts around a request: tool instructions, role marks."""
TOOL_USES = 10
"""Uses of a provider's own tool that a hold assumes where the request names no limit."""
TOOL_TOKENS = 10_000
"""Tokens that a hold assumes for what one use brings into the prompt. An estimate, not a bound."""


class Refused(Exception):
    """A request that may not leave, with the status that says so."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a request's body says that bears on its price."""

    model: str
    streamed: bool
    images: int = 0
    image_bytes: int = 0
    """Bytes of the body that are pictures, not text."""
    bounded: bool = True
    """False where the body points to more than it holds: files, stored conversations, documents by the page."""
    most_output: int | None = None
    """Tokens that one reply may have; `None`: the request does not say."""
    replies: int = 1
    tools: Mapping[str, int] = field(default_factory=dict)
    """The provider's own tools that may be used → how often."""


@dataclass
class Seen:
    """What a reply has told so far."""

    tokens: dict[str, int] | None = None
    """By kind, each counted once; `None`: not told."""
    final: bool = False
    """Whether that was the provider's last word."""
    tools: dict[str, int] = field(default_factory=dict)
    """Uses of the provider's own tools."""
    stated: Any = None
    """What the provider itself says that the call cost."""
    ended: bool = False
    """Whether the reply said that it was at its end, before or with the usage."""
    raw: dict[str, int] = field(default_factory=dict)
    """The provider's own counts, where several objects of a reply tell them in parts."""


@dataclass(frozen=True, kw_only=True)
class Wire:
    """One way of asking."""

    name: str
    paths: re.Pattern[str]
    """Paths that cost money; a group `model` where the path names it."""
    asked: Callable[[Mapping[str, str], dict[str, Any]], Asked]
    """From the path's groups and the body; raises `Refused`."""
    capped: Callable[[dict[str, Any], int], dict[str, Any]]
    """The body with another limit of output tokens."""
    take: Callable[[Seen, dict[str, Any]], None]
    """Learn from one object of a reply: an event of a stream, or the whole of it."""
    refusal: Callable[[int, str], dict[str, Any]]
    """The body with which this provider says no."""
    metered: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda body: None
    """The body changed so that a stream tells its usage; `None`: it does as it is."""


def parsed(body: bytes) -> dict[str, Any]:
    """A request's body. Refused unless every reader reads it alike: UTF-8, finite numbers, no key given twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key is given twice")
        return found

    def finite(word: str) -> float:
        raise ValueError(f"{word} is no number")

    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=once, parse_constant=finite)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON that can be metered: {error}") from None
    if not isinstance(value, dict):
        raise Refused(400, "the body must be a JSON object")
    return value


def encoded(body: dict[str, Any]) -> bytes:
    """A changed body as bytes; keys keep their order."""
    try:
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body cannot be metered: {error}") from None


def known_keys(body: Mapping[str, Any], *names: str) -> None:
    """Refuse keys that differ from these only in case: some readers would take them, ours would not."""
    alike = {name.lower(): name for name in names}
    for key in body:
        if alike.get(key.lower(), key) != key:
            raise Refused(400, f"write {alike[key.lower()]!r} instead of {key!r}")


def only(body: Mapping[str, Any], allowed: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse settings that have another price than the list's: each key may have these values, or be left out."""
    for key, values in allowed.items():
        if body.get(key) is not None and body[key] not in values:
            options = " or ".join(json.dumps(value) for value in values) or "nothing"
            raise Refused(403, f"{key} may only be {options} here: the list has no price for anything else")


def model_of(body: Mapping[str, Any]) -> str:
    """The model's name in a body."""
    name = body.get("model")
    if not isinstance(name, str) or not name:
        raise Refused(400, "the body names no model")
    return name


def limit(body: Mapping[str, Any], *names: str) -> int | None:
    """The smallest of several limits of output; refused where one is no whole number above 0."""
    found = []
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise Refused(400, f"{name} must be a whole number above 0")
        found.append(value)
    return min(found, default=None)


def replies(value: Any) -> int:
    """How many replies one request asks for."""
    if value is None:
        return 1
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 128:
        raise Refused(400, "the number of replies must be between 1 and 128")
    return value


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list; nothing where it is no list."""
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def count(data: Any, *names: str) -> int | None:
    """The first whole number, not negative, under one of these names; a name may lead into a part (`a.b`)."""
    for name in names:
        found = data
        for step in name.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 1 << 53:
            return found
    return None


def most(seen: dict[str, int], tool: str, uses: int | None) -> None:
    """Keep the highest count of a tool's uses."""
    if uses:
        seen[tool] = max(uses, seen.get(tool, 0))


def split_input(whole: int, cached: int, written: int, long_written: int, output: int) -> dict[str, int] | None:
    """Tokens by kind where the whole input is told with its parts; `None` where the parts are more than it."""
    plain = whole - cached - written
    if plain < 0 or long_written > written:
        return None
    kinds = {"input": plain, "cache_read": cached, "cache_write_5m": written - long_written}
    return {**kinds, "cache_write_1h": long_written, "output": output}
