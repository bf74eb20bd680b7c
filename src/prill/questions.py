"""What people ask of a release: how its folders are named, which facts to look for, who testifies, what is claimed.

Plain frozen values, written as TOML and read by `catalog.py` (the kinds `namings`, `facts` and `audits`); what is found
out about them lives in `evidence.py`. A *pointer* is text of the form `evidence/coverage.json#/counts/roots`: a file of
a bundle, and a place in it by RFC 6901.
"""

from typing import Any, Literal

from msgspec import field

from prill.spec import Frozen

Reading = Literal["text", "integer", "number", "expression", "present", "list", "count", "folders"]
"""What a fact's value is: the matched text, as a number, the whole expression it stands in, whether it is there at all,
every match, how many active matches, or the folders of a folder."""
Verdict = Literal["supported", "refuted", "untested"]


class NamedModel(Frozen, frozen=True, kw_only=True):
    """A model as the names of a tree spell it."""

    folder: str
    """As it stands in the name of a cell's folder."""
    title: str
    repo: str = ""


class Naming(Frozen, frozen=True, kw_only=True):
    """How the folders of a released tree are named: `ROOT/CELL/…`."""

    name: str
    title: str
    source: str
    root: str
    """Regular expression of a root's whole name; its groups `who`, `hours`, `gpus`, `experiment` are read."""
    cell: str
    """Regular expression of a cell's whole name, with the groups `benchmark`, `model` and `job`."""
    agents: tuple[str, ...] = ()
    """Known agents, so that `who` can be cut into agent and configuration: the longest that fits counts."""
    benchmarks: tuple[str, ...]
    """Accepted benchmarks, in the order of the table."""
    models: tuple[NamedModel, ...]
    """Accepted models, in the order of the table."""
    auxiliary: dict[str, str] = field(default_factory=dict)
    """Top-level folders that are known not to be roots, each with what it is."""
    left_out: dict[str, str] = field(default_factory=dict)
    """How names begin that are no roots although they look like one, each with why."""


class Region(Frozen, frozen=True, kw_only=True):
    """The lines behind one that matches `start`, up to the next that matches `stop`."""

    start: str
    stop: str


class Fact(Frozen, frozen=True, kw_only=True):
    """One thing to read out of a pinned repository."""

    id: str
    title: str
    path: str
    """In the repository; for `folders` a folder, else a file."""
    pattern: str
    """Regular expression, put to each line; its first group (or all that matched) is the value."""
    read: Reading = "text"
    within: Region | None = None
    comment: str | None = None
    """How a comment begins in this file; default: by the file's ending."""
    unit: str = ""


class FactSet(Frozen, frozen=True, kw_only=True):
    """Facts about one repository."""

    name: str
    title: str
    source: str
    commit: str | None = None
    """The commit at which these patterns were written; another may be audited."""
    facts: tuple[Fact, ...]


class Quoted(Frozen, frozen=True, kw_only=True):
    """A place in a trace: a record by its number, counted from `Witness.first`, and a place in it."""

    record: int
    pointer: str
    text: str | None = None
    """What stands there, or a part of it; without it, all that stands there is quoted."""


class Witness(Frozen, frozen=True, kw_only=True):
    """A file of the released tree that says something about a run."""

    id: str
    title: str
    path: str
    type: str
    """What kind of observation it is, such as `upstream_judge_label` or `trace`."""
    redistribute: bool = True
    """Whether its text may stand in the bundle; size and digest always do."""
    sha256: str | None = None
    """What its digest should be, if that is known."""
    first: Literal[0, 1] = 1
    """The number of a trace's first record."""
    excerpts: tuple[Quoted, ...] = ()


class Expectation(Frozen, frozen=True, kw_only=True):
    """What a place in the evidence should hold."""

    at: str
    equals: Any


class Part(Frozen, frozen=True, kw_only=True):
    """A claim taken apart: one thing that is so or not. Either `expects` decides, or a person with `evidence`."""

    id: str
    text: str
    verdict: Verdict | None = None
    why: str = ""
    evidence: tuple[str, ...] = ()
    expects: tuple[Expectation, ...] = ()

    def __post_init__(self) -> None:
        if self.expects and self.verdict:
            raise ValueError("a part has either expects, which decide, or a verdict with evidence, not both")
        if self.verdict in ("supported", "refuted") and not self.evidence:
            raise ValueError(f"{self.verdict} needs evidence; without any, a part is untested")


class Claim(Frozen, frozen=True, kw_only=True):
    """A sentence of a paper, and what it comes down to."""

    id: str
    text: str
    source: str
    sha256: str | None = None
    """Of the text, if it was pinned."""
    summary: str = ""
    parts: tuple[Part, ...]
    limitations: tuple[str, ...] = ()


class Audit(Frozen, frozen=True, kw_only=True):
    """Everything about one audit that is decided by people; where trees and repositories lie is an option."""

    name: str
    title: str
    about: dict[str, str] = field(default_factory=dict)
    """Names of papers, attempts, places: shown as they are, each under its key, which is of letters and `_`."""
    naming: str | None = None
    below: str = ""
    """The folder of the listing that the roots lie in."""
    facts: str | None = None
    commit: str | None = None
    witnesses: tuple[Witness, ...] = ()
    claims: tuple[Claim, ...] = ()
    limitations: tuple[str, ...] = ()
    not_claimed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in self.about:
            if not key.replace("_", "").isalpha():
                raise ValueError(f"about.{key}: a key is of letters and _, so that a page can show it as a word")
