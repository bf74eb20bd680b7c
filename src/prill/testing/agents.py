"""What every agent must do: `command`, `resume` and `read` are pure, `resume` and `read` are total."""

import os
import random
from collections.abc import Callable
from pathlib import PurePosixPath

from prill.sockets import DOOR, TOKEN, Agent, Command
from prill.spec import Entrant

HOSTILE = (
    b"plain words\n",
    b"\n",
    b"\xff\xfe\x00 no text at all\n",
    b'{"type": "unknown", "deep": ' + b"[" * 5000 + b"]" * 5000 + b"}\n",
    b'{"kind": "message"}\n',
    b'{"kind": 7, "text": null}\n',
    b'{"type": "system", "subtype": "init", "session_id": "--help"}\n',
    b'{"type": "thread.started", "thread_id": ["not", "words"]}\n',
    b'{"type": "init", "session_id": "a; rm -rf b"}\n',
    b'{"type": "step_start", "sessionID": "../../x", "part": 7}\n',
    b"{" * 100 + b"\n",
    b"x" * 200_000 + b"\n",
    b"cut off in the mid",
)
BEGUN = (
    b'{"type": "system", "subtype": "init", "session_id": "11111111-2222-4333-8444-555555555555"}\n',
    b'{"type": "thread.started", "thread_id": "11111111-2222-4333-8444-555555555555"}\n',
    b'{"type": "init", "session_id": "11111111-2222-4333-8444-555555555555", "model": "m"}\n',
    b'{"type": "step_start", "sessionID": "ses_111111222222", "part": {"type": "step-start"}}\n',
)
"""First lines of the programs that we know; whoever knows none of them has no session to go on with."""
WORDS = 'Words with "quotes", $VARIABLES, a\nline end and ünïcode.'
HOME = PurePosixPath("/home/agent")


class Checks:
    """The checks, over one agent and an entrant of it."""

    def __init__(self, agent: Agent, entrant: Entrant) -> None:
        """Keep both."""
        self.agent, self.entrant = agent, entrant

    def _commands(self) -> list[Command]:
        again = [self.agent.resume(self.entrant, WORDS, [line]) for line in BEGUN]
        return [self.agent.command(self.entrant, WORDS), *(command for command in again if command is not None)]

    def commands_are_pure(self) -> None:
        """The same entrant and words give the same commands, whatever the environment says."""
        first = self._commands()
        os.environ["PRILL_CONFORMANCE"] = "1"
        try:
            assert self._commands() == first
        finally:
            del os.environ["PRILL_CONFORMANCE"]
        assert all(isinstance(command, Command) and command.argv for command in first)

    def words_reach_the_program(self) -> None:
        """What is said, first or later, stands whole in the command's arguments, standard input or environment."""
        for command in self._commands():
            places = [*command.argv, command.stdin.decode(), *command.env.values()]
            assert any(WORDS in place for place in places)

    def a_program_of_npm_gets_door_key_and_model(self) -> None:
        """A program that calls a model finds the door, the run's token and the entrant's model, no other address."""
        if self.agent.package is None:
            return
        for command in self._commands():
            told = [*command.argv, *command.env.values(), *command.written.values()]
            assert any(DOOR in text for text in told)
            assert any(TOKEN in text for text in [*command.env.values(), *command.written.values()])
            assert any(str(self.entrant.model) in text for text in told)
            assert not any("://" in text.replace(DOOR, "") for text in told)

    def the_token_is_no_argument(self) -> None:
        """Arguments can be read by every process of the box, and stay in logs: the token is not among them."""
        for command in self._commands():
            assert not any(TOKEN in word for word in command.argv)

    def places_lie_in_the_home(self) -> None:
        """What is written and what is kept lies below the home, and what is kept is not where the agent works."""
        for command in self._commands():
            for place in [*command.written, *command.kept]:
                assert PurePosixPath(place).is_relative_to(HOME) and ".." not in PurePosixPath(place).parts
            for place in command.kept:
                assert not PurePosixPath(command.cwd).is_relative_to(place)

    def what_is_kept_is_the_same_when_it_goes_on(self) -> None:
        """A command that goes on keeps the same folders as the first, or it would not find its session."""
        first, *later = self._commands()
        assert all(command.kept == first.kept for command in later)

    def resuming_is_total(self) -> None:
        """Whatever the raw output holds, there is a command or `None`, and no foreign word becomes an option."""
        chance = random.Random(0)
        heaps = [chance.randbytes(chance.randint(0, 400)).splitlines(keepends=True) for _ in range(100)]
        plain = self.agent.command(self.entrant, WORDS).argv
        for lines in [[], list(HOSTILE), *([line] for line in HOSTILE), *heaps]:
            command = self.agent.resume(self.entrant, WORDS, iter(lines))
            foreign = set(command.argv) - set(plain) if command else set()
            assert not foreign & {"--help", "a; rm -rf b", "../../x"}

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
    plain = Entrant(
        name="conformance", title="Conformance", agent="any", model="some-model", program="program.py", version="1.0.0"
    )
    checks = Checks(agent, entrant or plain)
    names = [name for name in vars(Checks) if not name.startswith("_")]
    return [(name, getattr(checks, name)) for name in names]
