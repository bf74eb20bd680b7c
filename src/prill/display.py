"""What programs printed, as a person may see it: rules V of RULES.md. The bytes themselves are kept elsewhere."""

import html
import json
import re
from typing import Any

_ESCAPES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles and links
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*(?:\x1b\\|\x9c)?"  # device strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor, erasing
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def shown(text: str) -> str:
    """Text as a terminal would leave it (V1): escape codes out, the last state after carriage returns, backspaces
    done."""
    return "\n".join(_line(line) for line in _ESCAPES.sub("", text).split("\n"))


def _line(line: str) -> str:
    states = [state for state in line.split("\r") if state]
    kept: list[str] = []
    for char in states[-1] if states else "":
        if char != "\b":
            kept.append(char)
        elif kept:
            kept.pop()
    return _CONTROLS.sub("", "".join(kept))


def escaped(text: str) -> str:
    """Text for a page (V2): no character of it can open or close anything, in an element or in an attribute."""
    return html.escape(_CONTROLS.sub("", text), quote=True)


_IN_SCRIPT = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def in_script(value: Any) -> str:
    """A value as JSON that may stand inside a script element (V2): the same value when read, and no end of script."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).translate(_IN_SCRIPT)
