"""The published result's record in a bundle, and ways to change one: for tests."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prill.audit.bundle import OUTSIDE, seal, sealed
from prill.audit.making import encoded
from prill.records.bundling import bundle
from prill.records.written import of_template
from prill.reported import ResultRecord

GOLDEN = Path(__file__).parent / "golden" / "records"
DAY = "2026-11-30"
COMMAND = ["prill", "record", "new", "opus-4.7-v1.1.toml"]


def published(version: str = "v1.1") -> tuple[ResultRecord, dict[str, bytes]]:
    """The record and its files."""
    record, files, _ = of_template(GOLDEN / f"opus-4.7-{version}.toml", DAY)
    return record, files


def in_bundle(place: Path, version: str = "v1.1") -> Path:
    """The same as a bundle."""
    record, files, template = of_template(GOLDEN / f"opus-4.7-{version}.toml", DAY)
    return seal(place, bundle(record, files, COMMAND, f"{DAY}T00:00:00+00:00", ("template.toml", template)))


def copied(of: Path, to: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(of, to))


def changed(record: ResultRecord, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """A record's bytes after a change to its JSON."""
    value = json.loads(encoded(record))
    change(value)
    return json.dumps(value, indent=1).encode()


def sealed_again(place: Path) -> None:
    """Manifest and statement made anew over whatever the folder holds: what somebody who cheats would do."""
    files = {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.relative_to(place).as_posix() not in OUTSIDE
    }
    for path, data in sealed(files).items():
        (place / path).write_bytes(data)
