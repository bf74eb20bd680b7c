"""A row of the table of performance, and the table as text."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """One thing measured: `measured` must not be over `goal`, both in `unit`; `None` means that it could not run."""

    name: str
    against: str
    """The peer or limit, with its own figure."""
    goal: float
    measured: float | None
    unit: str
    note: str = ""
    """How it was measured; for a missed goal also why."""
    skipped: bool = False
    """The peer is not installed here, so there is nothing to miss; `note` says how to get it."""

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.skipped or (self.measured is not None and self.measured <= self.goal)

    def cells(self) -> tuple[str, ...]:
        """The row as the texts of a table."""
        measured = "none" if self.measured is None else f"{self.measured:.3g} {self.unit}"
        state = "skipped" if self.skipped else "met" if self.met else "missed"
        return self.name, self.against, f"≤ {self.goal:g} {self.unit}", measured, state


HEAD = ("work", "peer or limit", "goal", "measured", "")


def as_text(rows: Sequence[Row]) -> str:
    """The table for a terminal, notes below."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    table = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*table, "", *(f"{row.name}: {row.note}" for row in rows if row.note)])


def as_markdown(rows: Sequence[Row], machine: str) -> str:
    """The table as a page."""
    lines = [HEAD, ("---",) * len(HEAD), *(row.cells() for row in rows)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    notes = "\n".join(f"- **{row.name}**: {row.note}" for row in rows if row.note)
    return f"# Performance, as last written\n\nBy `python -m bench --write`, on {machine}.\n\n{table}\n\n{notes}\n"
