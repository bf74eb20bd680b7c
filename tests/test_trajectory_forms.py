"""The short ways give what the long ones do: compiled or plain, line by line or event by event, in blocks or whole."""

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.redact import Redactor, scan
from prill.redact.shapes import SHAPES
from prill.trajectory import compiled, forms, steps
from prill.trajectory.claude_code import said as short
from prill.trajectory.reading import said
from test_trajectory import FORMATS, LINES, claude

KEY = "sk-proj-FAKE0TEST1FAKE0TEST1FAKE0TEST1"
NAMES = ("api_key", "ACCESS-KEY", "Secret", "password", "passwd", "passphrase", "Authorization", "tOKEn", "credentials")
PARTS = st.sampled_from(
    [KEY, *NAMES, "cookie", "=", ": ", '": "', "\n", "\\n", "abcdefgh12", *(shape.prefix.decode() for shape in SHAPES)]
)
TEXTS = st.lists(PARTS | st.text(max_size=5), max_size=20).map(lambda parts: "".join(parts).encode())
TABLES = Redactor({"NAME": KEY, "OTHER": "token-token-1"})._tables


@given(TEXTS | st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_every_search_finds_the_same_places(data: bytes) -> None:
    """NumPy, the compiled loop and the same loop in Python agree on each place, and each wanted three is among them."""
    import numpy as np

    plain = scan.places(data, TABLES)
    out, maybe = np.zeros(len(data) + 1, np.uint32), np.zeros(compiled.STRETCH + 1, np.uint32)
    tables = (TABLES.pairs, TABLES.three, TABLES.ahead, TABLES.kind, TABLES.kinds)
    count = compiled.search([*data], *tables, out, maybe)
    assert plain == out[:count].tolist() == compiled.Search(enough=0).places(data, TABLES)
    for wanted, at in TABLES.at.items():
        at += data.find(wanted)
        assert wanted not in data or at in plain


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_redacting_is_the_same_with_every_search(data: bytes) -> None:
    """Which search finds the places makes no difference to what is left of the data, and to what is counted."""
    plain, fast = Redactor({"NAME": KEY}), Redactor({"NAME": KEY}, places=compiled.Search(enough=0).places)
    assert plain.redact(data) == fast.redact(data) and plain.counts == fast.counts


def test_a_search_is_plain_until_it_has_had_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled for a little data, and where nothing can be compiled the plain search goes on."""
    monkeypatch.setattr(compiled, "_compiled", lambda: pytest.fail("loaded too early"))
    search = compiled.Search(enough=len(KEY))
    assert search.places(KEY.encode(), TABLES) == scan.places(KEY.encode(), TABLES)
    monkeypatch.setattr(compiled, "_compiled", lambda: None)
    assert search.places(KEY.encode(), TABLES) == scan.places(KEY.encode(), TABLES) and not search.load()


@pytest.mark.parametrize("size", [2, 3, 5, 64, scan.BLOCK, scan.BLOCK + 1, scan.BLOCK + 2, 3 * scan.BLOCK])
def test_nothing_is_missed_where_blocks_meet(size: int) -> None:
    """A beginning is found at every offset from the end of a block, of a stretch, and of the data."""
    tables = scan.tables((b"sk-",), ())
    for at in sorted({*range(max(0, size - 5), size - 2), *range(scan.BLOCK - 4, min(size - 2, scan.BLOCK + 2))}):
        data = b"x" * at + b"sk-" + b"x" * (size - at - 3)
        assert scan.places(data, tables) == compiled.Search(enough=0).places(data, tables) == [at]


USUAL: Any = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=8)),
    st.builds(lambda text: {"type": "thinking", "thinking": text}, st.text(max_size=8)),
    st.builds(
        lambda name, given: {"type": "tool_use", "id": "c", "name": name, "input": given},
        st.sampled_from(["Bash", "Read", "", "shell"]),
        st.sampled_from([{}, None, "x", {"command": "ls"}, {"command": 1}, {"path": "é", "n": [1, 2.5, 1 << 70]}]),
    ),
    st.builds(
        lambda content: {"type": "tool_result", "tool_use_id": "c", "content": content},
        st.none() | st.text(max_size=8) | st.lists(st.builds(lambda text: {"type": "text", "text": text}, st.text())),
    ),
    st.sampled_from([{"type": "image"}, {}, "words", None, {"type": "text"}, {"type": "text", "text": 5}]),
)
USUAL_LINES = st.builds(
    lambda kind, blocks, more: json.dumps({**claude(kind, *blocks), **more}).encode(),
    st.sampled_from(["assistant", "user", "result"]),
    st.lists(USUAL, max_size=3),
    st.sampled_from([{}, {"x": float("inf")}, {"x": "\ud800"}, {"message": 5}, {"message": {"content": "words"}}]),
)
BROKEN = st.tuples(USUAL_LINES, st.integers(0, 300), st.binary(max_size=3)).map(
    lambda made: made[0][: made[1]] + made[2] + made[0][made[1] :]
)
TWICE = st.tuples(USUAL_LINES, USUAL_LINES).map(lambda two: two[0][:-1] + b"," + two[1][1:])


@given(st.sampled_from([*FORMATS, "claude", "any"]), st.lists(USUAL_LINES | BROKEN | TWICE | LINES, max_size=4))
@settings(max_examples=300, deadline=None)
def test_the_short_way_says_what_the_steps_do(agent: str, lines: list[bytes]) -> None:
    """Kinds and texts are those of the steps, in their order, whatever the lines are: usual, broken, twice the same
    name, or anything else."""
    data = b"\n".join(lines)
    told = [pair for some in said(agent, io.BytesIO(data)) for pair in some]
    assert told == [(step.kind, step.text) for step in steps(agent, io.BytesIO(data))]


def test_usual_lines_take_the_short_way() -> None:
    """What Claude Code prints most is read without making a dictionary of the line."""
    spoken = claude(
        "assistant", {"type": "text", "text": "a"}, {"type": "tool_use", "name": "Bash", "input": {"command": "b"}}
    )
    heard = claude("user", {"type": "tool_result", "content": [{"type": "text", "text": "c"}]}, tool_use_result={})
    assert short(json.dumps(spoken).encode()) == [("message", "a"), ("command", "b")]
    assert short(json.dumps(heard).encode()) == [("result", "c")]


@pytest.mark.parametrize("between", ["\n", " =\n", ":\r\n", '": \n "', ": Bearer\n"])
@pytest.mark.parametrize("size", range(1, 40))
def test_a_block_never_ends_between_a_name_and_its_value(size: int, between: str) -> None:
    """A password on the line below its name is found wherever a block would have ended."""
    data = f"one\npassword{between if between.strip() else ':' + between}corr3ct-horse\nend\n".encode()
    clean = b"".join(forms.blocks(io.BytesIO(data), Redactor({}), size))
    assert b"corr3ct" not in clean and clean == Redactor({}).redact(data)


@pytest.mark.parametrize("sign", ["\r", "\x1b[1m", "\x00", "\x7f", "\x9b2J", "\b"])
def test_a_readable_form_has_nothing_that_a_terminal_obeys(sign: str) -> None:
    """One control character among many steps is out of the text, and all other steps stay as they are."""
    lines = [claude("assistant", {"type": "text", "text": text}) for text in ("tab\tand é — é\n", f"a{sign}b", "c")]
    source = io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    raw, readable = io.BytesIO(), io.BytesIO()
    assert forms.write("claude_code", source, {}, raw, readable).steps == 3
    text = readable.getvalue().decode()
    assert sign not in text and "tab\tand é — é\n" in text and text.endswith("--- 3 message\nc\n\n")
