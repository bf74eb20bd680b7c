"""The scripted provider keeps to its scenario on every wire, tells the truth, and fails as it is told to."""

import http.client
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boxed import told
from prill.catalog import Catalog
from prill.errors import DefinitionError
from prill.rehearsal.exchange import made, runs, sample
from prill.rehearsal.scenario import Call, Scenario, Trouble, Turn, place, read, trouble
from rehearsing import SHELL, USAGE, WIRES, Client, post, served, whole

SCENARIOS = Path(__file__).parents[1] / "src/prill/definitions/scenarios"
PLAY = """
title = "A play"
key = "the-key"
[usage]
input = 1200
cache_read = 400
cache_write = 100
output = 60
reasoning = 20
[[turns]]
say = "I write the file, and I say so in more than four words."
[[turns.calls]]
command = "echo hello"
[[turns]]
say = "Done."
"""


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The provider with the play above."""
    file = tmp_path / "play.toml"
    file.write_text(PLAY)
    with served(file, tmp_path) as (root, truth):
        yield root, truth


# --- what it says ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
def test_each_wire_plays_the_same_turns(provider: tuple[str, Path], wire: str) -> None:
    """Streamed or whole, each turn has the scenario's words, the client's own tool and the scenario's usage."""
    client = Client(wire, provider[0])
    for stream in (False, True):
        text, calls, usage = client.heard(0, stream)
        assert text == "I write the file, and I say so in more than four words."
        assert calls == [{"command": "echo hello"}]
        assert usage.items() >= USAGE[wire].items()
        text, calls, _ = client.heard(1, stream)
        assert (text, calls) == ("Done.", [])
        assert client.heard(5, stream)[0] == "Done.", "whoever goes on asking hears the last turn again"
    lines = told(provider[1])
    assert [line["turn"] for line in lines] == [0, 1, 1] * 2
    assert {line["wire"] for line in lines} == {wire} and {line["kind"] for line in lines} == {"turn"}
    written = {"input": 1200, "cache_write": 100} if wire == "anthropic" else {"input": 1300, "cache_write": 0}
    charged = {**written, "cache_read": 400, "output": 60, "reasoning": 20}
    assert all(line["usage"] == charged for line in lines)


@pytest.mark.parametrize("wire", ["responses", "chat"])
def test_the_official_client_understands_it(provider: tuple[str, Path], wire: str) -> None:
    """OpenAI's own library reads text, call and usage of both of its wires, streamed."""
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=provider[0] + "/v1", api_key="the-key", max_retries=0) as client:
        if wire == "responses":
            tools = [{"type": "function", "name": "shell", "parameters": SHELL}]
            *_, last = client.responses.create(model="m", input="Begin.", tools=tools, stream=True)
            assert last.response.output_text.startswith("I write the file")
            assert last.response.output[1].arguments == '{"command":"echo hello"}'
            assert last.response.usage.output_tokens_details.reasoning_tokens == 20
        else:
            tools = [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}]
            said = [{"role": "user", "content": "Begin."}]
            how = {"stream": True, "stream_options": {"include_usage": True}}
            *_, last = client.chat.completions.create(model="m", messages=said, tools=tools, **how)
            assert last.usage.prompt_tokens_details.cached_tokens == 400


@pytest.mark.parametrize("wire", WIRES)
def test_calls_beside_the_conversation_are_counted(provider: tuple[str, Path], wire: str) -> None:
    """A request without tools, such as one for a title, is answered, charged as such, and takes no turn."""
    client = Client(wire, provider[0])
    assert client.heard(0, True, tools=False)[:2] == ("Rehearsal", [])
    assert client.heard(0, True)[1] == [{"command": "echo hello"}]
    assert [line["kind"] for line in told(provider[1])] == ["side", "turn"]
    assert told(provider[1], "side")[0]["usage"]["input"] == 200


def test_a_wished_shape_is_kept(provider: tuple[str, Path]) -> None:
    """Where a reply must keep to a schema, it does, and counts as beside the conversation."""
    schema = {
        "type": "object",
        "properties": {"loop": {"type": "boolean"}, "why": {"type": "string"}},
        "required": ["loop"],
    }
    status, raw = Client("gemini", provider[0]).ask(0, False, generationConfig={"responseJsonSchema": schema})
    assert status == 200
    assert json.loads(json.loads(raw)["candidates"][0]["content"]["parts"][0]["text"]) == {"loop": False}
    assert [line["kind"] for line in told(provider[1])] == ["side"]


def test_what_costs_nothing_is_told_as_free(provider: tuple[str, Path]) -> None:
    """Counting tokens and listing models are answered and not charged; other paths are refused."""
    root, truth = provider
    assert json.loads(post(root + "/v1/messages/count_tokens", b"x" * 400)[1]) == {"input_tokens": 100}
    assert json.loads(post(root + "/v1beta/models/m:countTokens", b"x" * 400)[1]) == {"totalTokens": 100}
    with urllib.request.urlopen(root + "/v1/models") as answer:
        assert [model["id"] for model in json.load(answer)["data"]] == ["rehearsal-large", "rehearsal-small"]
    assert post(root + "/v1/batches", b"{}")[0] == 404
    assert [line["kind"] for line in told(truth)] == ["free", "free", "free", "refused"]
    assert all(line["usage"] is None for line in told(truth))


@pytest.mark.parametrize("wire", WIRES)
def test_a_key_is_demanded(provider: tuple[str, Path], wire: str) -> None:
    """A request that does not bear the scenario's key is refused in the wire's own shape, and not charged."""
    path, body = Client(wire, provider[0]).request(0, True)
    status, raw = post(provider[0] + path, json.dumps(body).encode(), key="another")
    assert status == 401 and json.loads(raw)["error"]["message"] == "no such key"
    assert told(provider[1])[0]["usage"] is None


@settings(max_examples=30, deadline=None)
@given(
    body=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "messages",
                        "input",
                        "contents",
                        "tools",
                        "role",
                        "content",
                        "parts",
                        "type",
                        "name",
                        "text",
                        "model",
                    ]
                ),
                x,
            )
        ),
    )
)
def test_no_request_breaks_it(spoilt: list[str], body: Any) -> None:
    """Whatever JSON is sent, the answer is a reply or a refusal, never a fault of the server."""
    for wire in WIRES:
        path, _ = Client(wire, "").request(0, False)
        assert post(spoilt[0] + path, json.dumps(body).encode())[0] in (200, 400)


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """One provider for all the examples."""
    folder = tmp_path_factory.mktemp("spoilt")
    with served(SCENARIOS / "hello.toml", folder) as (root, _):
        yield [root]


# --- what goes wrong -------------------------------------------------------------------------------------------------

TROUBLED = """
title = "Troubles"
[[turns]]
say = "one two three four five six seven eight nine zygote"
[[turns.troubles]]
{trouble}
"""


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("status", [401, 402, 429, 500, 529])
def test_an_error_comes_in_the_wire_s_shape(tmp_path: Path, wire: str, status: int) -> None:
    """A status that the scenario wants comes as often as it says, then the turn is played."""
    file = tmp_path / "play.toml"
    file.write_text(TROUBLED.format(trouble=f'how = "status"\nstatus = {status}\nmessage = "no"\ntimes = 2'))
    with served(file, tmp_path) as (root, truth):
        client = Client(wire, root)
        for _ in range(2):
            got, raw = client.ask(0, True)
            assert got == status and json.loads(raw)["error"]["message"] == "no"
        assert client.ask(0, True)[0] == 200
        assert [(line["status"], line["usage"] is None) for line in told(truth)] == [(status, True)] * 2 + [
            (200, False)
        ]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("after", [0, 1])
def test_a_reply_can_be_cut(tmp_path: Path, wire: str, stream: bool, after: int) -> None:
    """A cut reply breaks the connection after so many events, and is charged in full."""
    file = tmp_path / "play.toml"
    file.write_text(TROUBLED.format(trouble=f'how = "cut"\nafter = {after}'))
    with served(file, tmp_path) as (root, truth):
        client = Client(wire, root)
        status, raw = client.ask(0, stream)
        assert status == 0 and (b"zygote" not in raw if stream else not whole(raw))
        assert "zygote" in client.heard(0, stream)[0]
        first = told(truth)[0]
        assert first["trouble"] == "cut" and first["usage"]["output"] == 50


def test_bytes_can_be_garbage(tmp_path: Path) -> None:
    """Garbage is no event, comes after so many good ones, and is charged."""
    file = tmp_path / "play.toml"
    file.write_text(TROUBLED.format(trouble='how = "garbage"\nafter = 2'))
    with served(file, tmp_path) as (root, truth):
        status, raw = Client("responses", root).ask(0, True)
        assert status == 200 and raw.count(b"event: ") == 2 and b"\xff\xfe<html>" in raw
        assert told(truth)[0]["usage"] is not None


@pytest.mark.parametrize("after", [0, 3])
def test_it_can_hang(tmp_path: Path, after: int) -> None:
    """A hanging provider sends what it was told to and then nothing; only what had begun is charged."""
    file = tmp_path / "play.toml"
    file.write_text(TROUBLED.format(trouble=f'how = "hang"\nafter = {after}'))
    with served(file, tmp_path) as (root, truth):
        path, body = Client("anthropic", root).request(0, True)
        line = http.client.HTTPConnection(root.removeprefix("http://"), timeout=1)
        line.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        with pytest.raises(TimeoutError):
            line.getresponse().read()
        line.close()
        assert (told(truth)[0]["usage"] is not None) == bool(after)


# --- which turn it is ------------------------------------------------------------------------------------------------


def test_a_turn_is_played_until_its_words_are_heard() -> None:
    """A turn with `until` comes again while its results lack the words, at most `most` times."""
    turns = [Turn(until="ready", most=3), Turn(say="a"), Turn(say="b")]
    assert [place(turns, heard) for heard in ([], ["no"], ["no", "no"])] == [(0, 0), (0, 1), (0, 2)]
    assert place(turns, ["no", "no", "no"]) == (1, 0), "enough is enough"
    assert place(turns, ["no", "it is ready"]) == (1, 0)
    assert place(turns, ["ready", "", "", ""]) == (2, 0)


@given(st.lists(st.sampled_from(["", "ready", "no"]), max_size=30))
def test_a_conversation_never_goes_back(heard: list[str]) -> None:
    """The more was heard, the later the turn; the turn depends on nothing but the conversation."""
    turns = [Turn(until="ready", most=4), Turn(), Turn(until="ready"), Turn()]
    places = [place(turns, heard[:n])[0] for n in range(len(heard) + 1)]
    assert places == sorted(places) and places[-1] < len(turns)


def test_parts_of_one_reply_are_one_reply() -> None:
    """Reasoning, words and several calls in a row are one reply; their results belong to it."""
    pieces = [(False, ""), (True, ""), (True, ""), (False, "one"), (False, "two"), (True, ""), (False, "")]
    assert runs(pieces) == ("one\ntwo", "")


def test_troubles_come_in_their_order() -> None:
    """Each trouble takes its number of requests, then the next one's turn comes, then none."""
    turn = Turn(troubles=(Trouble(how="cut", times=2), Trouble(how="hang")))
    found = [trouble(turn, earlier) for earlier in range(4)]
    assert [each and each.how for each in found] == ["cut", "cut", "hang", None]
    always = Turn(troubles=(Trouble(how="cut", always=True),))
    assert trouble(always, 99) is always.troubles[0]


def test_calls_become_the_client_s_tools() -> None:
    """The tool that fits by name is called with the fields that its schema has."""
    call = Call(command="ls", seconds=5)
    listed = {"properties": {"command": {"type": "array"}, "timeout_ms": {}}}
    assert made(call, {"shell": listed}, "1").arguments == {"command": ["bash", "-lc", "ls"], "timeout_ms": 5000}
    assert made(call, {"exec_command": {"properties": {"cmd": {}}}}, "1").arguments == {"cmd": "ls"}
    assert made(call, {"Bash": SHELL}, "1", again=2).arguments == {"command": "ls  # look 3"}
    assert made(call, {"Read": {}}, "1") is None
    script = made(call, {"exec": {"namespace": "functions"}}, "1")
    assert script.script == 'text(await tools.exec_command({"cmd":"ls","yield_time_ms":5000}));'
    assert script.namespace == "functions"
    write = Call(tool="write", path="a b", text="it's")
    known = {"properties": {"filePath": {}, "content": {}}}
    assert made(write, {"bash": SHELL, "write": known}, "1").arguments == {"filePath": "a b", "content": "it's"}
    without = made(write, {"bash": SHELL}, "1").arguments["command"]
    assert (
        subprocess.run(["bash", "-c", without.replace("'a b'", "/dev/stdout")], capture_output=True).stdout == b"it's"
    )


def test_a_sample_keeps_to_its_schema() -> None:
    """Choices, required fields and types are kept, whatever the depth."""
    schema = {
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": ["integer"]}},
    }
    assert sample(schema) == {"a": "x", "b": 0}
    assert sample({"anyOf": [{"type": "ARRAY"}]}) == []
    deep: dict[str, Any] = {}
    deep["anyOf"] = [deep]
    assert sample(deep) is None


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("*.toml")), ids=lambda file: file.stem)
def test_our_scenarios_can_be_played(file: Path) -> None:
    """Every scenario that we ship is read, ends in a turn without calls, and its models have prices."""
    scenario = read(file)
    assert isinstance(scenario, Scenario) and not scenario.turns[-1].calls
    assert set(scenario.models) <= set(Catalog().prices("rehearsal").models)


def test_our_providers_play_scenarios_that_are_there() -> None:
    """Each rehearsing provider's scenario is an asset of the catalog."""
    catalog = Catalog()
    rehearsing = [catalog.provider(name) for name in catalog.names("providers") if name.startswith("rehearsal")]
    assert len(rehearsing) >= 3
    for provider in rehearsing:
        read(catalog.asset(str(provider.scenario)))


@pytest.mark.parametrize(
    "text", ["", "title = 7", 'title = "x"', 'title = "x"\nturns = []', "[", 'title = "x"\nspeed = 1']
)
def test_a_wrong_scenario_is_told(tmp_path: Path, text: str) -> None:
    """A scenario with a fault is refused with a line that names the file."""
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(DefinitionError, match=r"wrong\.toml"):
        read(file)


def test_the_program_tells_a_wrong_scenario(tmp_path: Path) -> None:
    """The program ends with 2 and one line for a scenario that is not there."""
    file = tmp_path / "wrong.toml"
    argv = [sys.executable, "-m", "prill.rehearsal", str(file), "--port", "0"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "wrong.toml" in done.stderr
