"""Agent `gemini_cli`: Gemini CLI, headless, with the prompt on its standard input.

Its tools for searching and fetching are answered by the provider, not by the box, so they are off unless
`web_search` is set. Not covered: a subscription (its login speaks to another service, which no door leads to).
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from prill.headless import TASK, model, no_subscription, session, settings
from prill.record import Step
from prill.sockets import DOOR, TOKEN, Command
from prill.spec import Entrant
from prill.trajectory import parse, steps

SETTINGS = {"web_search": False, "thinking_budget": -1}
PLAIN: dict[str, Any] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}


class GeminiCli:
    """See `Agent`."""

    package: str | None = "@google/gemini-cli"

    def command(self, entrant: Entrant, prompt: str) -> Command:
        """`gemini --yolo`: every permission is given, the box is the guard."""
        no_subscription(entrant)
        return Command(
            argv=("gemini", "--yolo", "--output-format", "stream-json", "--model", model(entrant)),
            stdin=prompt.encode(),
            cwd=TASK,
            env={
                "GOOGLE_GEMINI_BASE_URL": DOOR,
                "GEMINI_API_KEY": TOKEN,
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
                "GEMINI_SANDBOX": "false",
            },
            written={"/home/agent/.gemini/settings.json": json.dumps(self.configured(entrant))},
            kept=("/home/agent/.gemini",),
        )

    @staticmethod
    def configured(entrant: Entrant) -> dict[str, Any]:
        """The program's settings. An effort is the thinking level; a budget takes its place."""
        wishes = settings(entrant, SETTINGS)
        chosen = dict(PLAIN)
        if not wishes["web_search"]:
            chosen["tools"] = {"exclude": ["google_web_search", "web_fetch"]}
        thinking = {"thinkingLevel": entrant.effort.upper()} if entrant.effort else {}
        if wishes["thinking_budget"] >= 0:
            thinking = {"thinkingBudget": wishes["thinking_budget"]}
        if thinking:
            how = {"generateContentConfig": {"thinkingConfig": thinking}}
            chosen["modelConfigs"] = {"customOverrides": [{"match": {"model": model(entrant)}, "modelConfig": how}]}
        return chosen

    def resume(self, entrant: Entrant, prompt: str, lines: Iterable[bytes]) -> Command | None:
        """The same, in the session whose id the program told."""
        known = session(parse("gemini_cli", lines).session_id)
        if known is None:
            return None
        plain = self.command(entrant, prompt)
        return replace(plain, argv=(*plain.argv, "--resume", known))

    def read(self, lines: Iterable[bytes]) -> Iterator[Step]:
        """See `prill.trajectory`."""
        return steps("gemini_cli", lines)


plugin = GeminiCli()
