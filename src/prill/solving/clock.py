"""The time that an agent has used, over all keepers of its box: what nobody was at work in does not count.

The seconds come from a clock that does not jump; the wall's time is only written down, so that programs in the box can
read a deadline. Not covered: up to a second before the death of a keeper is given to the agent once more.
"""

import time
from pathlib import Path
from typing import Any

import msgspec

from prill.folder import write_whole

JUMP_SECONDS = 5.0


def steady() -> float:
    """Seconds on a clock that goes on while the machine sleeps and that nobody can set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Clock:
    """A limit, what is used of it, and the files that say so."""

    def __init__(self, limit_seconds: float, beat: Path, shown: Path) -> None:
        """`beat` keeps what is used from one keeper to the next; `shown` is what the box reads."""
        self.limit_seconds, self.beat, self.shown = limit_seconds, beat, shown
        self._began = steady() - used_before(beat)
        self._offset = time.time() - steady()

    @property
    def used(self) -> float:
        """Seconds since the agent began, without gaps."""
        return steady() - self._began

    @property
    def left(self) -> float:
        """Seconds until the deadline; negative behind it."""
        return self.limit_seconds - self.used

    def jumped(self) -> float | None:
        """By how many seconds the wall's clock was set since it was last asked; `None` for less than a few."""
        offset = time.time() - steady()
        jump, self._offset = offset - self._offset, offset if abs(offset - self._offset) > 0.5 else self._offset
        return jump if abs(jump) > JUMP_SECONDS else None

    def write(self, money: dict[str, Any]) -> None:
        """Let both files say how things stand; `money` is shown beside the deadline."""
        write_whole(self.beat, msgspec.json.encode({"used_seconds": self.used}), durable=False)
        told = {"deadline": time.time() + self.left, "at": time.time(), **money}
        write_whole(self.shown, msgspec.json.encode(told), durable=False)


def used_before(beat: Path) -> float:
    """What earlier keepers wrote down; 0 where none was."""
    try:
        return float(msgspec.json.decode(beat.read_bytes())["used_seconds"])
    except FileNotFoundError:
        return 0.0
