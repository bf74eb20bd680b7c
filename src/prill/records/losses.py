"""What an export gives, what it loses, and how fields are carried as texts and come back."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args, get_type_hints

from prill.audit.making import plain
from prill.audit.pointers import Unsound, canonical
from prill.records.making import Making, values
from prill.reported import NAMES, Fields, ResultRecord

OWN = "prill."
"""How the keys of texts begin that only prill reads."""
REASON = "prill.not_reported."
SILENT = "the file that it came in by does not say"


class Loss(NamedTuple):
    """Something of a record that a convention has no place for."""

    what: str
    why: str


class Sent(NamedTuple):
    """A record in a convention."""

    files: dict[str, bytes]
    losses: tuple[Loss, ...]


TEXTS = frozenset(name for name, hint in get_type_hints(Fields).items() if get_args(get_args(hint)[0]) == (str,))
"""Fields whose values are text: carried as they are; all others as JSON."""


def carried(record: ResultRecord, but: Iterable[str]) -> dict[str, str]:
    """Every field but some as a text, and the reason of every field that is not reported."""
    left_out = set(but)
    texts = {
        f"{OWN}{name}": told.value if name in TEXTS else canonical(plain(told.value)).decode()
        for name, told in values(record).items()
        if name not in left_out
    }
    return texts | {f"{REASON}{name}": why for name, why in record.not_reported.items()}


def fetched(
    making: Making, source: str, native: Mapping[str, tuple[str | int, ...]], at: tuple[str | int, ...], texts: Any
) -> None:
    """Every field out of an imported document: from its own place, from a carried text, or not reported.

    `native`: field → steps in the source; `at`: steps to the carried texts.
    """
    held = texts if isinstance(texts, dict) else {}
    for name in NAMES:
        if name in native:
            put(making, name, source, native[name], how="same")
        elif f"{OWN}{name}" in held:
            put(making, name, source, (*at, f"{OWN}{name}"), how="same" if name in TEXTS else "parsed")
        else:
            why = held.get(f"{REASON}{name}")
            making.none(name, why if isinstance(why, str) and why.strip() else SILENT)


def put(making: Making, name: str, source: str, steps: tuple[str | int, ...], how: Any) -> None:
    """One field out of a place; nothing there is not reported."""
    try:
        making.point(name, source, *steps, how=how, otherwise=SILENT)
    except Unsound as error:
        if error.code != "DANGLING":
            raise
        making.none(name, SILENT)


def places(record: ResultRecord) -> list[Loss]:
    """What every convention but a crate loses: the files that the values point into."""
    found = sum(source.file is not None for source in record.sources.values())
    rests = len(values(record))
    return [
        Loss("sources", f"{found} files of {len(record.sources)} sources do not go along"),
        Loss("places", f"where each of {rests} values stands in them, and the words that it was read from"),
    ]
