"""What is known after a run: outcome, steps, submission, measurements, findings, scores, standings.

Each file of a run folder is one of these and names its schema. Missing is `None` beside a field that says why;
it is never zero. What was decided before the run lives in `spec.py`.
"""

from typing import Any, Literal

from msgspec import Struct

from prill.spec import RunSpec

Ended = Literal["finished", "failed", "time_limit", "killed", "oom_killed", "no_output"]
"""How an agent's program ended. All of these are values and count; only `lost` (no outcome at all) is ours."""


class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """A value that one stage wrote and nobody changes."""


class Event(Record, frozen=True, kw_only=True):
    """One line of `events.jsonl`."""

    at: float
    """Seconds since 1970, wall clock of the runner."""
    event: str
    stage: str | None = None
    detail: dict[str, Any] = {}


class Outcome(Record, frozen=True, kw_only=True, tag="prill/outcome/1", tag_field="schema"):
    """How solving ended. Written last by `solve`: its existence means that the agent is done."""

    ended: Ended
    why: str
    exit_code: int | None
    signals: tuple[str, ...]
    """Signals that we sent, in order."""
    wall_seconds: float
    limit_seconds: float
    steps: int
    isolated: bool
    sandbox: str
    output_bytes: int
    output_dropped_bytes: int
    tokens_in: int | None = None
    tokens_out: int | None = None
    usd: float | None = None
    spend_why: str = "no model was called through the gateway"


class Step(Record, frozen=True, kw_only=True):
    """One thing that an agent said or did, numbered from 1; `offset` and `length` point into the raw output."""

    step: int
    kind: Literal["message", "command", "result", "other"]
    text: str
    offset: int
    length: int
    seconds: float | None = None
    """Since the agent began, as our clock saw the bytes arrive."""


class File(Record, frozen=True, kw_only=True):
    """A file by its path inside a folder, its size and its digest."""

    path: str
    bytes: int
    sha256: str


class Fault(Record, frozen=True, kw_only=True):
    """Something wrong with a submission, by code, with what to do about it."""

    code: str
    why: str
    severity: Literal["fatal", "warning"] = "fatal"


class Submission(Record, frozen=True, kw_only=True, tag="prill/submission/1", tag_field="schema"):
    """What the agent left, sealed."""

    state: Literal["sealed", "absent", "broken"]
    why: str
    digest: str | None
    files: tuple[File, ...]
    faults: tuple[Fault, ...]
    tensors: int | None
    parameters: int | None
    left: tuple[File, ...]
    """Digests of everything else in the workspace, so that it may be pruned later."""


class Mark(Record, frozen=True, kw_only=True):
    """What one reply earned, read twice: as the published scorer reads it, and as RULES.md does."""

    official: float
    robust: float
    answer: str | None
    why: str = ""


class Reply(Record, frozen=True, kw_only=True):
    """What came back for one request."""

    text: str
    stop: Literal["stop", "length", "timeout", "refused", "server", "empty"]
    tokens: int | None = None
    seconds: float | None = None


class ItemMark(Record, frozen=True, kw_only=True):
    """One item of a measurement."""

    item: str
    official: float
    robust: float
    answer: str | None
    target: str
    stop: str
    tokens: int | None = None


class Measurement(Record, frozen=True, kw_only=True, tag="prill/measurement/1", tag_field="schema"):
    """One benchmark put to one sealed submission with one seed."""

    benchmark: str
    seed: int | None
    state: Literal["measured", "unloadable"]
    why: str
    value: float | None
    """The reading that counts, in 0..1, over all items (errors stay in the denominator)."""
    official: float | None
    robust: float | None
    n: int
    stderr: float | None
    stops: dict[str, int]
    items: tuple[ItemMark, ...]
    submission: str | None
    """Digest of what was measured."""
    settings: dict[str, Any]
    """Engine, version, and the generation settings really used."""
    log: str | None
    """The eval log's file name beside this file."""
    wall_seconds: float
    isolated: bool


class Citation(Record, frozen=True, kw_only=True):
    """A place in the evidence that anyone can open: a step, or bytes of a file of the run folder."""

    file: str
    offset: int | None = None
    length: int | None = None
    line: int | None = None
    step: int | None = None
    sha256: str | None = None
    """Digest of the cited bytes (of the whole file where no range is given)."""
    quote: str = ""


class Finding(Record, frozen=True, kw_only=True):
    """What one judge says about one rule. `unknown` is never innocence."""

    rule: str
    verdict: Literal["broken", "kept", "unknown"]
    why: str
    citations: tuple[Citation, ...] = ()
    numbers: dict[str, Any] = {}
    """The figures behind the verdict, with their names and units."""


class Judgement(Record, frozen=True, kw_only=True, tag="prill/judgement/1", tag_field="schema"):
    """All that one judge found in one run: one finding for each rule that it speaks to."""

    judge: str
    findings: tuple[Finding, ...]
    isolated: bool
    wall_seconds: float


class Run(Record, frozen=True, kw_only=True):
    """A run folder read as one value, for everything that thinks."""

    spec: RunSpec
    state: Literal["planned", "running", "lost", "done", "unfinished"]
    """`unfinished`: the agent is done, a later stage is not. `lost`: a solve that began and never ended."""
    began: float | None
    outcome: Outcome | None = None
    submission: Submission | None = None
    measurements: tuple[Measurement, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    failures: tuple[Event, ...] = ()
    """Exceptions of ours that left a stage undone."""


CellState = Literal["measured", "base", "zero", "held", "lost", "missing"]


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


class Board(Record, frozen=True, kw_only=True, tag="prill/standings/1", tag_field="schema"):
    """A suite's standings, as computed from files at one moment."""

    suite: str
    title: str
    suite_digest: str
    standings: tuple[Standing, ...]
    attempts: tuple[Attempt, ...]
    expected: int
    covered: int
