"""Secrets go, everything else stays; and what programs printed can be shown on a page."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.display import escaped, in_script, shown
from prill.redact import Redactor, Stream, redact
from prill.redact.known import forms

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


VALUE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=40).filter(
    lambda value: len(set(value)) > 6
)
ROUND = st.text(st.sampled_from(' \n\\"{}:,.xyz'), max_size=30)


def carried(value: str, how: str, at: int) -> str:
    """A value as text may carry it."""
    at = 1 + at % (len(value) - 1)
    if how == "json":
        return json.dumps({"a": value})
    if how == "json in json":
        return json.dumps(json.dumps({"a": value}))
    if how == "letter":
        return f"{value[:at]}\\u{ord(value[at]):04x}{value[at + 1 :]}"
    return value[:at] + {"wrapped": "\n", "crlf": "\r\n  ", "escaped": "\\n", "plain": ""}[how] + value[at:]


WAYS = st.sampled_from(["plain", "wrapped", "crlf", "escaped", "json", "json in json", "letter"])


def left(value: str, clean: str) -> bool:
    """Whether ten characters of a value, from its start, are still there in any of its forms, breaks taken out."""
    squeezed = clean.replace("\\n", "").replace("\r\n  ", "").replace("\n", "")
    return any(form.decode()[:10] in text for form in forms(value) for text in (clean, squeezed))


@given(VALUE, WAYS, st.integers(0, 60), ROUND, ROUND)
@settings(max_examples=250, deadline=None)
def test_no_way_of_carrying_a_known_value_saves_it(value: str, how: str, at: int, before: str, behind: str) -> None:
    """Plain, wrapped, inside JSON once or twice, with an escaped letter: the value goes, and what is round it stays."""
    text = f"{before}|{carried(value, how, at)}|{behind}"
    redactor = Redactor({"NAME": value})
    clean = redactor.redact(text.encode()).decode()
    assert (
        "[NAME]" in clean and redactor.counts["NAME"] >= 1 and (left(value, before + behind) or not left(value, clean))
    )
    stream = Stream({"NAME": value})
    kept = (stream.feed(text.encode()) + stream.flush()).decode()
    assert (kept.startswith(before) and kept.endswith(f"|{behind}")) or left(value, before + behind) or "|" in value


@given(VALUE, WAYS, st.integers(0, 60), st.lists(st.integers(0, 200), max_size=6), ROUND)
@settings(max_examples=250, deadline=None)
def test_a_stream_cut_anywhere_is_the_same_as_one_in_one_piece(
    value: str, how: str, at: int, cuts: list[int], round: str
) -> None:
    """However the bytes come, the same are kept, and nothing of a value gets through before the rest of it comes."""
    data = f"{round}{carried(value, how, at)}{round}{value[:9]} and {value}".encode()
    whole = Stream({"NAME": value, "OTHER": "SECRETVAL9"})
    expected = whole.feed(data) + whole.flush()
    stream, kept, begin = Stream({"NAME": value, "OTHER": "SECRETVAL9"}), b"", 0
    for cut in [*sorted(cuts), len(data)]:
        kept += stream.feed(data[begin:cut])
        assert expected.startswith(kept)
        begin = max(begin, cut)
    assert kept + stream.flush() == expected and stream.counts == whole.counts


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
@settings(max_examples=150, deadline=None)
def test_bytes_without_a_known_value_pass_a_stream_as_they_are(data: bytes, cuts: list[int]) -> None:
    """A stream changes no byte that is not of a known value, of whatever kind the bytes are."""
    stream = Stream({"KEY": KEY})
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    kept = b"".join(stream.feed(data[a:b]) for a, b in pairwise(edges))
    assert kept + stream.flush() == data and stream.counts == {}


def test_only_what_may_be_the_beginning_of_a_value_is_held_back() -> None:
    """A stream gives every byte away at once that cannot be part of a value, and no byte of one that can."""
    stream = Stream({"KEY": KEY})
    assert stream.feed(b"loss 0.5\n") == b"loss 0.5\n"
    assert stream.feed(b"key " + KEY[:5].encode()) == b"key "
    assert stream.feed(b"!") == KEY[:5].encode() + b"!"
    assert stream.feed(KEY.encode()) + stream.feed(b" ") == b"[KEY] "


def test_a_value_that_begins_inside_another_is_held_with_it() -> None:
    """While one value may begin in the end of another, none of either gets through."""
    secrets = {"A": "SECRETVAL9", "B": "VAL9LONGERX7"}
    for behind, kept in ((b"LONGERX7 b", b"[B] b"), (b" b", b"[A] b")):
        stream = Stream(secrets)
        assert stream.feed(b"a SECRETVAL9") == b"a "
        assert stream.feed(behind) + stream.flush() == kept


@pytest.mark.parametrize("value", ['pä"ssw/örd-zx81', "zx81\\local\tvalue-99", "日本-zx81-local-value"])
def test_values_with_signs_that_text_escapes_are_found_in_every_form(value: str) -> None:
    """Quotes, slashes and letters outside ASCII stand differently in JSON and in a URL, and go all the same."""
    for form in forms(value):
        assert Redactor({"NAME": value}).redact(b"<" + form + b">") == b"<[NAME]>"
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(json.dumps(value))):
        assert "zx81" not in redact(text, {"NAME": value}) and "NAME" in redact(text, {"NAME": value})


def test_a_value_that_is_no_text_is_found() -> None:
    """A variable may hold bytes that are no UTF-8, which programs print as they are."""
    stream = Stream({"NAME": b"zx81\xff\xfe-local-value".decode("utf-8", "surrogateescape")})
    assert stream.feed(b"a zx81\xff\xfe-local-value b") + stream.flush() == b"a [NAME] b"


def test_what_was_replaced_is_counted_by_name() -> None:
    """Known values count under their variable, shapes and places under what they are."""
    redactor = Redactor({"OPENAI_API_KEY": KEY})
    redactor.redact(f"{KEY} {KEY[:12]} hf_{'a1' * 12} password: 'correct-horse' https://u:passw0rds@h/".encode())
    assert redactor.counts == {"OPENAI_API_KEY": 2, "shape hf_": 1, "place password": 1, "URL password": 1}


def test_a_private_key_goes_and_what_stands_round_it_stays() -> None:
    """The body of a PEM block is replaced, also inside JSON, and nothing behind it is lost."""
    pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEFAKE0FAKE0FAKE0\nFAKE0==\n-----END RSA PRIVATE KEY-----\n"
    encrypted = pem.replace("MII", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\nMII")
    for text in (pem + "after", json.dumps({"a": pem, "b": "after"}), json.dumps([encrypted, "after"])):
        clean = redact(text, {})
        assert "FAKE0" not in clean and "after" in clean and "BEGIN RSA PRIVATE KEY" in clean


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_redacted(data: bytes) -> None:
    """No bytes make redacting raise, and redacting twice changes nothing more."""
    once = Redactor({"KEY": KEY}).redact(data)
    assert Redactor({"KEY": KEY}).redact(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "sk-" * 10_000,
        "-eyJ" * 10_000,
        "token=" * 10_000,
        "\x1b[" * 10_000,
        "\\" * 100_000,
        KEY[:9] * 5_000,
        "@" * 50_000,
        "://a:" * 10_000,
        "password: " * 9_000,
        KEY[:4] * 9_000,
        "0" * 50_000,
    ],
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
