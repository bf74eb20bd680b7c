"""Verdict files, labels and traces of a released tree as evidence: bytes, digests, and short excerpts with their own.

A trace is never copied: its size and digest are stated, and excerpts by record number and JSON pointer into the record.
An absent file is a finding, stated. Files are read as bytes, whole only up to `SMALL`; links are not followed.
Not covered: whether an excerpt is fit to be shown; whoever picks it decides that.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from prill.audit.derive import Derivation, Observation
from prill.audit.pointers import INDEX, join, text_digest
from prill.errors import DefinitionError
from prill.evidence import Content, Excerpt, Seen, Witnesses
from prill.questions import Quoted, Witness

SMALL = 64_000
"""Bytes up to which a witness's whole text stands in the bundle."""
LONGEST_RECORD = 32_000_000
LONGEST_QUOTE = 2_000
"""Characters of an excerpt that is not named."""


def look(witness: Witness, file: IO[bytes] | None, trouble: str = "") -> Seen:
    """One witness, from its open file; no file: absent, or unreadable with the reason."""
    if file is None:
        state: Any = "unreadable" if trouble else "absent"
        return seen(witness, state, trouble or "no such file in the released tree", None, None, None, ())
    digest, size, start = hashlib.sha256(), 0, b""
    while block := file.read(1 << 20):
        digest.update(block)
        size += len(block)
        start = start or block[: SMALL + 1]
    content, why = None, ""
    if not witness.redistribute:
        why = "not redistributed: size and digest are stated, and the excerpts below"
    elif size > SMALL:
        why = f"longer than {SMALL:,} bytes: size and digest are stated, and the excerpts below"
    else:
        try:
            text = start.decode()
            content = Content(text=text, sha256=text_digest(text), ends_in_newline=text.endswith("\n"))
        except UnicodeDecodeError as error:
            why = f"not UTF-8 text at byte {error.start}; size and digest are stated"
    file.seek(0)
    excerpts = tuple(quotes(witness, file))
    return seen(witness, "present", why, size, digest.hexdigest(), content, excerpts)


def seen(
    witness: Witness,
    state: Any,
    why: str,
    size: int | None,
    digest: str | None,
    content: Content | None,
    excerpts: tuple[Excerpt, ...],
) -> Seen:
    """A witness's record."""
    return Seen(
        title=witness.title,
        path=witness.path,
        type=witness.type,
        state=state,
        why=why,
        bytes=size,
        sha256=digest,
        pinned=None if witness.sha256 is None or digest is None else witness.sha256 == digest,
        redistributed=content is not None,
        content=content,
        excerpts=excerpts,
    )


def quotes(witness: Witness, file: IO[bytes]) -> Iterator[Excerpt]:
    """The excerpts of a trace, in the order asked for; a record is a line."""
    wanted = {quote.record for quote in witness.excerpts}
    if not wanted:
        return
    records: dict[int, bytes | None] = {}
    for number, line in enumerate(records_of(file), witness.first):
        if number in wanted:
            records[number] = line
        if number >= max(wanted):
            break
    for quote in witness.excerpts:
        yield excerpt(quote, records.get(quote.record, b""))


def records_of(file: IO[bytes]) -> Iterator[bytes | None]:
    """Lines; one that is longer than `LONGEST_RECORD` is passed over as none."""
    while line := file.readline(LONGEST_RECORD):
        if len(line) == LONGEST_RECORD and not line.endswith(b"\n"):
            while (more := file.readline(LONGEST_RECORD)) and not more.endswith(b"\n"):
                pass
            yield None
        else:
            yield line


def excerpt(quote: Quoted, line: bytes | None) -> Excerpt:
    """One excerpt, or why it is not there."""
    text, why = quote.text or "", ""
    if line is None:
        why = "the record is too long to be read"
    elif not line.strip():
        why = "the trace has no such record"
    else:
        try:
            value = inside(json.loads(line), quote.pointer)
            if not isinstance(value, str):
                why = "what stands there is not text"
            elif quote.text is None:
                text = value[:LONGEST_QUOTE]
            elif quote.text not in value:
                why = "other text stands there"
        except (ValueError, RecursionError):
            why = "the record is not JSON"
        except LookupError:
            why = "the record has no such place"
    text = text.encode(errors="backslashreplace").decode()
    return Excerpt(
        record=quote.record, pointer=quote.pointer, text=text, sha256=text_digest(text), found=not why, why=why
    )


def inside(value: Any, pointer: str) -> Any:
    """What stands at a JSON pointer of a record. Raises `LookupError`."""
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and INDEX.fullmatch(step):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = value[step]
        else:
            raise LookupError(step)
    return value


def opened(tree: Path, path: str) -> tuple[IO[bytes] | None, str]:
    """A regular file below a folder, opened without following any link; or none, with the trouble if it is one."""
    parts = path.split("/")
    if not path or path.startswith("/") or ".." in parts or "" in parts or "\0" in path:
        raise DefinitionError(f"witness path {path!r}: a path inside the tree, without '..' and not from the root")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    handle = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts:
            inner = os.open(part, flags, dir_fd=handle)
            os.close(handle)
            handle = inner
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            return None, "not a regular file"
        return os.fdopen(handle, "rb"), ""
    except FileNotFoundError:
        os.close(handle)
        return None, ""
    except OSError as error:
        os.close(handle)
        return None, f"cannot be read: {error.strerror}"


def gathered(found: dict[str, Seen]) -> Witnesses:
    """All witnesses of an audit."""
    states = [one.state for one in found.values()]
    return Witnesses(
        witnesses=found,
        present=states.count("present"),
        absent=states.count("absent"),
        unreadable=states.count("unreadable"),
    )


def derivations(made: Witnesses, file: str, sources: dict[str, str]) -> tuple[list[Derivation], list[Observation]]:
    """Digests and sizes follow from texts where these stand in the bundle; all else was read. `sources`: by id."""
    derived, observed = [], []
    for name, one in made.witnesses.items():
        place = join(file, "witnesses", name)
        observed.append(Observation(under=place, source=sources[name]))
        if one.content is not None:
            text = f"{place}/content/text"
            derived += [
                Derivation(value=f"{place}/content/sha256", how="sha256", of=(text,)),
                Derivation(value=f"{place}/sha256", how="sha256", of=(text,)),
                Derivation(value=f"{place}/bytes", how="bytes", of=(text,)),
            ]
        derived += [
            Derivation(value=f"{place}/excerpts/{n}/sha256", how="sha256", of=(f"{place}/excerpts/{n}/text",))
            for n in range(len(one.excerpts))
        ]
    by_state = [
        Derivation(value=join(file, state), how="count", of=(join(file, "witnesses"),), where={"state": state})
        for state in ("present", "absent", "unreadable")
    ]
    return derived + by_state, observed
