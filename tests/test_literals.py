"""What crosses between processes that do not trust each other: literals, exactly, and nothing else."""

import socket
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.coderun.frames import Gone, Late, TooLong, receive, send
from prill.coderun.literals import NotLiteral, decode, encode

hashable = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.tuples(inner) | st.tuples(inner, inner),
    max_leaves=5,
)
values = st.recursive(
    hashable | st.floats() | st.integers(-(1 << 200), 1 << 200) | st.characters(categories=["Cs"]),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.sets(hashable) | st.dictionaries(hashable, inner),
    max_leaves=20,
)


def exactly(value: Any) -> Any:
    """A value with the types of its parts, in a form in which not-a-number equals itself."""
    if isinstance(value, set):
        return set, sorted(repr(exactly(inner)) for inner in value)
    if isinstance(value, dict):
        return dict, [(exactly(key), exactly(inner)) for key, inner in value.items()]
    return type(value), [exactly(inner) for inner in value] if isinstance(value, list | tuple) else repr(value)


@given(values)
def test_every_literal_comes_back_exactly(value: Any) -> None:
    """What is encoded and decoded has the same types and values throughout, and dicts keep their order."""
    assert exactly(decode(encode(value))) == exactly(value)


@given(st.binary() | st.text(alphabet='[]{}"itfbsd:,-0123456789eE.nul').map(str.encode))
def test_decoding_is_total(spelt: bytes) -> None:
    """Any bytes are a literal or are refused as one, and never anything else."""
    try:
        value = decode(spelt)
    except NotLiteral:
        return
    assert exactly(decode(encode(value))) == exactly(value)


@given(values, st.data())
@settings(max_examples=200)
def test_damaged_bytes_are_refused_or_some_other_literal(value: Any, data: st.DataObject) -> None:
    """A literal with one byte changed is refused or is a literal still."""
    spelt = bytearray(encode(value))
    spelt[data.draw(st.integers(0, len(spelt) - 1))] = data.draw(st.integers(0, 255))
    with suppress(NotLiteral):
        encode(decode(bytes(spelt)))


class Sly(int):
    """A number that is not quite one."""


@pytest.mark.parametrize(
    "value",
    [object(), Sly(1), 1j, range(3), frozenset(), {1: object()}, len, type, bytearray(), [[1], iter(())]],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_no_literal(value: Any) -> None:
    """Other types, subclasses and containers of such are refused by name."""
    with pytest.raises(NotLiteral):
        encode(value)


@pytest.mark.parametrize(
    "spelt",
    [
        b"[" * 100_000,
        b"9" * 5000,
        b"1e999",
        b"NaN",
        b'{"f":"NaN"}',
        b'{"i":"__import__"}',
        b'{"s":[[1]]}',
        b'{"d":[[1]]}',
        b'{"x":[]}',
        b'{"s":[],"t":[]}',
        b'{"b":"?"}',
        b'{"t":"ab"}',
        "é".encode(),
        b"",
        b"[1,]",
    ],
)
def test_hostile_bytes_are_refused(spelt: bytes) -> None:
    """Deep, long, infinite, unknown, unhashable and mistyped spellings are each refused."""
    with pytest.raises(NotLiteral):
        decode(spelt)


def test_bounds_of_a_value_hold_both_ways() -> None:
    """Too deep, too long, too many keys and keys that collide are refused on the way out and on the way in."""
    deep: list[Any] = []
    deep.append(deep)
    collide = [(number + 1) * ((1 << 61) - 1) for number in range(100)]
    for value in (deep, "x" * 200, set(range(20_001)), set(collide), dict.fromkeys(collide)):
        with pytest.raises(NotLiteral):
            encode(value, 100 if isinstance(value, str) else 1 << 24)
    spelt = ",".join(f'{{"i":"{number:#x}"}}' for number in collide)
    with pytest.raises(NotLiteral):
        decode(f'{{"s":[{spelt}]}}'.encode())
    with pytest.raises(NotLiteral):
        decode(b"[[1,2,3]]", 5)


def test_frames_are_whole_or_an_exception() -> None:
    """A frame that is too long, late or cut off is told apart from one that came."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, "v", b"abc")
        assert receive(theirs) == ("v", b"abc")
        send(ours, "v", b"abc")
        with pytest.raises(TooLong):
            receive(theirs, longest=2)
        theirs.recv(3)
        ours.sendall(b"\0\0")
        with pytest.raises(Late):
            receive(theirs, time.monotonic() + 0.05)
        ours.close()
        with pytest.raises(Gone):
            receive(theirs)
