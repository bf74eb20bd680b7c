"""A board as a terminal table: score, n and why for every cell, then the attempts that do not count, then totals."""

from prill.record import Board, Cell, Standing
from prill.score import totals

MARKS = {
    "measured": "measured",
    "base": "base score",
    "zero": "zero",
    "held": "HELD",
    "lost": "LOST",
    "missing": "missing",
}


def print_board(board: Board) -> None:
    """Print the standings; a pipe gets the same table without colour."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if Console().is_terminal else 140, highlight=False)
    single = all(len(row.cells) == 1 for row in board.standings)
    table = Table(title=f"{board.title} ({board.suite})", box=box.SIMPLE_HEAD, title_justify="left", expand=True)
    table.add_column("#", justify="right")
    table.add_column("entrant", no_wrap=True)
    if not single:
        table.add_column("model / benchmark / seed", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("n", justify="right")
    table.add_column("counts as", no_wrap=True)
    table.add_column("why", ratio=1)
    for place, row in enumerate(board.standings, 1):
        rank = str(place) if row.score is not None else "–"
        if single:
            table.add_row(rank, row.entrant, *cell_columns(row.cells[0]))
            continue
        table.add_row(rank, row.entrant, "", headline(row), "", "", "", row.why, style="bold")
        for cell in row.cells:
            table.add_row("", "", f"{cell.model} / {cell.benchmark} / {cell.seed}", *cell_columns(cell))
    console.print(table)
    for entry in board.attempts:
        if not entry.counts:
            console.print(f"does not count: {entry.run} {entry.entrant} seed {entry.seed} ({entry.state}): {entry.why}")
    ends = ", ".join(f"{count} {name}" for name, count in totals(board).items() if name not in ("began", "count"))
    count = totals(board)
    ledger = f"{count['began']} attempts, {count['count']} count ({ends})"
    console.print(f"{board.covered} of {board.expected} cells have a value · {ledger}")
    console.print(f"suite {board.suite} {board.suite_digest}")


def headline(row: Standing) -> str:
    """Mean, and SD where there are two seeds or more."""
    if row.score is None:
        return "no score"
    return f"{row.score:.3f}" + (f" ± {row.sd:.3f} (n={row.seeds})" if row.sd is not None else "")


def cell_columns(cell: Cell) -> tuple[str, str, str, str, str]:
    """Score, what was measured, n, state, why."""
    measured = "–" if cell.raw is None else f"{cell.raw:.3f}"
    why = cell.why if cell.rule is None else f"{cell.rule}: {cell.why}"
    if cell.cites:
        first = cell.cites[0]
        why += f" [{first.file}{'' if first.line is None else f':{first.line}'}]"
    value = "no score" if cell.value is None else f"{cell.value:.3f}"
    return value, measured, str(cell.n) if cell.n else "–", MARKS[cell.state], why
