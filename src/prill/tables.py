"""A board as text: a table for a terminal, Markdown, CSV. Value, n and why for every cell; what headlines hang on;
the attempts that do not count; totals. What is not known is a word, never an empty number.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import json

from prill.scoring.overview import cost_words, words
from prill.scoring.selection import totals
from prill.standings import Board, Cell, ImportReport, Standing

MARKS = {
    "measured": "measured",
    "base": "base score",
    "zero": "zero",
    "held": "HELD",
    "lost": "LOST",
    "missing": "missing",
}
CELL_FIELDS = (
    "entrant", "model", "benchmark", "seed", "state", "value", "raw", "unclamped", "n", "stderr", "rule", "run", "why",
    "alerts",
)  # fmt: skip


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
    for row in board.standings:
        rank = str(row.rank) if row.rank is not None else "–"
        if single:
            table.add_row(rank, row.entrant, *cell_columns(row.cells[0]))
            continue
        table.add_row(rank, row.entrant, "", headline(row), "", "", "", row.why, style="bold")
        for cell in row.cells:
            table.add_row("", "", f"{cell.model} / {cell.benchmark} / {cell.seed}", *cell_columns(cell))
    console.print(table)
    if board.resamples:
        console.print(basis_table(board))
        console.print("\n".join(basis_notes(board)), markup=False)
    for line in notes(board):
        console.print(line, markup=False)


def notes(board: Board) -> Iterator[str]:
    """Alerts, zeros with their reason, attempts that do not count, totals."""
    for cell in (cell for row in board.standings for cell in row.cells):
        place = f"{cell.entrant} {cell.model}/{cell.benchmark} seed {cell.seed}"
        yield from (f"ALERT: {place}: {alert}" for alert in cell.alerts)
        if cell.zero_because:
            yield f"why zero: {place}: {cell.zero_because}"
    for entry in board.attempts:
        if not entry.counts:
            yield f"does not count: {entry.run} {entry.entrant} seed {entry.seed} ({entry.state}): {entry.why}"
    count = totals(board)
    ends = ", ".join(f"{number} {name}" for name, number in count.items() if name not in ("began", "count"))
    ledger = f"{count['began']} attempts, {count['count']} count{f' ({ends})' if ends else ''}"
    yield f"{board.covered} of {board.expected} cells have a value · {ledger}"
    yield f"suite {board.suite} {board.suite_digest}"


# --- what headlines hang on ------------------------------------------------------------------------------------

BASIS = (
    "entrant", "rank, 95 %", "score, 95 %", "from", "to the next row, 95 %", "detectable", "measured only",
    "imputed", "flag rate", "first / latest / best / mean", "time", "tokens out", "cost",
)  # fmt: skip


def basis_title(board: Board) -> str:
    """What the intervals were made with."""
    wallet = f"; ranks at the ${board.wallet:g} wallet" if board.wallet is not None else ""
    return f"What the headlines hang on ({board.resamples:,} paired resamples of items, seed {board.seed}{wallet})"


def basis_columns(row: Standing) -> tuple[str, ...]:
    """One entrant's row of that table."""
    rank = f"{row.rank} of {row.of}" if row.rank is not None else "unranked"
    made = row.interval
    known = made is not None and made.low is not None
    after = row.next
    over = row.overview
    return (
        row.entrant,
        f"{rank} ({row.ranks[0]}–{row.ranks[1]})" if row.ranks else rank,
        headline(row) + (f" ({made.low:.3f}–{made.high:.3f})" if made and known else ""),
        (" + ".join(made.parts) or "no chance: all imputed") if made and known else made.why if made else "–",
        "–" if after is None else f"{after.value:+.3f}" + limits(after.low, after.high),
        "–" if after is None or after.detectable is None else f"{after.detectable:.3f}",
        short(row.clean),
        f"{row.imputed} of {len(row.cells)}",
        "–" if row.flag_rate is None else f"{100 * row.flag_rate:.0f} %",
        " / ".join(f"{short(v.score)} ({short(v.measured_only)})" for v in row.variants),
        words(over.seconds, "clock") if over else "unknown",
        words(over.tokens_out) if over else "unknown",
        cost_words(over) if over else "unknown",
    )  # fmt: skip


ON_SCREEN = ("entrant", "score, 95 %", "rank, 95 %", "to the next row, 95 %", "detectable", "measured only", "imputed",
             "flag rate", "time", "cost")  # fmt: skip


def hangs(row: Standing) -> bool:
    """Whether a row has figures of its own to hang on: a score, and not only from imputed cells."""
    return row.score is not None and row.clean is not None


def basis_table(board: Board) -> Any:
    """The figures that fit a screen, for the rows that have some."""
    from rich import box
    from rich.table import Table

    table = Table(title=basis_title(board), box=box.SIMPLE_HEAD, title_justify="left")
    for name in ON_SCREEN:
        table.add_column(name, justify="left" if name == "entrant" else "right")
    for row in filter(hangs, board.standings):
        facts = dict(zip(BASIS, basis_columns(row), strict=True))
        table.add_row(*(facts[name] for name in ON_SCREEN))
    return table


def basis_notes(board: Board) -> Iterator[str]:
    """Where the rule of selection would change a score, and which rows the table leaves out."""
    for row in board.standings:
        if len({variant.score for variant in row.variants}) > 1:
            told = ", ".join(f"{variant.selection} {short(variant.score)}" for variant in row.variants)
            yield f"selection matters: {row.entrant}: {told}"
    left_out = [row.entrant for row in board.standings if not hangs(row)]
    if left_out:
        yield f"not shown: {', '.join(left_out)} (only imputed cells, or no score); --format md shows every figure"


def limits(low: float | None, high: float | None) -> str:
    """An interval in brackets; nothing where there is none."""
    return "" if low is None or high is None else f" ({low:+.3f} to {high:+.3f})"


def short(value: float | None) -> str:
    """Three decimals, or that there is none."""
    return "none" if value is None else f"{value:.3f}"


def headline(row: Standing) -> str:
    """Mean, and SD where there are two seeds or more; n always."""
    if row.score is None:
        return "no score"
    return f"{row.score:.3f}" + (f" ± {row.sd:.3f}" if row.sd is not None else "") + f" (n={row.seeds})"


def cell_columns(cell: Cell) -> tuple[str, str, str, str, str]:
    """Score, what was measured, n, state, why."""
    measured = "–" if cell.raw is None else f"{cell.raw:.3f}"
    why = cell.why if cell.rule is None else f"{cell.rule}: {cell.why}"
    if cell.cites:
        first = cell.cites[0]
        why += f" [{first.file}{'' if first.line is None else f':{first.line}'}]"
    if cell.unclamped is not None:
        why += f"; unclamped {100 * cell.unclamped:.1f}"
    value = "no score" if cell.value is None else f"{cell.value:.3f}"
    return value, measured, str(cell.n) if cell.n else "–", MARKS[cell.state], why


# --- for programs and pages ------------------------------------------------------------------------------------


def as_json(record: Board | ImportReport) -> str:
    """A record as a program reads it."""
    return json.format(json.encode(record), indent=1).decode() + "\n"


def import_lines(report: ImportReport) -> list[str]:
    """What became of a tree, in a few lines and one for each fault."""
    lines = [f"{root}: {what}" for root, what in report.roots.items()]
    lines.append(
        f"{report.made} runs made, {report.already} were there already, {len(report.excluded)} entries left out, "
        f"{len(report.faults)} faults"
    )
    lines += [f"left out: {path}: {why}" for path, why in report.excluded.items()]
    return lines + [f"fault {fault.code}: {fault.path}: {fault.why}" for fault in report.faults]


def as_csv(board: Board) -> str:
    """A line for each cell, every digit kept; what is not there is an empty field beside its state and reason."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CELL_FIELDS)
    for cell in (cell for row in board.standings for cell in row.cells):
        values = [getattr(cell, name) for name in CELL_FIELDS]
        writer.writerow(["; ".join(value) if isinstance(value, tuple) else value for value in values])
    return out.getvalue()


def as_markdown(board: Board) -> str:
    """Standings, and what they hang on where that was computed."""
    head = ("#", "entrant", "score", "n", "imputed", "held", "missing", "lost", "why")
    rows = [
        (str(row.rank or "–"), row.entrant, headline(row), str(row.seeds), str(row.imputed), str(row.held),
         str(row.missing), str(row.lost), row.why)
        for row in board.standings
    ]  # fmt: skip
    text = f"## {board.title}\n\n{grid(head, rows)}\n"
    if board.resamples:
        text += f"\n### {basis_title(board)}\n\n{grid(BASIS, map(basis_columns, board.standings))}\n"
    return text + "\n" + "\n".join(f"- {line}" for line in notes(board)) + "\n"


def grid(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; bars in texts are escaped."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines)
