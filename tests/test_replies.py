"""What of a completion is the reply, what is folded away, and where an answer is marked; numbers, read exactly."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.answers import fences, numbers, replies

PIECES = (
    *("<think>", "</think>", "<|im_end|>", "ANSWER:", "Final answer is", "Question:", "\\boxed{", "\\fbox", "}", "{"),
    *("####", "<answer>", "</answer>", "\n", " ", "7", "1,234", "½", "−", "$", "**", "(", ")", "=", "\\", "ซ", "²"),
    *("\u200b", "\u00a0", "\\frac", "/", "^", "e9", "```", "~~~", "python", "def f(x):", "    return x", "[", "]", "'"),
    *('"', ",", "."),
)
TEXT = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
HOSTILE = (
    *("{" * 1_000_000, "\\boxed{" * 100_000, "\\boxed{" * 20_000 + "5" + "}" * 20_000, "\\" * 200_000),
    *("ANSWER: " * 10_000, "answer:\n" * 10_000, "9" * 200_000, "1,111" * 20_000, "<think>" * 20_000, "½" * 20_000),
    *("(" * 200_000, "<answer>" * 20_000),
)


@pytest.mark.parametrize(
    ("completion", "reply"),
    [
        ("plain", "plain"),
        ("<think>a</think>b", "b"),
        ("a</think>b</think>c", "c"),
        ("<think>never", None),
        ("</think>a<think>again", None),
        ("a<|im_end|>b<think>c", "a"),
        ("<think>a<|im_end|>b</think>c", "c"),
        ("a</s>b", "a"),
        ("", ""),
    ],
)
def test_the_reply_is_what_stands_behind_the_reasoning_up_to_the_end_of_the_turn(
    completion: str, reply: str | None
) -> None:
    """Reasoning and whatever follows the end of the turn are cut off, and reasoning that never closes leaves none."""
    assert replies.body(completion) == reply


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("７０％", "70%"),
        ("1½ ½", "1 1/2 1/2"),
        ("１½", "1 1/2"),
        ("−5\u00a05", "-5 5"),
        ("7\u200b0\ufeff", "70"),
        ("x² m³ x₁", "x^{2} m^{3} x_{1}"),
        ("㎡", "m^{2}"),
        ("𝟕𝐁Ⓑ", "7BB"),
        ("๑๒", "๑๒"),
        ("São ß", "São ß"),
        ("a\r\nb\rc", "a\nb\nc"),
    ],
)
def test_text_is_folded_to_plain_characters(text: str, plain: str) -> None:
    """Full-width forms, vulgar fractions, raised figures, special blanks and invisible characters become plain."""
    assert replies.fold(text) == plain


@given(TEXT)
@settings(max_examples=200, deadline=None)
def test_folding_twice_is_folding_once(text: str) -> None:
    """What is folded stays as it is."""
    assert replies.fold(replies.fold(text)) == replies.fold(text)


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("\\boxed{\\frac{1}{2}}", ["\\frac{1}{2}"]),
        ("\\boxed{\\boxed{7}}", ["7"]),
        ("\\boxed{a \\boxed{1}, \\fbox{2}}", ["1", "2"]),
        ("\\boxed{\\{1,2\\}}", ["\\{1,2\\}"]),
        ("\\boxed 5 \\boxed\\pi \\boxed {6}", ["5", "\\pi", "6"]),
        ("\\boxed{1} and \\boxed{2", ["1"]),
        ("\\boxed{}", [""]),
        ("\\boxedx{1}", []),
    ],
)
def test_boxes_are_balanced_and_innermost(text: str, contents: list[str]) -> None:
    """A box is as long as its braces say, escaped braces do not count, and of nested boxes the inner one is meant."""
    assert [box.content for box in replies.boxes(text)] == contents


def test_a_new_item_ends_the_reply_once_something_was_answered() -> None:
    """A line that starts a new question behind the first marker that can be read hides all that follows it."""
    text = "#### 15\n\nQuestion: next?\n#### 99"
    assert replies.last_marked(text, lambda marker: numbers.stated(marker.text)) == 15
    assert replies.last_marked("Question: a\n" + text, lambda marker: numbers.stated(marker.text)) == 15


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("-$15 $-15 +3", ["-15", "-15", "3"]),
        ("1,200 1{,}200 1\\,200 12,34", ["1200", "1200", "1200", "12", "34"]),
        ("1.2e3 1.2 \\times 10^3 2^{10}", ["1200", "1200", "1024"]),
        ("7/2 3 1/2 \\frac{7}{2} 3\\frac12 3 7/2", ["3.5", "3.5", "3.5", "3.5", "3", "3.5"]),
        ("x1 H2O 5", ["5"]),
        ("x1", ["1"]),
        ("25 m^2, 3 cm^{3}", ["25", "3"]),
        ("555-0100, pages 3-5", ["555", "100", "3", "5"]),
        ("12/25/2024 5/0", ["12", "25", "2024", "5", "0"]),
        (", . ,,", []),
        ("1e999999 " + "9" * 5000, []),
        ("18km 60% $29.00. .5", ["18", "60", "29", "0.5"]),
    ],
)
def test_numbers_are_read_as_they_are_written(text: str, values: list[str]) -> None:
    """Signs, currencies, groups, exponents, fractions and glued units are read; what is out of proportion is none."""
    assert [numbers.decimal(value) for value in numbers.numbers(text)] == values


@given(st.fractions(max_denominator=10**6))
@settings(max_examples=100, deadline=None)
def test_a_value_is_written_so_that_it_is_read_back(value: Fraction) -> None:
    """The one way to write a value is read as the same value."""
    assert list(numbers.numbers(numbers.decimal(value))) == [value]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("m+n = 62", 62),
        ("12 + 58 = 70", 70),
        ("70 (since 7*10 = 70, not 80)", 70),
        ("(70)", 70),
        ("36, not 30", 36),
        ("5 = x", 5),
        ("- 5", -5),
        ("x = - $5", -5),
        ("none", None),
    ],
)
def test_a_marker_states_the_first_number_behind_the_last_equals_sign(text: str, value: int | None) -> None:
    """Remarks in brackets are dropped, sums are read at their end, and otherwise the first number counts."""
    assert numbers.stated(text) == value


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_read_to_its_end(text: str) -> None:
    """Text made to be slow, a million braces or a hundred thousand boxes, is read like any other."""
    reply = replies.prepare(text) or ""
    replies.last_marked(reply, lambda marker: numbers.stated(marker.below or marker.text))
    assert isinstance(fences.blocks(text), list)


@given(TEXT)
@settings(max_examples=200, deadline=None)
def test_reading_is_total(text: str) -> None:
    """No text makes the preparation, the markers, the numbers or the blocks of a reply raise."""
    reply = replies.prepare(text)
    if reply is not None:
        replies.last_marked(numbers.clean(reply), lambda marker: numbers.stated(marker.text))
        assert numbers.last(reply) is None or isinstance(numbers.last(reply), Fraction)
    for glued in (False, True):
        fences.blocks(text, glued=glued)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```py\na\n```", [("py", "a")]),
        ("~~~ {.python}\na\n~~~~", [("python", "a")]),
        ("````\n```\na\n```\n````", [("", "```\na\n```")]),
        ("```python a = 1```", [("python", "a = 1")]),
        ("```\na\n```garbage\nb", [("", "a")]),
        ("```python\na", [("python", "a")]),
        ("```\nx\n```python\ny\n```", [("", "x"), ("python", "y")]),
        ("  ```x.py\n  a\n    b\n  ```", [("python", "a\n  b")]),
        ("no", []),
    ],
)
def test_blocks_are_read_line_by_line(text: str, found: list[tuple[str, str]]) -> None:
    """Fences of either sign open and close blocks; garbage glued to a closing one and a missing end change nothing."""
    assert [(block.tag, block.text) for block in fences.blocks(text)] == found
