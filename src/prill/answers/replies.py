"""What of a completion is the reply, and where in it an answer is marked: rules N1 to N7 and A2 of RULES.md.

Text in, text out; nothing here knows what a right answer is. Every function is total and takes time linear in its
input, because the input is whatever a model wrote.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Literal, TypeVar

# --- where the reply begins and ends (N1, N2) ---------------------------------------------------------------------

ENDS_OF_TURN = ("<|im_end|>", "<|endoftext|>", "<end_of_turn>", "<|eot_id|>", "</s>")
_TURN = re.compile("|".join(map(re.escape, ("<think>", "</think>", *ENDS_OF_TURN))))


def body(completion: str) -> str | None:
    """The reply inside a completion: behind the last closed reasoning block (N1), up to the end of the turn (N2).

    `None`: the reasoning never closes, so there is no reply. An end-of-turn token inside a closed reasoning block is
    part of the reasoning; behind it nothing counts, not even further reasoning.
    """
    start, end, thinking = 0, len(completion), False
    for tag in _TURN.finditer(completion):
        if tag[0] == "<think>":
            thinking = True
        elif tag[0] == "</think>":
            thinking, start = False, tag.end()
        elif not thinking:
            end = tag.start()
            break
    return None if thinking else completion[start:end]


# --- folding (N4) -------------------------------------------------------------------------------------------------

_KEPT = ("<fraction>", "<super>", "<sub>")
"""Compatibility forms that mean more than their plain letters: 5² is not 52. They are spelt out instead."""
_ALWAYS = {"\u2212": "-", "\u2215": "/", "\u2044": "/", "\u2028": "\n", "\u2029": "\n", "\ufe0f": "", "\u00ba": "°"}
_ODD = re.compile(r"[^\x00-\x7f]")
_RAISED = re.compile("[\u00b2\u00b3\u00b9\u2070\u2071\u2074-\u207f]+")
_LOWERED = re.compile("[\u2080-\u208e]+")
_VULGAR = re.compile("([0-9]?)([\u00bc-\u00be\u2150-\u215e\u2189])")


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    if char in _ALWAYS:
        return _ALWAYS[char]
    kind = unicodedata.category(char)
    if kind == "Cf":
        return ""
    if kind == "Zs":
        return " "
    tag, *codes = unicodedata.decomposition(char).split() or [""]
    if not tag.startswith("<") or tag in _KEPT:
        return char
    return "".join(_plain(chr(int(code, 16))) for code in codes)


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("\u2044", "/").replace("\u2212", "-")


def fold(text: str) -> str:
    """Text in plain characters (N4): full-width forms, special blanks, minus signs, zero-width characters.

    Vulgar fractions are spelt out with a blank behind a leading integer (1½ is `1 1/2`), raised and lowered figures
    as `^{2}` and `_{2}`. Digits of other scripts stay what they are and are no digits to us (N5).
    """
    text = _ODD.sub(lambda char: _plain(char[0]), text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _VULGAR.sub(lambda match: f"{match[1]} {_nfkc(match[2])}".lstrip(), text)
    text = _RAISED.sub(lambda match: f"^{{{_nfkc(match[0])}}}", text)
    return _LOWERED.sub(lambda match: f"_{{{_nfkc(match[0])}}}", text)


def prepare(completion: str) -> str | None:
    """The folded reply, or `None` where there is none (N1, N2, N4)."""
    reply = body(completion)
    return None if reply is None else fold(reply)


# --- wrappers (N7) ------------------------------------------------------------------------------------------------

STYLE = r"\\(?:text|textbf|textit|textrm|textsf|texttt|mathbf|mathrm|mathit|mathsf|mathtt|boldsymbol|bm|mbox|emph)"
"""LaTeX commands that change the look of what they hold, as an expression without its brace."""
_UNSTYLED = re.compile(STYLE + r"(?![A-Za-z])\s?|\\(?:left|right|displaystyle)(?![A-Za-z])|\\[()\[\],;:! ]|[{}$*`]")
EDGES = " \t\n\"'()[]<>_.,;:!?\u201c\u201d\u2018\u2019\u00ab\u00bb"
"""What may stand round a value besides styles: brackets, quotes, sentence punctuation, underscores."""


def unstyled(text: str) -> str:
    """Text without LaTeX styles, maths delimiters, braces, asterisks and code ticks."""
    return _UNSTYLED.sub("", text)


def unwrap(text: str) -> str:
    """A value without anything that may be wrapped round it (N7)."""
    return unstyled(text).strip(EDGES)


# --- boxes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """One `\\boxed` or `\\fbox` that holds no other box, with its content as written."""

    start: int
    end: int
    content: str


_BRACES = re.compile(r"\\{1,4}(?:boxed|fbox)(?![A-Za-z])|\\.|[{}]", re.DOTALL)
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[^\s{}]")
_NOT_BLANK = re.compile(r"\s{0,80}")


def _matched(text: str) -> tuple[list[re.Match[str]], dict[int, int]]:
    """The box commands, and for each opening brace that is closed the place of its closing one."""
    commands, stack, closing = [], [], {}
    for token in _BRACES.finditer(text):
        if token[0] == "{":
            stack.append(token.start())
        elif token[0] == "}":
            if stack:
                closing[stack.pop()] = token.start()
        elif token[0].endswith(("boxed", "fbox")):
            commands.append(token)
    return commands, closing


def boxes(text: str) -> list[Box]:
    """The balanced boxes in order, innermost ones only; escaped braces do not count, `\\boxed 5` holds one token (M1).

    A box that never closes is left out.
    """
    commands, closing = _matched(text)
    spans: list[tuple[int, int, int, int]] = []
    for command in commands:
        opening = _NOT_BLANK.match(text, command.end())
        if not opening:
            continue
        at = opening.end()
        if at in closing:
            span = (command.start(), closing[at] + 1, at + 1, closing[at])
        elif text[at : at + 1] == "{" or not (token := _TOKEN.match(text, at)):
            continue
        else:
            span = (command.start(), token.end(), at, token.end())
        while spans and spans[-1][1] >= span[1]:
            spans.pop()
        spans.append(span)
    return [Box(start, end, text[inner:outer]) for start, end, inner, outer in spans]


# --- markers (A2, N3) ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Marker:
    """A place that says: here is the final answer."""

    kind: Literal["label", "box", "hash", "tag"]
    start: int
    text: str
    """What it holds: a box's or tag's content, else the rest of the line."""
    below: str = ""
    """For a label with an empty line: the next line that holds more than wrappers."""


_LABEL = re.compile(
    r"(?<![A-Za-z])(?:final[ \t]{1,3})?answer(?![A-Za-z])"
    r"[ \t*_`'\"$)\]}]{0,12}"
    r"(?::|={1,2}|is(?![A-Za-z])(?!\s+not\b))[ \t]{0,3}:?",
    re.IGNORECASE,
)
_HASH = re.compile(r"(?<!#)####(?!#)")
_HEADING = re.compile(
    r"\W*(?:step|part|case|method|approach|phase|stage|section|example|option|problem|question)\b", re.IGNORECASE
)
_TAG = re.compile(r"</?answer>", re.IGNORECASE)
_NEW_ITEM = re.compile(r"^[ \t>#*_]*(?:question|q|problem|human|user)[ \t]?\d*[ \t*_]*:", re.IGNORECASE | re.MULTILINE)


def _line(text: str, at: int, stop: int | None = None) -> str:
    """The rest of the line, but not beyond `stop`: markers do not share text, so that reading all stays linear."""
    end = text.find("\n", at, stop)
    return text[at:stop] if end < 0 else text[at:end]


def _below(text: str, at: int, stop: int | None) -> str:
    """The first of the next few lines that holds more than wrappers, if the line ends before `stop`."""
    at = text.find("\n", at, stop) + 1
    for _ in range(4):
        line = _line(text, at) if at else ""
        if not at or len(line) > 200 or unwrap(line):
            return line
        at = text.find("\n", at) + 1
    return ""


def _with_next(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    found = list(pattern.finditer(text))
    return zip_longest(found, found[1:])


def _labels(text: str) -> Iterator[Marker]:
    for label, follows in _with_next(_LABEL, text):
        stop = follows.start() if follows else None
        line = _line(text, label.end(), stop)
        below = "" if len(line) > 200 or unwrap(line) else _below(text, label.end(), stop)
        yield Marker("label", label.start(), line, below)


def _hashes(text: str) -> Iterator[Marker]:
    """`#### 18` is a marker; `#### Step 2` is a heading that counts something."""
    for sign, follows in _with_next(_HASH, text):
        line = _line(text, sign.end(), follows.start() if follows else None)
        if not _HEADING.match(line[:40]):
            yield Marker("hash", sign.start(), line)


def _tags(text: str) -> Iterator[Marker]:
    """`<answer>` up to its closing tag; without one, to the end of the line."""
    for tag, follows in _with_next(_TAG, text):
        if tag[0].startswith("</"):
            continue
        stop = follows.start() if follows else None
        closed = follows is not None and follows[0].startswith("</")
        yield Marker("tag", tag.start(), text[tag.end() : stop] if closed else _line(text, tag.end(), stop))


def markers(reply: str) -> list[Marker]:
    """Every explicit final-answer marker of a folded reply, in order of place (A2)."""
    found = [*_labels(reply), *_hashes(reply), *_tags(reply)]
    found += [Marker("box", box.start, box.content) for box in boxes(reply)]
    return sorted(found, key=lambda marker: marker.start)


def next_item(reply: str, at: int) -> int:
    """Where, behind a place, a line starts a new item (`Question:`, `Human:` …), which ends the reply (N3)."""
    fresh = _NEW_ITEM.search(reply, at)
    return fresh.start() if fresh else len(reply)


Value = TypeVar("Value")


def last_marked(reply: str, read: Callable[[Marker], Value | None]) -> Value | None:
    """What `read` makes of the last marker from which it can read something (A2).

    Once a marker has been read, a new item ends the reply (N3).
    """
    value: Value | None = None
    end = len(reply)
    for marker in markers(reply):
        if marker.start >= end:
            break
        got = read(marker)
        if got is None:
            continue
        if value is None:
            end = next_item(reply, marker.start)
        value = got
    return value


# --- truncation (N6) ----------------------------------------------------------------------------------------------


def cut_off(stop: str | None, scores_zero: bool) -> bool:
    """Whether the reply ran into its token limit where that means that there is no answer (N6)."""
    return stop == "length" and scores_zero
