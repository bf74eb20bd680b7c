"""The two forms in which a trace is published: the raw bytes without secrets, and a text that a person can read.

Secrets go once, from the bytes; the text is made of what is left, so both say the same. What a terminal would obey is
out of the text. Not covered: see `redact`; and a key of a known shape that is wrapped over two lines.
"""

import io
import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from prill.display import shown
from prill.redact import Redactor
from prill.trajectory.compiled import THE_SEARCH
from prill.trajectory.reading import said

BLOCK_BYTES = 4 << 20
"""Redacted at a time; a longer line is taken whole."""
BATCH_STEPS = 100
_MORE_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]")


class Forms(NamedTuple):
    """What was written, and what was replaced, by name."""

    steps: int
    raw_bytes: int
    counts: dict[str, int]


def write(
    agent: str, source: BinaryIO, secrets: Mapping[str, str], raw: BinaryIO, readable: BinaryIO | None = None
) -> Forms:
    """Both forms of an agent's raw output, or the raw one alone, whose steps are not counted then.

    `secrets`: names and values; the names take the values' places.
    """
    redactor = Redactor(secrets, places=THE_SEARCH.places)
    written = number = 0

    def lines() -> Iterator[bytes]:
        nonlocal written
        for block in blocks(source, redactor):
            written += raw.write(block)
            yield from io.BytesIO(block)

    if readable is None:
        for block in blocks(source, redactor):
            written += raw.write(block)
        return Forms(0, written, redactor.counts)
    batch: list[bytes] = []
    for found in said(agent, lines()):
        for kind, text in found:
            number += 1
            batch.append(f"--- {number} {kind}\n{text}\n\n".encode("utf-8", "replace"))
        if len(batch) >= BATCH_STEPS:
            readable.write(calmed(batch))
            batch = []
    readable.write(calmed(batch))
    return Forms(number, written, redactor.counts)


def blocks(source: BinaryIO, redactor: Redactor, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The source without secrets, whole lines at a time, never cut where a secret may go on."""
    held = b""
    while piece := source.read(size):
        data = b"".join((held, piece, source.readline()))
        cut = redactor.cut(data)
        if cut:
            yield redactor.redact(data[:cut])
        held = data[cut:]
    if held:
        yield redactor.redact(held)


def calmed(steps: list[bytes]) -> bytes:
    """Texts of steps in one, without what a terminal would obey, step by step where there is any of it."""
    whole = b"".join(steps)
    return b"".join([shown(step.decode()).encode() for step in steps]) if _obeyed(whole) else whole


def _obeyed(written: bytes) -> bool:
    """Whether there is any control character but line feed and tab."""
    import numpy as np

    signs = np.frombuffer(written, np.uint8)
    if b"\x7f" in written or ((signs < 32) & (signs - 9 > 1)).any():
        return True
    return b"\xc2" in written and _MORE_CONTROLS.search(written) is not None
