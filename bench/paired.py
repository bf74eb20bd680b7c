"""Two pieces of work measured side by side, so that a busy machine slows both.

CPU seconds are user and system time of this process and of the children it has waited for; wall time is not used,
because other work shares the machine. Not covered: children that are still alive when the work returns.
"""

import resource
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

ROUNDS = 5


@dataclass(frozen=True)
class Pair:
    """Medians over the rounds: CPU seconds of each side, and of the round-by-round ratio."""

    ours: float
    theirs: float
    ratio: float


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds that one call takes, here and in the children it waited for."""
    before = spent()
    work()
    return spent() - before


def spent() -> float:
    """CPU seconds of this process and its ended children so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def paired(ours: Callable[[], object], theirs: Callable[[], object], rounds: int = ROUNDS) -> Pair:
    """Both, alternating and taking turns at going first, after one unmeasured call of each."""
    ours()
    theirs()
    pairs = []
    for number in range(rounds):
        if number % 2:
            b = cpu_seconds(theirs)
            a = cpu_seconds(ours)
        else:
            a = cpu_seconds(ours)
            b = cpu_seconds(theirs)
        pairs.append((a, b))
    return Pair(
        ours=median(a for a, _ in pairs),
        theirs=median(b for _, b in pairs),
        ratio=median(a / b if b else float("inf") for a, b in pairs),
    )
