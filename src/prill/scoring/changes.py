"""Two boards → what changed between them, cell by cell, and why. Pure."""

from collections.abc import Iterator

from prill.record import Record
from prill.standings import Board, Cell, Standing


class Change(Record, frozen=True, kw_only=True):
    """One thing that differs."""

    entrant: str
    place: str
    """`headline`, or model/benchmark/seed."""
    before: str
    after: str
    why: str


def changes(old: Board, new: Board) -> list[Change]:
    """Headlines first, each followed by its cells that differ; entrants that came or went; then the suite."""
    found: list[Change] = []
    was = {row.entrant: row for row in old.standings}
    now = {row.entrant: row for row in new.standings}
    for entrant in {**now, **was}:
        found += of_entrant(entrant, was.get(entrant), now.get(entrant))
    for what, before, after in (("suite", old.suite, new.suite), ("digest", old.suite_digest, new.suite_digest)):
        if before != after:
            found.append(Change(entrant="", place=what, before=before, after=after, why="scored by other definitions"))
    return found


def of_entrant(entrant: str, old: Standing | None, new: Standing | None) -> Iterator[Change]:
    """What changed for one entrant."""
    if old is None or new is None:
        there = new or old
        assert there is not None
        shown = headline(there)
        why = "not in the first standings" if old is None else "not in the second standings"
        yield Change(
            entrant=entrant,
            place="headline",
            before=shown if new is None else "absent",
            after=shown if old is None else "absent",
            why=why,
        )
        return
    was, now = cells(old), cells(new)
    differ = [place for place in {**was, **now} if state(was.get(place)) != state(now.get(place))]
    if headline(old) != headline(new):
        why = f"{len(differ)} cells differ" if differ else f"the same cells, counted otherwise; now: {new.why}"
        yield Change(entrant=entrant, place="headline", before=headline(old), after=headline(new), why=why)
    for place in differ:
        yield Change(
            entrant=entrant,
            place=place,
            before=shown_cell(was.get(place)),
            after=shown_cell(now.get(place)),
            why=reason(was.get(place), now.get(place)),
        )


def cells(row: Standing) -> dict[str, Cell]:
    """The row's cells by place."""
    return {f"{cell.model}/{cell.benchmark}/{cell.seed}": cell for cell in row.cells}


def headline(row: Standing) -> str:
    """A headline with its spread."""
    if row.score is None:
        return "no score"
    return f"{row.score:.6f}" + (f" ± {row.sd:.6f} (n={row.seeds})" if row.sd is not None else f" (n={row.seeds})")


def state(cell: Cell | None) -> object:
    """What makes two cells the same."""
    return None if cell is None else (cell.state, cell.value, cell.raw, cell.rule)


def shown_cell(cell: Cell | None) -> str:
    """A cell in a few words."""
    if cell is None:
        return "no such cell"
    return f"{cell.state} {'–' if cell.value is None else f'{cell.value:.6f}'}"


def reason(old: Cell | None, new: Cell | None) -> str:
    """Why a cell differs: another run, another judgement, another measurement."""
    if old is None or new is None:
        return "the cell is in one of the two only"
    if old.run != new.run:
        return f"run {new.run} instead of {old.run}; {new.why}"
    if old.raw != new.raw:
        return f"measured again: {new.raw} instead of {old.raw}; {new.why}"
    return f"{new.rule}: {new.why}" if new.rule else new.why


def lines(found: list[Change]) -> list[str]:
    """The changes as text; one line where there are none."""
    return [f"{c.entrant} {c.place}: {c.before} → {c.after}  ({c.why})".strip() for c in found] or ["no change"]
