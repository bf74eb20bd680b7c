"""Before anything leaves for a site: secrets out of values and out of files, with a count of what was replaced.

Three nets, as `redact` says: keys that the environment of whoever publishes holds, shapes of keys, places that are
named after a secret. Not covered: what `redact` does not cover; workspaces and weights, which are not published.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

from msgspec import Struct, convert, to_builtins

from prill.redact import Redactor
from prill.spec import RunSpec
from prill.trajectory.compiled import THE_SEARCH
from prill.trajectory.forms import blocks

T = TypeVar("T", bound=Struct)
SHORTEST = 12
"""Letters of a text that can hold a key."""


class Taken(NamedTuple):
    """A file on its way out: the whole as it is, and what of it went."""

    bytes: int
    sha256: str
    kept: int
    kept_sha256: str
    replaced: int
    """Secrets that became words or names."""


def redactor(specs: Iterable[RunSpec], environment: Mapping[str, str]) -> Redactor:
    """What takes the providers' keys out, where the environment has them, and everything that looks like a key."""
    names = {spec.provider.key for spec in specs if spec.provider and spec.provider.key}
    return Redactor({name: environment[name] for name in names if name in environment}, places=THE_SEARCH.places)


def value(whole: T, by: Redactor) -> T:
    """A record with every text in it redacted; its names and numbers stay."""

    def clean(part: Any) -> Any:
        if isinstance(part, str):
            return by.redact(part.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass") if (
                len(part) >= SHORTEST
            ) else part  # fmt: skip
        if isinstance(part, dict):
            return {name: clean(inner) for name, inner in part.items()}
        return [clean(inner) for inner in part] if isinstance(part, list | tuple) else part

    return convert(clean(to_builtins(whole)), type(whole))


class Hashed:
    """A file that is read once, and counted and hashed on the way."""

    def __init__(self, source: BinaryIO) -> None:
        self.source, self.size, self.digest = source, 0, hashlib.sha256()

    def read(self, size: int) -> bytes:
        """The next bytes."""
        return self._told(self.source.read(size))

    def readline(self) -> bytes:
        """The rest of the line."""
        return self._told(self.source.readline())

    def _told(self, piece: bytes) -> bytes:
        self.size += len(piece)
        self.digest.update(piece)
        return piece


def file(source: Path, target: Path | None, cap: int | None, by: Redactor) -> Taken:
    """A file onto the site, redacted and up to a cap; without a target it is only hashed. Links are not followed."""
    part, kept, before = hashlib.sha256(), 0, sum(by.counts.values())
    if target:
        target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as opened, (target or Path(os.devnull)).open("wb") as out:
        whole = Hashed(opened)
        pieces = blocks(cast(BinaryIO, whole), by) if target else iter(lambda: whole.read(1 << 20), b"")
        for block in pieces:
            piece = block if cap is None else block[: max(0, cap - kept)]
            part.update(piece)
            kept += len(piece)
            out.write(piece)
    replaced = sum(by.counts.values()) - before
    return Taken(whole.size, whole.digest.hexdigest(), kept, part.hexdigest(), replaced)
