"""What the gateway adds to the first byte of a streamed reply, with 32 streams at once."""

import asyncio
from statistics import median

from bench.doors import STREAMS, calls, ours, provider
from bench.row import Row

ROUNDS, EACH = 5, 6


async def both(url: str, door: str) -> float:
    """Median seconds to the first byte through the door, less that of as many straight calls at the same time."""
    straight, through = await asyncio.gather(*(calls(where, STREAMS, EACH, stream=True) for where in (url, door)))
    return median(through) - median(straight)


def measure() -> Row:
    """Milliseconds that the gateway adds, median over rounds; both ways are under way at once, so that other work on
    the machine slows both."""
    with provider() as url, ours(url) as door:
        asyncio.run(both(url, door))
        added = sorted(1000 * asyncio.run(both(url, door)) for _ in range(ROUNDS))
    return Row(
        name=f"gateway at {STREAMS} streams",
        against=f"{STREAMS} straight streams at the same time",
        goal=2.0,
        measured=median(added),
        unit="ms added, p50",
        note=f"to the first byte; each call is held and on disk before it; {ROUNDS} rounds of {STREAMS * EACH} streams "
        f"of 0.4 s each way; rounds: {', '.join(f'{each:.2f}' for each in added)} ms",
    )
