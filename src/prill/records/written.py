"""A TOML file in which a person says what a source reports, field by field, with the words it is read from.

id = "rec-…"                 # optional; else it follows from what the record is about
[sources.page]               # file (beside this one) and/or url with the day it was read
title = "The leaderboard"
file = "page.txt"
[fields.value]
value = 28.56
source = "page"
quote = "28.56%"             # words of the source; left out: the value itself
[fields.dispersion]
source = "scores"            # a JSON file: the value is what stands at the pointer
pointer = "/opus-4.7/std"
[not_reported]
token_budget = "the page lists it as not reported"
"""

import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import field

from prill.audit.pointers import Unsound, split
from prill.audit.witness import opened
from prill.errors import DefinitionError
from prill.records.making import Making, identity
from prill.reported import ResultRecord, Source
from prill.spec import Frozen

LARGEST = 8_000_000


class Origin(Frozen, frozen=True, kw_only=True):
    """A source, as it is written down."""

    title: str
    file: str | None = None
    url: str | None = None
    retrieved: str | None = None


class Line(Frozen, frozen=True, kw_only=True):
    """A field, as it is written down."""

    source: str
    value: Any = None
    quote: str | None = None
    pointer: str | None = None


class Written(Frozen, frozen=True, kw_only=True):
    """The whole file."""

    sources: dict[str, Origin]
    fields: dict[str, Line]
    not_reported: dict[str, str] = field(default_factory=dict)
    id: str | None = None


def of_template(file: Path, made: str) -> tuple[ResultRecord, dict[str, bytes], bytes]:
    """A record from such a file, the sources that go beside it, and the file's own bytes."""
    data = file.read_bytes()
    try:
        written = msgspec.convert(tomllib.loads(data.decode()), Written)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise DefinitionError(f"{file}: not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise DefinitionError(f"{file}: {error} (a field has: {', '.join(Line.__struct_fields__)})") from None
    making = Making()
    for name, origin in written.sources.items():
        add(making, file, name, origin)
    for name, line in written.fields.items():
        one(making, file, name, line)
    for name, why in written.not_reported.items():
        making.none(name, why)
    try:
        record = making.record(written.id or "rec-0", made)
    except DefinitionError as error:
        raise DefinitionError(f"{file}: {error}") from None
    if written.id is None:
        about = ("benchmark", "benchmark_version", "edition", "agent", "model", "effort", "scaffold")
        told = {name: making.fields[name]["value"] for name in about if name in making.fields}
        record = msgspec.structs.replace(record, id=identity(told))
    return record, making.files, data


def add(making: Making, file: Path, name: str, origin: Origin) -> None:
    """One source: read if it lies beside the file, else only named."""
    if origin.file is None:
        making.sources[name] = Source(title=origin.title, url=origin.url, retrieved=origin.retrieved)
        return
    found, trouble = opened(file.parent, origin.file)
    if found is None:
        raise DefinitionError(
            f"{file.parent / origin.file}: {trouble or 'no such file'} (source {name!r} of {file.name})"
        )
    with found:
        data = found.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DefinitionError(f"{origin.file}: more than {LARGEST:,} bytes for a source; quote it by url instead")
    try:
        if origin.file.endswith(".json"):
            making.json(name, f"{name}.json", data, origin.title, origin.url, origin.retrieved)
        else:
            making.text(name, data, origin.title, origin.url, origin.retrieved)
    except Unsound as error:
        raise DefinitionError(f"{origin.file}: {error.code}: {error}") from None
    except UnicodeDecodeError:
        raise DefinitionError(f"{origin.file}: not UTF-8 text; a source is text or JSON") from None


def one(making: Making, file: Path, name: str, line: Line) -> None:
    """One field."""
    source = making.sources.get(line.source)
    if source is None:
        raise DefinitionError(
            f"{file}: fields.{name}: no source {line.source!r} (there are: {', '.join(making.sources)})"
        )
    if line.pointer is not None:
        if source.file is None or not source.file.startswith("sources/"):
            raise DefinitionError(f"{file}: fields.{name}: a pointer needs a source with a JSON file")
        try:
            _, steps = split(f"{source.file}#{line.pointer}")
            making.point(name, line.source, *steps)
        except Unsound as error:
            raise DefinitionError(f"{file}: fields.{name}: {error.code}: {error}") from None
        if line.value is not None and making.fields.get(name, {}).get("value") != line.value:
            raise DefinitionError(f"{file}: fields.{name}: value {line.value!r} is not what stands at the pointer")
        return
    if line.value is None:
        raise DefinitionError(f"{file}: fields.{name}: give a value, or a pointer into a JSON source")
    words = line.quote if line.quote is not None else line.value if isinstance(line.value, str) else None
    if words is None:
        raise DefinitionError(f"{file}: fields.{name}: give the words it is read from as quote")
    making.quote(name, line.value, line.source, words)
