"""Where a cell's value comes from, as a tree down to files and their digests. Pure: records in, lines out."""

from collections.abc import Iterable

from prill.record import File, Run
from prill.spec import Suite
from prill.standings import Board, Cell, Standing

STATES = {
    "measured": "its own measurement",
    "base": "imputed: policy puts the base model's score here",
    "zero": "imputed: policy puts zero here",
    "held": "no number until a person has looked",
    "lost": "no number: solving began and never ended",
    "missing": "no number",
}


def explain(suite: Suite, board: Board, cell: Cell, run: Run | None, files: Iterable[File]) -> list[str]:
    """One cell: its weight in the headline, its reason, its run, and every file behind it."""
    row = next(row for row in board.standings if row.entrant == cell.entrant)
    value = "no value" if cell.value is None else f"{cell.value!r}"
    lines = [f"{cell.entrant}/{cell.model}/{cell.benchmark}, seed {cell.seed}: {value} ({STATES[cell.state]})"]
    lines += [f"├─ {line}" for line in facts(suite, cell, row)]
    others = [a for a in board.attempts if (a.entrant, a.model, a.seed) == (cell.entrant, cell.model, cell.seed)]
    others = [entry for entry in others if cell.benchmark in entry.benchmarks and entry.run != cell.run]
    lines += [f"├─ other attempt {entry.run}: {entry.state}, {entry.why}" for entry in others]
    lines.append(f"├─ suite {board.suite} {board.suite_digest}")
    if run is None:
        return [*lines, "└─ no run"]
    lines.append(f"└─ run {run.spec.id}" + (f", imported from {run.spec.origin.path}" if run.spec.origin else ""))
    lines += [f"   ├─ {line}" for line in of_run(cell, run)]
    return lines + [f"   ├─ {file.path}  sha256:{file.sha256}  {file.bytes:,} bytes" for file in files]


def facts(suite: Suite, cell: Cell, row: Standing) -> list[str]:
    """What the cell is made of, and what it adds to the headline."""
    weight = suite.score.weights[cell.benchmark]
    cells = [other for other in row.cells if other.benchmark == cell.benchmark and other.value is not None]
    lines = [f"why: {cell.rule + ': ' if cell.rule else ''}{cell.why}"]
    if row.score is not None and cell.value is not None:
        adds = weight / len(cells) * cell.value
        lines.append(
            f"headline {row.score!r}: weight {weight!r} of {cell.benchmark}, 1 of {len(cells)} cells: adds {adds:.6f}"
        )
    elif row.score is None:
        lines.append(f"no headline: {row.why}")
    if cell.raw is not None:
        error = "no standard error" if cell.stderr is None else f"standard error {cell.stderr:.4f}"
        lines.append(f"measured {cell.raw!r} over n = {cell.n}, {error}")
    if cell.unclamped is not None:
        lines.append(f"on the floor-to-ceiling scale {cell.unclamped:.4f} before clamping")
    if cell.zero_because:
        lines.append(f"why zero: {cell.zero_because}")
    if cell.era:
        lines.append(f"era: saw {cell.era.saw}; judged by {cell.era.judged}; judges {', '.join(cell.era.judges)}")
    return lines + [f"ALERT: {alert}" for alert in cell.alerts]


def of_run(cell: Cell, run: Run) -> list[str]:
    """Spec, outcome, submission, measurement and findings in a line each."""
    lines = [f"definition {name} {digest}" for name, digest in sorted(run.spec.definitions.items())]
    if run.outcome:
        lines.append(f"ended: {run.outcome.ended}, {run.outcome.why}")
    if run.submission:
        lines.append(f"submission {run.submission.state}: {run.submission.why} ({run.submission.digest})")
    for made in run.measurements:
        if made.benchmark == cell.benchmark:
            lines.append(f"measurement {made.state}: {made.why}; of {made.submission}")
    for judgement in run.judgements:
        for finding in judgement.findings:
            lines.append(f"{judgement.judge} on {finding.rule}: {finding.verdict}, {finding.why}")
            lines += [f"  cites {c.file} sha256:{c.sha256}" for c in finding.citations]
    return lines
