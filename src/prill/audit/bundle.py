"""A bundle: files in a folder, with a manifest of their digests, an in-toto Statement about them, and their schemas.

    manifest.json         every other file but the two below: path, bytes, SHA-256
    statement.json        in-toto Statement v1 over the manifest and all files; not signed
    statement.dsse.json   the same in a DSSE envelope, where the user gave a key
    derivations.json      where each number comes from
    provenance.json       tool, command, times, inputs
    schemas/*.json        JSON Schemas of the files that name their schema

It appears whole or not at all, and never over something that is there.
"""

import hashlib
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from prill.audit.derive import Derivations
from prill.audit.making import encoded
from prill.audit.pointers import safe_name
from prill.audit.signing import sign
from prill.errors import DefinitionError
from prill.evidence import Claims, Inventory, Protocol, Provenance, Witnesses
from prill.record import File, Record
from prill.reported import ResultRecord, Text

MANIFEST, STATEMENT, ENVELOPE = "manifest.json", "statement.json", "statement.dsse.json"
PROVENANCE, DERIVATIONS, PAGE = "provenance.json", "derivations.json", "index.html"
OUTSIDE = (MANIFEST, STATEMENT, ENVELOPE)
"""Files that the manifest cannot list."""
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:prill:bundle:1"
COPIES = "sources/"
"""Where files lie that a bundle did not make: held by their digests and by what points into them, not by a schema."""


class Manifest(Record, frozen=True, kw_only=True, tag="prill/manifest/1", tag_field="schema"):
    """Every file of a bundle but the manifest and the statements about it."""

    files: tuple[File, ...]


SHAPES: dict[str, Any] = {
    str(shape.__struct_config__.tag): shape
    for shape in (Manifest, Derivations, Provenance, Inventory, Protocol, Witnesses, Claims, ResultRecord, Text)
}
"""Schema → the record that a file of that schema must be."""


def schema_file(schema: str) -> str:
    """Where a schema stands: `prill/claims/1` gives `schemas/claims.1.json`."""
    return f"schemas/{schema.removeprefix('prill/').replace('/', '.')}.json"


def schemas(used: Mapping[str, Any]) -> dict[str, bytes]:
    """JSON Schemas of records, by their files."""
    return {
        schema_file(name): msgspec.json.format(msgspec.json.encode(msgspec.json.schema(shape)), indent=1) + b"\n"
        for name, shape in used.items()
    }


def seal(target: Path, files: Mapping[str, bytes], key: Path | None = None) -> Path:
    """Files into a new folder with manifest and statement, signed if there is a key. Nothing is overwritten."""
    target = target.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DefinitionError(f"{target}: already there; a bundle is never overwritten, give a new folder")
    if wrong := next((path for path in files if not safe_name(path) or path in OUTSIDE), None):
        raise ValueError(f"{wrong!r} is no name for a file of a bundle")
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        for path, data in {**files, **sealed(files, key)}.items():
            place = beside / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        if target.exists():
            target.rmdir()
        beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return target


def sealed(files: Mapping[str, bytes], key: Path | None = None) -> dict[str, bytes]:
    """Manifest, statement and, with a key, its envelope."""
    listed = tuple(
        File(path=path, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        for path, data in sorted(files.items())
    )
    manifest = encoded(Manifest(files=listed))
    statement = encoded(statement_of(manifest, listed))
    made = {MANIFEST: manifest, STATEMENT: statement}
    if key is not None:
        made[ENVELOPE] = encoded(sign(statement, key))
    return made


def statement_of(manifest: bytes, listed: tuple[File, ...]) -> dict[str, Any]:
    """The in-toto Statement: every file is a subject; the predicate says where the rest is told."""
    own = File(path=MANIFEST, bytes=len(manifest), sha256=hashlib.sha256(manifest).hexdigest())
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": file.path, "digest": {"sha256": file.sha256}} for file in (own, *listed)],
        "predicateType": PREDICATE,
        "predicate": {"manifest": MANIFEST, "provenance": PROVENANCE, "derivations": DERIVATIONS},
    }
