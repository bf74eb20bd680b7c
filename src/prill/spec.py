"""What is decided before a run: suites, benchmarks, base models, entrants, budgets, and the run's own spec.

All are plain frozen values. They are read from TOML by `catalog.py`, which refuses fields that are not listed
here, and written into each run folder by `folder.py`. What is known only after a run lives in `record.py`.
"""

from typing import Literal

from msgspec import Struct

from prill.outside import Dollars, HostPolicy, Prices, Provider, Purchase

Effect = Literal["base", "zero", "hold", "none"]
"""What breaking a rule does to a cell: the base model's score, zero, no number until a person looks, nothing."""


class Frozen(Struct, frozen=True, forbid_unknown_fields=True):
    """A value with named fields; a field that is not declared is an error, not a silent extra."""


class Budget(Frozen, frozen=True, kw_only=True):
    """What a run may use up. `None` means that the suite sets no such limit."""

    hours: float
    usd: float | None = None
    gpus: int = 0
    gpu_kind: str | None = None
    """What the GPUs' name must have in it, such as `H100`."""
    gpu_usd_per_hour: Dollars | None = None
    """What all GPUs together cost, charged to the wallet as time passes; `None`: nothing."""
    storage_usd_per_gb_hour: Dollars | None = None
    """What a GB (2^30 bytes) that the agent keeps on disk costs an hour; `None`: it is not charged."""
    beside: tuple[Purchase, ...] = ()
    """Kinds of purchases that are written down and do not count against `usd`."""
    self_checks: int = 0
    memory_gb: float | None = None
    processes: int = 512
    disk_gb: float = 4.0
    grace_seconds: float = 30.0
    """Between TERM and KILL, once the time is over."""


class Answers(Frozen, frozen=True, kw_only=True):
    """One reference answer for each item, from a file of its own; what a reply is compared with."""

    url: str
    by: str
    """The model that wrote them."""
    format: str
    """Function of `rows.py` that reads a row of the file."""


class Data(Frozen, frozen=True, kw_only=True):
    """Where a benchmark's items come from, pinned: `path` in the catalog's folders, `repo` on a hub, or `url`."""

    path: str | None = None
    repo: str | None = None
    url: str | None = None
    """A file on the web; it is pinned by `digest`."""
    config: str | None = None
    revision: str | None = None
    split: str = "test"
    files: tuple[str, ...] = ()
    """Files of the repository to read, in order, where its own loader will not do."""
    format: str = "items"
    """Function of `rows.py` that makes an item of a row; `items` is prill's own form."""
    where: dict[str, str] = {}
    """Only rows whose field has this value."""
    first: dict[str, int] = {}
    """Of each value of this field, only so many rows, the first."""
    answers: Answers | None = None
    gated: bool = False
    """Whether the hub gives it only to those who have accepted its terms."""
    count: int
    digest: str | None = None
    """`sha256:` over the items as canonical JSON lines, in order; `None` where nobody here could see them all."""
    digest_why: str = ""
    """Why there is no digest, or which copy of the items it was taken from."""

    def __post_init__(self) -> None:
        if sum(place is not None for place in (self.path, self.repo, self.url)) != 1:
            raise ValueError("exactly one of path, repo and url says where the items are")
        if self.digest is None and not self.digest_why:
            raise ValueError("without a digest, digest_why says why there is none")


class FewShot(Frozen, frozen=True, kw_only=True):
    """Worked examples in front of the question, from another split of the same data; they end the system message."""

    split: str = "train"
    rows: tuple[int, ...]
    """Which rows of the split, counted from 0, in the order in which they are shown."""
    out_of: int
    """How many rows the split has."""
    why: str
    """How these rows were chosen."""
    template: str
    """One example, with the blanks of a prompt and `{answer}`."""
    between: str = "\n\n"


class Sampling(Frozen, frozen=True, kw_only=True):
    """How replies are drawn. `None` leaves the setting to the submission's own generation_config."""

    max_tokens: int
    ladder: tuple[int, ...] = ()
    """`max_tokens` of the next tries, largest first, where the server cannot work with the one above."""
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None


class Asked(Frozen, frozen=True, kw_only=True):
    """The language model that a grader asks, and how."""

    model: str
    effort: str | None = None
    max_tokens: int
    """Completion tokens, reasoning included."""
    tries: int
    connections: int


class Benchmark(Frozen, frozen=True, kw_only=True):
    """A test that a submission sits: items, prompt, how to ask, how to mark."""

    name: str
    title: str
    data: Data
    prompt: str
    """The user message. Blanks: `{question}`, `{choices}` (one lettered line each), `{letters}`, and each text
    field of the item by its name."""
    prompt_with: dict[str, str] = {}
    """Another prompt for items that have something in the field of this name."""
    system: str | None = None
    few_shot: FewShot | None = None
    ask: Literal["chat", "completion"] = "chat"
    """`completion` puts one text without any chat template."""
    templates: dict[str, str] = {}
    """Family of architecture → the chat template that replaces the submission's; empty: its own is used."""
    shuffle: bool = False
    """Whether options are shown in an order of their own for each item and seed."""
    grader: str
    marking: dict[str, str | int | float | bool] = {}
    """Fields that every item gets for its grader, such as `official`: which published scorer is meant."""
    asked: Asked | None = None
    """For graders that ask a language model."""
    counts: Literal["official", "robust"]
    """Which of a mark's two readings is the score; the other is shown beside it."""
    metric: Literal["mean", "clipped-mean", "votes"] = "mean"
    """`clipped-mean`: the mean of the items, held within 0 and 1. `votes`: the mean over all votes of all items."""
    sampling: Sampling
    seeds: tuple[int | None, ...] = (None,)
    """One pass over all items for each; `None` is a pass without a seed."""
    seeds_if_greedy: tuple[int | None, ...] | None = None
    """Instead of `seeds`, for a submission that draws nothing by chance."""
    request_seconds: float = 120.0
    connections: int = 32
    floor: float = 0.0
    ceiling: float = 1.0
    offered: tuple[str, ...] = ()
    """Training data that the agent may use freely; placed in its box under /data."""
    allowed: tuple[str, ...] = ()
    """Data sets on the hub that look like this benchmark's and may be trained on."""
    forbidden: tuple[str, ...] = ()
    """Data sets on the hub that hold its items and must not be trained on."""
    canary: str | None = None
    """The mark that its authors put into their data so that it can be found where it should not be."""
    licence: str
    source: str
    """Where these facts come from."""


class Sibling(Frozen, frozen=True, kw_only=True):
    """A known post-trained relative of a base model, which a submission must not be."""

    name: str
    digest: str | None = None
    """As the base model's; `None` where its files were not at hand, and `digest_why` says so."""
    digest_why: str = ""
    path: str | None = None
    repo: str | None = None
    revision: str | None = None


class Fingerprint(Frozen, frozen=True, kw_only=True):
    """A file of samples of known siblings and control runs of a base model, made by `prill fingerprint`."""

    path: str
    digest: str
    """`sha256:` of the file."""


class BaseModel(Frozen, frozen=True, kw_only=True):
    """The model an agent starts from."""

    name: str
    title: str
    architecture: str
    parameters: int
    digest: str | None = None
    """`sha256:` over the folder's file digests; see `folder.tree_digest`. `None` where they were not at hand."""
    digest_why: str = ""
    """Why there is no digest."""
    path: str | None = None
    repo: str | None = None
    revision: str | None = None
    siblings: tuple[Sibling, ...] = ()
    fingerprints: tuple[Fingerprint, ...] = ()
    """Of siblings that need not be at hand then, and of control runs."""
    licence: str


class Reprompt(Frozen, frozen=True, kw_only=True):
    """An agent that ends before its time is over is asked to go on."""

    words: str
    """What it is told; `{time}` is what is left, in words."""
    pause_seconds: float = 10.0
    """Before the first; doubled after each that brought nothing within a minute."""
    least_seconds: float = 600.0
    """With less time left than this it is let go."""
    most: int = 100


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
    provider: str | None = None
    """Who answers its model calls, behind the gateway; `None`: it calls no model."""
    version: str | None = None
    """Of the agent's program; that one is installed and run, no other."""
    settings: dict[str, str | int | bool] = {}
    """What this agent's file knows beyond the rest."""
    reprompt: Reprompt | None = None


class ScoreRule(Frozen, frozen=True, kw_only=True):
    """How measurements become a headline."""

    scale: Literal["raw", "floor-to-ceiling"] = "raw"
    """`floor-to-ceiling` puts each benchmark's floor at 0 and its ceiling at 1, clamped; the unclamped stays beside."""
    weights: dict[str, float]
    weights_from: Literal["written", "gap"] = "written"
    """`gap`: the weights must be 1/(instruct − base), normalised, of the suite's references; both are compared."""
    headline: Literal["weighted-mean"] = "weighted-mean"
    """Per seed the benchmarks' means over models, weighted; then the mean over seeds."""
    selection: Literal["first", "latest", "best", "mean"] = "first"
    """Which of several finished runs of one cell and seed counts."""


class Reference(Frozen, frozen=True, kw_only=True):
    """A reference score of an untouched model on a benchmark, used where policy falls back to the base."""

    model: str
    benchmark: str
    base: float
    instruct: float | None = None
    fewshot: float | None = None
    """The base model's, shown worked examples."""
    source: str = ""


class ReferenceSet(Frozen, frozen=True, kw_only=True):
    """Reference scores that several suites share."""

    name: str
    title: str
    source: str
    scores: tuple[Reference, ...]


class TemplateSet(Frozen, frozen=True, kw_only=True):
    """Chat templates that a suite prescribes, by family of architecture, as Jinja text."""

    name: str
    title: str
    source: str
    templates: dict[str, str]
    with_tools: dict[str, str] = {}
    """In their place, for benchmarks that offer tools."""


class Changes(Frozen, frozen=True, kw_only=True):
    """What a suite changes in a benchmark; what is left out stays as the benchmark has it."""

    seeds: tuple[int | None, ...] | None = None
    seeds_if_greedy: tuple[int | None, ...] | None = None
    marking: dict[str, str | int | float | bool] = {}
    """Merged into the benchmark's own."""
    templates: dict[str, str] | None = None


class Suite(Frozen, frozen=True, kw_only=True):
    """A whole assay as data: which cells, under which budget, judged by whom, scored how."""

    name: str
    title: str
    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    changes: dict[str, Changes] = {}
    """Benchmark → what this suite changes in it."""
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
    prices: str | None = None
    """List of prices that the wallet reckons by; needed where an entrant has a provider, or the suite a teacher."""
    teacher: str | None = None
    """Provider of whom the agent may buy `teacher_models`, by a door and a key of their own; `None`: no teacher."""
    teacher_models: tuple[str, ...] = ()
    hosts: str | None = None
    """Policy for the hosts that a box may reach; `None`: none but the gateway."""
    panel: str | None = None
    """What judge `panel` asks, of panels/."""
    signers: dict[str, str] = {}
    """Who may overrule judges → their public ed25519 key, the middle line of its PEM file."""
    verdicts: tuple[str, ...] = ()
    """Rules on which some judge must have spoken, whoever it was; a run without such a verdict is held."""
    references: tuple[Reference, ...] = ()
    reference_sets: dict[str, str] = {}
    """Name of a set of reference scores → its digest; those of the suite's cells join `references`."""
    template_sets: dict[str, str] = {}
    """Name of a set of chat templates → its digest; they join each benchmark's `templates`."""

    def __post_init__(self) -> None:
        if (self.teacher is None) != (not self.teacher_models):
            raise ValueError("teacher and teacher_models go together: who answers, and which models may be asked")
        if self.teacher is not None and self.budget.usd is None:
            raise ValueError("a teacher needs a wallet: without budget.usd nothing limits what is bought of it")


class Prompt(Frozen, frozen=True, kw_only=True):
    """The words for an agent: a template with named blanks, and the wording of each rule."""

    name: str
    template: str
    rules: dict[str, str]


class Origin(Frozen, frozen=True, kw_only=True):
    """Where a run comes from that prill did not make itself, and what its tree tells of it."""

    importer: str
    path: str
    """In the tree that was imported."""
    order: int
    """The tree's own number for the run; a higher one began later."""
    told: tuple[str, ...]
    """The decisions that the tree tells, such as `budget.hours`; all others are the suite's and are not compared."""
    exempt: dict[str, str] = {}
    """Rule → why the published rules ask no verdict on it for this run."""


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
    provider: Provider | None = None
    teacher: Provider | None = None
    """Of the models that the agent may buy as teachers."""
    teacher_models: tuple[str, ...] = ()
    prices: Prices | None = None
    hosts: HostPolicy | None = None
    panel: str | None = None
    """What judge `panel` asks first; judging can be repeated under another, and each judgement keeps its own."""
    origin: Origin | None = None
    """`None` for a run that prill made."""
