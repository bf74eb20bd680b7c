"""A judge's words → booleans, and several judges' booleans → one verdict: rules Z1 to Z4 of RULES.md.

What is not clearly a verdict is none, in either direction: it is asked for again, and at last it is a judge's error.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

FIELDS = ("contamination", "disallowed_model")
_LONGEST = 100_000
_MOST_OBJECTS = 2_000


class _Twice(ValueError):
    """A key stands twice in one object."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Twice
    return found


_READER = json.JSONDecoder(object_pairs_hook=_once, strict=False)
_WORDS = {"true": True, "false": False}


def _boolean(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return _WORDS.get(value.strip().casefold()) if isinstance(value, str) else None


def _holders(value: Any, keys: Collection[str]) -> list[dict[str, Any]]:
    """The objects in a value that have all keys, outer ones before inner ones; inner ones only where no outer has."""
    waiting, found = [value], []
    while waiting:
        now = waiting.pop()
        if isinstance(now, dict) and all(key in now for key in keys):
            found.append(now)
        elif isinstance(now, dict | list):
            waiting += reversed(list(now.values()) if isinstance(now, dict) else now)
    return found


def parse_json(reply: str, schema: Sequence[str]) -> dict[str, bool] | None:
    """The verdict in a judge's reply: the booleans (or words) of `last_object` (Z1); `None` for anything else (Z2)."""
    last = last_object(reply, schema)
    if last is None:
        return None
    values = {key: _boolean(last[key]) for key in schema}
    return {key: value for key, value in values.items() if value is not None} if None not in values.values() else None


def last_object(reply: str, schema: Sequence[str]) -> dict[str, Any] | None:
    """The last complete JSON object of a reply with every key of the schema, fenced, nested or in prose (Z1).

    `None` where there is none, or where a further object that names a key was cut off: what stands before it may be an
    example (Z2).
    """
    text = reply[-_LONGEST:]
    last: dict[str, Any] | None = None
    at = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            break
        try:
            value, end = _READER.raw_decode(text, at)
        except _Twice:
            return None
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        holders = _holders(value, schema)
        last = holders[-1] if holders else last
        at, rest = text.find("{", end), text[end:]
        if holders and not rest.strip():
            break
    return None if not schema or _is_cut_off(text, schema) else last


def _is_cut_off(text: str, schema: Sequence[str]) -> bool:
    """Whether the last thing that begins like a verdict never closes."""
    beginnings = list(re.finditer(r'\{\s{0,40}"(?:' + "|".join(map(re.escape, schema)) + ')"', text))
    try:
        if beginnings:
            _READER.raw_decode(text, beginnings[-1].start())
    except (ValueError, RecursionError):
        return True
    return False


def parse_text(text: str, positive: str, negative: str) -> bool | None:
    """A verdict in words: the whole text, up to case, blanks and final punctuation (Z3); else `None`."""

    def plain(words: str) -> str:
        return " ".join(words.split()).rstrip(" .!,;").casefold()

    return {plain(positive): True, plain(negative): False}.get(plain(text))


# --- several judges (Z4) ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Combined:
    """One verdict out of several: its fields, from whom, and whether all was there that it takes."""

    status: Literal["ok", "judge_missing"]
    source: Literal["manual", "any", "majority"]
    values: Mapping[str, bool]


def _complete(verdict: Mapping[str, Any] | None, fields: Sequence[str]) -> bool:
    return verdict is not None and all(isinstance(verdict.get(field), bool) for field in fields)


def combine(
    judges: Mapping[str, Mapping[str, Any] | None],
    how: Literal["any", "majority"],
    *,
    manual: Mapping[str, Any] | None = None,
    fields: Sequence[str] = FIELDS,
) -> Combined:
    """What several judges say together (Z4): `any`, one flag is enough; `majority`, of three slots, field by field.

    A complete human verdict replaces the vote. A judge that is missing or invalid leaves the result incomplete.
    """
    if manual is not None and _complete(manual, fields):
        return Combined("ok", "manual", {field: manual[field] for field in fields})
    votes = [verdict for verdict in judges.values() if verdict is not None and _complete(verdict, fields)]
    enough = len(votes) == len(judges) and len(votes) >= (3 if how == "majority" else 1)
    if not enough:
        return Combined("judge_missing", how, {})
    counts = {field: sum(vote[field] for vote in votes) for field in fields}
    needed = len(votes) // 2 + 1 if how == "majority" else 1
    return Combined("ok", how, {field: count >= needed for field, count in counts.items()})
