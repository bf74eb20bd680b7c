"""A record and its sources as a bundle: files with a page, which `prill verify` holds against themselves.

    record.json      the record
    sources/*.json   JSON that it points into, byte for byte
    texts/*.json     text that it quotes, whole
    index.html       the page
and what every bundle has: manifest, statement, derivations, provenance, schemas.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from prill.audit.assembly import manifest_of, now, spoken, tool
from prill.audit.bundle import DERIVATIONS, MANIFEST, PAGE, PROVENANCE, SHAPES, schemas, seal, sealed
from prill.audit.derive import Derivation, Derivations, Observation
from prill.audit.making import encoded
from prill.audit.page import render
from prill.audit.pointers import Unsound, join, read_json, safe_name
from prill.errors import DefinitionError
from prill.evidence import Input, Provenance
from prill.records.making import RECORD, beside, values
from prill.records.reading import Kept, digest, read
from prill.records.reading import beside as lying
from prill.reported import Earlier, Place, ResultRecord, Retraction, Text

HEAD = ("id", "version", "made", "supersedes", "retracted", "not_reported", "sources")
STATED = "stated by the record"
"""What no source says: ids, versions, reasons. It rests on the file that a person wrote, or on the record itself."""


def bundle(
    record: ResultRecord,
    files: Mapping[str, bytes],
    command: Sequence[str],
    started: str,
    template: tuple[str, bytes] | None = None,
) -> dict[str, bytes]:
    """All files of a record's bundle but manifest and statement. `template`: the file that a person wrote it in."""
    kept = beside(record, files)
    inputs = inputs_of(record)
    inputs[STATED] = definition(*(template or (RECORD, encoded(record))))
    provenance = Provenance(tool=tool(), command=spoken(command), started=started, finished=now(), inputs=inputs)
    derivations = derivations_of(record, join(PROVENANCE, "inputs", STATED))
    made = {RECORD: encoded(record), DERIVATIONS: encoded(derivations), PROVENANCE: encoded(provenance), **kept}
    shapes: tuple[Any, ...] = (ResultRecord, Text, Derivations, Provenance, SHAPES["prill/manifest/1"])
    made |= schemas({str(shape.__struct_config__.tag): shape for shape in shapes})
    return {**made, PAGE: page(made)}


def definition(name: str, data: bytes) -> Input:
    """What states the rest."""
    return Input(kind="definition", name=name, sha256=digest(data), bytes=len(data))


def inputs_of(record: ResultRecord) -> dict[str, Input]:
    """The sources, as a bundle's provenance lists them."""
    return {
        name: Input(
            kind="file",
            name=source.title,
            sha256=source.sha256,
            bytes=source.bytes,
            about={key: text for key in ("url", "retrieved") if (text := getattr(source, key))},
        )
        for name, source in record.sources.items()
    }


def derivations_of(record: ResultRecord, stated: str) -> Derivations:
    """What each value rests on. `stated`: pointer to who says what no source says."""
    derived: list[Derivation] = []
    observed = [Observation(under=join(RECORD, part), source=stated) for part in HEAD]
    for name, source in record.sources.items():
        if source.file is not None:
            observed.append(Observation(under=join(source.file), source=join(PROVENANCE, "inputs", name)))
            if source.file.startswith("texts/"):
                derived.append(
                    Derivation(value=join(source.file, "sha256"), how="sha256", of=(join(source.file, "text"),))
                )
    for name, told in values(record).items():
        value, rests = join(RECORD, "fields", name, "value"), told.source
        words = join(RECORD, "fields", name, "source", "text")
        read_from = join(PROVENANCE, "inputs", rests.source)
        if isinstance(rests, Place):
            derived.append(entry(value, rests))
            observed.append(Observation(under=join(RECORD, "fields", name, "source"), source=stated))
            if rests.how == "same" and isinstance(told.value, tuple):
                derived += [
                    Derivation(value=f"{value}/{n}", how="same", of=(f"{rests.at}/{n}",))
                    for n in range(len(told.value))
                ]
            continue
        observed.append(Observation(under=value, source=read_from))
        derived.append(Derivation(value=join(RECORD, "fields", name, "source", "sha256"), how="sha256", of=(words,)))
        file = record.sources[rests.source].file
        if rests.start is None or file is None:
            observed.append(Observation(under=words, source=read_from))
        else:
            piece: dict[str, Any] = {"start": rests.start, "length": len(rests.text)}
            derived.append(Derivation(value=words, how="piece", of=(join(file, "text"),), where=piece))
    return Derivations(derived=tuple(derived), observed=tuple(observed))


def entry(value: str, place: Place) -> Derivation:
    """A value out of a place."""
    return Derivation(value=value, how=place.how, of=(place.at,), where=place.where, by=place.by)


def page(files: Mapping[str, bytes]) -> bytes:
    """The page over the JSON files of a bundle."""
    documents = {path: read_json(data) for path, data in files.items() if path.endswith(".json")}
    documents[MANIFEST] = read_json(sealed({**files, PAGE: b""})[MANIFEST])
    return render(documents, template="record.html", RECORD=RECORD, PROVENANCE=PROVENANCE)


def page_again(folder: Path) -> bytes:
    """The page of a record's bundle on disk, made anew from its JSON. Raises `DefinitionError` where that is none."""
    listed = [path for path in manifest_of(folder) if path != PAGE and safe_name(path)]
    try:
        return page({path: (folder / path).read_bytes() for path in listed})
    except Unsound as error:
        raise DefinitionError(f"{folder}: {error.code}: {error}; `prill verify` names all that is wrong") from None


# --- what comes after ---------------------------------------------------------------------------------------------


def follow(before: Kept, record: ResultRecord) -> ResultRecord:
    """A record as the next version of one that is there."""
    earlier = Earlier(version=before.record.version, sha256=digest(before.data))
    return replace(record, id=before.record.id, version=before.record.version + 1, supersedes=earlier)


def retract(place: Path, why: str, day: str, target: Path, command: Sequence[str], key: Path | None = None) -> Path:
    """A new bundle in which a record is retracted: what it says stays, with the reason in front."""
    if not why.strip():
        raise DefinitionError("a retraction says why; give --why TEXT")
    before = read(place)
    files, _, faults = lying(before)
    if faults:
        raise DefinitionError(f"{place}: {faults[0].code}: {faults[0].where}: {faults[0].why}")
    record = follow(before, replace(before.record, made=day, retracted=Retraction(date=day, why=why)))
    started = now()
    return seal(target, bundle(record, files, command, started), key)
