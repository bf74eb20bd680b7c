"""Values that are known: found whole, cut off and wrapped, in any of the forms in which text carries them (rule S1).

Forms: as it is, inside JSON text (also JSON inside JSON), with slashes escaped, percent-encoded, and with letters as
`\\u00..`. A value is found from its first ten characters on, with line breaks between any two of them.
Not covered: an encoded value (base64, hex, encryption), one cut at its front or to less than ten characters, one that
is broken more than twice in these or more than 64 times in all.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

SHORTEST = 8
"""Characters of a value that is searched for (S4)."""
ANCHOR = 10
"""Bytes at the start of a value that give it away (S1)."""
WIDTH = 4
WRAPS = 64
"""Line breaks within one value."""
NO_SECRETS = frozenset(
    ("PATH", "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "HOSTNAME", "TMPDIR")
)
BREAK = re.compile(rb"(?:\r?\n|(?:\\{1,4}r)?\\{1,4}n)[ \t]{0,8}")
"""Where a terminal may have wrapped a value, also inside JSON text."""
_LINES = re.compile(rb"\r?\n|(?:\\{1,4}r)?\\{1,4}n")
_HALF_BREAK = re.compile(rb"\r|\\{1,4}(?:r(?:\\{0,4})?)?")
_LETTER = re.compile(rb"\\{1,4}u00([2-7][0-9A-Fa-f])")
_HALF_LETTER = re.compile(rb"\\{1,4}(?:u(?:0(?:0[2-7]?)?)?)?")


class Span(NamedTuple):
    """Bytes to be replaced."""

    start: int
    end: int
    word: bytes
    """What takes their place."""
    name: str
    """Under which it is counted."""
    rank: int = 2
    """0: a whole known value, 1: one that is cut, 2: anything else. Line breaks inside a known value stay."""


class Needle(NamedTuple):
    """One form of one value."""

    name: str
    value: bytes
    least: int
    """Bytes of it that must be there."""


def needles(secrets: Mapping[str, str]) -> list[Needle]:
    """Every form of every value that is long enough, longest first."""
    found: dict[bytes, Needle] = {}
    for name, whole in secrets.items():
        value = whole.strip()
        if name in NO_SECRETS or len(value) < SHORTEST:
            continue
        for form in forms(value):
            found.setdefault(form, Needle(name, form, min(ANCHOR, len(form))))
    return sorted(found.values(), key=lambda needle: -len(needle.value))


def forms(value: str) -> list[bytes]:
    """A value as it may stand in text."""
    once = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    twice = [json.dumps(text)[1:-1] for text in once]
    texts = [value, *once, *twice, *(text.replace("/", "\\/") for text in (value, *once)), quote(_written(value), "")]
    return list(dict.fromkeys([*(text.encode("utf-8", "surrogatepass") for text in texts), _as_bytes(value)]))


def _as_bytes(value: str) -> bytes:
    """A value as it stands in the environment, where it need not be text."""
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")


def _written(value: str) -> str:
    return value.encode("utf-8", "replace").decode()


class Match(NamedTuple):
    """How far a value goes from some place on."""

    got: int
    """Bytes of the value."""
    end: int
    more: bool
    """More bytes might carry it on."""


def follow(data: bytes, start: int, value: bytes) -> Match:
    """How much of a value stands at a place, line breaks and escaped letters read over."""
    if data.startswith(value, start):
        return Match(len(value), start + len(value), False)
    end, got, wraps, size = start, 0, 0, len(data)
    last = start
    while got < len(value):
        if end < size and data[end] == value[got]:
            got, end = got + 1, end + 1
            last = end
            continue
        letter = _LETTER.match(data, end)
        if letter and int(letter[1], 16) == value[got]:
            got, end = got + 1, letter.end()
            last = end
            continue
        gap = BREAK.match(data, end) if got and end == last else None
        behind = gap.end() if gap else end
        if gap and wraps < WRAPS and behind < size and (data[behind] == value[got] or data[behind] == 0x5C):
            end, wraps = behind, wraps + 1
            continue
        half = behind >= size or bool(_HALF_BREAK.fullmatch(data, behind) or _HALF_LETTER.fullmatch(data, behind))
        return Match(got, last, half and wraps < WRAPS)
    return Match(got, last, False)


class Window(NamedTuple):
    """Some bytes of the beginning of a value, in one piece."""

    needle: Needle
    offset: int
    bytes: bytes


def windows(needle: Needle) -> list[Window]:
    """Three pieces of a beginning, of which two breaks in it leave at least one whole."""
    last = needle.least - WIDTH
    return [Window(needle, at, needle.value[at : at + WIDTH]) for at in sorted({0, min(WIDTH - 1, last), last})]


def beginnings(data: bytes, found: Iterable[tuple[int, Window]]) -> Iterator[tuple[Needle, int]]:
    """Where values may begin of which a window stands at a place. Windows must stand where they are said to."""
    for place, window in found:
        needle, offset = window.needle, window.offset
        if place >= offset and data.startswith(needle.value[:offset], place - offset):
            yield needle, place - offset
            continue
        for start in range(max(0, place - 9 * offset - 32), place - offset):
            if data[start] == needle.value[0] or data[start] == 0x5C:
                yield needle, start


def spans(data: bytes, candidates: Iterable[tuple[Needle, int]]) -> list[Span]:
    """Where enough of a known value stands, of the places where it may begin."""
    found = []
    for needle, start in candidates:
        match = follow(data, start, needle.value)
        if match.got >= needle.least:
            found.append(_span(start, match, needle))
    return found


def _span(start: int, match: Match, needle: Needle) -> Span:
    return Span(start, match.end, f"[{needle.name}]".encode(), needle.name, int(match.got < len(needle.value)))


def pending(data: bytes, wanted: Sequence[Needle]) -> int:
    """Where the first value begins that the end of the data may have cut; the length where there is none."""
    first = len(data)
    letters = [(match.start(), int(match[1], 16)) for match in _LETTER.finditer(data, max(0, first - reach(wanted)))]
    for needle in wanted:
        least = max(0, len(data) - reach([needle]))
        escaped = [at for at, letter in letters if letter == needle.value[0] and at >= least]
        for start in sorted([*escaped, *_starts(data, needle.value, least)]):
            if start >= first:
                break
            if follow(data, start, needle.value).more:
                first = start
                break
    half = _HALF_LETTER.search(data, max(0, len(data) - 9))
    while half and half.end() < len(data):
        half = _HALF_LETTER.search(data, half.start() + 1)
    return min(first, half.start()) if half else first


def reach(wanted: Sequence[Needle]) -> int:
    """The most bytes that a value can take up, with its breaks and escaped letters."""
    return max((9 * len(needle.value) for needle in wanted), default=0) + 16 * WRAPS


def _starts(data: bytes, value: bytes, least: int) -> list[int]:
    """Where a value's first byte stands, from some place on, and the value may go on."""
    first = value[:1]
    found = [len(data) - 1] if data.endswith(first) else []
    for both in (value[:2], first + b"\\", first + b"\r", first + b"\n"):
        at = data.find(both, least)
        while at >= 0:
            found.append(at)
            at = data.find(both, at + 1)
    return found


def replaced(data: bytes, found: Sequence[Span], counts: dict[str, int]) -> bytes:
    """The data with spans replaced, overlapping ones together; counted by name."""
    if not found:
        return data
    pieces, at = [], 0
    for span in merged(found):
        kept = b"".join(_LINES.findall(data, span.start, span.end)) if span.rank < 2 else b""
        pieces += [data[at : span.start], span.word, kept]
        counts[span.name] = counts.get(span.name, 0) + 1
        at = span.end
    return b"".join([*pieces, data[at:]])


def merged(found: Sequence[Span]) -> list[Span]:
    """Spans in order, none touching the inside of another; a whole known value gives the name before a cut one."""
    result: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start, span.rank, -span.end)):
        if result and span.start < result[-1].end:
            before = result[-1]
            named = min(before, span, key=lambda each: (each.rank, each.start - each.end))
            result[-1] = named._replace(start=before.start, end=max(before.end, span.end))
        else:
            result.append(span)
    return result
