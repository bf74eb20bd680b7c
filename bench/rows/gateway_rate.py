"""Calls a second through the gateway, by those through LiteLLM's proxy."""

from statistics import median

from bench.doors import STREAMS, litellm, ours, provider, rate, theirs
from bench.row import Row

ROUNDS = 5


def measure() -> Row:
    """The share of our rate that LiteLLM's proxy reaches, alternating in one run; skipped where it is not installed."""
    program = litellm()
    name, goal, unit = f"gateway calls, {STREAMS} at a time", 0.2, "of our calls a second"
    if program is None:
        note = (
            "litellm is not installed: `pip install 'litellm[proxy]'` anywhere, PRILL_BENCH_LITELLM names the program"
        )
        return Row(name=name, against="LiteLLM's proxy", goal=goal, measured=None, unit=unit, note=note, skipped=True)
    with provider() as url, ours(url) as door, theirs(program, url) as proxy:
        us, them = rate(door, 40), rate(proxy, 4)
        us(), them()
        pairs = [(us(), them()) for _ in range(ROUNDS)]
    our, their = (median(side) for side in zip(*pairs, strict=True))
    return Row(
        name=name,
        against=f"LiteLLM's proxy: {their:.0f} a second; ours {our:.0f}",
        goal=goal,
        measured=median(b / a for a, b in pairs),
        unit=unit,
        note=f"whole replies of 0.7 KB to requests of 4 KB, one worker each; {ROUNDS} alternating rounds; ours writes, "
        "holds and settles each call on disk, theirs keeps no budget",
    )
