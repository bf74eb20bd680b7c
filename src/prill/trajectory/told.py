"""What a reader of one program's events has gathered so far, and how it takes foreign values apart.

A reader is total: any field of an event may be missing or of any type. Unknown is `None`, never zero.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from msgspec import Struct

Kind = Literal["message", "command", "result", "other"]
SHELLS = frozenset(("bash", "shell", "run_shell_command", "exec_command", "local_shell", "unified_exec"))
"""Tools, in small letters, whose command line is the whole of what they do."""
DEEPEST = 50
"""Lists within lists whose text is told."""


class Draft(Struct):
    """A step that has no number yet; the fields are those of `record.Step`."""

    kind: Kind
    text: str
    source: Literal["agent", "user", "system"] = "agent"
    thought: bool = False
    call: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    model: str | None = None
    tokens: dict[str, int] | None = None
    usd: float | None = None
    at: str | None = None
    grows: bool = False
    """A part of a message that the next event may carry on."""


@dataclass
class Told:
    """The sums over one output."""

    session: str | None = None
    model: str | None = None
    version: str | None = None
    final_text: str | None = None
    status: str | None = None
    """`success` or `error` by the last terminal event; `None` while there is none."""
    error: str = ""
    """The words of the error that ended it."""
    error_kind: str | None = None
    tool_calls: set[str] = field(default_factory=set)
    unknown_events: int = 0
    usage: dict[str, int | None] | None = None
    """By the program's own count, over all of its processes."""
    usage_why: str = "no event told the tokens"
    usd: float | None = None
    usd_why: str = "no event told the cost"
    background: set[str] = field(default_factory=set)
    """Commands that go on by themselves and are not known to have ended."""
    memory: dict[str, Any] = field(default_factory=dict)
    """What a reader has to keep from one event to the next."""

    def called(self, name: str | None) -> str:
        """Count a tool call once for each id; one without an id counts by itself."""
        key = name or f"#{len(self.tool_calls)}"
        self.tool_calls.add(key)
        return key

    def ended(self, status: Literal["success", "error"], error: str = "", kind: str | None = None) -> None:
        """A terminal event; the last one counts."""
        self.status, self.error, self.error_kind = status, error, kind


def part(value: Any, *names: str) -> Any:
    """What lies at a path of names in an object; `None` where it leads nowhere."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def words(value: Any) -> str | None:
    """A string that is not empty."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """A whole number, not negative."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def amount(value: Any) -> float | None:
    """A number, not negative."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def added(one: dict[str, int | None] | None, other: dict[str, int | None]) -> dict[str, int | None]:
    """Tokens of two counts together; what neither knows stays unknown."""
    if one is None:
        return dict(other)
    return {
        name: (one.get(name) or 0) + (other.get(name) or 0)
        if one.get(name) is not None or other.get(name) is not None
        else None
        for name in {**one, **other}
    }


def known(tokens: dict[str, int | None]) -> dict[str, int] | None:
    """Only the kinds that are known; `None` where none is."""
    return {name: number for name, number in tokens.items() if number is not None} or None


def dumped(value: Any) -> str:
    """A value as JSON text, as far as it can be written."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        return str(type(value).__name__)


def text_of(content: Any, depth: int = 0) -> str:
    """The text of content that is a string, nothing, or a list of blocks (R4); a block without text is named."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and depth < DEEPEST:
        return "\n".join(filter(None, (text_of(inner, depth + 1) for inner in content)))
    if isinstance(content, dict):
        for name in ("text", "content", "output"):
            if isinstance(content.get(name), str):
                return str(content[name])
        return f"[{content['type']}]" if isinstance(content.get("type"), str) else dumped(content)
    return dumped(content)


def call_text(tool: str, arguments: Any) -> str:
    """A tool call in one text: a shell's own command line, or the tool's name and its arguments."""
    if tool.lower() in SHELLS:
        for name in ("command", "cmd"):
            line = part(arguments, name)
            if isinstance(line, str):
                return line
            if isinstance(line, list) and all(isinstance(word, str) for word in line):
                return line[-1] if line[1:2] in (["-lc"], ["-c"]) and len(line) == 3 else " ".join(line)
    return f"{tool} {dumped(arguments if arguments is not None else {})}"


def as_arguments(value: Any) -> dict[str, Any]:
    """Arguments of a call as an object; JSON text is read, and what is no object lies under `input`."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return {"input": value}
    given: dict[str, Any] = value if isinstance(value, dict) else {} if value is None else {"input": value}
    try:
        orjson.dumps(given)
    except (TypeError, ValueError, RecursionError):
        return {"input": "an object that is too deep"}
    return given
