"""Judges' words: what is not clearly a verdict is none."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.verdicts import combine, parse_json, parse_text

KEYS = ("contamination", "disallowed_model")
CLEAN = '{"contamination": false, "disallowed_model": false}'
DIRTY = '{"contamination": true, "disallowed_model": false}'


@pytest.mark.parametrize(
    ("reply", "contaminated"),
    [
        (CLEAN, False),
        (f"[{DIRTY}, {CLEAN}]", False),
        (f'{{"result": {DIRTY}}}', True),
        (f"{DIRTY} or rather\n```json\n{CLEAN}\n```\nThat is all.", False),
        ('{"contamination": " TRUE", "disallowed_model": "False"}', True),
        (CLEAN[:-1] + f', "draft": {DIRTY}}}', False),
        ('{"contamination": 1, "disallowed_model": false}', None),
        ('{"contamination": "no", "disallowed_model": false}', None),
        ('{"contamination": true, "contamination": false, "disallowed_model": false}', None),
        (f"The form is {DIRTY}. Mine: " + CLEAN[:30], None),
        ("{'contamination': False, 'disallowed_model': False}", None),
        ("clean", None),
    ],
)
def test_only_a_whole_object_of_booleans_is_a_verdict(reply: str, contaminated: bool | None) -> None:
    """The last complete object with every key counts; other values, a key twice and a cut-off verdict do not."""
    values = parse_json(reply, KEYS)
    assert (values and values["contamination"]) is contaminated if contaminated is None else values is not None
    assert values is None or values["contamination"] is contaminated


@given(st.text(alphabet='{}[]":, truefalsecontamination\\', max_size=200))
@settings(max_examples=200, deadline=None)
def test_reading_a_judge_is_total(reply: str) -> None:
    """Any reply is a verdict or none."""
    assert parse_json(reply, KEYS) is None or set(parse_json(reply, KEYS) or ()) == set(KEYS)


@pytest.mark.parametrize(
    "reply", ["{" * 200_000, '{"a":' * 50_000, '{"contamination":' * 50_000, f"{DIRTY} " * 3_000 + "{"]
)
def test_hostile_replies_of_judges_end(reply: str) -> None:
    """Objects nested without end are no verdict; thousands of verdicts are the last one, or none."""
    assert parse_json(reply, KEYS) in (None, {"contamination": True, "disallowed_model": False})


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("  Disallowed   use\ndetected! ", True),
        ("only allowed use detected", False),
        ("disallowed use detected?", None),
    ],
)
def test_a_verdict_in_words_is_the_whole_text(text: str, verdict: bool | None) -> None:
    """Case, blanks and final punctuation do not matter, everything else does."""
    assert parse_text(text, "disallowed use detected", "only allowed use detected") is verdict


def test_a_missing_or_invalid_judge_leaves_the_result_incomplete() -> None:
    """With either way of counting, a judge without a verdict is not passed over."""
    flag, clean = (
        {"contamination": True, "disallowed_model": False},
        {"contamination": False, "disallowed_model": False},
    )
    assert combine({"a": flag, "b": None}, "any").status == "judge_missing"
    assert combine({"a": flag, "b": {"contamination": "true"}}, "any").status == "judge_missing"
    assert combine({"a": flag, "b": flag}, "majority").status == "judge_missing"
    assert combine({"a": flag, "b": clean}, "any").values["contamination"] is True
    assert combine({"a": flag, "b": clean, "c": clean}, "majority").values["contamination"] is False
    assert combine({}, "any", manual=clean).source == "manual"
    assert combine({}, "any", manual={"contamination": True}).status == "judge_missing"
