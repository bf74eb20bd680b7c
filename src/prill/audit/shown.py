"""A JSON value → the text that a page shows of it. Pages are made with it and verified with it."""

from typing import Any

from prill.audit.pointers import canonical
from prill.story import plain

WAYS = ("text", "count", "json", "list")
"""How a value can be shown: as it is; whole numbers with their thousands apart; as JSON; a list's texts with commas."""


def shown(value: Any, way: str) -> str:
    """The text. Raises `ValueError` for a way that there is none of."""
    if way not in WAYS:
        raise ValueError(f"no way {way!r} to show a value (there are: {', '.join(WAYS)})")
    if way == "list" and isinstance(value, list):
        return ", ".join(shown(entry, "text") for entry in value)
    if way == "count" and isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if way == "json" or not isinstance(value, str):
        text = "not known" if value is None and way != "json" else canonical(value).decode()
    else:
        text = value
    return plain(text)
