"""An in-toto Statement, version 1, about a record: subjects by digest, the whole record as its predicate.

Source of the rules: the in-toto attestation framework; `in_toto_attestation` validates our files in the tests.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from prill.audit.making import encoded, plain
from prill.audit.pointers import Unsound, read_json
from prill.records.losses import Loss, Sent
from prill.records.making import RECORD, Making, values
from prill.records.reading import decoded, digest
from prill.reported import ResultRecord

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:prill:record:1"


def export(record: ResultRecord, files: Mapping[str, bytes]) -> Sent:
    """One Statement; nothing is lost but the bytes of the sources."""
    subjects = [{"name": RECORD, "digest": {"sha256": digest(encoded(record))}}]
    subjects += [
        {"name": f"source {name}", "digest": {"sha256": source.sha256}}
        for name, source in record.sources.items()
        if source.sha256 is not None
    ]
    made = {"_type": TYPE, "subject": subjects, "predicateType": PREDICATE, "predicate": plain(record)}
    held = sum(source.file is not None for source in record.sources.values())
    return Sent({"statement.json": encoded(made)}, (Loss("sources", f"the bytes of {held} files; digests go along"),))


def bring(data: bytes, name: str, day: str) -> tuple[ResultRecord, dict[str, bytes]]:
    """The record that a Statement is about, its values pointing into the Statement. Raises `Unsound`."""
    document = read_json(data)
    if not isinstance(document, dict) or document.get("_type") != TYPE:
        raise Unsound("SCHEMA", f"not an in-toto Statement ({TYPE})")
    if document.get("predicateType") != PREDICATE:
        raise Unsound("SCHEMA", f"a predicate of type {str(document.get('predicateType'))[:80]!r}, not {PREDICATE}")
    record = decoded(msgspec.json.encode(document.get("predicate")))
    if digest(encoded(record)) not in digests(document):
        raise Unsound("CHANGED", "the record in the predicate is not one of the Statement's subjects")
    making = Making()
    for key, source in record.sources.items():
        making.sources[key] = replace(source, file=None)
    own = "statement" if "statement" not in record.sources else f"statement {digest(data)[:8]}"
    making.json(own, "statement.json", data, f"{name}, an in-toto Statement", day=day)
    for field in values(record):
        making.point(field, own, "predicate", "fields", field, "value")
    for field, why in record.not_reported.items():
        making.none(field, why)
    made = making.record(record.id, record.made, record.version, record.supersedes, record.retracted)
    return made, making.files


def digests(document: Any) -> set[str]:
    """SHA-256 of every subject. Raises `Unsound` where there are none that can be read."""
    try:
        return {one["digest"]["sha256"] for one in document["subject"]}
    except (KeyError, TypeError):
        raise Unsound("SCHEMA", "a Statement has subjects, each with a sha256") from None
