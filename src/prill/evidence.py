"""What an audit finds: an inventory, facts, witnesses, claims with their status, and where all of it came from.

prill writes these into a bundle, as JSON; each file names its schema. What people asked for stands in `questions.py`.
"""

from typing import Any, Literal

from msgspec import field

from prill.questions import Expectation, NamedModel, Reading, Verdict
from prill.record import Record

COVERAGE, PROTOCOL, WITNESSES, CLAIMS = (
    f"evidence/{name}.json" for name in ("coverage", "protocol", "witnesses", "claims")
)
"""Where the parts of an audit stand in its bundle."""
Status = Literal["supported", "partial support", "refuted", "untested"]


class Root(Record, frozen=True, kw_only=True):
    """A recognised root and what its name says."""

    name: str
    agent: str | None
    config: str | None
    hours: int | None
    gpus: int | None
    experiment: str
    tasks: int


class Task(Record, frozen=True, kw_only=True):
    """A recognised task: one folder of a root."""

    path: str
    root: str
    benchmark: str
    model: str
    job: str
    files: int
    bytes: int | None
    """`None`: the listing has no sizes."""
    sha256: str | None
    """Over its lines of "digest, two blanks, path" in the listing's order; `None`: the listing has no digests."""


class Several(Record, frozen=True, kw_only=True):
    """A pair of root and cell with more than one task; ids are compared as numbers."""

    root: str
    benchmark: str
    model: str
    folders: tuple[str, ...]
    latest: str


class Pair(Record, frozen=True, kw_only=True):
    """A root and a cell."""

    root: str
    benchmark: str
    model: str


class Excluded(Record, frozen=True, kw_only=True):
    """A folder that is not counted as a task or a root."""

    path: str
    files: int
    directories: int | None
    """The folder itself and those below; `None`: more than can be told apart in bounded memory."""
    counted_as_root: bool = False
    why: str


class Counts(Record, frozen=True, kw_only=True):
    """The numbers of an inventory; each is derived from lists beside it."""

    benchmarks: int
    models: int
    roots: int
    tasks: int
    pairs: int
    expected_pairs: int
    surplus: int
    """Tasks beyond one a pair."""
    several: int
    """Pairs with more than one task."""
    missing: int
    nested: int
    auxiliary: int
    unaccepted: int
    paths: int


class Listing(Record, frozen=True, kw_only=True):
    """What an inventory was taken from."""

    kind: Literal["folder", "listing", "zip", "tar"]
    name: str
    form: str
    below: str
    sha256: str | None
    """Of the listing, where there is one; an archive and a folder are read without."""


class Inventory(Record, frozen=True, kw_only=True, tag="prill/inventory/1", tag_field="schema"):
    """A released tree, counted."""

    naming: str
    naming_sha256: str
    source: Listing
    benchmarks: tuple[str, ...]
    models: tuple[NamedModel, ...]
    counts: Counts
    cell_counts: dict[str, tuple[int, ...]]
    """Benchmark → tasks by model, in the order of `models`."""
    roots: tuple[Root, ...]
    tasks: tuple[Task, ...]
    several: tuple[Several, ...]
    missing: tuple[Pair, ...]
    nested: tuple[Excluded, ...]
    auxiliary: tuple[Excluded, ...]
    unaccepted: tuple[Excluded, ...]
    bare: tuple[str, ...]
    """Named like a task, but nothing lies below: not counted."""
    faults: tuple[str, ...]
    """Lines that are no path of the tree, the first of them."""


class Blob(Record, frozen=True, kw_only=True):
    """A file of a commit."""

    path: str
    blob: str
    """Its git object id, recomputed from the bytes."""
    sha256: str
    """Of the raw bytes."""
    bytes: int


class Place(Record, frozen=True, kw_only=True):
    """Where a pattern matched."""

    line: int
    end_line: int
    active: bool
    """False: in a comment."""
    value: Any
    text: str
    """The whole statement, as it stands there."""


class Found(Record, frozen=True, kw_only=True):
    """A fact as it was found. `value` is `None` where nothing, or several different things, were found; see `why`."""

    title: str
    read: Reading
    pattern: str
    unit: str
    value: Any
    why: str
    path: str
    blob: str | None
    sha256: str | None
    lines: tuple[int, ...]
    """Of active places, each once."""
    count: int | None
    """Of a value that is a list."""
    places: tuple[Place, ...]
    several: bool


class Protocol(Record, frozen=True, kw_only=True, tag="prill/protocol/1", tag_field="schema"):
    """Facts out of a pinned commit, whose every object was hashed on the way from the commit to the file."""

    facts_of: str
    facts_sha256: str
    commit: str
    tree: str
    files: dict[str, Blob]
    facts: dict[str, Found]


class Excerpt(Record, frozen=True, kw_only=True):
    """A quoted place of a trace. `found` false: `text` is what was looked for and is not there."""

    record: int
    pointer: str
    text: str
    sha256: str
    found: bool
    why: str = ""


class Seen(Record, frozen=True, kw_only=True):
    """A witness as it was found."""

    title: str
    path: str
    type: str
    state: Literal["present", "absent", "unreadable"]
    why: str
    bytes: int | None
    sha256: str | None
    pinned: bool | None
    """Whether the digest is the one that was expected; `None`: none was."""
    redistributed: bool
    content: "Content | None"
    excerpts: tuple[Excerpt, ...]


class Content(Record, frozen=True, kw_only=True):
    """The whole text of a small witness."""

    text: str
    sha256: str
    ends_in_newline: bool


class Witnesses(Record, frozen=True, kw_only=True, tag="prill/witnesses/1", tag_field="schema"):
    """Files that say something about runs; an absent one is a finding too."""

    witnesses: dict[str, Seen]
    present: int
    absent: int
    unreadable: int


class Cite(Record, frozen=True, kw_only=True):
    """A pointer, and the digest of the JSON that it led to (sorted keys, no blanks)."""

    at: str
    sha256: str


class Judged(Record, frozen=True, kw_only=True):
    """A part of a claim, with its verdict."""

    id: str
    text: str
    verdict: Verdict
    why: str
    evidence: tuple[Cite, ...]
    expects: tuple[Expectation, ...]


class Assessed(Record, frozen=True, kw_only=True):
    """A claim with the status that follows from its parts."""

    text: str
    sha256: str
    source: str
    summary: str
    status: Status
    parts: tuple[Judged, ...]
    supported: int
    refuted: int
    untested: int
    limitations: tuple[str, ...]


class Claims(Record, frozen=True, kw_only=True, tag="prill/claims/1", tag_field="schema"):
    """All claims of an audit, and what it does not claim."""

    title: str
    about: dict[str, str]
    claims: dict[str, Assessed]
    limitations: tuple[str, ...]
    not_claimed: tuple[str, ...]


class Input(Record, frozen=True, kw_only=True):
    """Bytes that the evidence was computed from."""

    kind: Literal["definition", "listing", "git object", "file"]
    name: str
    sha256: str | None
    """`None`: it was not there."""
    bytes: int | None
    about: dict[str, str] = field(default_factory=dict)


class Tool(Record, frozen=True, kw_only=True):
    """The program that made a bundle."""

    name: str
    version: str
    python: str


class Provenance(Record, frozen=True, kw_only=True, tag="prill/provenance/1", tag_field="schema"):
    """How a bundle was made."""

    tool: Tool
    command: tuple[str, ...]
    """As typed; of absolute paths only the last part."""
    started: str
    finished: str
    inputs: dict[str, Input]
