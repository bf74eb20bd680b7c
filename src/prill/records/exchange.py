"""Records in four conventions that people already use, and back; what a convention has no place for is said.

    every-eval-ever   one JSON file of Every Eval Ever's schema 0.2.1, the rest as texts in its own details
    hf-eval-results   one YAML file for the `.eval_results/` folder of a model repository
    in-toto           one Statement, version 1, about the record's bytes and its sources' digests
    ro-crate          a folder: RO-Crate 1.1 by the profile Process Run Crate 0.5, with the record and its sources

What comes in is hostile: bounded, read strictly, and each value points into the file that it came in by.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from prill.audit.pointers import Unsound, safe_name
from prill.errors import DefinitionError
from prill.records import every_eval_ever, hf_eval_results, in_toto, ro_crate
from prill.records.losses import Sent
from prill.reported import ResultRecord

LARGEST = 8_000_000


class Form(NamedTuple):
    """How a convention is written and read."""

    send: Any
    fetch: Any


FORMS = {
    "every-eval-ever": Form(every_eval_ever.export, every_eval_ever.bring),
    "hf-eval-results": Form(hf_eval_results.export, hf_eval_results.bring),
    "in-toto": Form(in_toto.export, in_toto.bring),
    "ro-crate": Form(ro_crate.export, ro_crate.bring),
}


def export(
    record: ResultRecord, form: str, files: Mapping[str, bytes], dataset: str | None = None, task: str | None = None
) -> Sent:
    """A record as files of a convention, and what is lost. Raises `DefinitionError` for what cannot be sent."""
    if form == "hf-eval-results":
        return hf_eval_results.export(record, files, dataset, task)
    sent: Sent = FORMS[form].send(record, files)
    return sent


def bring(place: Path, form: str, day: str) -> tuple[ResultRecord, dict[str, bytes]]:
    """A record out of a convention, with the files that go beside it. Raises `DefinitionError` by name."""
    try:
        if form == "ro-crate":
            if not place.is_dir():
                raise DefinitionError(f"{place}: no such folder; an RO-Crate is a folder")
            return ro_crate.bring(place)
        if not place.is_file():
            raise DefinitionError(f"{place}: no such file")
        with place.open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise Unsound("TOO_LARGE", f"more than {LARGEST:,} bytes")
        made: tuple[ResultRecord, dict[str, bytes]] = FORMS[form].fetch(data, place.name, day)
        return made
    except Unsound as error:
        raise DefinitionError(f"{place}: {error.code}: {error}") from None


def into(target: Path, files: Mapping[str, bytes]) -> None:
    """Files into a new folder."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DefinitionError(f"{target}: already there; give a new folder")
    for path, data in files.items():
        if not safe_name(path):
            raise ValueError(path)
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(data)
