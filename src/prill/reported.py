"""What is reported of a result: every field a value with its source, or the reason why there is none; and how two
such records are held side by side.

A record is made by `records/`, written as JSON and never changed: another version supersedes it, and a retracted one
stays and says why. *At* is a pointer of the form `sources/standing.json#/standings/0/score`: a file beside the record
and a place in it by RFC 6901.
"""

from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct, field

from prill.record import Record
from prill.spec import Frozen

T = TypeVar("T")
Rests = Literal["same", "parsed", "length", "count", "distinct", "sum"]
"""How a value follows from what a pointer leads to: it is that; it is the JSON that stands there as text; or it is
counted, as `audit/derive.py` has it."""
Comparable = Literal["same", "near", "not comparable"]


class Place(Record, frozen=True, kw_only=True, tag="place", tag_field="kind"):
    """A place in a JSON file that lies beside the record."""

    source: str
    at: str
    sha256: str
    """Of the JSON that stands there: sorted keys, no blanks."""
    how: Rests = "same"
    where: dict[str, Any] = field(default_factory=dict)
    """For `count` and `distinct`: only entries with these values."""
    by: tuple[str, ...] = ()
    """For `distinct`: the fields that tell entries apart."""


class Quote(Record, frozen=True, kw_only=True, tag="quote", tag_field="kind"):
    """Words of a source, from which somebody read the value."""

    source: str
    text: str
    sha256: str
    start: int | None
    """Characters into the source's text; `None`: its text does not lie beside the record."""


class Told(Struct, Generic[T], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value, and where it is from."""

    value: T
    source: Place | Quote


class Source(Record, frozen=True, kw_only=True):
    """Where values are from: a page with the day it was read, a file beside the record, or both."""

    title: str
    url: str | None = None
    retrieved: str | None = None
    """ISO 8601 date."""
    file: str | None = None
    """Beside the record."""
    sha256: str | None = None
    """Of the source's bytes, as they were found."""
    bytes: int | None = None


class Fields(Record, frozen=True, kw_only=True):
    """All that a record speaks of; `None` stands beside a reason in `not_reported`."""

    title: Told[str] | None = None
    benchmark: Told[str] | None = None
    benchmark_version: Told[str] | None = None
    edition: Told[str] | None = None
    """Which of several publications of the benchmark's results."""
    agent: Told[str] | None = None
    model: Told[str] | None = None
    effort: Told[str] | None = None
    date: Told[str] | None = None
    """Of the result, ISO 8601."""
    kind: Told[str] | None = None
    value: Told[int | float] | None = None
    unit: Told[str] | None = None
    metric: Told[str] | None = None
    dispersion: Told[int | float] | None = None
    """In the unit of the value."""
    dispersion_kind: Told[str] | None = None
    dispersion_n: Told[int] | None = None
    interval_low: Told[int | float] | None = None
    interval_high: Told[int | float] | None = None
    provenance: Told[str] | None = None
    """Who says so."""
    extraction_review: Told[str] | None = None
    published: Told[str] | None = None
    """ISO 8601."""
    split: Told[str] | None = None
    tests: Told[tuple[str, ...]] | None = None
    base_models: Told[tuple[str, ...]] | None = None
    task_count: Told[int] | None = None
    task_snapshot: Told[str] | None = None
    task_exclusions: Told[str] | None = None
    run_count: Told[int] | None = None
    """Runs of each task: score seeds."""
    attempts_per_task: Told[int] | None = None
    selection_rule: Told[str] | None = None
    aggregate_method: Told[str] | None = None
    filtering: Told[str] | None = None
    cells: Told[int] | None = None
    cells_measured: Told[int] | None = None
    cells_base: Told[int] | None = None
    """Filled with the untouched base model's score."""
    cells_zero: Told[int] | None = None
    cells_held: Told[int] | None = None
    cells_lost: Told[int] | None = None
    cells_missing: Told[int] | None = None
    wall_clock_hours: Told[int | float] | None = None
    """The budget of a run."""
    token_budget: Told[int] | None = None
    training_budget: Told[str] | None = None
    inference_budget: Told[str] | None = None
    monetary_budget: Told[int | float | str] | None = None
    """US dollars a run, or in words that there is no limit."""
    monetary_cost: Told[int | float] | None = None
    """US dollars a run, in the mean."""
    hardware: Told[str] | None = None
    gpus: Told[int] | None = None
    """A run."""
    scaffold: Told[str] | None = None
    tool_access: Told[str] | None = None
    internet_access: Told[bool | str] | None = None
    """Or, in words, the policy that says which hosts may be reached."""
    evaluator_version: Told[str] | None = None
    human_intervention: Told[str] | None = None
    contamination_concerns: Told[str] | None = None
    comparability_caveats: Told[tuple[str, ...]] | None = None
    comparability: Told[str] | None = None
    """What the source itself says about comparing; `prill compare` computes its own verdict."""
    limitations: Told[tuple[str, ...]] | None = None


NAMES: tuple[str, ...] = Fields.__struct_fields__


class Earlier(Record, frozen=True, kw_only=True):
    """The version that a record takes the place of."""

    version: int
    sha256: str
    """Of its `record.json`."""


class Retraction(Record, frozen=True, kw_only=True):
    """Why a record is no longer stood by."""

    date: str
    why: str


class ResultRecord(Record, frozen=True, kw_only=True, tag="prill/record/1", tag_field="schema"):
    """One reported result with its setup."""

    id: str
    """The same in every version; means nothing."""
    version: int
    made: str
    """The day on which this version was made, ISO 8601."""
    supersedes: Earlier | None
    retracted: Retraction | None
    sources: dict[str, Source]
    fields: Fields
    not_reported: dict[str, str]
    """Field → why there is no value."""


class Text(Record, frozen=True, kw_only=True, tag="prill/text/1", tag_field="schema"):
    """A source that is text, whole, so that quotes can be found in it."""

    name: str
    text: str
    sha256: str


def told(record: ResultRecord, name: str) -> Told[Any] | None:
    """What a record says in a field."""
    found: Told[Any] | None = getattr(record.fields, name)
    return found


# --- comparing ---------------------------------------------------------------------------------------------


class Rule(Frozen, frozen=True, kw_only=True):
    """Fields in which two results must agree, and what follows where they do not."""

    id: str
    fields: tuple[str, ...]
    otherwise: Literal["near", "not comparable"]
    unknown: Literal["near", "not comparable"] = "not comparable"
    """Where a field is not reported in one of the two, or in both."""
    why: str


class Comparison(Frozen, frozen=True, kw_only=True):
    """Rules of comparing, in order of their weight. Fields that no rule names decide nothing."""

    name: str
    title: str
    source: str
    rules: tuple[Rule, ...]
    alike: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """Field → groups of words that mean the same there."""

    def __post_init__(self) -> None:
        wrong = [name for rule in self.rules for name in rule.fields if name not in NAMES]
        wrong += [name for name in self.alike if name not in NAMES]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no field of a record")


class Difference(Record, frozen=True, kw_only=True):
    """A field in which two results do not agree, or cannot be seen to."""

    field: str
    rule: str
    a: Any
    b: Any
    why: Literal["differs", "not reported"]
    verdict: Comparable
    """What follows from this field alone."""


class Comparability(Record, frozen=True, kw_only=True, tag="prill/comparability/1", tag_field="schema"):
    """Whether two results may stand side by side, and what decided."""

    verdict: Comparable
    rule: str | None
    """The rule that decided; `None` where every field agrees."""
    why: str
    rules: str
    rules_sha256: str
    differences: tuple[Difference, ...]
    besides: tuple[str, ...]
    """Fields that differ or are not reported and decide nothing."""
