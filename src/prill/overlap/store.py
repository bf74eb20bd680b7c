"""Indexes that were built once, kept by what they are made of. A file that is damaged is built again."""

import hashlib
import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import msgspec

from prill.items import cache
from prill.overlap import index as about
from prill.overlap import words
from prill.overlap.index import Entry, Index, Unit, built, digest_of

ARRAYS = {"grams": "Q", "worth": "i", "first": "i", "having": "i", "totals": "q", "members": "i", "counts": "i"}


def folder() -> Path:
    """Where indexes and compiled code are kept: `overlap` in prill's cache, or a folder of this process's own."""
    place = cache() / "overlap"
    try:
        place.mkdir(parents=True, exist_ok=True)
        if os.access(place, os.W_OK):
            return place
    except OSError:
        pass
    import tempfile

    return Path(tempfile.gettempdir()) / f"prill-overlap-{os.getuid()}"


def index_of(units: list[Unit], bare: tuple[str, ...], place: Path) -> Index:
    """The index of these units, from the cache if it is there."""
    digest = hashlib.sha256(version() + digest_of(units, bare).encode()).hexdigest()
    file = place / f"index-{digest}.npz"
    found = loaded(file, units)
    if found is None:
        found = built(units, bare)
        keep(file, lambda half: write(half, found))
    return found


def loaded(file: Path, units: list[Unit]) -> Index | None:
    """An index that was kept, if it is whole."""
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as kept:
            arrays = {name: array(kind, kept[name].tobytes()) for name, kind in ARRAYS.items()}
            unseen = msgspec.json.decode(kept["unseen"].tobytes(), type=tuple[str, ...])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, msgspec.DecodeError):
        return None
    entries, at = [], 0
    for total, count in zip(arrays["totals"], arrays["counts"], strict=True):
        entries.append(Entry(tuple(arrays["members"][at : at + count]), total))
        at += count
    return Index(units, unseen, entries, *(arrays[name] for name in ("grams", "worth", "first", "having")))


def write(file: Path, index: Index) -> None:
    """An index into a file, without its units: whoever reads it has them."""
    import numpy as np

    arrays: dict[str, Any] = {
        "grams": index.grams, "worth": index.worth, "first": index.first, "having": index.having,
        "totals": array("q", (entry.total for entry in index.entries)),
        "members": array("i", (unit for entry in index.entries for unit in entry.units)),
        "counts": array("i", (len(entry.units) for entry in index.entries)),
    }  # fmt: skip
    unseen = np.frombuffer(msgspec.json.encode(index.unseen), np.uint8)
    kept: dict[str, Any] = {name: np.array(each) for name, each in arrays.items()}
    np.savez(file, unseen=unseen, **kept)


def keep(file: Path, writing: Callable[[Path], None]) -> None:
    """Keep a file for the next time, if there is a place where one can."""
    half = file.with_name(f"{file.stem}.{os.getpid()}{file.suffix}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        writing(half)
        half.replace(file)
    except OSError:
        half.unlink(missing_ok=True)


def version() -> bytes:
    """The text of what an index is made by, so that another prill builds its own."""
    return b"".join(Path(str(part.__file__)).read_bytes() for part in (about, words))
