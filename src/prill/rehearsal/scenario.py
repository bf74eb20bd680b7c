"""What a scenario says: turns, usage, troubles; and which turn a conversation has come to."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from prill.errors import DefinitionError


class Fact(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A value with named fields; a field that is not declared is an error, not a silent extra."""


class Usage(Fact, frozen=True, kw_only=True):
    """Tokens that a reply is charged with, each counted once."""

    input: int = 1000
    """Prompt tokens that were neither read from a cache nor written to one."""
    cache_read: int = 0
    cache_write: int = 0
    output: int = 50
    """All tokens of the reply, those of `reasoning` among them."""
    reasoning: int = 0


class Call(Fact, frozen=True, kw_only=True):
    """A tool that the model calls: `shell` runs a command, `write` writes a file."""

    tool: Literal["shell", "write"] = "shell"
    command: str = ""
    seconds: float = 60.0
    """How long the command may take, where the client's tool can be told."""
    path: str = ""
    text: str = ""


class Trouble(Fact, frozen=True, kw_only=True):
    """What goes wrong with a turn, for the first `times` requests that come to it."""

    how: Literal["status", "cut", "hang", "garbage"]
    """An error's status; the connection is cut; silence for ever; bytes that are no event."""
    status: int = 500
    message: str = "the rehearsal was told to fail here"
    retry_after_seconds: int | None = None
    after: int = 0
    """Events that are sent before it; of a reply that is not streamed, half of it where this is above 0."""
    times: int = 1
    always: bool = False


class Turn(Fact, frozen=True, kw_only=True):
    """One reply of the model: words, then calls. Without calls it is the last word, as far as a client can know."""

    say: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage | None = None
    """Otherwise the scenario's."""
    wait_seconds: float = 0.0
    """Before the first byte."""
    pause_seconds: float = 0.0
    """Between events."""
    troubles: tuple[Trouble, ...] = ()
    until: str = ""
    """The turn is played again until its calls' results hold these words, `most` times at the most. Its commands are
    then told apart by a remark, since clients take the same call over and over for a loop."""
    most: int = 20


class Scenario(Fact, frozen=True, kw_only=True):
    """A play for one client: its turns in order; the last one is repeated for whoever goes on asking."""

    title: str
    turns: tuple[Turn, ...]
    usage: Usage = Usage()
    side: Usage = Usage(input=200, output=10)
    """What calls beside the conversation are charged with, such as those for a title."""
    models: tuple[str, ...] = ("rehearsal-large", "rehearsal-small")
    """What the list of models says; any other name is answered too."""
    key: str | None = None
    """What requests must bear, or they are refused with 401."""


def read(file: Path) -> Scenario:
    """The scenario of a file; `DefinitionError` says what is wrong with it."""
    try:
        scenario = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Scenario, strict=False)
    except (OSError, ValueError) as error:  # msgspec's, tomllib's and UTF-8's errors are all ValueErrors
        raise DefinitionError(f"{file}: no scenario that can be played: {error}") from None
    if not scenario.turns:
        raise DefinitionError(f"{file}: a scenario needs at least one turn ([[turns]])")
    return scenario


def place(turns: Sequence[Turn], heard: Sequence[str]) -> tuple[int, int]:
    """The turn that is next in a conversation, counted from 0, and how often it was played there before in vain.

    `heard` has one text for each reply that the model has already given: the results of its calls.
    """
    at = again = 0
    for results in heard:
        if turns[at].until and turns[at].until not in results and again + 1 < turns[at].most:
            again += 1
        else:
            at, again = min(at + 1, len(turns) - 1), 0
    return at, again


def trouble(turn: Turn, earlier: int) -> Trouble | None:
    """What goes wrong with this request for a turn, after so many earlier ones."""
    for candidate in turn.troubles:
        if candidate.always or earlier < candidate.times:
            return candidate
        earlier -= candidate.times
    return None
