"""The graders: gold earns full marks, wrong answers none, and no text breaks them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill import plugins
from prill.answers.calls import BadGold, Call, exact_call, mismatch
from prill.graders import choice, function_call, math, python_tests
from prill.record import Call as NativeCall
from prill.record import Reply
from prill.sockets import Item

FOUR = {"choices": ["a", "b", "c", "d"]}
SCHEMA = {
    "name": "math.area",
    "parameters": {
        "type": "dict",
        "properties": {
            "base": {"type": "float"},
            "unit": {"type": "string", "default": "cm"},
            "deep": {"type": "array", "items": {"type": "array", "items": {"type": "float"}}},
        },
        "required": ["base"],
    },
}
ITEMS = {
    "number": Item(id="n", question="?", answer="70,000"),
    "choice": Item(id="c", question="?", answer="B", fields=FOUR),
    "math": Item(id="m", question="?", answer="\\frac{1}{2}"),
    "function_call": Item(id="f", question="?", answer="math.area(base=10)", fields={"functions": [SCHEMA]}),
}
GOLD = {
    "number": ["#### 70,000", "ANSWER: $70000", "**Answer: 70,000.00 dollars**"],
    "choice": ["ANSWER: B", "**Answer:** (B) because", "\\boxed{\\text{B}}"],
    "math": ["\\boxed{\\frac{1}{2}}", "So $\\boxed{0.5}$.", "\\boxed{\\dfrac12}"],
    "function_call": ['<tool_call>{"name": "math_area", "arguments": {"base": 10, "unit": "cm"}}</tool_call>'],
}
WRONG = {
    "number": ["#### 7,000", "ANSWER: 170000", "no number", "", "<think>#### 70000"],
    "choice": ["ANSWER: C", "ANSWER: B, C", "I think so.", "", "<think>ANSWER: B"],
    "math": ["\\boxed{\\frac{1}{3}}", "1/2", "\\boxed{}", "", "<think>\\boxed{0.5}"],
    "function_call": [
        "math.area(base=10)",
        '<tool_call>{"name": "math_area", "arguments": {"base": 11}}</tool_call>',
        "",
    ],
}


def marked(grader: str, text: str, **reply: Any) -> Any:
    """What a plug-in makes of a text for its item."""
    return plugins.get("graders", grader)(Reply(text=text, stop=reply.pop("stop", "stop"), **reply), ITEMS[grader])


@pytest.mark.parametrize(("grader", "text"), [(name, text) for name, texts in GOLD.items() for text in texts])
def test_the_right_answer_earns_full_marks(grader: str, text: str) -> None:
    """A right answer in any of its notations is right."""
    assert marked(grader, text).robust == 1


@pytest.mark.parametrize(("grader", "text"), [(name, text) for name, texts in WRONG.items() for text in texts])
def test_a_wrong_answer_earns_nothing(grader: str, text: str) -> None:
    """A wrong answer, none at all, or one inside reasoning that never closes is wrong."""
    assert marked(grader, text).robust == 0


@pytest.mark.parametrize("grader", ["number", "choice", "math"])
def test_a_reply_that_was_cut_off_has_no_answer_where_the_benchmark_says_so(grader: str) -> None:
    """A right answer in a reply that hit its limit earns nothing with `truncated_scores_zero`, and counts without."""
    item = ITEMS[grader]
    zero = Item(id="z", question="?", answer=item.answer, fields={**item.fields, "truncated_scores_zero": True})
    grade = plugins.get("graders", grader)
    reply = Reply(text=GOLD[grader][0], stop="length")
    assert (grade(reply, item).robust, grade(reply, zero).robust, grade(reply, zero).official) == (1, 0, 0)


@pytest.mark.parametrize(
    ("grader", "item"),
    [
        ("number", Item(id="x", question="?", answer="many")),
        ("choice", Item(id="x", question="?", answer="E", fields=FOUR)),
        ("math", Item(id="x", question="?", answer=" ")),
        ("function_call", Item(id="x", question="?", answer="f(1)", fields={"functions": [SCHEMA]})),
        ("function_call", Item(id="x", question="?", answer="math.area(zzz=1)", fields={"functions": [SCHEMA]})),
    ],
)
def test_an_item_that_cannot_be_marked_is_an_error_and_no_zero(grader: str, item: Item) -> None:
    """A target that makes no sense raises, whatever was replied."""
    with pytest.raises(ValueError):
        plugins.get("graders", grader)(Reply(text="1", stop="stop"), item)


PIECES = (
    *(
        "ANSWER: ",
        "B",
        "7",
        "\\boxed{",
        "}",
        "\\frac",
        "{",
        "(",
        ")",
        "[",
        ",",
        "=",
        "\n",
        " ",
        "x",
        "^",
        "\\text{",
        "\\pm",
    ),
    *(
        "<tool_call>",
        '{"name": "f", "arguments": {',
        "}}",
        "</tool_call>",
        "```",
        "def f(x):\n",
        "    return x\n",
        "\\",
    ),
    *(
        "½",
        "ซ",
        "\\{",
        "\\}",
        "|",
        "&",
        "\\\\",
        "\\begin{pmatrix}",
        "\\end{pmatrix}",
        "'",
        '"',
        "and",
        "I ",
        "a ",
        "5/",
        "e9",
    ),
)
TEXT = st.one_of(st.text(max_size=120), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))


@given(TEXT, st.sampled_from(["stop", "length"]))
@settings(max_examples=250, deadline=None)
def test_no_text_breaks_a_grader(text: str, stop: str) -> None:
    """Every text gets a mark between nothing and one from every grader, and code or a reason from the extraction."""
    for grader in ITEMS:
        mark = marked(grader, text, stop=stop)
        assert mark.official in (0, 1) and mark.robust in (0, 1)
    for mode in ("function", "program"):
        found = python_tests.extract_code(text, entry_point="f", mode=mode, prompt="def f(x):\n")
        assert (found.code is None) == bool(found.reason)


@pytest.mark.parametrize(
    "text", ["{" * 200_000, "\\boxed{" * 100_000, "ANSWER:" + " \n" * 50_000 + "!", "def " * 20_000]
)
def test_hostile_text_gets_its_mark(text: str) -> None:
    """Long braces, a hundred thousand nested boxes and a long blank are wrong answers like others."""
    assert {marked(grader, text).robust for grader in ITEMS} == {0}
    assert python_tests.extract_code(text, entry_point="f").code is None


# --- what is read -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "mode", "letter"),
    [
        ("Answer: C, I think", "lenient", "C"), ("Answer: I'm not sure", "lenient", None),
        ("Answer: A long story", "lenient", None), ("The answer is A because it is.", "lenient", "A"),
        ("answer: b", "lenient", "B"), ("answer: b is right", "lenient", None), ("ANSWER: A-C", "lenient", None),
        ("ANSWER: A B", "lenient", None), ("ANSWER: $LETTER", "lenient", None), ("#### C", "lenient", "C"),
        ("#### B. The other option\n\nD", "lenient", "D"), ("The answer is:\n\n**(C) 3 eV**", "lenient", "C"),
        ("ANSWER: B\nANSWER: J2", "lenient", "B"), ("ANSWER： Ｃ", "lenient", "C"),
        ("Answer: C (not D)", "lenient", "C"),
        ("**ANSWER: C**", "strict", "C"), ("ANSWER: C because", "strict", None), ("Answer: C", "strict", None),
        ("So ANSWER: C", "strict", None), ("\\boxed{A}\nANSWER: B", "strict", "B"), ("C", "strict", None),
    ],
)  # fmt: skip
def test_letters_are_stated_and_never_guessed(text: str, mode: Any, letter: str | None) -> None:
    """A letter counts where it is stated as the answer, and not where it is a word or one of several."""
    assert choice.read_letter(text, "ABCDEFGHIJ", mode=mode) == letter


@pytest.mark.parametrize(
    ("text", "target", "joined"),
    [
        ("We get \\boxed{3}, \\boxed{5} and \\boxed{7}.", "3,5,7", "3, 5, 7"),
        ("First \\boxed{3}. Then \\boxed{5}.", "3,5", "5"),
        ("\\boxed{1} and \\boxed{1}", "1", "1"),
        ("\\boxed{8}\n\nProblem: next\n\\boxed{9}", "8", "8"),
    ],
)
def test_boxes_are_joined_only_where_that_is_the_target(text: str, target: str, joined: str) -> None:
    """Several boxes of the closing sentence make a list only if the target is that list."""
    assert math.read_formula(text, target) == joined


@pytest.mark.parametrize(
    ("output", "format", "calls"),
    [
        ("[f(a=1), g.h(b=[(1, 2), {'k': None}])]", "python", [("f", {"a": 1}), ("g.h", {"b": [[1, 2], {"k": None}]})]),
        ("f(1)", "python", None), ("f(x=1 + 1)", "python", None), ("f(**{'a': 1})", "python", None),
        ("f(x=1e999)", "python", None), ("f({'a': 1, 'a': 2})", "python", None), ("f(x={1, 2})", "python", None),
        ("[f(a=1)] is it", "python", None), ("f(x=" + "-" * 50_000 + "1)", "python", None), ("[]", "python", []),
        ("f(x=" + "[" * 100_000, "python", None), ("a" + ".a" * 40_000 + "()", "python", None),
        ('<tool_call>{"name":"f","arguments":"{\\"x\\": 1}"}', "hermes", [("f", {"x": 1})]),
        ('<tool_call>{"name":"f","arguments":{"x":"</tool_call>"}}', "hermes", [("f", {"x": "</tool_call>"})]),
        ('<tool_call>{"name":"f","arguments":{"x":1}} x</tool_call>', "hermes", None),
        ('<tool_call>{"name":"f","arguments":{"x":1,"x":2}}</tool_call>', "hermes", None),
        ('<tool_call>{"name":"f"}</tool_call>', "hermes", None), ('{"name":"f","arguments":{}}', "hermes", None),
        ('<tool_call>{"name":"f","arguments":{"x":' + "[" * 100_000, "hermes", None),
        ('[TOOL_CALLS] {"name":"f","arguments":{}}</s>', "mistral", [("f", {})]),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_calls_are_read_as_literals_only(output: str, format: Any, calls: list[tuple[str, Any]] | None) -> None:
    """A call is a name and literals; whatever would have to be evaluated, and whatever is malformed, is none."""
    found = function_call.parse_calls(output, format)
    assert (None if found is None else [(call.name, call.arguments) for call in found]) == calls


@pytest.mark.parametrize(
    ("arguments", "gold", "right"),
    [
        ({"base": 10}, {"base": 10.0}, True), ({"base": 10.0}, {"base": 10}, True),
        ({"base": True}, {"base": 1}, False),
        ({"base": 1, "unit": "cm"}, {"base": 1}, True), ({"base": 1}, {"base": 1, "unit": "cm"}, True),
        ({"base": 1}, {"base": 1, "unit": "m"}, False), ({"unit": "cm"}, {"base": 1}, False),
        ({"base": 1, "deep": [[1], [2]]}, {"base": 1, "deep": ((1.0,), (2.0,))}, True),
        ({"base": 1, "deep": [[2], [1]]}, {"base": 1, "deep": [[1], [2]]}, False), ({"base": "1"}, {"base": 1}, False),
    ],
)  # fmt: skip
def test_a_call_is_right_by_its_schema(arguments: dict[str, Any], gold: dict[str, Any], right: bool) -> None:
    """Types, defaults and nesting decide as declared."""
    assert (mismatch([Call("math_area", arguments)], Call("math.area", gold), SCHEMA) == "") is right


def test_gold_that_breaks_its_schema_cannot_be_marked() -> None:
    """A right answer with an argument that nobody declared is our error."""
    with pytest.raises(BadGold):
        mismatch([], Call("math.area", {"base": 1, "ghost": 2}), SCHEMA)


def test_the_published_comparison_is_python_s_own() -> None:
    """To it 1 is True and a default written out is another call; native calls are what it looks at."""
    assert exact_call([Call("f", {"on": 1})], Call("f", {"on": True}))
    assert not exact_call([Call("f", {"a": 1, "unit": "cm"})], Call("f", {"a": 1}))
    native = (NativeCall(name="math_area", arguments='{"base": 10}'),)
    mark = marked("function_call", "", calls=native)
    assert (mark.official, mark.robust, mark.answer) == (0, 1, 'math_area({"base": 10})')
