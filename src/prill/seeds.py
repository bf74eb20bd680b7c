"""What looks like chance and follows from a seed: the seed of one request, the order in which options are shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from string import ascii_uppercase


def request_seed(run: int, sample: str, epoch: int = 1, call: int = 0) -> int:
    """The seed for one request of a seeded pass, as PostTrainBench v1.2 derives it.

    A server gives each seeded request a generator of its own, so one seed for all would make replies alike.
    """
    digest = sha256(f"{run}:{sample}:{epoch}:{call}".encode()).digest()
    return int.from_bytes(digest[:4], "little") & 0x7FFFFFFF


@dataclass(frozen=True)
class Shown:
    """Options as shown: where each one was, and the letter of the right one."""

    options: tuple[str, ...]
    original: tuple[int, ...]
    letter: str


def shuffled(options: Sequence[str], right: int, perms: Sequence[Sequence[int]]) -> Shown:
    """Options put in a new order, several times over: `shown[i] = before[perm[i]]`. The index is tracked, never the
    text, so equal or look-alike options stay apart (rule H1)."""
    original = tuple(range(len(options)))
    for perm in perms:
        if sorted(perm) != list(range(len(options))):
            raise ValueError(f"{list(perm)} does not name each of {len(options)} options once")
        original = tuple(original[at] for at in perm)
    return Shown(tuple(options[at] for at in original), original, ascii_uppercase[original.index(right)])


def order(seed: int, item: str, count: int) -> tuple[int, ...]:
    """The order for one item under one seed: the same on every machine, unrelated between items (rule H2)."""
    return tuple(sorted(range(count), key=lambda at: sha256(f"{seed}:{item}:{at}".encode()).digest()))
