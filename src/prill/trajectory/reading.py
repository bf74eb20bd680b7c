"""Pieces of raw output → numbered steps, and what one output says about itself (rules R of RULES.md).

Total: no bytes make it raise, and every line that is not blank is in some step. Steps are numbered from 1 in the order
of the bytes, by nothing but the bytes, so a number means the same for ever.
Not covered: whether what a program says about itself is true; see `reconcile.py` for its money.
"""

import io
from collections import deque
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from prill.classify import terminal_error
from prill.record import Step
from prill.trajectory import claude_code, codex, gemini_cli, opencode
from prill.trajectory.lines import Piece, pieces
from prill.trajectory.told import Draft, Kind, Told

FORMATS: dict[str, ModuleType] = {
    "claude_code": claude_code,
    "codex": codex,
    "gemini_cli": gemini_cli,
    "opencode": opencode,
}
ALIASES = {"claude": "claude_code", "gemini": "gemini_cli"}
LAST = 4
"""Lines of noise behind the last event in which an error ends the output."""
_FATAL = ("api_", "agent_")


class Parsed(Struct, frozen=True, kw_only=True):
    """What one output says, as a whole."""

    agent: str | None
    """Whose format it is; `None` where no event told."""
    n_events: int
    """JSON objects with a `type`."""
    noise_lines: int
    """Lines with any other text."""
    truncated_tail: bool
    """The last line is an object that is cut off."""
    tool_calls: int
    final_text: str | None
    """The last thing that the agent said to the user."""
    status: Literal["success", "error", "incomplete", "no_output"]
    error: str
    error_kind: str | None
    """In the words of `classify.py`, where the error is one that we know."""
    usage: dict[str, int | None] | None
    """Tokens by kind as the program counts them: Codex and Gemini count what was cached as input, too."""
    usage_why: str
    cost_usd: float | None
    cost_why: str
    unknown_events: int
    open_background_tasks: int
    early_end: bool
    """It ended by itself while background tasks were open."""
    session_id: str | None
    model: str | None
    cli_version: str | None
    first_ts: str | None
    last_ts: str | None
    longest_line: int
    """Bytes."""
    n_steps: int


def steps(agent: str, lines: Iterable[bytes]) -> Iterator[Step]:
    """The steps of an agent's raw output, one line after the other; memory is that of the longest line.

    `agent`: a name of `FORMATS`; any other name reads whichever of the formats the events turn out to have.
    """
    return _Reading(agent).steps(lines)


def said(agent: str, lines: Iterable[bytes]) -> Iterator[list[tuple[Kind, str]]]:
    """Kind and text of the `steps`, some at a time; in half the time where the agent's format has a short way."""
    reading = _Reading(agent)
    if reading.agent != "claude_code":
        yield from ([(step.kind, step.text)] for step in reading.steps(lines))
        return
    for line in lines:
        found = claude_code.said(line) if line.startswith(b"{") else None
        if found is None:
            found = [(draft.kind, draft.text) for piece in pieces((line,)) for draft in reading.drafts(piece)]
        yield found


def parse(agent: str, raw: bytes | Iterable[bytes]) -> Parsed:
    """What an agent's raw output says; bytes, or lines with their ends."""
    reading = _Reading(agent)
    number = 0
    for step in reading.steps(io.BytesIO(raw) if isinstance(raw, bytes) else raw):
        number = step.step
    return reading.parsed(number)


def format_of(event: dict[str, Any]) -> str | None:
    """Whose event it is by its shape, whatever the order of its keys (R7)."""
    kind = event.get("type")
    if not isinstance(kind, str):
        return None
    if kind in codex.TYPES and ("." in kind):
        return "codex"
    if isinstance(event.get("part"), dict) or "sessionID" in event:
        return "opencode"
    if kind in ("assistant", "user", "system") or (kind == "result" and ("subtype" in event or "is_error" in event)):
        return "claude_code"
    if kind in gemini_cli.TYPES and kind != "error":
        return "gemini_cli"
    return None


class _Reading:
    """One pass over one output."""

    def __init__(self, agent: str) -> None:
        name = ALIASES.get(agent, agent)
        self.agent: str | None = name if name in FORMATS else None
        self.told = Told()
        self.n_events = self.noise_lines = self.longest = 0
        self.truncated = False
        self.noisy = -1
        self.tail: deque[str] = deque(maxlen=LAST)
        self.first: str | None = None
        self.last: str | None = None

    def steps(self, lines: Iterable[bytes]) -> Iterator[Step]:
        """All steps; a message that comes in parts is one step over all of their bytes."""
        number = 0
        growing: list[tuple[Piece, Draft]] = []
        for piece in pieces(lines):
            for draft in self.drafts(piece):
                if draft.grows and growing and _touches(growing[-1][0], piece):
                    growing.append((piece, draft))
                    continue
                if growing:
                    number += 1
                    yield _joined(number, growing)
                    growing = []
                if draft.grows:
                    growing = [(piece, draft)]
                else:
                    number += 1
                    yield numbered(number, piece.offset, piece.length, draft)
        if growing:
            yield _joined(number + 1, growing)

    def drafts(self, piece: Piece) -> list[Draft]:
        """The steps of one piece, at least one."""
        stamp = piece.stamp
        if piece.width > self.longest:
            self.longest = piece.width
        if piece.event is None or "type" not in piece.event:
            if piece.cut:
                self.truncated = True
            elif piece.line != self.noisy:
                self.noise_lines, self.noisy = self.noise_lines + 1, piece.line
            if piece.event is None:
                self.tail.append(piece.text)
            self.seen(stamp)
            return [Draft("other", piece.text, "system", at=None)]
        event = piece.event
        self.n_events += 1
        self.tail.clear()
        told_at = event.get("timestamp")
        self.seen(stamp or (told_at if isinstance(told_at, str) else None))
        if self.agent is None:
            self.agent = format_of(event)
        if self.agent is None or not isinstance(event["type"], str):
            self.told.unknown_events += 1
            return [Draft("other", piece.text, "system")]
        return FORMATS[self.agent].read(event, self.told) or [Draft("other", piece.text, "system")]

    def seen(self, stamp: str | None) -> None:
        """A time stamp, wherever it stood."""
        if stamp:
            self.first, self.last = self.first or stamp, stamp

    def parsed(self, n_steps: int) -> Parsed:
        """What all of it says."""
        told = self.told
        if self.agent is not None:
            FORMATS[self.agent].finish(told)
        kind = told.error_kind
        if told.status == "error":
            ending = terminal_error(told.error)
            kind = kind or (ending.word if ending else None)
        elif told.status is None:
            ending = terminal_error("\n".join(self.tail)) or terminal_error(told.error)
            if ending is not None and ending.word.startswith(_FATAL):
                told.status, told.error, kind = "error", told.error or ending.why, ending.word
        quiet = not (self.n_events or self.noise_lines or self.truncated)
        free = told.usd == 0 and any(told.usage.values()) if told.usage else False
        return Parsed(
            agent=self.agent,
            n_events=self.n_events,
            noise_lines=self.noise_lines,
            truncated_tail=self.truncated,
            tool_calls=len(told.tool_calls),
            final_text=told.final_text,
            status="no_output" if quiet else told.status or "incomplete",  # type: ignore[arg-type]
            error=told.error if told.status == "error" else "",
            error_kind=kind,
            usage=told.usage,
            usage_why=told.usage_why,
            cost_usd=None if free else told.usd,
            cost_why="tokens were used, and a cost of nothing is no authority" if free else told.usd_why,
            unknown_events=told.unknown_events,
            open_background_tasks=len(told.background),
            early_end=told.status == "success" and bool(told.background),
            session_id=told.session,
            model=told.model,
            cli_version=told.version,
            first_ts=self.first,
            last_ts=self.last,
            longest_line=self.longest,
            n_steps=n_steps,
        )


def _touches(before: Piece, piece: Piece) -> bool:
    return before.offset + before.length == piece.offset


def numbered(number: int, offset: int, length: int, draft: Draft) -> Step:
    """A step out of a draft: its number, and its bytes."""
    return Step(
        step=number,
        kind=draft.kind,
        text=draft.text,
        offset=offset,
        length=length,
        source=draft.source,
        thought=draft.thought,
        call=draft.call,
        tool=draft.tool,
        arguments=draft.arguments,
        model=draft.model,
        tokens=draft.tokens,
        usd=draft.usd,
        at=draft.at,
    )


def _joined(number: int, parts: list[tuple[Piece, Draft]]) -> Step:
    """One step of all parts of a message."""
    first, last = parts[0][0], parts[-1][0]
    whole = replace(parts[0][1], text="".join(draft.text for _, draft in parts))
    return numbered(number, first.offset, last.offset + last.length - first.offset, whole)
