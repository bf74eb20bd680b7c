"""Our agents keep to their socket; the real programs work in a box whose only door is a scripted provider."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from boxed import CACHE, ENTRANTS, KEY, Boxed
from prill import plugins
from prill.catalog import Catalog
from prill.errors import DefinitionError
from prill.sockets import Command
from prill.spec import Entrant
from prill.testing import agent_conformance

CHECKS = [
    (agent, *check) for agent in plugins.names("agents") for check in agent_conformance(plugins.get("agents", agent))
]
GOLDEN = Path(__file__).parents[1] / "golden" / "agents"
SCENARIOS = Path(__file__).parents[2] / "src/prill/definitions/scenarios"
BEGUN = {
    "claude_code": b'{"type":"system","subtype":"init","session_id":"11111111-2222-4333-8444-555555555555"}\n',
    "codex": b'{"type":"thread.started","thread_id":"11111111-2222-7333-8444-555555555555"}\n',
    "gemini_cli": b'{"type":"init","session_id":"11111111-2222-4333-8444-555555555555","model":"m"}\n',
    "opencode": b'{"type":"step_start","sessionID":"ses_dd62412","part":{"type":"step-start"}}\n',
}
SIDE_CALLS = {"opencode": 1}
"""Calls that a program makes beside the conversation; all others make none here."""

# --- commands, read from what they are -------------------------------------------------------------------------------


@pytest.mark.parametrize(("agent", "name", "check"), CHECKS, ids=lambda value: value if isinstance(value, str) else "")
def test_conforms(agent: str, name: str, check: Callable[[], None]) -> None:
    """The agent passes this check of the conformance suite."""
    check()


@pytest.mark.parametrize("name", sorted(file.stem for file in GOLDEN.glob("*.json")))
def test_command_is_the_golden_one(name: str) -> None:
    """The entrant's command, settings files and environment, first and resumed, are to the letter what is kept here."""
    entrant = Catalog().entrant(name)
    agent = plugins.get("agents", entrant.agent)
    commands = {
        "command": agent.command(entrant, "Do your best."),
        "resume": agent.resume(entrant, "Go on.", [BEGUN[entrant.agent]]),
    }
    file = GOLDEN / f"{name}.json"
    assert msgspec.json.decode(file.read_bytes()) == {key: shown(command) for key, command in commands.items()}


def shown(command: Command | None) -> object:
    """A command as JSON says it, settings files as what is in them where they are JSON."""
    assert command is not None
    value = msgspec.json.decode(msgspec.json.encode(replace(command, stdin=b"")))
    value["stdin"] = command.stdin.decode()
    for place, text in command.written.items():
        if place.endswith(".json"):
            value["written"][place] = msgspec.json.decode(text)
    return value


@pytest.mark.parametrize("name", list(BEGUN))
def test_no_model_is_refused(name: str) -> None:
    """An entrant of a program that calls models, without a model, is refused by name."""
    with pytest.raises(DefinitionError, match=f"entrants/x: agent `{name}` needs a model"):
        plugins.get("agents", name).command(Entrant(name="x", title="X", agent=name), "p")


@pytest.mark.parametrize("name", list(BEGUN))
def test_unknown_settings_are_refused(name: str) -> None:
    """A setting that the agent does not know, or of another type, is refused by name."""
    agent = plugins.get("agents", name)
    plain = Entrant(name="x", title="X", agent=name, model="m")
    with pytest.raises(DefinitionError, match="no setting named 'serach'"):
        agent.command(replace(plain, settings={"serach": True}), "p")
    known = "small_model" if name in ("claude_code", "opencode") else "web_search"
    with pytest.raises(DefinitionError, match=f"setting {known} = 7 must be a "):
        agent.command(replace(plain, settings={known: 7}), "p")


@pytest.mark.parametrize("name", ["gemini_cli", "opencode"])
def test_a_subscription_that_cannot_be_used_is_refused(name: str) -> None:
    """Agents that have no way to use a subscription behind the gateway say so instead of starting."""
    with pytest.raises(DefinitionError, match="no way to use a subscription"):
        plugins.get("agents", name).command(
            Entrant(name="x", title="X", agent=name, model="m", account="subscription"), "p"
        )


def test_settings_change_the_command() -> None:
    """Web search, thinking budget, output limit, context and wire each reach the program's own settings."""
    made = {
        name: plugins.get("agents", name).command(
            Entrant(name="x", title="X", agent=name, model="m", effort="high", settings=settings), "p"
        )
        for name, settings in {
            "claude_code": {"web_search": True, "max_output_tokens": 9000},
            "codex": {"web_search": "live", "context_tokens": 9000},
            "gemini_cli": {"web_search": True, "thinking_budget": 512},
            "opencode": {"wire": "gemini", "context_tokens": 9000},
        }.items()
    }
    assert "--disallowedTools" not in made["claude_code"].argv
    assert made["claude_code"].env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "9000"
    codex = made["codex"].written["/home/agent/.codex/config.toml"]
    assert 'web_search = "live"' in codex and "model_context_window = 9000" in codex
    gemini = msgspec.json.decode(made["gemini_cli"].written["/home/agent/.gemini/settings.json"])
    assert "tools" not in gemini
    how = gemini["modelConfigs"]["customOverrides"][0]["modelConfig"]["generateContentConfig"]
    assert how["thinkingConfig"] == {"thinkingBudget": 512}
    opencode = msgspec.json.decode(made["opencode"].written["/home/agent/.config/opencode/opencode.json"])
    provider = opencode["provider"]["prill"]
    assert provider["options"]["baseURL"].endswith("/v1beta") and provider["models"]["m"]["limit"]["context"] == 9000


def test_an_unknown_wire_is_refused() -> None:
    """OpenCode's wire is one of the four."""
    entrant = Entrant(name="x", title="X", agent="opencode", model="m", settings={"wire": "telex"})
    with pytest.raises(DefinitionError, match="no wire named 'telex'"):
        plugins.get("agents", "opencode").command(entrant, "p")


def test_scripted_needs_a_program() -> None:
    """An entrant of `scripted` without a program is refused by name."""
    with pytest.raises(ValueError, match="entrant x: agent `scripted` needs a program"):
        plugins.get("agents", "scripted").command(Entrant(name="x", title="X", agent="scripted"), "p")


# --- the real programs -----------------------------------------------------------------------------------------------


@pytest.fixture(params=ENTRANTS)
def boxed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boxed:
    """Each rehearsing entrant, if its program is there."""
    monkeypatch.setenv("PRILL_CACHE", str(CACHE))
    return Boxed(request.param, tmp_path)


@pytest.mark.slow
def test_a_program_plays_a_scenario_to_its_end(boxed: Boxed, tmp_path: Path) -> None:
    """In a box without network, the program writes, runs and awaits a file as the smoke scenario says, and is done."""
    scenario = tmp_path / "smoke.toml"
    script = re.sub(r"(?s)(?<=text = '''\n).*?(?=''')", SHORT, (SCENARIOS / "smoke.toml").read_text())
    scenario.write_text(script)
    command = boxed.agent.command(boxed.entrant, "Train the model.\n--and do not take this for an option")
    ended = boxed.play(command, scenario, name="first")
    errors = (boxed.folder / "first.err").read_text()
    assert ended is not None and ended.exit_code == 0, errors
    assert (boxed.folder / "task" / "final_model" / "model").read_text() == "trained on seed 0"
    turns = boxed.truth("first", "turn")
    assert sorted({line["turn"] for line in turns}) == list(range(6)) and turns[-1]["turn"] == 5
    assert {line["key"] for line in boxed.truth("first", "turn", "side")} == {digest(KEY)}
    assert {line["model"] for line in turns} == {"rehearsal-large"}
    assert len(boxed.truth("first", "side")) == SIDE_CALLS.get(boxed.entrant.agent, 0)
    assert boxed.truth("first", "refused") == []
    with (boxed.folder / "first.out").open("rb") as lines:
        said = [step.text for step in boxed.agent.read(lines)]
    assert any("Done: an honest fine-tune" in text for text in said)
    assert any("finished with 0" in text for text in said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "path", "header"),
    [
        ("claude-code-opus-5-5-subscription", "/v1/messages", "authorization"),
        ("codex-gpt-6-sol-xhigh-subscription", "/backend-api/codex/responses", "authorization"),
        ("codex-gpt-6-sol-high", "/v1/responses", "authorization"),
        ("gemini-cli-3-1-pro", "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent", "x-goog-api-key"),
        ("opencode-gpt-6-luna", "/v1/responses", "authorization"),
    ],
)
def test_an_entrant_asks_where_its_provider_would_be(
    name: str, path: str, header: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the names of real models, which change its tools, a program works; the token stands where the key would."""
    monkeypatch.setenv("PRILL_CACHE", str(CACHE))
    boxed = Boxed(name, tmp_path)
    ended = boxed.play(boxed.agent.command(boxed.entrant, "Begin."), SCENARIOS / "hello.toml", name="first")
    assert ended is not None and ended.exit_code == 0
    assert (boxed.folder / "task" / "result.txt").read_text() == "hello\n"
    turns = boxed.truth("first", "turn")
    assert [(line["turn"], line["path"], line["bears"]) for line in turns] == [(n, path, header) for n in (0, 1)]
    assert {line["key"] for line in boxed.truth("first", "turn", "side")} == {digest(KEY)}


@pytest.mark.slow
def test_a_refusal_ends_a_program(boxed: Boxed, tmp_path: Path) -> None:
    """Told that the wallet is empty (402), the program tries at most five times more and exits with an error."""
    scenario = tmp_path / "empty.toml"
    scenario.write_text(EMPTY)
    ended = boxed.play(boxed.agent.command(boxed.entrant, "Begin."), scenario, name="first")
    assert ended is not None and ended.exit_code not in (0, None) and not ended.timed_out
    refused = [line for line in boxed.truth("first", "turn") if line["status"] == 402]
    assert 1 <= len(refused) <= 6 and all(line["usage"] is None for line in refused)


@pytest.mark.slow
def test_a_killed_program_goes_on(boxed: Boxed, tmp_path: Path) -> None:
    """Killed in the middle of a command, the program goes on in a new box with the session that was kept."""
    scenario = tmp_path / "long.toml"
    scenario.write_text(LONG)
    boxed.play(
        boxed.agent.command(boxed.entrant, "Begin."), scenario, name="first", kill_at=KILL_AT[boxed.entrant.agent]
    )
    with (boxed.folder / "first.out").open("rb") as lines:
        command = boxed.agent.resume(boxed.entrant, "Go on.", lines)
    assert command is not None
    ended = boxed.play(command, scenario, name="second")
    assert ended is not None and ended.exit_code == 0, (boxed.folder / "second.err").read_text()
    assert [line["turn"] for line in boxed.truth("second", "turn")] == [1], "it knows that the first turn was played"


@pytest.mark.slow
def test_a_bad_day_is_survived(boxed: Boxed) -> None:
    """Overloaded, refused for a second, failing and cut off, the program gets to the end, gone on with once at most."""
    command = boxed.agent.command(boxed.entrant, "Begin.")
    ended = boxed.play(command, SCENARIOS / "troubles.toml", name="first")
    if boxed.entrant.agent == "gemini_cli":  # it does not ask again for a stream that was cut
        assert ended is not None and ended.exit_code not in (0, None)
        with (boxed.folder / "first.out").open("rb") as lines:
            again = boxed.agent.resume(boxed.entrant, "Go on.", lines)
        assert again is not None
        ended = boxed.play(again, SCENARIOS / "hello.toml", name="second")
    assert ended is not None and ended.exit_code == 0
    statuses = [line["status"] for line in boxed.truth("first", "turn")]
    assert statuses[:6] == [529, 200, 429, 200, 500, 200]


KILL_AT = {
    "claude_code": b'"tool_use"',
    "codex": b"item.started",
    "gemini_cli": b'"tool_use"',
    "opencode": b"step_start",
}
SHORT = """import os, pathlib, time
time.sleep(1)
target = pathlib.Path(os.environ["PRILL_SUBMISSION"])
target.mkdir()
(target / "model").write_text("trained on seed " + os.environ["PRILL_SEED"])
"""
EMPTY = """
title = "A wallet that is empty after one call"
[[turns]]
[[turns.calls]]
command = "echo hello > result.txt"
[[turns]]
[[turns.troubles]]
how = "status"
status = 402
message = "the wallet is empty"
always = true
"""
LONG = """
title = "A command that takes long"
[[turns]]
say = "I wait."
[[turns.calls]]
command = "sleep 30"
[[turns]]
say = "Done."
"""


def digest(text: str) -> str:
    """As the provider tells a key."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
