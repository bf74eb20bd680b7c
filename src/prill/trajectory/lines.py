"""Raw output → pieces: JSON objects with the bytes that they stand in, and whatever else was printed (rules R1 to R3).

Only a line feed ends a line, and a line may have any length. What stands between, before or behind objects is noise,
kept in order; time stamps, byte-order marks, carriage returns and escape codes round an object are read off.
Not covered: an object that is cut off in the middle of a line and whose inside looks like another whole event.
"""

import json
import re
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any, NamedTuple

import orjson

TRIES = 200
"""Broken objects that are tried in one line; fewer in a very long one, so that hostile lines take little time."""


class Piece(NamedTuple):
    """A part of one line. `event` is `None` for noise."""

    offset: int
    """Of its first byte in the whole output."""
    length: int
    event: dict[str, Any] | None
    raw: bytes
    line: int
    """Number of the line, from 0."""
    width: int
    """Bytes of the whole line, its end included."""
    stamp: str | None = None
    """Time stamp that somebody put in front of the line."""
    cut: bool = False
    """The output ends in the middle of this object."""

    @property
    def text(self) -> str:
        """The bytes as text that can be written, without the line's end."""
        return self.raw.decode("utf-8", "replace").strip("\r\n\ufeff\x00")


_STAMP = re.compile(r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)\]?[ \t]+(?=\S)")
_AROUND = re.compile(r"(?:\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-Z\\^-~]|[\ufeff\s\x00])+")
_OPEN = re.compile(r'\{(?=\s*(?:["}]|\Z))')
_INSIDE = re.compile(r"[:,\[]\s*\Z")
_GOES_ON = re.compile(r"\s*[,\]}]")
_DECODER = json.JSONDecoder(parse_constant=str, strict=False)


def pieces(lines: Iterable[bytes]) -> Iterator[Piece]:
    """Every piece of the output, in order. Total; memory is that of the longest line."""
    offset = 0
    for number, line in enumerate(lines):
        width = len(line)
        if line.startswith(b"{"):
            try:
                event = orjson.loads(line)
            except orjson.JSONDecodeError:
                yield from _hard(line, offset, number)
            else:
                yield Piece(offset, width, event, line, number, width)
        elif not line.isspace():
            yield from _hard(line, offset, number)
        offset += width


def utf8(text: str) -> str:
    """Text that can be written (R1): lone surrogates become replacement characters."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _hard(line: bytes, offset: int, number: int) -> Iterator[Piece]:
    """The pieces of a line that is not just one object."""
    text = line.decode("utf-8", "surrogateescape")
    ascii_only = text.isascii()
    lead = _AROUND.match(text)
    begin = lead.end() if lead else 0
    stamped = _STAMP.match(text, begin)
    stamp, begin = (stamped[1], stamped.end()) if stamped else (None, begin)
    spans, cut = _objects(text, begin)

    def piece(first: int, last: int, event: dict[str, Any] | None, torn: bool = False) -> Piece:
        if ascii_only:
            return Piece(offset + first, last - first, event, line[first:last], number, len(line), stamp, torn)
        raw = text[first:last].encode("utf-8", "surrogateescape")
        before = len(text[:first].encode("utf-8", "surrogateescape"))
        return Piece(offset + before, len(raw), event, raw, number, len(line), stamp, torn)

    end = len(text) if cut is None or line.endswith(b"\n") else cut
    at = begin
    for first, last, event in [*spans, (end, end, None)]:
        if _AROUND.sub("", text[at:first]):
            yield piece(at, first, None)
        if event is not None:
            yield piece(first, last, event)
        at = last
    if end < len(text):
        yield piece(end, len(text), None, True)


Found = tuple[int, int, dict[str, Any] | None]


def _objects(text: str, begin: int) -> tuple[list[Found], int | None]:
    """Objects in a line with their places, and where one begins that does not end; a line that is other JSON has none.

    Behind a broken object only those count that stand on their own, for its own parts look like objects too.
    """
    spans: list[Found] = []
    if text[begin : begin + 1] in '["-0123456789tfn' and _whole(text, begin):
        return spans, None
    broken: int | None = None
    at, tries, most = begin, 0, min(TRIES, 5 + 50_000_000 // (len(text) + 1))
    while tries < most and (found := _OPEN.search(text, at)):
        first = found.start()
        if broken is not None and _INSIDE.search(text, max(broken, first - 8), first):
            at = first + 1
            continue
        try:
            value, last = _DECODER.raw_decode(text, first)
            event = clean(value)
        except (ValueError, RecursionError):
            broken, tries, at = (first if broken is None else broken), tries + 1, first + 1
            continue
        if broken is not None and _GOES_ON.match(text, last):
            at = last
            continue
        spans.append((first, last, event))
        broken, at = None, last
    return spans, broken


def _whole(text: str, begin: int) -> bool:
    """Whether the line is one JSON value, no object."""
    try:
        value, last = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        return False
    return not isinstance(value, dict) and not _AROUND.sub("", text[last:])


def clean(value: Any) -> Any:
    """A JSON value that can be written again: valid text, finite numbers, whole numbers of 64 bits."""
    if isinstance(value, str):
        return utf8(value)
    if isinstance(value, dict):
        return {utf8(name): clean(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [clean(inner) for inner in value]
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(value) if abs(value) < 2**1000 else str(value)[:40]
    return value
