"""Agent `codex`: Codex, headless, with the prompt on its standard input, which is then at its end.

Of a subscription, requests go where the program's own backend has them (`/backend-api/codex/responses`), with the
run's token as bearer; the gateway puts the subscription's in its place.
Not covered: what that backend wants beyond the bearer, such as the account's id (a provider's `headers` can name it).
It has not been tried against the real one.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from prill.headless import TASK, model, session, settings
from prill.record import Step
from prill.sockets import DOOR, TOKEN, Command
from prill.spec import Entrant
from prill.trajectory import parse, steps

SETTINGS = {"web_search": "disabled", "context_tokens": 0}
CONFIG = """\
model_provider = "prill"
model_reasoning_summary = "detailed"
web_search = "{web_search}"
check_for_update_on_startup = false
{more}
[model_providers.prill]
name = "prill"
base_url = "{url}"
env_key = "PRILL_TOKEN"
wire_api = "responses"

[analytics]
enabled = false
"""


class Codex:
    """See `Agent`."""

    package: str | None = "@openai/codex"

    def command(self, entrant: Entrant, prompt: str) -> Command:
        """`codex exec`, every permission given: the box is the guard."""
        return self.executed(entrant, prompt)

    def resume(self, entrant: Entrant, prompt: str, lines: Iterable[bytes]) -> Command | None:
        """`codex exec resume`, in the thread whose id the program told; its own count of tokens then goes on."""
        known = session(parse("codex", lines).session_id)
        return None if known is None else self.executed(entrant, prompt, "resume", known)

    @staticmethod
    def executed(entrant: Entrant, prompt: str, *how: str) -> Command:
        """The command, with words before the `-` that stands for standard input."""
        wishes = settings(entrant, SETTINGS)
        more = f'model_reasoning_effort = "{entrant.effort}"\n' if entrant.effort else ""
        if wishes["context_tokens"]:
            more += f"model_context_window = {wishes['context_tokens']}\n"
        path = "/backend-api/codex" if entrant.account == "subscription" else "/v1"
        flags = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        plain = Command(
            argv=("codex", "exec", *flags, "--model", model(entrant)),
            stdin=prompt.encode(),
            cwd=TASK,
            env={"PRILL_TOKEN": TOKEN},
            written={
                "/home/agent/.codex/config.toml": CONFIG.format(
                    web_search=wishes["web_search"], more=more, url=DOOR + path
                )
            },
            kept=("/home/agent/.codex",),
        )
        return replace(plain, argv=(*plain.argv, *how, "-"))

    def read(self, lines: Iterable[bytes]) -> Iterator[Step]:
        """See `prill.trajectory`."""
        return steps("codex", lines)


plugin = Codex()
