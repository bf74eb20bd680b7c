"""Secrets go, everything else stays; and what programs printed can be shown on a page."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.display import escaped, in_script, shown
from prill.redact import redact

KEY = "sk-proj-FAKE0TEST1FAKE0TEST1FAKE0TEST1"


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ('{"api_key": "abcdefgh-ijkl"}', "abcdefgh"),
        ("{'password': 'correct-horse'}", "correct"),
        ('{\\"access_token\\": \\"abcdef123456\\"}', "abcdef123456"),
        ("Authorization: Bearer abcdefghijklmnop", "abcdefghijklmnop"),
        ("curl --api-key abcdefghij --verbose", "abcdefghij"),
        ("HF_TOKEN=abcdefghijk next", "abcdefghijk"),
        ("GET /v1?token=abcdefgh&x=1", "abcdefgh"),
        ("https://user:passw0rdpass@host/x", "passw0rdpass"),
        ("\\u001b[32msk-proj-FAKE0FAKE0FAKE0FAKE0", "sk-proj-"),
        ("a\\nsk-ant-api03-FAKE0FAKE0FAKE0FAKE0FAKE0", "sk-ant-"),
        ("ghp_FAKE0FAKE0FAKE0FAKE0FAKE0FAKE0FAKE0", "ghp_"),
        ('{"a":[{"client_secret":"zzzzzzzzzz"}]}', "zzzzzzzzzz"),
    ],
)
def test_shapes_and_places_of_secrets_are_known(text: str, gone: str) -> None:
    """A key by its shape, and any value in a place that is named after a secret, is replaced, once and for all."""
    clean = redact(text, {})
    assert gone not in clean and redact(clean, {}) == clean


@pytest.mark.parametrize(
    "text",
    [
        *(
            "token = tokenizer.decode(ids)",
            "eos_token: <|im_end|>",
            '"pad_token": "some_long_token"',
            "max_tokens=16384",
        ),
        *("api_key=os.environ['OPENAI_API_KEY']", "password = getpass()", "the secret: practice makes perfect"),
        *("sk-learn-contrib", "hf_cache_90afd0 hf_hub_download", "ASIAPACIFICREGIONABCD", "credentials: see README"),
        "commit 22705452f80106da9ff841b4db24df7128bb9057 3f2b8c1e-0a4d-4c1b-9a53-0123456789ab",
    ],
)
def test_ordinary_words_digests_and_ids_survive(text: str) -> None:
    """What only looks like a secret stays as it is."""
    assert redact(text, {"SHORT": "tok", "EMPTY": "", "PATH": text}) == text


@pytest.mark.parametrize("text", [KEY, KEY[:10] + "...", KEY[:20] + "\n" + KEY[20:], KEY[:15] + "\\n  " + KEY[15:]])
def test_known_values_go_whole_cut_and_wrapped(text: str) -> None:
    """Ten characters of a known value give it away; its variable's name takes its place, and lines stay lines."""
    clean = redact(f"a {text} b", {"OPENAI_API_KEY": KEY})
    assert "FAKE0TEST1" not in clean and clean.startswith("a [OPENAI_API_KEY]") and clean.endswith(" b")
    assert clean.count("\n") == text.count("\n")


def test_longer_values_are_replaced_before_shorter_ones() -> None:
    """Where one secret begins with another, each is replaced by its own name."""
    assert redact("SECRETVAL9 SECRETVAL9LONGER", {"A": "SECRETVAL9", "B": "SECRETVAL9LONGER"}) == "[A] [B]"


@given(st.text(max_size=200), st.text(min_size=8, max_size=20))
@settings(max_examples=150, deadline=None)
def test_no_text_keeps_a_known_value(text: str, value: str) -> None:
    """A value of eight characters or more is gone from any text, and redacting is total."""
    clean = redact(text + value + text, {"NAME": value})
    assert len(value.strip()) < 8 or value.strip() not in clean or value.strip() in "[NAME][redacted]"


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "sk-" * 10_000, "-eyJ" * 10_000, "token=" * 10_000, "\x1b[" * 10_000, "\\" * 100_000]
)
def test_hostile_text_is_redacted_and_shown(text: str) -> None:
    """Text made to be slow is read like any other."""
    assert isinstance(redact(text, {"K": KEY}), str) and isinstance(shown(text), str)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("10%\r55%\r100%\n", "100%\n"),
        ("a\r\nb", "a\nb"),
        ("\x1b]0;title\x07x\x1b[1;31", "x"),
        ("\b\bab\bc", "ac"),
        ("a\x00b\tc", "ab\tc"),
    ],
)
def test_a_terminal_s_last_state_is_shown(text: str, seen: str) -> None:
    """Escape codes are out, carriage returns and backspaces are done."""
    assert shown(text) == seen


@given(st.text(max_size=80), st.recursive(st.none() | st.text(max_size=9), lambda inner: st.lists(inner, max_size=3)))
@settings(max_examples=100, deadline=None)
def test_nothing_on_a_page_opens_or_closes_anything(text: str, value: object) -> None:
    """Text has no signs of markup left, and JSON in a script reads back as it was."""
    assert not set("<>\"'") & set(escaped(text))
    assert "<" not in in_script(value) and json.loads(in_script(value)) == value
