"""What is put to a model: golden files of made-up items, blanks, options in order, seeds."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from prill import chat, items, seeds
from prill.catalog import Catalog
from prill.errors import DefinitionError
from prill.sockets import Item
from prill.spec import Benchmark
from samples import BENCHMARK

GOLDEN = Path(__file__).parent / "golden" / "prompts"
GPQA = {
    "Record ID": "rec1",
    "Question": "Which gas do {letters} bubbles hold?",
    "Correct Answer": "air",
    "Incorrect Answer 1": "lead",
    "Incorrect Answer 2": "sand",
    "Incorrect Answer 3": "wax",
}
FUNCTION = {
    "name": "tea.brew",
    "description": "Brews tea.",
    "parameters": {
        "type": "dict",
        "properties": {
            "minutes": {"type": "float", "description": "How long.", "default": 3.0},
            "leaves": {"type": "array", "items": {"type": "tuple", "items": {"type": "any"}}},
            "kind": {"type": "string", "enum": ["green", "black"]},
        },
        "required": ["minutes"],
    },
}
ROWS: dict[str, dict[str, Any]] = {
    "aime2025": {"id": "0", "problem": "How many primes are below $10$?", "answer": "4"},
    "gsm8k": {"question": "Ada buys 3 pens at 2 coins each. What does she pay?", "answer": "3 * 2 = 6\n#### 6"},
    "gpqamain": GPQA,
    "gpqa-diamond": GPQA,
    "humaneval": {
        "task_id": "Made/0",
        "prompt": 'def double(n: int) -> int:\n    """Twice {n}."""\n',
        "canonical_solution": "    return 2 * n\n",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
        "entry_point": "double",
    },
    "bfcl": {
        "id": "made_0",
        "question": [[{"role": "user", "content": "Brew green tea for four minutes."}]],
        "function": [FUNCTION],
        "ground_truth": ["tea.brew(minutes=4.0, kind='green')"],
    },
    "arenahardwriting": {"uid": "0", "prompt": "Write of a pond.", "category": "creative_writing", "subcategory": "x"},
    "healthbench": {
        "prompt_id": "0",
        "prompt": [
            {"role": "user", "content": "My foot sleeps."},
            {"role": "assistant", "content": "Since when?"},
            {"role": "user", "content": "Since I sit on it."},
        ],
        "rubrics": [{"criterion": "Says to get up.", "points": 5, "tags": ["axis:accuracy"]}],
        "example_tags": ["theme:communication"],
    },
    "math-500": {"unique_id": "made/0", "problem": "Solve $2x = \\frac{1}{2}$.", "answer": "\\frac{1}{4}"},
    "livecodebench-v6": {
        "question_id": "0",
        "question_content": "Add two numbers.",
        "starter_code": "class Solution:\n    def add(self, a: int, b: int) -> int:\n        ",
        "metadata": '{"func_name": "add"}',
        "public_test_cases": "[]",
        "private_test_cases": "[]",
        "platform": "leetcode",
        "difficulty": "easy",
        "contest_date": "2024-01-01",
    },
    "mmlu-pro": {
        "question_id": 0,
        "question": "What is a tort?",
        "options": ["a wrong", "a cake", "a turtle"],
        "answer": "A",
        "category": "law",
    },
    "word-problems": {"id": "0", "question": "1 + 1 = ?", "answer": "2"},
}
"""Benchmark → a row as its data set publishes them, made up."""


def item_of(benchmark: Benchmark) -> Item:
    """The made-up item of a benchmark, as it is put to a model under a seed."""
    [item] = items.converted([("made up", ROWS[benchmark.name])], benchmark.data.format, benchmark.name)
    return chat.shown(benchmark, item, 72332)


def rendered(name: str) -> str:
    """What the benchmark asks, as readable JSON."""
    benchmark = Catalog().benchmark(name)
    if benchmark.few_shot is not None:
        shots = [
            Item(id=str(n), question=f"{n} + 1?", answer=str(n + 1), fields={"reasoning": f"{n} and one more."})
            for n in range(len(benchmark.few_shot.rows))
        ]
        benchmark = chat.with_examples(benchmark, shots)
    said = chat.render(benchmark, item_of(benchmark))
    asked = {"messages": said.messages} | ({"tools": said.tools} if said.tools else {})
    return json.dumps(asked, indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", Catalog().names("benchmarks"))
def test_prompt_is_the_golden_one(name: str) -> None:
    """Each benchmark asks a made-up item in exactly the words of its golden file (PRILL_GOLDEN=write makes it anew)."""
    file = GOLDEN / f"{name}.json"
    if os.environ.get("PRILL_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(rendered(name))
    assert rendered(name) == file.read_text()


def test_no_golden_file_is_left_over() -> None:
    """Every golden file belongs to a benchmark."""
    assert sorted(file.stem for file in GOLDEN.iterdir()) == Catalog().names("benchmarks")


def test_another_prompt_for_items_with_starter_code() -> None:
    """A task with starter code is asked for with it, one without for a whole program."""
    benchmark = Catalog().benchmark("livecodebench-v6")
    item = item_of(benchmark)
    bare = Item(id="1", question=item.question, answer="", fields={**item.fields, "starter_code": ""})
    assert "class Solution" in chat.render(benchmark, item).text
    assert "standard input" in chat.render(benchmark, bare).text.split("\n")[0]


@given(st.text(), st.text())
def test_what_is_filled_in_stays_as_it_is(question: str, option: str) -> None:
    """Braces in a question or an option are never taken for blanks, and nothing of them is lost."""
    prompt = replace(BENCHMARK, prompt="{question}|{choices}|\\boxed{}")
    item = Item(id="1", question=question, answer="A", fields={"choices": [option, "{question}"]})
    assert chat.render(prompt, item).text == f"{question}|A) {option}\nB) {{question}}|\\boxed{{}}"


def test_an_unknown_blank() -> None:
    """A blank that the item cannot fill, the answer among them, is an error that lists those that it can."""
    item = Item(id="1", question="x", answer="secret", fields={"hint": "y"})
    with pytest.raises(DefinitionError, match=r"a blank \{answer\} \(there are: hint, question\)"):
        chat.render(replace(BENCHMARK, prompt="{answer}"), item)


def test_examples_end_the_system_message() -> None:
    """Worked examples stand behind the benchmark's own system message, and a benchmark without any stays the same."""
    gsm8k = replace(Catalog().benchmark("gsm8k"), system="Be brief.")
    assert gsm8k.few_shot is not None
    gsm8k = replace(gsm8k, few_shot=replace(gsm8k.few_shot, rows=(0,)))
    shot = Item(id="1", question="1+1?", answer="2", fields={"reasoning": "Count."})
    assert chat.with_examples(gsm8k, [shot]).system == "Be brief.\n\n1+1?\n\nReasoning:\nCount.\n\nANSWER: 2"
    assert chat.with_examples(BENCHMARK, []) is BENCHMARK


def test_examples_that_are_missing() -> None:
    """A benchmark whose examples were not read, or are too few, asks nothing."""
    gsm8k = Catalog().benchmark("gsm8k")
    with pytest.raises(DefinitionError, match="0 examples, not 10"):
        chat.with_examples(gsm8k, [])
    with pytest.raises(DefinitionError, match="have not been read"):
        chat.render(gsm8k, item_of(gsm8k))


def test_marking_reaches_the_grader() -> None:
    """An item gets its benchmark's fields for marking, and keeps its own."""
    item = item_of(Catalog().benchmark("gpqa-diamond"))
    assert (item.fields["mode"], item.fields["truncated_scores_zero"]) == ("strict", True)
    assert item.fields["choices"][ord(item.answer) - ord("A")] == "air"


# --- seeds -----------------------------------------------------------------------------------------------------------


def test_seed_of_a_request() -> None:
    """The seed of a request has the protocol's golden value, fits 31 bits, and differs by sample, epoch and call."""
    assert seeds.request_seed(0, "x") == 2001290515
    variants = [seeds.request_seed(1, "x"), seeds.request_seed(0, "y"), seeds.request_seed(0, "x", epoch=2)]
    variants += [seeds.request_seed(0, "x", call=1), seeds.request_seed(0, "x")]
    assert len(set(variants)) == 5
    assert all(0 <= seed < 2**31 for seed in variants)


@pytest.mark.parametrize(
    ("options", "right", "perms", "shown", "letter"),
    [
        (["right", "w1", "w2", "w3"], 0, [[2, 0, 3, 1]], ("w2", "right", "w3", "w1"), "B"),
        (["right", "w1", "w2"], 0, [[1, 0, 2], [2, 0, 1]], ("w2", "w1", "right"), "C"),
        (["dup", "dup", "x", "y"], 1, [[2, 1, 0, 3]], ("x", "dup", "dup", "y"), "B"),
    ],
)
def test_options_in_order(options: list[str], right: int, perms: list[list[int]], shown: Any, letter: str) -> None:
    """Orders compose, and the letter follows the index of the right option and never its text."""
    made = seeds.shuffled(options, right, perms)
    assert (made.options, made.letter) == (shown, letter)


def test_no_order() -> None:
    """What does not name each option once is no order."""
    with pytest.raises(ValueError, match="does not name each of 3 options once"):
        seeds.shuffled(["a", "b", "c"], 0, [[0, 0, 1]])


def test_orders_are_even() -> None:
    """Over many items the right option stands in every place equally often, under each seed differently."""
    places = [seeds.order(72332, str(item), 4).index(0) for item in range(4000)]
    assert all(900 < places.count(place) < 1100 for place in range(4))
    assert places != [seeds.order(87681, str(item), 4).index(0) for item in range(4000)]


def test_an_unseeded_order_is_fixed() -> None:
    """Without a seed the options still have an order, always the same one."""
    benchmark = Catalog().benchmark("gpqamain")
    item = Item(id="1", question="x", answer="A", fields={"choices": ["a", "b", "c", "d"]})
    assert chat.shown(benchmark, item) == chat.shown(benchmark, item, 0)
