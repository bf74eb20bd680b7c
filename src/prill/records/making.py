"""A record under construction: fields one by one, each with the place or the quote that it rests on.

A field that got neither a value nor a reason stops the making: nothing is ever silently absent.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from prill.audit.derive import Calculator, Derivation, Derivations
from prill.audit.making import encoded
from prill.audit.pointers import (
    Budget,
    Unsound,
    canonical,
    digest_of,
    join,
    read_json,
    resolve,
    safe_name,
    text_digest,
)
from prill.errors import DefinitionError, oneof
from prill.reported import NAMES, Earlier, Fields, Place, Quote, Rests, ResultRecord, Retraction, Source, Text, Told

RECORD = "record.json"
"""Where a record stands in its bundle."""


def identity(of: Any) -> str:
    """An id that follows from what a record is about, and means nothing."""
    return f"rec-{hashlib.sha256(canonical(of)).hexdigest()[:16]}"


def taken(
    documents: Mapping[str, Any],
    at: str,
    how: str,
    where: dict[str, Any],
    by: tuple[str, ...],
    budget: Budget | None = None,
) -> Any:
    """What a place gives. Raises `Unsound` where that is nothing, or more work than the budget has."""
    if how == "same":
        return resolve(documents, at)
    if how == "parsed":
        return parsed(resolve(documents, at))
    entry = Derivation(value=at, how=how, of=(at,), where=where, by=by)  # type: ignore[arg-type]
    return Calculator(documents, Derivations(derived=(), observed=()), budget=budget).evaluate(entry)


def parsed(text: Any) -> Any:
    """The JSON that stands in a text. Raises `Unsound`."""
    if not isinstance(text, str):
        raise Unsound("UNDERIVABLE", "not a text with JSON in it")
    return read_json(text.encode())


class Making:
    """One record under way."""

    def __init__(self, clean: Callable[[bytes], bytes] = bytes) -> None:
        """`clean`: what takes secrets out of JSON files before they become sources."""
        self.clean = clean
        self.files: dict[str, bytes] = {}
        """What will lie beside the record."""
        self.documents: dict[str, Any] = {}
        self.sources: dict[str, Source] = {}
        self.fields: dict[str, Any] = {}
        self.not_reported: dict[str, str] = {}
        self.texts: dict[str, str] = {}

    # --- sources ---

    def json(
        self, name: str, file: str, data: bytes, title: str, url: str | None = None, day: str | None = None
    ) -> str:
        """A JSON file as a source, copied as it is; its place in the bundle. Raises `Unsound` for what is no JSON."""
        path = f"sources/{file}"
        if not safe_name(path):
            raise DefinitionError(f"{file!r}: not a name that a file of a bundle may have")
        data = self.clean(data)
        self.documents[path], self.files[path] = read_json(data), data
        digest = hashlib.sha256(data).hexdigest()
        self.sources[name] = Source(title=title, url=url, retrieved=day, file=path, sha256=digest, bytes=len(data))
        return path

    def text(self, name: str, data: bytes, title: str, url: str | None = None, day: str | None = None) -> None:
        """A text as a source, kept whole."""
        path, text = f"texts/{name}.json", data.decode()
        if not safe_name(path):
            raise DefinitionError(f"{name!r}: not a name that a file of a bundle may have")
        digest = text_digest(text)
        self.files[path] = encoded(Text(name=title, text=text, sha256=digest))
        self.documents[path] = read_json(self.files[path])
        self.texts[name] = text
        self.sources[name] = Source(title=title, url=url, retrieved=day, file=path, sha256=digest, bytes=len(data))

    # --- fields ---

    def point(
        self,
        name: str,
        source: str,
        *steps: str | int,
        how: Rests = "same",
        where: dict[str, Any] | None = None,
        by: tuple[str, ...] = (),
        otherwise: str = "",
    ) -> None:
        """A field out of a place of a JSON source; where nothing stands there, `otherwise` is the reason."""
        at = join(str(self.sources[source].file), *steps)
        value = taken(self.documents, at, how, where or {}, by)
        if value is None or value == "":
            self.none(name, otherwise or f"nothing stands at {at}")
            return
        digest = digest_of(resolve(self.documents, at))
        place = Place(source=source, at=at, sha256=digest, how=how, where=where or {}, by=by)
        self.fields[name] = {"value": value, "source": msgspec.to_builtins(place)}

    def quote(self, name: str, value: Any, source: str, text: str) -> None:
        """A field that somebody read out of words. Raises `DefinitionError` where a kept text has no such words."""
        start = None
        if source in self.texts:
            start = self.texts[source].find(text)
            if start < 0:
                raise DefinitionError(f"{name}: the source {source!r} does not say {text[:120]!r}")
        quote = Quote(source=source, text=text, sha256=text_digest(text), start=start)
        self.fields[name] = {"value": value, "source": msgspec.to_builtins(quote)}

    def none(self, name: str, why: str) -> None:
        """A field without a value, and why."""
        self.not_reported[name] = why

    # --- the record ---

    def record(
        self,
        id: str,
        made: str,
        version: int = 1,
        supersedes: Earlier | None = None,
        retracted: Retraction | None = None,
    ) -> ResultRecord:
        """The record. Raises `DefinitionError` for a field that is silently absent, there twice, or of another type."""
        silent = [name for name in NAMES if name not in self.fields and name not in self.not_reported]
        if silent:
            raise DefinitionError(
                f"silently absent: {', '.join(silent)}; give each a value with its source, or a reason in not_reported"
            )
        if twice := [name for name in self.fields if name in self.not_reported]:
            raise DefinitionError(f"{', '.join(twice)}: both has a value and is not reported; leave one of them out")
        try:
            fields = msgspec.convert(self.fields, Fields)
        except msgspec.ValidationError as error:
            raise DefinitionError(f"fields: {error} (fields of a record: {', '.join(NAMES)})") from None
        unknown = [name for name in self.not_reported if name not in NAMES]
        if unknown:
            raise DefinitionError(oneof("field of a record", unknown[0], list(NAMES)))
        return ResultRecord(
            id=id,
            version=version,
            made=made,
            supersedes=supersedes,
            retracted=retracted,
            sources=self.sources,
            fields=fields,
            not_reported={name: self.not_reported[name] for name in NAMES if name in self.not_reported},
        )


def beside(record: ResultRecord, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Of some files, those that are sources of a record."""
    return {one.file: files[one.file] for one in record.sources.values() if one.file is not None and one.file in files}


def values(record: ResultRecord) -> dict[str, Told[Any]]:
    """What a record reports, by field, in order."""
    return {name: found for name in NAMES if (found := getattr(record.fields, name)) is not None}
