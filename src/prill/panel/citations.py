"""A citation held against the evidence by code: the step or file exists, the bytes are there, the words stand there.

Words are compared without regard to white space, and as a terminal shows them. A path may not leave the run folder,
pass a link, or lead to what the judge was not given.
Not covered: whether the words mean what the judge says they do.
"""

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from prill.dossier import regular
from prill.folder import RunFolder
from prill.panel.answer import Cited
from prill.panel.quoting import name_of, readable, walked
from prill.record import Citation, Step

LARGEST = 16 << 20
"""Bytes of a file in which words are looked for."""
LEAST = 6
"""Letters of a quotation, unless the whole step is shorter."""
NOT_GIVEN = frozenset(("findings", "measurements"))
"""What is no evidence: verdicts of others, scores."""


def check(cited: Cited, steps: Mapping[int, Step], folder: Path) -> Citation | str:
    """The citation for anyone to open, or what is wrong with it."""
    quote = plain(cited.quote)
    if not quote:
        return "a citation without words"
    return of_step(cited, quote, steps, folder) if cited.step is not None else of_file(cited, quote, folder)


def of_step(cited: Cited, quote: str, steps: Mapping[int, Step], folder: Path) -> Citation | str:
    """A step by its number, and by its bytes in the raw output where they are at hand."""
    step = steps.get(cited.step or 0)
    if step is None:
        return f"there is no step {cited.step}"
    texts = {plain(step.text), plain(readable(step.text))}
    if not any(quote in text and (len(quote) >= LEAST or quote == text) for text in texts):
        return f"step {cited.step} does not say {cited.quote[:80]!r}"
    raw = folder / "raw" / "stdout"
    if step.length > 0 and regular(raw):
        with contextlib.suppress(OSError), raw.open("rb") as opened:
            opened.seek(max(0, step.offset))
            data = opened.read(min(step.length, LARGEST))
            if len(data) == step.length:
                return Citation(
                    file="raw/stdout",
                    step=step.step,
                    offset=step.offset,
                    length=step.length,
                    sha256=hashlib.sha256(data).hexdigest(),
                    quote=cited.quote[:300],
                )
    return Citation(file=RunFolder(folder).trajectory.name, step=step.step, quote=cited.quote[:300])


def of_file(cited: Cited, quote: str, folder: Path) -> Citation | str:
    """A file by its path in the run folder, with the range that was named, if one was."""
    name = (cited.file or "").removeprefix("/evidence/")
    shown_name = repr(name[:120])
    file = inside(folder, name) or spelt(folder, name)
    if file is None:
        return f"there is no file {shown_name} in the evidence"
    start, length = cited.offset or 0, cited.length
    ranged = cited.offset is not None or length is not None
    try:
        size = file.stat().st_size
        if start < 0 or (length is not None and length <= 0) or start + (length or 0) > size:
            return f"{shown_name} has {size} bytes, not {start} to {start + (length or 0)}"
        with file.open("rb") as opened:
            opened.seek(start)
            data = opened.read(LARGEST if length is None else min(length, LARGEST))
    except (OSError, OverflowError):
        return f"{shown_name} cannot be read"
    texts = {plain(data.decode(errors="replace")), plain(readable(data.decode(errors="backslashreplace")))}
    if not any(quote in text and (len(quote) >= LEAST or quote == text) for text in texts):
        return f"{shown_name} does not say {cited.quote[:80]!r}" + (" there" if ranged else "")
    whole = size == len(data)
    return Citation(
        file=name,
        offset=None if whole else start,
        length=None if whole else len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        quote=cited.quote[:300],
    )


def inside(folder: Path, name: str) -> Path | None:
    """A regular file of the evidence, with no link on the way; else `None`."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts or "\0" in name or parts[0] in NOT_GIVEN or parts[0][0] == ".":
        return None
    place = folder
    try:
        for part in parts[:-1]:
            place /= part
            if place.is_symlink() or not place.is_dir():
                return None
        file = place / parts[-1]
        return file if regular(file) else None
    except (OSError, ValueError):
        return None


def spelt(folder: Path, name: str) -> Path | None:
    """A file of the workspace whose name cannot be shown as it is, by the name that it was quoted under."""
    if "\\" not in name:
        return None
    files = walked(RunFolder(folder).workspace)
    return next((file for file in files if name_of(file, folder) == name), None)


def plain(text: str) -> str:
    """Words with one blank between them."""
    return " ".join(text.split())
