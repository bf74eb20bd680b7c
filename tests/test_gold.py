"""Gold: on every real item at hand the right answer earns full marks and a wrong one none, in both readings."""

import json
from collections.abc import Callable
from string import ascii_uppercase

import pytest

import wheels
from prill import chat, items, plugins
from prill.catalog import Catalog
from prill.graders.function_call import parse_calls
from prill.record import Call, Mark, Reply
from prill.sockets import Item

Say = Callable[[Item], str | Reply]


def number(item: Item) -> str:
    """The right number as the prompt asks for it."""
    return f"Reasoning.\n\nANSWER: {item.answer}"


def another_number(item: Item) -> str:
    """One more than the right number."""
    return f"Reasoning.\n\nANSWER: {int(item.answer.replace(',', '')) + 1}"


def box(item: Item) -> str:
    """The right formula as the prompt asks for it."""
    return f"Reasoning.\n\nSo it is $\\boxed{{{item.answer}}}$."


def another_box(item: Item) -> str:
    """A formula that is nobody's answer."""
    return "Reasoning.\n\nSo it is $\\boxed{\\sqrt{97131} + 4711}$."


def letter(item: Item) -> str:
    """The right letter as the prompt asks for it."""
    return f"Reasoning.\n\nANSWER: {item.answer}"


def another_letter(item: Item) -> str:
    """The letter of an option that is wrong."""
    return f"Reasoning.\n\nANSWER: {next(each for each in ascii_uppercase if each != item.answer)}"


def call(item: Item) -> Reply:
    """The right call, as a server hands it over."""
    [gold] = parse_calls(item.answer, "python") or []
    written = Call(name=gold.name, arguments=json.dumps(dict(gold.arguments)))
    return Reply(text="", stop="stop", calls=(written,))


def another_call(item: Item) -> Reply:
    """The right function with one argument that nobody asked for."""
    right = call(item)
    arguments = {**json.loads(right.calls[0].arguments), "unasked": 4711}
    return Reply(text="", stop="stop", calls=(Call(name=right.calls[0].name, arguments=json.dumps(arguments)),))


GOLD: dict[str, tuple[Callable[[], list[wheels.Row]], int, Say, Say]] = {
    "aime2025": (wheels.aime2025, 30, number, another_number),
    "gsm8k": (wheels.gsm8k, 100, number, another_number),
    "math-500": (wheels.math500, 311, box, another_box),
    "bfcl": (wheels.bfcl, 100, call, another_call),
    "gpqamain": (wheels.gpqa_diamond, 25, letter, another_letter),
    "gpqa-diamond": (wheels.gpqa_diamond, 25, letter, another_letter),
}
"""Benchmark → its rows at hand, how many, a reply that is right and one that is wrong."""


def marks(name: str, say: Say) -> list[tuple[Item, Mark]]:
    """Each real item of a benchmark with the mark for what is said to it."""
    benchmark = Catalog().benchmark(name)
    published = [(f"row {number}", row) for number, row in enumerate(GOLD[name][0]())]
    found = items.converted(published, benchmark.data.format, name)
    shown = [chat.shown(benchmark, item, 72332) for item in found]
    grade = plugins.get("graders", benchmark.grader)
    said = [(item, say(item)) for item in shown]
    return [
        (item, grade(reply if isinstance(reply, Reply) else Reply(text=reply, stop="stop"), item))
        for item, reply in said
    ]


@pytest.mark.parametrize("name", GOLD)
def test_the_right_answer_earns_full_marks(name: str) -> None:
    """Each real item's own answer, said as the prompt asks, is right in the robust reading; none is left out."""
    made = marks(name, GOLD[name][2])
    assert len(made) == GOLD[name][1]
    assert [item.id for item, mark in made if mark.robust != 1] == []


@pytest.mark.parametrize("name", GOLD)
def test_a_wrong_answer_earns_none(name: str) -> None:
    """An answer that is not the item's earns nothing in the robust reading."""
    assert [item.id for item, mark in marks(name, GOLD[name][3]) if mark.robust != 0] == []


@pytest.mark.parametrize("name", GOLD)
def test_the_published_reading_knows_the_right_answer(name: str) -> None:
    """The published scorer gives each real item's own answer full marks as well."""
    assert [item.id for item, mark in marks(name, GOLD[name][2]) if mark.official != 1] == []
