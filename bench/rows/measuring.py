"""Measuring at 32 slots: how much longer than the best possible schedule."""

from bench.clients import REQUESTS, SLOTS, figures, ideal, services
from bench.row import Row

GOAL = 1.02


def measure() -> Row:
    """Wall time by that of a greedy schedule, beside AsyncOpenAI's and Inspect's in the same run."""
    found = figures()
    peers = ", ".join(f"{name} {found[name].over_ideal:.3f}" for name in ("AsyncOpenAI", "Inspect"))
    return Row(
        name=f"measure at {SLOTS} slots",
        against=f"greedy schedule: {ideal(services()):.2f} s; {peers}",
        goal=GOAL,
        measured=found["ours"].over_ideal,
        unit="x ideal",
        note=f"{REQUESTS} requests of median 0.5 s, 8 s at most, 60 KB replies, longest first; best of 3 rounds",
    )
