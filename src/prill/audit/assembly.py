"""An audit's bundle put together from inputs in the store, and again, to see whether it comes out the same."""

import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from prill.audit.bundle import DERIVATIONS, MANIFEST, PAGE, PROVENANCE, SHAPES, schemas, sealed
from prill.audit.changes import changes
from prill.audit.making import compute, encoded, plain
from prill.audit.page import render
from prill.audit.pointers import Unsound, read_json
from prill.audit.store import Store
from prill.errors import DefinitionError
from prill.evidence import CLAIMS, COVERAGE, PROTOCOL, WITNESSES, Input, Provenance, Tool

FILES = {
    "coverage": COVERAGE, "protocol": PROTOCOL, "witnesses": WITNESSES, "claims": CLAIMS, "provenance": PROVENANCE,
}  # fmt: skip
SHOWN = 500
"""Entries of a list that a page shows; the rest stands in its file, which the page names."""


def now() -> str:
    """The time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def tool() -> Tool:
    """This program."""
    try:
        known = version("prill")
    except PackageNotFoundError:
        known = "not installed"
    return Tool(name="prill", version=known, python=platform.python_version())


def spoken(command: Sequence[str]) -> tuple[str, ...]:
    """A command as it was typed, with nothing of absolute paths but their last part: where a home lies is private."""
    return tuple(f"…/{Path(word).name}" if Path(word).is_absolute() else word for word in command)


def assemble(
    inputs: Mapping[str, Input],
    store: Store,
    command: Sequence[str],
    started: str,
    say: Callable[[str], None] | None = None,
) -> dict[str, bytes]:
    """All files of a bundle but its manifest and statement."""
    made = compute(inputs, store, say)
    provenance = Provenance(tool=tool(), command=spoken(command), started=started, finished=now(), inputs=dict(inputs))
    records = {**made.documents, DERIVATIONS: made.derivations, PROVENANCE: provenance}
    files = {path: encoded(record) for path, record in records.items()}
    used = {type(record) for record in records.values()} | {SHAPES["prill/manifest/1"]}
    files |= schemas({name: shape for name, shape in SHAPES.items() if shape in used})
    return {**files, PAGE: page_of(files)}


def page_of(files: Mapping[str, bytes]) -> bytes:
    """The page over the JSON files of a bundle."""
    documents = {path: read_json(data) for path, data in files.items() if path.endswith(".json")}
    documents[MANIFEST] = read_json(sealed({**files, PAGE: b""})[MANIFEST])
    return render(documents, files=FILES, most=SHOWN)


def page_again(folder: Path) -> bytes:
    """The page of a bundle on disk, made anew from its JSON."""
    listed = manifest_of(folder)
    return page_of({path: (folder / path).read_bytes() for path in listed if path != PAGE})


def manifest_of(folder: Path) -> list[str]:
    """The files that a bundle lists. Raises `DefinitionError` where it is none."""
    try:
        manifest = msgspec.convert(read_json((folder / MANIFEST).read_bytes()), SHAPES["prill/manifest/1"])
    except (OSError, Unsound, msgspec.ValidationError) as error:
        raise DefinitionError(f"{folder}: not a bundle (no {MANIFEST} that can be read: {error})") from None
    return [file.path for file in manifest.files]


def provenance_of(folder: Path) -> Provenance:
    """How a bundle says it was made."""
    try:
        made: Provenance = msgspec.convert(read_json((folder / PROVENANCE).read_bytes()), Provenance)
    except (OSError, Unsound, msgspec.ValidationError) as error:
        raise DefinitionError(f"{folder}: not an audit's bundle (no {PROVENANCE} that can be read: {error})") from None
    return made


def rerun(folder: Path, store: Store, say: Callable[[str], None] | None = None) -> tuple[Provenance, list[str]]:
    """An audit done again from its inputs in the store: its provenance, and a line for each place that differs now."""
    provenance = provenance_of(folder)
    if "audit" not in provenance.inputs:
        raise DefinitionError(f"{folder}: not an audit's bundle (its provenance names no audit)")
    if say is not None:
        say(f"{folder.name}: {len(provenance.inputs)} inputs from {store.folder}")
    made = compute(provenance.inputs, store, say)
    again = {path: plain(record) for path, record in {**made.documents, DERIVATIONS: made.derivations}.items()}
    return provenance, changes({path: stands(folder / path) for path in again}, again)


def stands(file: Path) -> Any:
    """A JSON file as it stands; none where it cannot be read."""
    try:
        return read_json(file.read_bytes())
    except (OSError, Unsound):
        return None
