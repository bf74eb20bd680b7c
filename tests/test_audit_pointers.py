"""Pointers, derivations and the reader of pages: whatever they are given, they find it, refuse it by name, and end."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.audit.derive import Calculator, Derivation, Derivations, How, Observation
from prill.audit.pointers import Unsound, join, read_json, resolve, safe_name, split, walk
from prill.audit.sheets import Sheet

GIVEN = {"provenance.json": {"inputs": {"s": {"sha256": "0"}}}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(JSON)
def test_every_place_has_a_pointer_that_leads_back(value: Any) -> None:
    """Whatever is in a JSON file, each of its places is found again by its pointer, and anything else is dangling."""
    read = read_json(json.dumps(value).encode())
    for pointer, found in walk("a.json", read):
        assert resolve({"a.json": read}, pointer) is found
    with pytest.raises(Unsound):
        resolve({"a.json": read}, join("a.json", "no", "such", "place", "there"))


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=40) | st.builds(lambda a, b: f"{a}#/{b}", st.text(max_size=9), st.text(max_size=9)))
def test_no_text_breaks_a_pointer(text: str) -> None:
    """Any text is a pointer into the bundle or is refused by name."""
    try:
        file, _ = split(text)
        assert safe_name(file)
    except Unsound as error:
        assert error.code in ("DANGLING", "CLIMBS")


@settings(max_examples=80, deadline=None)
@given(st.text(st.sampled_from("<>/=\"' datasvlue-refp1&;!"), max_size=80))
def test_no_page_breaks_the_reader(text: str) -> None:
    """Whatever stands in a page, it is read to its end, and a digit outside of a pointer's element is a fault."""
    told = {code for code, _ in Sheet(f"<!doctype html><p>{text}</p><p>7</p>").faults}
    assert told & {"TYPED", "MALFORMED"}


@settings(max_examples=60, deadline=None)
@given(JSON, st.sampled_from(get_args(How)))
def test_no_operand_breaks_a_derivation(value: Any, how: Any) -> None:
    """Of any operands a derivation gives a value or is underivable by name."""
    entry = Derivation(value="a.json#/v", how=how, of=("a.json#/of", "a.json#/of"), where={"x": 1}, by=("x",))
    calculator = Calculator({"a.json": {"of": value}}, Derivations(derived=(entry,), observed=()))
    try:
        calculator.evaluate(entry)
    except Unsound as error:
        assert error.code in ("UNDERIVABLE", "DANGLING", "CLIMBS")


def test_what_was_observed_grounds_what_is_below_it() -> None:
    """A value rests on the observation of any place above it, and on nothing beside it."""
    seen = Derivations(derived=(), observed=(Observation(under="a.json#/x", source="provenance.json#/inputs/s"),))
    calculator = Calculator({"a.json": {"x": {"y": [1]}, "xx": 1}, **GIVEN}, seen)
    assert calculator.ground("a.json#/x/y/0") == "observed"
    with pytest.raises(Unsound, match="neither observed nor derived"):
        calculator.ground("a.json#/xx")
