"""What is computed from runs: cells, the attempts ledger, standings, boards; and what an import found.

Nothing here lies in a run folder. Missing is `None` beside a field that says why; it is never zero.
"""

from typing import Literal

from msgspec import field

from prill.outside import Purchase
from prill.record import Citation, Record

CellState = Literal["measured", "base", "zero", "held", "lost", "missing"]


class Era(Record, frozen=True, kw_only=True):
    """Under which rules a cell came about: numbers of different eras are not made alike."""

    saw: str
    """The rules that the agent was told."""
    judged: str
    """The suite whose policy decided."""
    judges: tuple[str, ...]
    """Who spoke, with the version where it is known."""


class Cell(Record, frozen=True, kw_only=True):
    """One entrant on one model and benchmark with one seed: a value, or none, and always why."""

    entrant: str
    model: str
    benchmark: str
    seed: int
    state: CellState
    value: float | None
    raw: float | None
    """What was measured, even where policy does not let it count."""
    n: int
    stderr: float | None
    why: str
    rule: str | None
    """The broken rule that decided, if one did."""
    run: str | None
    cites: tuple[Citation, ...] = ()
    measured: float | None = None
    """Of several runs, some imputed: the mean over the measured ones."""
    unclamped: float | None = None
    """On a floor-to-ceiling scale: the measured value before clamping."""
    zero_because: str = ""
    """For a value that the clamp put at zero: the least that would have lifted it."""
    era: Era | None = None
    alerts: tuple[str, ...] = ()
    """What a person should look at, though policy does nothing about it."""


class Attempt(Record, frozen=True, kw_only=True):
    """One run that ever began, how it ended and whether it counts."""

    run: str
    entrant: str
    model: str
    benchmarks: tuple[str, ...]
    seed: int
    state: str
    ended: str
    counts: bool
    why: str


class Interval(Record, frozen=True, kw_only=True):
    """A 95 % interval, or none and why. `parts` says which sources of chance are in it."""

    low: float | None
    high: float | None
    parts: tuple[str, ...]
    why: str = ""


class Difference(Record, frozen=True, kw_only=True):
    """A row against the next lower one, on the same resampled items."""

    other: str
    value: float
    low: float | None
    high: float | None
    detectable: float | None
    """The true difference that such a comparison would find in 80 of 100 repetitions, at 5 % both ways."""
    why: str = ""


class Variant(Record, frozen=True, kw_only=True):
    """The headline under another rule of selection: as policy has it, and out of measured cells only."""

    selection: str
    score: float | None
    measured_only: float | None


class Spent(Record, frozen=True, kw_only=True):
    """A mean over the runs that say it, and how many do not; no mean where none does."""

    mean: float | None
    known: int
    unknown: int
    share: float | None = None
    """Of the budget."""


class Overview(Record, frozen=True, kw_only=True):
    """What an entrant's counting runs used up, a run."""

    seconds: Spent
    tokens_in: Spent
    tokens_out: Spent
    usd: Spent
    """For the agent's own model."""
    bought: dict[Purchase, Spent] = field(default_factory=dict)
    """Dollars for what else was for sale, by kind."""


class Standing(Record, frozen=True, kw_only=True):
    """One entrant's row: the headline and what it is made of."""

    entrant: str
    title: str
    score: float | None
    why: str
    sd: float | None
    """Sample SD over seeds (ddof 1); `None` below two seeds."""
    seeds: int
    cells: tuple[Cell, ...]
    missing: int
    held: int
    imputed: int
    lost: int
    rank: int | None = None
    """Among the rows with a headline (of one wallet class, where the suite has a wallet); equal scores share one."""
    of: int = 0
    """How many rows are ranked."""
    raw_mean: float | None = None
    """Unweighted mean of the raw values, where every cell was measured."""
    harmonic_mean: float | None = None
    clean: float | None = None
    """The headline's formula over measured cells only; `None` where a benchmark has none."""
    flag_rate: float | None = None
    """Share of the cells that were run in which a judge found a rule broken."""
    interval: Interval | None = None
    ranks: tuple[int, int] | None = None
    """95 % interval of the rank."""
    next: Difference | None = None
    variants: tuple[Variant, ...] = ()
    overview: Overview | None = None


class Board(Record, frozen=True, kw_only=True, tag="prill/standings/1", tag_field="schema"):
    """A suite's standings, as computed from files at one moment."""

    suite: str
    title: str
    suite_digest: str
    standings: tuple[Standing, ...]
    attempts: tuple[Attempt, ...]
    expected: int
    covered: int
    wallet: float | None = None
    """US dollars that each run may spend: the class within which ranks are given."""
    resamples: int = 0
    """Of the bootstrap behind the intervals; 0: none was made."""
    seed: int | None = None


class ImportFault(Record, frozen=True, kw_only=True):
    """One file or folder of an imported tree that is not what it should be, and what was done about it."""

    path: str
    code: str
    why: str


class ImportReport(Record, frozen=True, kw_only=True, tag="prill/import/1", tag_field="schema"):
    """What became of a tree: every entry of it is a run, was one already, is left out with a reason, or is a fault."""

    importer: str
    suite: str
    roots: dict[str, str]
    """Root folder → entrant and seed."""
    made: int
    already: int
    excluded: dict[str, str]
    faults: tuple[ImportFault, ...]
