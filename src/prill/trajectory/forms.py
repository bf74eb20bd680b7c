"""The two forms in which a trace is published: the raw bytes without secrets, and a text that a person can read.

Secrets go once, from the bytes; the text is made of what is left, so both say the same. What a terminal would obey is
out of the text. Not covered: see `redact`; and a key of a known shape that is wrapped over two lines.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO, NamedTuple

from prill.display import shown
from prill.record import Step
from prill.redact import Redactor
from prill.trajectory.reading import steps

BLOCK_BYTES = 4 << 20
"""Redacted at a time; a longer line is taken whole."""
BATCH_STEPS = 100
_CONTROLS = bytes(sign for sign in (*range(32), 127) if sign not in b"\n\t")
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
    redactor = Redactor(secrets)
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
    batch: list[Step] = []
    for step in steps(agent, lines()):
        number = step.step
        batch.append(step)
        if number % BATCH_STEPS == 0:
            readable.write(as_text(batch))
            batch = []
    readable.write(as_text(batch))
    return Forms(number, written, redactor.counts)


def blocks(source: BinaryIO, redactor: Redactor, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The source without secrets, whole lines at a time, never cut where a secret may go on."""
    held = b""
    while piece := source.read(size):
        data = held + piece
        cut = redactor.cut(data)
        if cut:
            yield redactor.redact(data[:cut])
        held = data[cut:]
    if held:
        yield redactor.redact(held)


def as_text(batch: Iterable[Step]) -> bytes:
    """Steps for a person: a line with number, kind and second, the text, an empty line. What a terminal would obey is
    taken out, step by step where there is any of it."""
    batch = list(batch)
    whole = "".join([f"{_head(step)}{step.text}\n\n" for step in batch])
    written = whole.encode("utf-8", "replace")
    if len(written.translate(None, _CONTROLS)) == len(written) and not (
        len(whole) != len(written) and _MORE_CONTROLS.search(written)
    ):
        return written
    return "".join([f"{_head(step)}{shown(step.text)}\n\n" for step in batch]).encode("utf-8", "replace")


def _head(step: Step) -> str:
    second = "" if step.seconds is None else f" at {step.seconds:.0f} s"
    return f"--- {step.step} {step.kind}{second}\n"
