"""Steps picked by number and kind, and found by their words, with a bound on time.

A pattern is a stranger's, and so is the text: a search is stopped when its seconds are over, even inside one match.
Not covered: outside the main thread only the time between two steps is looked at.
"""

import re
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from prill.errors import DefinitionError
from prill.record import Step

LONGEST_LINE = 20_000
"""Characters that a pattern is put to at a time; a match of more than half of them may be missed."""


class Hit(NamedTuple):
    """One line that matches."""

    step: Step
    line: str
    number: int
    """Of the line in the step, from 1."""


def picked(
    steps: Iterable[Step],
    *,
    step: int | None = None,
    first: int | None = None,
    last: int | None = None,
    kind: str | None = None,
) -> Iterator[Step]:
    """Steps with that number, or from one number to another (both included), of that kind."""
    least, most = (step, step) if step is not None else (first, last)
    for each in steps:
        if (least is None or each.step >= least) and (most is None or each.step <= most) and kind in (None, each.kind):
            yield each


def search(steps: Iterable[Step], pattern: str, *, plain: bool, any_case: bool, seconds: float) -> Iterator[Hit]:
    """Lines of steps that match. Raises `DefinitionError` for a pattern that is none, or that takes too long."""
    try:
        wanted = re.compile(re.escape(pattern) if plain else pattern, re.IGNORECASE if any_case else 0)
    except (re.error, RecursionError, OverflowError) as error:
        raise DefinitionError(f"{pattern!r} is no regular expression: {error}; --plain takes it as it is") from None
    until = time.monotonic() + seconds
    for step in steps:
        with at_most(until, pattern, seconds):
            hits = [
                Hit(step, line, number)
                for number, line in enumerate(step.text.split("\n"), 1)
                if any(wanted.search(part) for part in _parts(line))
            ]
        yield from hits


def _parts(line: str) -> Iterator[str]:
    """A line, in overlapping parts where it is very long."""
    for at in range(0, len(line) or 1, LONGEST_LINE // 2):
        yield line[at : at + LONGEST_LINE]


class TooLong(DefinitionError):
    """The pattern takes too long."""

    def __init__(self, pattern: str, seconds: float) -> None:
        super().__init__(
            f"{pattern!r} takes longer than {seconds:g} s; write it without repeats inside repeats, or give --seconds"
        )


@contextmanager
def at_most(until: float, pattern: str, seconds: float) -> Iterator[None]:
    """Stop what runs inside when the time is over; only the main thread can be stopped in the middle."""
    if time.monotonic() > until:
        raise TooLong(pattern, seconds)
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def over(number: int, frame: Any) -> None:
        raise TooLong(pattern, seconds)

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, until - time.monotonic()))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
