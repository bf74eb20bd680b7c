"""Fenced blocks in a reply, read line by line: rules C2, C4 and C5 of RULES.md. Text in, blocks out."""

import re
from dataclasses import dataclass
from textwrap import dedent

LONGEST = 200_000
"""Characters of a reply in which blocks are looked for."""


@dataclass(frozen=True)
class Block:
    """One fenced block: the first word of its info string, lower case, and its text."""

    tag: str
    text: str
    closed: bool = True
    """False where the reply ended inside it (C5)."""


_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>.*)")
_TAG = re.compile(r"\s*[{.]*([\w+#.-]*)")
_MIDDLE = re.compile(r"`{3,}|~{3,}")
_LAST_WORD = re.compile(r"[ \t]*(\w*)[ \t]*")
_ONE_LINE = re.compile(r"(?P<tag>[A-Za-z0-9+#]*)(?P<code>[ \t].*|[^A-Za-z0-9+#].*|)")
_LANGUAGES = frozenset(("text", "txt", "json", "bash", "sh", "shell", "console", "output", "plaintext"))


def is_python(tag: str) -> bool:
    """Whether a tag names Python."""
    return tag in ("py", "py3", "sage") or tag.startswith(("python", "ipython"))


def lines_of(text: str) -> list[str]:
    """The lines of a reply, without byte-order marks and carriage returns (C9)."""
    return text[:LONGEST].replace("\ufeff", "").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def is_fence(line: str) -> bool:
    """Whether a line opens or closes a block."""
    return bool(_FENCE.match(line))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _tag(info: str) -> str:
    found = _TAG.match(info)
    word = found[1].lower() if found else ""
    return "python" if word.endswith(".py") else word


def _one_line(fence: str, info: str) -> Block | None:
    """A block that opens and closes on one line; its first word is a tag only if it names a language."""
    inside = info.rstrip()
    if not inside.endswith(fence[:3]) or not inside.strip("`~ "):
        return None
    inside = inside.rstrip(fence[0])
    found = _ONE_LINE.match(inside)
    if found and _is_language(found["tag"].lower()):
        return Block(found["tag"].lower(), found["code"].strip())
    return Block("", inside.strip())


def _is_language(tag: str) -> bool:
    return is_python(tag) or tag in _LANGUAGES


@dataclass
class _Open:
    sign: str
    tag: str
    depth: int
    lines: list[str]

    def block(self, last: str | None = None, *, closed: bool = True) -> Block:
        lines = self.lines if last is None else [*self.lines, last]
        return Block(self.tag, dedent("\n".join(lines)).strip("\n"), closed)


def parts(text: str, *, glued: bool = False) -> list[Block | str]:
    """A reply as its fenced blocks and, between them, its lines (C2).

    A block is closed by a line that begins with the same sign at least as often, not much deeper than its opening,
    whatever is glued behind; if that names a language, the next block is open. `glued`: a fence also counts in the
    middle of a line, behind prose as an opening and behind code as a closing one.
    """
    found: list[Block | str] = []
    now: _Open | None = None
    for line in lines_of(text):
        fence = _FENCE.match(line)
        middle = _MIDDLE.search(line) if glued and not fence else None
        if now is None:
            one = _one_line(fence["fence"], fence["info"]) if fence else None
            if fence and not one:
                now = _Open(fence["fence"], _tag(fence["info"]), _indent(line), [])
            elif middle and (word := _LAST_WORD.fullmatch(line, middle.end())):
                now = _Open(middle[0], word[1].lower(), 0, [])
            else:
                found.append(one or line)
        elif fence and fence["fence"].startswith(now.sign) and _indent(line) <= now.depth + 3:
            found.append(now.block())
            tag = _tag(fence["info"])
            now = _Open(fence["fence"], tag, _indent(line), []) if _is_language(tag) else None
        elif middle and middle[0].startswith(now.sign):
            found.append(now.block(line[: middle.start()]))
            now = None
        else:
            now.lines.append(line)
    return found if now is None else [*found, now.block(closed=False)]


def blocks(text: str, *, glued: bool = False) -> list[Block]:
    """The fenced blocks of a reply in order; a reply that is wrapped in a Markdown block is unwrapped once."""
    found = [part for part in parts(text, glued=glued) if isinstance(part, Block)]
    inner = [parts(block.text, glued=glued) if block.tag in ("md", "markdown") else [block] for block in found]
    return [part for each in inner for part in each if isinstance(part, Block)]


def outside(text: str) -> str:
    """What of a reply is in no block."""
    return "\n".join(part for part in parts(text) if isinstance(part, str))
