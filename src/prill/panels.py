"""What is decided about a panel: who is asked, what, how often, and how several votes become one verdict.

Plain frozen values, read from TOML by `catalog.py`; each judgement of a panel keeps the whole value it was made under.
"""

from typing import Literal

from msgspec import Struct

from prill.outside import Wire


class Fact(Struct, frozen=True, forbid_unknown_fields=True):
    """A value with named fields; a field that is not declared is an error, not a silent extra."""


class Question(Fact, frozen=True, kw_only=True):
    """One question, put to every vote; it is answered with one truth value for each of its fields."""

    name: str
    title: str
    rules: dict[str, str]
    """Field of the answer, true where the rule is broken → the rule."""
    words: str
    """What is asked. Blanks: `{model}`, `{benchmarks}`, `{agent}`, `{allowed}`, `{forbidden}`."""
    votes: int = 1
    combine: Literal["any", "majority"] = "any"
    """`any`: one vote of broken is enough; `majority`: of three votes or more, field by field (Z4)."""

    def __post_init__(self) -> None:
        if not self.rules:
            raise ValueError(f"question {self.name} has no rules")
        if self.votes < 1 or (self.combine == "majority" and self.votes < 3):
            raise ValueError(f"question {self.name}: combine = {self.combine!r} takes {3 if self.votes else 1} votes")


class Panel(Fact, frozen=True, kw_only=True):
    """A panel: a model or an agent that is asked some questions about a finished run."""

    name: str
    title: str
    source: str
    provider: str
    """Who answers, of providers/; behind a gateway of the judge's own, which holds the key."""
    prices: str
    """The list that the judge's ledger reckons by."""
    usd: float
    """The most that one judging of one run may cost; beyond it nothing more is asked, which is an error."""
    model: str
    wire: Wire = "chat"
    """How a plain model is asked."""
    agent: str | None = None
    """The agent plug-in that answers, in a fresh box for each answer; `None`: a plain model."""
    version: str | None = None
    """Of the agent's program."""
    program: str | None = None
    """For agent `scripted`: the program, found in the catalog's folders."""
    settings: dict[str, str | int | bool] = {}
    """Of the agent, as an entrant's."""
    effort: str | None = None
    temperature: float | None = None
    """`None` leaves it to the provider."""
    max_tokens: int = 16_000
    """Of an answer, reasoning included; a plain model's."""
    tries: int = 3
    """How often an answer is asked for until it can be read."""
    connections: int = 4
    answer_seconds: float = 1_800.0
    part_characters: int = 100_000
    """Of the quoted run in one inquiry; a longer one is put in several parts."""
    overlap_steps: int = 2
    """The last steps of a part, shown again at the head of the next."""
    step_characters: int = 6_000
    """Of one step; of a longer one the middle is left out, and said so."""
    file_characters: int = 6_000
    """Of one file of the workspace that is quoted, from its head; 0: none."""
    most_parts: int = 80
    """What is beyond is not shown, and then nothing is called kept."""
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        rules = [rule for question in self.questions for rule in question.rules.values()]
        if not rules or len(set(rules)) != len(rules):
            raise ValueError("a panel has questions, and each rule belongs to one field of one of them")
        if min(self.part_characters - self.step_characters * (self.overlap_steps + 1), self.step_characters) < 500:
            raise ValueError("a part must hold its overlap and one more step, each of 500 characters or more")

    @property
    def rules(self) -> tuple[str, ...]:
        """All rules that it speaks to."""
        return tuple(rule for question in self.questions for rule in question.rules.values())
