"""What is decided before a run: suites, benchmarks, base models, entrants, budgets, and the run's own spec.

All are plain frozen values. They are read from TOML by `catalog.py`, which refuses fields that are not listed
here, and written into each run folder by `folder.py`. What is known only after a run lives in `record.py`.
"""

import hashlib
from typing import Any, Literal

from msgspec import Struct, json, to_builtins

Effect = Literal["base", "zero", "hold", "none"]
"""What breaking a rule does to a cell: the base model's score, zero, no number until a person looks, nothing."""


class Frozen(Struct, frozen=True, forbid_unknown_fields=True):
    """A value with named fields; a field that is not declared is an error, not a silent extra."""


class Budget(Frozen, frozen=True, kw_only=True):
    """What a run may use up. `None` means that the suite sets no such limit."""

    hours: float
    usd: float | None = None
    gpus: int = 0
    self_checks: int = 0
    memory_gb: float | None = None
    processes: int = 512
    disk_gb: float = 4.0
    grace_seconds: float = 30.0
    """Between TERM and KILL, once the time is over."""


class Data(Frozen, frozen=True, kw_only=True):
    """Where a benchmark's items come from, pinned: `path` in the catalog's folders or `repo` on a hub."""

    path: str | None = None
    repo: str | None = None
    revision: str | None = None
    split: str = "test"
    count: int
    digest: str
    """`sha256:` over the items as canonical JSON lines, in order."""


class Sampling(Frozen, frozen=True, kw_only=True):
    """How replies are drawn. `None` leaves the setting to the submission's own generation_config."""

    max_tokens: int
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None


class Benchmark(Frozen, frozen=True, kw_only=True):
    """A test that a submission sits: items, prompt, how to ask, how to mark."""

    name: str
    title: str
    data: Data
    prompt: str
    """The user message, with `{question}` where the item's question goes."""
    system: str | None = None
    grader: str
    counts: Literal["official", "robust"]
    """Which of a mark's two readings is the score; the other is shown beside it."""
    metric: Literal["mean"] = "mean"
    sampling: Sampling
    seeds: tuple[int | None, ...] = (None,)
    request_seconds: float = 120.0
    connections: int = 32
    floor: float = 0.0
    ceiling: float = 1.0
    offered: tuple[str, ...] = ()
    """Training data that the agent may use freely; placed in its box under /data."""
    licence: str
    source: str
    """Where these facts come from."""


class Sibling(Frozen, frozen=True, kw_only=True):
    """A known post-trained relative of a base model, which a submission must not be."""

    name: str
    digest: str
    path: str | None = None
    repo: str | None = None
    revision: str | None = None


class BaseModel(Frozen, frozen=True, kw_only=True):
    """The model an agent starts from."""

    name: str
    title: str
    architecture: str
    parameters: int
    digest: str
    """`sha256:` over the folder's file digests; see `folder.tree_digest`."""
    path: str | None = None
    repo: str | None = None
    revision: str | None = None
    siblings: tuple[Sibling, ...] = ()
    licence: str


class Entrant(Frozen, frozen=True, kw_only=True):
    """What a table ranks: an agent, on a model, with an effort and an account."""

    name: str
    title: str
    agent: str
    model: str | None = None
    effort: str | None = None
    account: Literal["none", "api", "subscription"] = "none"
    program: str | None = None
    """For agent `scripted`: the program that plays the agent, found in the catalog's folders."""


class ScoreRule(Frozen, frozen=True, kw_only=True):
    """How measurements become a headline."""

    scale: Literal["raw", "floor-to-ceiling"] = "raw"
    weights: dict[str, float]
    selection: Literal["first", "latest", "best", "mean"] = "first"
    """Which of several finished runs of one cell and seed counts."""


class Reference(Frozen, frozen=True, kw_only=True):
    """A reference score of an untouched model on a benchmark, used where policy falls back to the base."""

    model: str
    benchmark: str
    base: float
    instruct: float | None = None
    source: str


class Suite(Frozen, frozen=True, kw_only=True):
    """A whole assay as data: which cells, under which budget, judged by whom, scored how."""

    name: str
    title: str
    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    entrants: tuple[str, ...]
    cell: tuple[Literal["model", "benchmark"], ...] = ("model", "benchmark")
    """One run for each combination of these; what is not named is shared by a run."""
    submission: Literal["weights", "served"] = "weights"
    seeds: int = 1
    prompt: str
    rules: tuple[str, ...]
    """Names of the rules told to the agent, in order; their wording is in the prompt definition."""
    judges: tuple[str, ...]
    sandbox: str = "bubblewrap"
    engine: str
    budget: Budget
    score: ScoreRule
    policy: dict[str, Effect]
    references: tuple[Reference, ...] = ()


class Prompt(Frozen, frozen=True, kw_only=True):
    """The words for an agent: a template with named blanks, and the wording of each rule."""

    name: str
    template: str
    rules: dict[str, str]


class RunSpec(Frozen, frozen=True, kw_only=True, tag="prill/spec/1", tag_field="schema"):
    """Everything that was decided about one run, whole, so that the folder explains itself."""

    id: str
    suite: str
    entrant: Entrant
    model: BaseModel
    benchmarks: tuple[Benchmark, ...]
    seed: int
    budget: Budget
    prompt: Prompt
    rules: tuple[str, ...]
    judges: tuple[str, ...]
    sandbox: str
    engine: str
    submission: Literal["weights", "served"]
    definitions: dict[str, str]
    """`kind/name` of each definition used → `sha256:` of its file."""


Key = tuple[str, str, tuple[str, ...], int]


def key(spec: RunSpec) -> Key:
    """Which cell and seed a run is for: entrant, model, benchmarks, seed."""
    return spec.entrant.name, spec.model.name, tuple(benchmark.name for benchmark in spec.benchmarks), spec.seed


NOT_DECIDED = ("id", "definitions")
ONLY_SHOWN = ("licence", "source")


def decided(spec: RunSpec) -> dict[str, Any]:
    """All that was decided, as plain values: without ids and digests, and without what is only shown."""
    whole = to_builtins(spec)
    del whole["entrant"]["title"]  # the titles of model and benchmark stay: the agent reads them
    return {field: shorn(value) for field, value in whole.items() if field not in NOT_DECIDED}


def shorn(value: Any) -> Any:
    """A value without the fields that only people read, and with numbers of one kind."""
    if isinstance(value, dict):
        return {name: shorn(inner) for name, inner in value.items() if name not in ONLY_SHOWN}
    if isinstance(value, list | tuple):
        return [shorn(inner) for inner in value]
    return float(value) if type(value) is int else value


def decisions(spec: RunSpec) -> str:
    """Digest of all that was decided, so that runs made under other decisions are told apart."""
    return hashlib.sha256(json.encode(decided(spec), order="sorted")).hexdigest()
