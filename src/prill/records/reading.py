"""Record files read as hostile bytes: bounded, with one reading only, and nothing outside their folder.

A record is a folder with `record.json` (a bundle) or a file of that form; its sources lie beside it. What is refused is
refused by name: `DUPLICATE_KEY`, `TOO_DEEP`, `MALFORMED`, `TOO_LARGE`, `CLIMBS`, `SCHEMA`, `MISSING`.
"""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from prill.audit.pointers import Unsound, read_json, safe_name, split
from prill.audit.verify import Fault
from prill.audit.witness import opened
from prill.errors import DefinitionError
from prill.records.making import RECORD, values
from prill.reported import Place, ResultRecord

LARGEST = 4_000_000
"""Bytes of a record."""
LARGEST_SOURCE = 32_000_000
MOST_SOURCES, MOST_ENTRIES = 10_000, 1_000
"""Of a record; of a list in it."""
LONGEST_QUOTE = 50_000
"""Characters."""


class Kept(NamedTuple):
    """A record with what lies beside it."""

    record: ResultRecord
    data: bytes
    """The record's own bytes."""
    folder: Path | None
    """Where its sources lie; `None`: it came from somewhere else than a folder."""


def read(place: Path) -> Kept:
    """A record from a folder or a file. Raises `DefinitionError` that names what is wrong."""
    file = place / RECORD if place.is_dir() else place
    if not file.is_file():
        raise DefinitionError(f"{file}: no such record; give a folder with {RECORD}, or such a file")
    with file.open("rb") as opening:
        data = opening.read(LARGEST + 1)
    try:
        return Kept(decoded(data), data, file.parent)
    except Unsound as error:
        raise DefinitionError(f"{file}: {error.code}: {error}") from None


def decoded(data: bytes) -> ResultRecord:
    """A record out of bytes. Raises `Unsound`."""
    if len(data) > LARGEST:
        raise Unsound("TOO_LARGE", f"more than {LARGEST:,} bytes for a record")
    value = read_json(data)
    try:
        record: ResultRecord = msgspec.convert(value, ResultRecord)
    except (msgspec.ValidationError, OverflowError) as error:
        raise Unsound("SCHEMA", f"not a prill/record/1: {str(error)[:300]}") from None
    if len(record.sources) > MOST_SOURCES:
        raise Unsound("TOO_LARGE", f"more than {MOST_SOURCES:,} sources")
    for name, source in record.sources.items():
        if source.file is not None and not safe_name(source.file):
            raise Unsound("CLIMBS", f"source {name[:80]!r}: {source.file[:200]!r} leads out of the record's folder")
    for name, told in values(record).items():
        if isinstance(told.source, Place):
            split(told.source.at)
        elif len(told.source.text) > LONGEST_QUOTE:
            raise Unsound("TOO_LARGE", f"{name}: quotes more than {LONGEST_QUOTE:,} characters")
        if isinstance(told.value, tuple) and len(told.value) > MOST_ENTRIES:
            raise Unsound("TOO_LARGE", f"{name}: more than {MOST_ENTRIES:,} entries")
    return record


def beside(kept: Kept) -> tuple[dict[str, bytes], dict[str, Any], list[Fault]]:
    """The sources that lie beside a record: bytes and JSON by path, and what is wrong with them."""
    files: dict[str, bytes] = {}
    documents: dict[str, Any] = {}
    faults: list[Fault] = []
    left = LARGEST_SOURCE
    for source in kept.record.sources.values():
        if source.file is None or source.file in files:
            continue
        try:
            data = bytes_of(kept.folder, source.file, left)
            left -= len(data)
            files[source.file] = data
            if source.file.endswith(".json"):
                documents[source.file] = read_json(data)
        except Unsound as error:
            faults.append(Fault(error.code, source.file, str(error)))
    return files, documents, faults


def bytes_of(folder: Path | None, path: str, most: int) -> bytes:
    """A file beside a record, no link followed. Raises `Unsound`."""
    found, trouble = (None, "") if folder is None else opened(folder, path)
    if found is None:
        raise Unsound("MISSING", trouble or "the source is not beside the record")
    with found:
        data = found.read(most + 1)
    if len(data) > most:
        raise Unsound("TOO_LARGE", f"sources of more than {LARGEST_SOURCE:,} bytes in all")
    return data


def digest(data: bytes) -> str:
    """Hex SHA-256."""
    return hashlib.sha256(data).hexdigest()
