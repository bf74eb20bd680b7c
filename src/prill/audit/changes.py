"""Two audits side by side: every place whose value is another, that is gone or that is new.

Entries of a list are the same entry if they have the same `path`, `id`, `name` or (for pairs) root, benchmark and
model; where they stand in the list does not count. Lists without such keys are compared as wholes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from prill.audit.pointers import canonical
from prill.audit.shown import shown

KEYS = (("path",), ("id",), ("root", "benchmark", "model"), ("name",), ("value", "how"), ("under",), ("at",))
LONGEST = 160


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """One line for each place that differs."""
    lines = []
    for file in sorted({*before, *after}):
        if before.get(file) is None:
            lines.append(f"+ {file}")
        elif after.get(file) is None:
            lines.append(f"- {file}")
        else:
            lines += differing(f"{file}#", before[file], after[file])
    return lines


def differing(place: str, a: Any, b: Any) -> Iterator[str]:
    """Places below this one that differ."""
    left, right = keyed(a), keyed(b)
    if left is None or right is None or type(a) is not type(b):
        if canonical(a) != canonical(b):
            yield f"~ {place}: {short(a)} → {short(b)}"
        return
    for key in dict.fromkeys([*left, *right]):
        inner = f"{place}/{key}"
        if key not in right:
            yield f"- {inner}: {short(left[key])}"
        elif key not in left:
            yield f"+ {inner}: {short(right[key])}"
        else:
            yield from differing(inner, left[key], right[key])


def keyed(value: Any) -> dict[str, Any] | None:
    """The entries of an object or list by what tells them apart; none where nothing does."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
        return {} if value == [] else None
    for keys in KEYS:
        if all(set(keys) <= set(entry) for entry in value):
            named = {" ".join(str(entry[key]) for key in keys): entry for entry in value}
            if len(named) == len(value):
                return named
    return None


def short(value: Any) -> str:
    """A value on one line, cut."""
    text = " ".join(shown(value, "json").split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
