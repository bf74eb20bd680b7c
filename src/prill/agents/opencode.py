"""Agent `opencode`: OpenCode, headless, with the prompt on its standard input, on any of the four wires.

Its call for a session's title goes to `small_model` (the entrant's own where none is set) and stands in no step of its
output. Not covered: a subscription; its own web search, which needs another service's key.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from prill.errors import DefinitionError, oneof
from prill.headless import TASK, model, no_subscription, session, settings
from prill.record import Step
from prill.sockets import DOOR, TOKEN, Command
from prill.spec import Entrant
from prill.trajectory import parse, steps

SETTINGS = {"wire": "chat", "path": "", "small_model": "", "context_tokens": 200_000, "output_tokens": 32_000}
WIRES = {
    "chat": ("@ai-sdk/openai-compatible", "/v1"),
    "responses": ("@ai-sdk/openai", "/v1"),
    "anthropic": ("@ai-sdk/anthropic", "/v1"),
    "gemini": ("@ai-sdk/google", "/v1beta"),
}
"""Wire → the client that the program brings for it, and where its paths begin unless `path` is set."""
OFF = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")


class OpenCode:
    """See `Agent`."""

    package: str | None = "opencode-ai"

    def command(self, entrant: Entrant, prompt: str) -> Command:
        """`opencode run`, every permission given: the box is the guard."""
        no_subscription(entrant)
        return Command(
            argv=("opencode", "run", "--format", "json", "--model", f"prill/{model(entrant)}"),
            stdin=prompt.encode(),
            cwd=TASK,
            env={"PRILL_TOKEN": TOKEN, **{f"OPENCODE_DISABLE_{name}": "1" for name in OFF}},
            written={"/home/agent/.config/opencode/opencode.json": json.dumps(self.configured(entrant))},
            kept=("/home/agent/.local/share/opencode",),
        )

    @staticmethod
    def configured(entrant: Entrant) -> dict[str, Any]:
        """The program's settings: one provider, the door, with the entrant's models and no other."""
        wishes = settings(entrant, SETTINGS)
        if wishes["wire"] not in WIRES:
            raise DefinitionError(f"entrants/{entrant.name}: {oneof('wire', str(wishes['wire']), list(WIRES))}")
        client, path = WIRES[wishes["wire"]]
        own, small = model(entrant), wishes["small_model"] or model(entrant)
        about: dict[str, Any] = {"limit": {"context": wishes["context_tokens"], "output": wishes["output_tokens"]}}
        thinking: dict[str, Any] = {"reasoningEffort": entrant.effort}
        if wishes["wire"] == "anthropic":
            thinking = {"effort": entrant.effort}
        elif wishes["wire"] == "gemini":
            thinking = {"thinkingConfig": {"thinkingLevel": entrant.effort}}
        options = {"baseURL": DOOR + (wishes["path"] or path), "apiKey": "{env:PRILL_TOKEN}"}
        models = {small: about, own: {**about, "reasoning": True, "options": thinking} if entrant.effort else about}
        return {
            "autoupdate": False,
            "share": "disabled",
            "permission": "allow",
            "enabled_providers": ["prill"],
            "model": f"prill/{own}",
            "small_model": f"prill/{small}",
            "provider": {"prill": {"npm": client, "name": "prill", "options": options, "models": models}},
        }

    def resume(self, entrant: Entrant, prompt: str, lines: Iterable[bytes]) -> Command | None:
        """The same, in the session whose id the program told."""
        known = session(parse("opencode", lines).session_id)
        if known is None:
            return None
        plain = self.command(entrant, prompt)
        return replace(plain, argv=(*plain.argv, "--session", known))

    def read(self, lines: Iterable[bytes]) -> Iterator[Step]:
        """See `prill.trajectory`."""
        return steps("opencode", lines)


plugin = OpenCode()
