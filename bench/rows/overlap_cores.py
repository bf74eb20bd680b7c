"""Contamination scan: two cores beside one."""

import time
from statistics import median

from bench.paired import ROUNDS
from bench.row import Row
from bench.scanning import corpus, scan


def seconds(workers: int) -> float:
    """Wall seconds of a scan."""
    began = time.perf_counter()
    scan(corpus().file, workers=workers, look=False)
    return time.perf_counter() - began


def measure() -> Row:
    """Wall time, the one figure that needs a quiet machine."""
    seconds(2)
    ratios = [seconds(2) / seconds(1) for _ in range(ROUNDS)]
    return Row(
        name="contamination scan, two cores",
        against="the same scan on one core",
        goal=0.588,
        measured=median(ratios),
        unit="of the wall time",
        note=f"1.7 times as fast is 0.588; rounds: {', '.join(f'{ratio:.2f}' for ratio in ratios)}; "
        "wall time, so other work on the machine counts against it",
    )
