"""Agent `claude_code`: Claude Code, headless, with the prompt on its standard input.

A session's id is left to the program and read from its first line: one that is given beforehand is refused when the
same command is run twice. All models that it may call by itself are those that the entrant names.
Not covered: the price of its server-side web search, which is off unless `web_search` is set.
"""

import json
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from prill.headless import TASK, model, session, settings
from prill.record import Step
from prill.sockets import DOOR, TOKEN, Command
from prill.spec import Entrant
from prill.trajectory import parse, steps

SETTINGS = {"small_model": "", "max_output_tokens": 0, "web_search": False}
LONGEST_COMMAND_MS = 10 * 3600 * 1000
"""What the program's shell tool may be told to wait for a command, so that it can wait for a training."""
FIRST_START = {"hasCompletedOnboarding": True, "autoUpdates": False}


class ClaudeCode:
    """See `Agent`."""

    package: str | None = "@anthropic-ai/claude-code"

    def command(self, entrant: Entrant, prompt: str) -> Command:
        """`claude --print`, every permission given: the box is the guard."""
        wishes = settings(entrant, SETTINGS)
        argv = ["claude", "--print", "--verbose", "--output-format", "stream-json", "--dangerously-skip-permissions"]
        argv += ["--model", model(entrant)]
        if entrant.effort:
            argv += ["--effort", entrant.effort]
        if not wishes["web_search"]:
            argv += ["--disallowedTools", "WebSearch"]
        return Command(
            argv=tuple(argv),
            stdin=prompt.encode(),
            cwd=TASK,
            env=self.environment(entrant, str(wishes["small_model"]), int(wishes["max_output_tokens"])),
            written={"/home/agent/.claude.json": json.dumps(FIRST_START)},
            kept=("/home/agent/.claude",),
        )

    @staticmethod
    def environment(entrant: Entrant, small: str, most: int) -> dict[str, str]:
        """Door, key and models. A subscription's token goes where the program looks for one: it then speaks as such."""
        own = model(entrant)
        key = "CLAUDE_CODE_OAUTH_TOKEN" if entrant.account == "subscription" else "ANTHROPIC_API_KEY"
        return {
            "ANTHROPIC_BASE_URL": DOOR,
            key: TOKEN,
            "ANTHROPIC_DEFAULT_OPUS_MODEL": own,
            "ANTHROPIC_DEFAULT_SONNET_MODEL": own,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": small or own,
            "ANTHROPIC_SMALL_FAST_MODEL": small or own,
            "BASH_MAX_TIMEOUT_MS": str(LONGEST_COMMAND_MS),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        } | ({"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(most)} if most else {})

    def resume(self, entrant: Entrant, prompt: str, lines: Iterable[bytes]) -> Command | None:
        """The same, in the session whose id the program told; its own cost then covers only what comes after."""
        known = session(parse("claude_code", lines).session_id)
        return None if known is None else again(self.command(entrant, prompt), "--resume", known)

    def read(self, lines: Iterable[bytes]) -> Iterator[Step]:
        """See `prill.trajectory`."""
        return steps("claude_code", lines)


def again(command: Command, *more: str) -> Command:
    """The command with more arguments, before the option that takes all words behind it."""
    return replace(command, argv=(command.argv[0], *more, *command.argv[1:]))


plugin = ClaudeCode()
