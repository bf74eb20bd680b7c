"""What every agent must do: `command` and `read` are pure, and `read` is total."""

import os
import random
from collections.abc import Callable

from prill.sockets import Agent, Command
from prill.spec import Entrant

HOSTILE = (
    b"plain words\n",
    b"\n",
    b"\xff\xfe\x00 no text at all\n",
    b'{"type": "unknown", "deep": ' + b"[" * 5000 + b"]" * 5000 + b"}\n",
    b'{"kind": "message"}\n',
    b'{"kind": 7, "text": null}\n',
    b"{" * 100 + b"\n",
    b"x" * 200_000 + b"\n",
    b"cut off in the mid",
)


class Checks:
    """The checks, over one agent and an entrant of it."""

    def __init__(self, agent: Agent, entrant: Entrant) -> None:
        """Keep both."""
        self.agent, self.entrant = agent, entrant

    def commands_are_pure(self) -> None:
        """The same entrant and prompt give the same command, whatever the environment says."""
        first = self.agent.command(self.entrant, "Do your best.")
        os.environ["PRILL_CONFORMANCE"] = "1"
        try:
            assert self.agent.command(self.entrant, "Do your best.") == first
        finally:
            del os.environ["PRILL_CONFORMANCE"]
        assert isinstance(first, Command) and first.argv

    def prompt_reaches_the_program(self) -> None:
        """The prompt stands, whole, in the command's arguments, standard input or environment."""
        prompt = 'Words with "quotes", $VARIABLES, a\nline end and ünïcode.'
        command = self.agent.command(self.entrant, prompt)
        places = [*command.argv, command.stdin.decode(), *command.env.values()]
        assert any(prompt in place for place in places)

    def reading_never_raises_and_never_drops(self) -> None:
        """Every line that says something is covered by a step, in order, and steps are numbered from 1."""
        steps = list(self.agent.read(iter(HOSTILE)))
        assert [step.step for step in steps] == list(range(1, len(steps) + 1))
        offset, spoken = 0, []
        for line in HOSTILE:
            if line.strip():
                spoken.append((offset, len(line)))
            offset += len(line)
        for start, length in spoken:
            assert any(step.offset <= start and start + length <= step.offset + step.length for step in steps)
        assert [step.offset for step in steps] == sorted(step.offset for step in steps)

    def reading_survives_any_bytes(self) -> None:
        """Two hundred seeded heaps of bytes are read without an exception."""
        chance = random.Random(0)
        for _ in range(200):
            heap = chance.randbytes(chance.randint(0, 400))
            list(self.agent.read(heap.splitlines(keepends=True)))


def agent_conformance(agent: Agent, entrant: Entrant | None = None) -> list[tuple[str, Callable[[], None]]]:
    """The name and the check of everything that an agent must do; give an entrant where a plain one is not enough."""
    plain = Entrant(name="conformance", title="Conformance", agent="any", model="m", program="program.py")
    checks = Checks(agent, entrant or plain)
    names = [name for name in vars(Checks) if not name.startswith("_")]
    return [(name, getattr(checks, name)) for name in names]
