"""JSON and text that a stranger wrote: read with bounds, refused with a reason, never trusted.

Not covered: meaning; that is for those who ask for the values.
"""

import json
from pathlib import Path
from typing import Any, TypeGuard

from prill.record import Fault, Record

LARGEST_JSON = 4 << 20
"""Bytes of a configuration file. Real ones stay below 100 kB; an index of 100,000 tensors takes 10 MB."""
LARGEST_INDEX = 16 << 20
LONGEST_WHY = 400


class Document(Record, frozen=True, kw_only=True):
    """A JSON object, or why there is none."""

    value: dict[str, Any] | None
    why: str = ""


def fault(code: str, why: str, *, fatal: bool = True) -> Fault:
    """A fault whose words can be stored and printed, whatever names they quote."""
    return Fault(code=code, why=printable(why, LONGEST_WHY), severity="fatal" if fatal else "warning")


def printable(text: str, longest: int = 120) -> str:
    """Text on one line, without control characters and lone surrogates, cut to a length."""
    plain = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text[: longest + 1])
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def read_json(file: Path, most: int = LARGEST_JSON) -> Document:
    """One JSON object out of a file of at most `most` bytes."""
    try:
        with file.open("rb") as opened:
            data = opened.read(most + 1)
    except OSError as error:
        return Document(value=None, why=f"cannot be read ({error.strerror})")
    if len(data) > most:
        return Document(value=None, why=f"longer than {most} bytes")
    return parse(data)


def parse(data: bytes) -> Document:
    """One JSON object out of UTF-8 bytes. A key that stands twice is refused, since readers then disagree."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=distinct)
    except RecursionError:
        return Document(value=None, why="nested too deep")
    except ValueError as error:
        return Document(value=None, why=f"not JSON ({str(error)[:200]})")
    if not isinstance(value, dict):
        return Document(value=None, why="not a JSON object")
    return Document(value=value)


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys differ. Raises `ValueError` for one that stands twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:80]!r} stands twice")
            seen.add(key)
    return found


def whole(value: Any) -> TypeGuard[int]:
    """Whether a JSON value is a whole number (a boolean is none)."""
    return isinstance(value, int) and not isinstance(value, bool)


def number(value: Any) -> bool:
    """Whether a JSON value is a finite number (a boolean is none)."""
    return whole(value) or (isinstance(value, float) and abs(value) < float("inf"))
