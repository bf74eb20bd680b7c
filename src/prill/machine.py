"""Small decisions about the machine that a run lives on: rules I7 and I8 of RULES.md. Pure; others carry them out."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple


class Leftovers(NamedTuple):
    """Processes on the accelerator: ours, which may be killed, and others', which are only told."""

    kill: tuple[int, ...]
    foreign: tuple[int, ...]


def leftovers(on_accelerator: Iterable[int], own: Iterable[int]) -> Leftovers:
    """What may be cleaned up before a measurement: our own processes only (I7)."""
    ours = set(own)
    found = list(dict.fromkeys(on_accelerator))
    return Leftovers(tuple(pid for pid in found if pid in ours), tuple(pid for pid in found if pid not in ours))


def hub_cache(env: Mapping[str, str]) -> str:
    """Where the hub's library really keeps its files (I7): an unset or empty variable does not count."""
    if direct := env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE"):
        return direct
    cache = env.get("XDG_CACHE_HOME") or env.get("HOME", "~").rstrip("/") + "/.cache"
    home = env.get("HF_HOME") or cache.rstrip("/") + "/huggingface"
    return home.rstrip("/") + "/hub"


class Left(NamedTuple):
    """Time left, in whole seconds, and in words that an agent reads."""

    seconds: int
    text: str


def time_left(hours: float, elapsed_seconds: float) -> Left:
    """What is left of a budget in hours, which may be fractions (I8). Never negative."""
    left = max(Decimal(str(hours)) * 3600 - Decimal(str(elapsed_seconds)), Decimal(0))
    seconds = int(left)
    words = f"{seconds // 3600}:{seconds % 3600 // 60:02d}"
    return Left(seconds, words if seconds else f"{words} (the time has expired)")
