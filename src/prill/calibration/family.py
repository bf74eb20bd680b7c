"""What a family of made-up runs is."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prill.sockets import Evidence

Make = Callable[[Path, random.Random], Evidence]
"""Fills an empty folder with one made-up run of the family."""


@dataclass(frozen=True)
class Family:
    """Runs of one kind, and what the judge should say of them."""

    judge: str
    name: str
    expected: tuple[str, ...]
    """Verdicts that are right; with `kept` among them it is an innocent look-alike."""
    make: Make
    blind: bool = False
    """A violation that this judge is known not to see: measured, shown, and left out of its rates."""

    @property
    def planted(self) -> bool:
        """Whether it is a violation."""
        return "kept" not in self.expected


BROKEN, SUSPECT, EITHER, KEPT = ("broken",), ("unknown",), ("broken", "unknown"), ("kept",)
