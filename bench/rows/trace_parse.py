"""The same trace published, beside what it costs merely to read its JSON."""

from bench.row import Row
from bench.traces import figures


def measure() -> Row:
    """CPU seconds of the pipeline, beside `orjson.loads` of each line."""
    found = figures()
    return Row(
        name="trace beside orjson",
        against=f"orjson.loads per line: {found.orjson:.4f} s",
        goal=2.5,
        measured=found.to_orjson,
        unit="x orjson",
        note=found.note,
    )
