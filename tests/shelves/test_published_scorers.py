"""The published readings are those that were published: against the installed Inspect, and verdicts of earlier ones."""

import random
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from prill.graders import choice, math, number

# --- published readings: numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "target", "right"),
    [
        ("ANSWER: 711", "11", True), ("ANSWER: 149", "49", True), ("99912", "12", True), ("270", "70", True),
        ("123457", "123456", True), ("123356", "123456", False), ("ANSWER: 12%", "12", False), ("1080", "1,080", False),
        ("1,080", "1,080", True), ("12 dollars 5 cents", "5", True), ("-12", "12", True), ("5", "-5", True),
        ("The answer is (42).", "42", False), ("**42**", "42", True), ("1½", "1½", True), ("½½", "5", False),
        ("10⁹⁹⁹", "1", False), ("3²", "9", True), ("", "9", False), ("ANSWER: 18.00", "18", True), ("x", "18", False),
    ],
)  # fmt: skip
def test_inspect_0_3_150_is_read_as_it_was(text: str, target: str, right: bool) -> None:
    """The verdicts of the pinned release, wrong ones included, as its own code gives them."""
    assert number.ends_with(text, target) is right


@pytest.mark.parametrize(
    ("text", "target", "right"),
    [
        ("ANSWER: 711", "11", False), ("149", "49", False), ("11", "11", True), ("049", "49", True),
        ("The answer is 49.", "49", True), ("1,049", "1049", True), ("49.0", "49", True), ("none", "49", False),
        ("49 and then 50", "49", False), ("\\boxed{11}", "11", True),
    ],
)  # fmt: skip
def test_posttrainbench_1_2_reads_aime_as_published(text: str, target: str, right: bool) -> None:
    """The cases that PostTrainBench v1.2 publishes for AIME."""
    assert number.exact_integer(text, target) is right


@pytest.mark.parametrize(
    ("text", "target", "right"),
    [
        ("-3", "-3", True), ("3", "-3", False), ("13", "-3", False), ("-5", "5", False), ("14000", "14,000", True),
        ("14,000", "14,000", True), ("114,000", "14,000", False), ("15", "5", False), ("262499", "262500", False),
        ("$18.00.", "18", True), (".10.00.50", "50", False), ("none", "5", False), ("½½", "5", False),
        ("10⁹⁹⁹", "5", False), ("…3*5²*13. Therefore,", "5", False),
    ],
)  # fmt: skip
def test_posttrainbench_1_2_reads_gsm8k_as_published(text: str, target: str, right: bool) -> None:
    """The cases that PostTrainBench v1.2 publishes for GSM8K."""
    assert number.exact_value(text, target) is right


WORDS = (
    *(
        "12",
        "112",
        "7",
        "70",
        "70,000",
        "1,080",
        "3.14",
        ".5",
        "5.",
        "-5",
        "−5",
        "$18",
        "$18.00.",
        "\\$18",
        "18km",
        "60%",
    ),
    *(
        "½",
        "1½",
        "3²",
        "2⁻¹",
        "1.2.3",
        "(42)",
        "[42]",
        "**73**",
        "__9__",
        "answer:",
        "the",
        "is",
        "####",
        "\n",
        "!",
        "1e3",
    ),
    *("1e999", "+5", "--5", "1'000", "x", "=", ".", ",", "€5", "inf", "nan", "5-3", "0049", "9" * 30, "７", "٣"),
)
TARGETS = (
    "12",
    "7",
    "70",
    "70,000",
    "1,080",
    "-5",
    "3.14",
    "18",
    "½",
    "0.5",
    "0049",
    "123456",
    "1000",
    "$5",
    "12%",
    "x",
)


def sentences(seed: int, words: tuple[str, ...], count: int) -> list[str]:
    """Texts put together from words by a fixed draw."""
    draw = random.Random(seed)
    return [
        "".join(draw.choice(words) + draw.choice(("", " ", " ", "\n")) for _ in range(draw.randint(0, 6)))
        for _ in range(count)
    ]


def test_the_installed_inspect_reads_numbers_as_we_say() -> None:
    """Over thousands of texts our reading of Inspect 0.3.285 gives the verdict that Inspect itself gives."""
    theirs = pytest.importorskip("inspect_ai.scorer._common").match_str
    texts = sentences(7, WORDS, 4000)
    differ = [
        (text, target)
        for text, target in zip(texts, TARGETS * (len(texts) // len(TARGETS) + 1), strict=False)
        if theirs(text, target, "end", numeric=True)[1] != number.last_equals(text, target)
    ]
    assert differ == []


# --- published readings: letters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("ANSWER: A\nANSWER: B", "A"), ("<think>\nANSWER: C\n</think>\nANSWER: D", "C"), ("ANSWER: **B**", ""),
        ("ANSWER: $B$", ""), ("ANSWER: (B)", ""), ("answer: B.", "B"), ("ANSWER: b", ""), ("\\boxed{B}", ""),
        ("So, ANSWER: B!", "B"), ("ANSWER: B because", ""), ("ANSWER: B", "B"), ("", ""),
    ],
)  # fmt: skip
def test_inspect_0_3_150_reads_letters_as_it_did(text: str, letters: str) -> None:
    """The first line counts, in capitals, and nothing may be wrapped round the letter."""
    assert choice.first_answer_line(text, "ABCD") == set(letters)


def test_the_installed_inspect_reads_letters_as_we_say() -> None:
    """Over thousands of texts our reading of Inspect 0.3.285 finds the letters that Inspect itself finds."""
    theirs = pytest.importorskip("inspect_ai.solver._multiple_choice").parse_answers
    words = (
        "ANSWER: ",
        "answer:",
        "Answer : ",
        "A",
        "B",
        "b",
        "C",
        "E",
        ", ",
        " and ",
        "**",
        "$",
        "(",
        ")",
        ".",
        "foo",
    )
    for text in sentences(5, words, 4000):
        state = SimpleNamespace(output=SimpleNamespace(completion=text), choices=[0] * 4)
        for multiple in (False, True):
            assert choice.last_answer_line(text, "ABCD", multiple) == theirs(state, multiple), text


# --- formulas and hostile text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "target", "right"),
    [
        ("\\boxed{0.5}", "\\frac{1}{2}", True), ("\\boxed{\\dfrac12}", "\\frac{1}{2}", True),
        ("\\boxed{0.25}", "\\frac{1}{4}", False), ("\\boxed{3/4}", "\\frac34", True), ("\\boxed{x=5}", "5", True),
        ("\\boxed{5\\text{ cm}}", "5", True), ("\\boxed{(1, 2)}", "(1,2)", True), ("\\boxed{b+a}", "a+b", False),
    ],
)  # fmt: skip
def test_the_data_set_s_own_comparison_is_one_of_strings(text: str, target: str, right: bool) -> None:
    """It knows a few spellings and no values."""
    assert math.same_string(text, target) is right


@pytest.mark.parametrize("read", [number.ends_with, number.unboxed_ends_with, number.last_equals])
def test_published_readings_bear_hostile_text(read: Callable[[str, str], bool]) -> None:
    """The scorers that we rebuilt take time in proportion to the text, which their models did not."""
    assert read("\\boxed{" * 50_000 + "²" * 50_000, "7") is False
