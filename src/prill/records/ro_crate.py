"""A record as a folder that is an RO-Crate: the record, its sources, and their description as linked data.

Source of the rules: RO-Crate 1.1 and the profile Process Run Crate 0.5; the package `rocrate` opens our folders in the
tests. It is no dependency: what it would write for us is one JSON file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prill.audit.derive import same
from prill.audit.making import encoded, plain
from prill.audit.pointers import Unsound, read_json
from prill.records.losses import Loss, Sent
from prill.records.making import RECORD, values
from prill.records.reading import LARGEST_SOURCE, Kept, beside, bytes_of, decoded, digest
from prill.reported import ResultRecord

METADATA = "ro-crate-metadata.json"
CRATE = "https://w3id.org/ro/crate/1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"


def export(record: ResultRecord, files: Mapping[str, bytes]) -> Sent:
    """All files of the crate; the record travels whole."""
    data = {RECORD: encoded(record), **{path: files[path] for path in sorted(files)}}
    graph = [*root(record, data), *(file_entity(path, content, record) for path, content in data.items())]
    graph += [
        {
            "@id": f"#field-{name}",
            "@type": "PropertyValue",
            "propertyID": f"urn:prill:record:1:{name}",
            "name": name,
            "value": plain(told.value),
        }
        for name, told in values(record).items()
    ]
    metadata = encoded({"@context": f"{CRATE}/context", "@graph": graph})
    why = "stand in record.json alone; the crate's description has no words for them"
    return Sent({METADATA: metadata, **data}, (Loss("places, quotes, not_reported", why),))


def root(record: ResultRecord, data: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """The crate itself, and the action that made the record."""
    told = {name: one.value for name, one in values(record).items()}
    title = told.get("title", "A record of a result")
    retracted = f"RETRACTED {record.retracted.date}: {record.retracted.why}. " if record.retracted else ""
    return [
        {"@id": METADATA, "@type": "CreativeWork", "conformsTo": {"@id": CRATE}, "about": {"@id": "./"}},
        {
            "@id": "./",
            "@type": "Dataset",
            "conformsTo": {"@id": PROFILE},
            "identifier": record.id,
            "version": str(record.version),
            "name": title,
            "description": f"{retracted}A reported result with its setup and the sources of every value.",
            "datePublished": record.made,
            "hasPart": [{"@id": path} for path in data],
            "mentions": {"@id": "#result"},
        },
        {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {
            "@id": "#result",
            "@type": "CreateAction",
            "name": title,
            "instrument": {"@id": "#evaluator"},
            "object": [{"@id": path} for path in data if path != RECORD],
            "result": {"@id": RECORD},
            "endTime": record.made,
        },
        {
            "@id": "#evaluator",
            "@type": "SoftwareApplication",
            "name": told.get("evaluator_version", "an evaluator whose version is not reported"),
        },
    ]


def file_entity(path: str, content: bytes, record: ResultRecord) -> dict[str, Any]:
    """One file."""
    titles = {source.file: source.title for source in record.sources.values()}
    made: dict[str, Any] = {
        "@id": path,
        "@type": "File",
        "name": "the record" if path == RECORD else titles.get(path, path),
        "encodingFormat": "application/json",
        "contentSize": str(len(content)),
        "sha256": digest(content),
    }
    if path == RECORD:
        made["variableMeasured"] = [{"@id": f"#field-{name}"} for name in values(record)]
    return made


def bring(place: Path) -> tuple[ResultRecord, dict[str, bytes]]:
    """The record of a crate and its sources, held against the crate's description. Raises `Unsound`."""
    metadata = read_json(bytes_of(place, METADATA, LARGEST_SOURCE))
    data = bytes_of(place, RECORD, LARGEST_SOURCE)
    record = decoded(data)
    try:
        entities = {one["@id"]: one for one in metadata["@graph"]}
        if entities[RECORD]["sha256"] != digest(data):
            raise Unsound("CHANGED", f"{RECORD} has another digest than the crate says")
        for name, told in values(record).items():
            if not same(entities[f"#field-{name}"]["value"], plain(told.value)):
                raise Unsound("CHANGED", f"{name}: the crate says something else than {RECORD}")
    except (KeyError, TypeError) as error:
        raise Unsound("SCHEMA", f"the crate does not describe {str(error)[:80]}") from None
    files, _, faults = beside(Kept(record, data, place))
    if faults:
        raise Unsound(faults[0].code, f"{faults[0].where}: {faults[0].why}")
    return record, files
