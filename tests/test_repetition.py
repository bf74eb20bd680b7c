"""The limiter of repetitions: what it cuts, held against the published rules, and that no reply holds it up."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prill.answers.repetition import UNITS, cut, limited, line_blocks, lines_in_a_row, stretches

LOOPING = st.lists(
    st.tuples(st.text("ab\n ", min_size=1, max_size=9), st.integers(1, 9)).map(lambda part: part[0] * part[1]),
    max_size=8,
).map("".join)
"""Texts that repeat themselves, also within what they repeat."""


def test_each_kind_of_repetition_is_cut_to_five() -> None:
    """Equal lines, blocks of lines and substrings that stand more than five times in a row stand five times."""
    assert limited("yes\n" * 9 + "end", 5) == "yes\n" * 5 + "end"
    block = "First, the sea.\nThen a lighthouse, and its keeper.\n\n"
    assert limited("Once.\n" + block * 8 + "End.", 5) == "Once.\n" + block * 5 + "End."
    assert limited("It was " + "very very old, " * 40 + "said he.", 5) == "It was " + "very very old, " * 5 + "said he."
    assert limited("a" * 1000, 5) == "a" * 16  # fifteen of `aaa` five times, and one that is left


@pytest.mark.parametrize("text", ["", "\n", "ab" * 5, "one\ntwo\n" * 5, "A poem.\n\nA second verse.", "no " * 5])
def test_what_stands_five_times_stays(text: str) -> None:
    """A text that repeats nothing more than five times comes back as it is."""
    assert limited(text, 5) == text


def test_a_block_that_begins_once_more_goes_with_it() -> None:
    """Behind a cut block its own beginning is dropped too, as where a token limit ended the reply; other lines stay."""
    lines = ["The sea was calm.", "The wind was not.", "So he waited."]
    assert line_blocks([*lines * 7, lines[0], "The wind"], 5) == lines * 5
    assert line_blocks([*lines * 7, lines[0], "Then it rained."], 5) == [*lines * 5, lines[0], "Then it rained."]
    assert line_blocks([*lines * 7, *"pqrs"], 5) == [*lines * 5, *"pqrs"]


def test_the_largest_units_are_found() -> None:
    """29 lines and 500 letters are units, 30 and 501 are not."""
    lines = [f"{number} {word}" for number, word in enumerate(string.ascii_lowercase * 2)]
    assert line_blocks(lines[:29] * 6, 5) == lines[:29] * 5
    assert line_blocks(lines[:30] * 6, 5) == lines[:30] * 6
    letters = "".join(chr(0x4E00 + number) for number in range(501))
    assert limited(letters[:500] * 6, 5) == letters[:500] * 5
    assert limited(letters * 6, 5) == letters * 6


@given(LOOPING)
def test_nothing_grows_and_a_second_time_changes_nothing(text: str) -> None:
    """The result is never longer than the text, and is itself free of what would be cut."""
    once = limited(text, 5)
    assert len(once) <= len(text) and limited(once, 5) == once


@given(LOOPING, st.sampled_from(UNITS), st.integers(1, 5))
def test_units_are_found_as_published(text: str, sizes: tuple[int, int], most: int) -> None:
    """Substrings are cut where the published search from each letter, shortest unit first, would cut them."""
    shortest, longest = sizes
    wanted = re.sub(rf"(.{{{shortest},{longest}}}?)\1{{{most},}}", lambda found: found[1] * most, text, flags=re.DOTALL)
    assert cut(text, range(shortest, longest + 1), most) == wanted


@given(st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=60), st.integers(2, 5))
def test_blocks_are_found_as_by_looking_at_each_line(lines: list[str], size: int) -> None:
    """Where a block of some lines stands six times in a row, the search by every n-th line finds its first line."""
    text = "".join(line or "-" for line in lines)
    seen = [
        at
        for at in range(len(text))
        if text[at : at + size] * 6 == text[at : at + 6 * size] and at + 6 * size <= len(text)
    ]
    found = [start + more for start, end in stretches(text, size, 5) for more in range(end - start - 5 * size + 1)]
    assert found == seen


@pytest.mark.parametrize(
    "text",
    ["\n", "x\n", "ab\n" * 40 + "c", "a" * 17 + "b" * 17, "".join(map(chr, range(33, 500)))],
)
def test_ten_megabytes_that_loop_come_back_short(text: str) -> None:
    """A reply of ten million letters that repeats one thing is cut to a few of it."""
    whole = text * (10_000_000 // len(text))
    assert len(limited(whole, 5)) < 60 * len(text) + 60


def test_a_text_that_always_changes_again_ends() -> None:
    """Repetitions inside of repetitions are cut in so many passes and no more."""
    text = "abc"
    for letter in string.ascii_uppercase[:6]:
        text = text * 6 + letter
    assert len(limited(text, 5)) < len(text) / 2


def test_lines_in_a_row_count_each_row_by_itself() -> None:
    """Equal lines are counted where they stand together, not over the whole text."""
    assert lines_in_a_row(["a"] * 7 + ["b"] + ["a"] * 3, 5) == ["a"] * 5 + ["b"] + ["a"] * 3
