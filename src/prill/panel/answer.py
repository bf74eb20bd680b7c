"""What one answer of a judge says: its truth values, its reasons, its citations. Anything else is no answer (Z1, Z2).

Total on any text. A citation that has the right form and leads nowhere is caught later, by `citations.py`.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from prill.verdicts import last_object, parse_json

MOST_CITED = 60
LONGEST = 4_000


class Cited(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A place that a judge names: a step, or a file of the run folder; with the words that stand there."""

    field: str
    """Of the answer that it is for."""
    quote: str
    step: int | None = None
    file: str | None = None
    offset: int | None = None
    length: int | None = None


class Said(Struct, frozen=True, kw_only=True):
    """An answer."""

    values: dict[str, bool]
    """Field → whether the rule is broken."""
    why: dict[str, str]
    cited: tuple[Cited, ...]


def read(reply: str, fields: Sequence[str]) -> Said | None:
    """The answer in a reply; `None` where it is not of the form that was asked for."""
    values, whole = parse_json(reply, fields), last_object(reply, fields)
    if values is None or whole is None:
        return None
    why = {field: whole.get(f"why_{field}") for field in fields}
    if not all(isinstance(text, str) and text.strip() for text in why.values()):
        return None
    cited = whole.get("citations")
    if not isinstance(cited, list) or len(cited) > MOST_CITED:
        return None
    try:
        places = tuple(msgspec.convert(without_nothing(place), Cited) for place in cited)
    except msgspec.ValidationError:
        return None
    if any(place.field not in fields or (place.step is None) == (place.file is None) for place in places):
        return None
    return Said(values=values, why={field: str(text)[:LONGEST] for field, text in why.items()}, cited=places)


def without_nothing(place: Any) -> Any:
    """An object without the fields that say null."""
    return {name: value for name, value in place.items() if value is not None} if isinstance(place, dict) else place


def form(fields: Sequence[str]) -> str:
    """The form of an answer, as it is told to a judge."""
    lines = [line for field in fields for line in (f'  "{field}": true or false,', f'  "why_{field}": "…",')]
    places = [
        f'{{"field": "{fields[0]}", {at}, "quote": "…"}}' for at in ('"step": 12', '"file": "workspace/train.py"')
    ]
    return "\n".join(["{", *lines, f'  "citations": [{", ".join(places)}]', "}"])
