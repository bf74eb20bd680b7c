"""Agent `scripted`: a program of the suite's author plays the agent, in the same box as any other.

It reads the prompt on its standard input and prints one JSON object a line, `{"kind": …, "text": …}` with kind
`message`, `command` or `result`. Whatever else it prints becomes a step of kind `other`.
"""

from collections.abc import Iterable, Iterator

import msgspec

from prill.record import Step
from prill.sockets import DOOR, TOKEN, Command
from prill.spec import Entrant

PROGRAM = "/agent/agent.py"
KINDS = ("message", "command", "result")


class Scripted:
    """Runs the entrant's `program` with the box's own Python."""

    package: str | None = None

    def command(self, entrant: Entrant, prompt: str) -> Command:
        """`python3 /agent/agent.py`, the prompt on standard input; with a provider, `PRILL_DOOR` and `PRILL_TOKEN`."""
        if entrant.program is None:
            raise ValueError(f"entrant {entrant.name}: agent `scripted` needs a program")
        return Command(
            argv=("python3", PROGRAM),
            stdin=prompt.encode(),
            env={"PRILL_DOOR": DOOR, "PRILL_TOKEN": TOKEN} if entrant.provider else {},
            cwd="/home/agent/task",
            files={PROGRAM: entrant.program},
        )

    def resume(self, entrant: Entrant, prompt: str, lines: Iterable[bytes]) -> Command | None:
        """A program of this kind has no sessions."""
        return None

    def read(self, lines: Iterable[bytes]) -> Iterator[Step]:
        """One step a line that has text; offsets count the bytes of all lines, ends included."""
        offset, number = 0, 0
        for line in lines:
            if line.strip():
                number += 1
                kind, text = parse(line)
                yield Step(step=number, kind=kind, text=text, offset=offset, length=len(line))  # type: ignore[arg-type]
            offset += len(line)


def parse(line: bytes) -> tuple[str, str]:
    """Kind and text of one line; what is not an event of ours is `other`, whole."""
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        event = None
    if isinstance(event, dict) and event.get("kind") in KINDS and isinstance(event.get("text"), str):
        return event["kind"], event["text"]
    return "other", line.decode(errors="replace").rstrip("\r\n")


plugin = Scripted()
