"""What is known after a run: outcome, steps, submission, measurements, findings.

Each file of a run folder is one of these and names its schema. Missing is `None` beside a field that says why;
it is never zero. What was decided before the run lives in `spec.py`,
what is computed from runs in `standings.py`.
"""

from typing import Any, Literal

from msgspec import Struct

from prill.outside import Purchase
from prill.spec import RunSpec

Ended = Literal[
    "finished", "time_limit", "wallet_empty", "disk_limit", "inner_timeout", "killed", "oom_killed", "terminated",
    "early_end", "agent_gave_up", "agent_loop_abort", "no_output", "failed", "stopped", "api_overloaded",
    "api_rate_limit", "api_quota", "api_auth", "infra_disk", "infra_stale_handle", "infra_gpu_busy", "infra_cuda",
    "infra_node", "unknown",
]  # fmt: skip
"""How an agent's program ended, by the classes of RULES.md I. `finished`: by itself, leaving a model. `stopped`: by
whoever runs it. `unknown`: a run that prill did not make, whose tree does not say."""
OURS = frozenset(
    {
        *("stopped", "api_overloaded", "api_rate_limit", "api_quota", "api_auth"),
        *("infra_disk", "infra_stale_handle", "infra_gpu_busy", "infra_cuda", "infra_node"),
    }
)
"""What is not the agent's doing: such a run does not count, it is listed as lost, and another takes its place."""


class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """A value that one stage wrote and nobody changes."""


class Event(Record, frozen=True, kw_only=True):
    """One line of `events.jsonl`."""

    at: float
    """Seconds since 1970, wall clock of the runner."""
    event: str
    stage: str | None = None
    detail: dict[str, Any] = {}


class Bought(Record, frozen=True, kw_only=True):
    """What a run paid for one kind of thing."""

    usd: str | None
    """Dollars as decimal text, by the ledger; `None`: it was not for sale, or could not be."""
    why: str
    beside: bool = False
    """Whether it is beside the wallet's limit."""


class Outcome(Record, frozen=True, kw_only=True, tag="prill/outcome/1", tag_field="schema"):
    """How solving ended. Written last by `solve`: its existence means that the agent is done."""

    ended: Ended
    why: str
    exit_code: int | None
    signals: tuple[str, ...]
    """Signals that we sent, in order."""
    wall_seconds: float | None
    limit_seconds: float
    steps: int
    isolated: bool
    sandbox: str
    output_bytes: int
    output_dropped_bytes: int
    tokens_in: int | None = None
    tokens_out: int | None = None
    usd: float | None = None
    """Dollars for the agent's own model."""
    spend_why: str = "no model was called through the gateway"
    bought: dict[Purchase, Bought] = {}
    """By kind, the agent's own model too; empty for a run that prill did not make."""
    evidence: dict[str, Any] = {}
    """What the class rests on, with units in the names."""
    programs: int = 1
    """How often the agent's program was started: once, and again for each time it was asked to go on."""
    resumed: int = 0
    """How often it went on after the keeper of its box had died."""
    agent_version: str | None = None


class Step(Record, frozen=True, kw_only=True):
    """One thing that an agent said or did, numbered from 1; `offset` and `length` point into the raw output."""

    step: int
    kind: Literal["message", "command", "result", "other"]
    text: str
    offset: int
    length: int
    seconds: float | None = None
    """Since the agent began, as our clock saw the bytes arrive."""
    source: Literal["agent", "user", "system"] = "agent"
    """Who speaks: `user` is whoever prompts, `system` the program round the model."""
    thought: bool = False
    """Reasoning that the program shows; no answer."""
    call: str | None = None
    """The tool call's id, on a command and on its result."""
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    model: str | None = None
    tokens: dict[str, int] | None = None
    """Of the one model call that this step ends, by the program's own count."""
    usd: float | None = None
    at: str | None = None
    """The program's own time stamp, ISO 8601."""


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


class Call(Record, frozen=True, kw_only=True):
    """One tool call as the model wrote it."""

    name: str
    arguments: str
    """Text that should be a JSON object, and may be anything."""


Stop = Literal["stop", "length", "timeout", "refused", "empty", "server"]
"""How a reply ended, all of it the model's doing. `length`: cut off by its token limit, context window or our cap.
`server`: a submission's own server sent no well-formed reply."""


class Reply(Record, frozen=True, kw_only=True):
    """What came back for one request."""

    text: str
    stop: Stop
    calls: tuple[Call, ...] = ()
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
    seed: int | None = None
    """Of the pass that it belongs to."""


class Contract(Record, frozen=True, kw_only=True):
    """How a benchmark's requests will be decoded, settled from files before the first of them is sent."""

    engine: str
    chat: bool
    """Asked as messages; otherwise as plain text to be continued, for which no template is needed."""
    family: str | None
    """Of the architecture: decides the tool-call format, and nothing else here."""
    template: Literal["submission", "suite"] | None
    """Whose chat template is used; `None` where there is none, or none is needed."""
    template_sha256: str | None
    suite_template: str | None
    """The text of a template that the suite prescribes."""
    stop_ids: tuple[int, ...]
    stop_tokens: tuple[str, ...]
    """What those ids stand for, as far as the tokenizer says."""
    context: int | None
    """Tokens of prompt and reply together; `None` where no file says."""
    max_tokens: int
    """The most new tokens of a reply, as the server will really count them."""
    sampling: dict[str, Any]
    """What the server really applies, by its own names; a temperature of 0 is greedy."""
    greedy: bool
    ignored: tuple[str, ...] = ()
    """Settings of the submission or the benchmark that this server does not apply, each with why."""
    tools: bool = False
    faults: tuple[Fault, ...] = ()


class Judged(Record, frozen=True, kw_only=True):
    """What a judge model made of all replies of a benchmark: the readings, and how they came about."""

    official: float | None
    """As the published scorer counts what could not be judged."""
    robust: float | None
    """`None`: something could not be judged that the score needs; `why` says what."""
    why: str
    n: int
    """Items that the robust reading stands on."""
    stderr: float | None
    items: tuple["JudgedItem", ...]
    numbers: dict[str, Any]
    """What is shown beside the score: parts of it, missing verdicts, style."""
    judge: dict[str, Any]
    """The judge model, its settings, the digest of the prompts, calls, tokens and price."""
    log: str | None = None
    """The judge's replies as they came, by their file name beside this file."""


class JudgedItem(Record, frozen=True, kw_only=True):
    """One item: its value and each verdict it stands on."""

    item: str
    value: float | None
    why: str
    parts: tuple[dict[str, Any], ...]


class Pass(Record, frozen=True, kw_only=True):
    """One seed of a measurement: every item asked once."""

    seed: int | None
    value: float | None
    official: float | None
    robust: float | None
    stderr: float | None
    stops: dict[str, int]
    log: str | None
    """The eval log's file name beside this file."""
    wall_seconds: float


class Measurement(Record, frozen=True, kw_only=True, tag="prill/measurement/1", tag_field="schema"):
    """One benchmark put to one sealed submission, once for each of its seeds."""

    benchmark: str
    seed: int | None
    """`None` where nothing was seeded, or where there are several: then see `passes`."""
    state: Literal["measured", "unloadable", "failed", "ungraded"]
    """`failed`: no try of the evaluation gave a number. `ungraded`: our grader failed, and nothing follows."""
    why: str
    value: float | None
    """The reading that counts, in 0..1, over all items (errors stay in the denominator)."""
    official: float | None
    robust: float | None
    n: int
    """Items; each is asked once for each seed."""
    stderr: float | None
    """Between items and between seeds; see `exam.standard_error`."""
    stops: dict[str, int]
    items: tuple[ItemMark, ...]
    submission: str | None
    """Digest of what was measured."""
    settings: dict[str, Any]
    """Engine, version, and the generation settings really used."""
    log: str | None
    """The first pass's eval log, by its file name beside this file."""
    wall_seconds: float
    isolated: bool
    passes: tuple[Pass, ...] = ()
    limit: int | None = None
    """Only the first so many items were asked; `None`: all of them."""
    contract: Contract | None = None
    judged: Judged | None = None
    """For a benchmark that a judge model marks."""


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
    version: str | None = None
    """Which model, prompt or layout spoke, where the judge's name does not say it."""
    findings: tuple[Finding, ...]
    isolated: bool
    wall_seconds: float
    by: Literal["evidence", "models", "person"] = "evidence"
    """Who speaks: a program that reads evidence, models that were asked, or a person who overrules both."""
    asked: dict[str, Any] = {}
    """Of models: the whole panel, the digest of its words, what was spent; replies and ledger lie beside this file."""
    signed: dict[str, Any] | None = None
    """Of a person: the statement with these findings, as a signed DSSE envelope."""


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
