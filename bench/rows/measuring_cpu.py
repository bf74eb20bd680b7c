"""Measuring at 32 slots: what one request costs the client."""

from bench.clients import figures
from bench.row import Row


def measure() -> Row:
    """CPU for one request by AsyncOpenAI's, beside Inspect's in the same run."""
    found = figures()
    told = ", ".join(f"{name} {each.milliseconds:.2f} ms" for name, each in found.items())
    return Row(
        name="client CPU of a request",
        against=f"AsyncOpenAI: {found['AsyncOpenAI'].milliseconds:.2f} ms",
        goal=0.5,
        measured=found["ours"].milliseconds / found["AsyncOpenAI"].milliseconds,
        unit="x AsyncOpenAI",
        note=f"{told}; replies are kept on disk by us and, as a log, by Inspect",
    )
