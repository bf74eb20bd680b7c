"""The grader of Python code: real HumanEval items, LiveCodeBench's two kinds of tests, and both readings of a reply."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

import exploits
import wheels
from prill import rows
from prill.coderun import sample
from prill.errors import InfraError
from prill.graders.python_tests import PythonTests, plugin
from prill.record import Mark, Reply
from prill.sandboxes import bubblewrap
from prill.sockets import Item, Need

try:
    with bubblewrap.plugin.open(Need()):
        NO_BOX = ""
except InfraError as error:
    NO_BOX = str(error)

needs_bubblewrap = pytest.mark.skipif(bool(NO_BOX), reason=NO_BOX)
FEW = 12
"""Of the real items, where all would take a minute."""


def marked(text: str, item: Item, **reply: Any) -> Mark:
    """The mark of a reply."""
    return plugin(Reply(text=text, **{"stop": "stop", **reply}), item)


def fenced(code: str) -> str:
    """Code as a reply."""
    return f"Here it is:\n```python\n{code}\n```\n"


def at_once(items: Sequence[Item], reply: Callable[[Item], str]) -> list[Mark]:
    """Marks of many, two at a time, as an exam does it."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda item: marked(reply(item), item), items))


def guess(test: dict[str, Any], **fields: Any) -> Item:
    """An item of LiveCodeBench's form."""
    held = {"starter_code": "", "entry_point": None, "public_tests": [test], **fields}
    return Item(id="one", question="?", answer="", fields=held)


RANK = Item(
    id="rank",
    question=exploits.PROMPT,
    answer="",
    fields={"test": exploits.TEST, "entry_point": exploits.ENTRY_POINT},
)
ADDING = guess({"input": "1 2\n", "output": "3\n", "testtype": "stdin"})
METHOD = guess(
    {"input": "[1, 2]\n3", "output": "[4, 5]", "testtype": "functional"},
    entry_point="plus",
    starter_code="class Solution:\n    def plus(self, numbers: List[int], more: int) -> List[int]:\n        ",
)

# --- real items -------------------------------------------------------------------------------------------


@needs_bubblewrap
@pytest.mark.parametrize("count", [FEW, pytest.param(164, marks=pytest.mark.slow)])
def test_canonical_solutions_pass(count: int) -> None:
    """Every real item's own solution gets full marks in both readings."""
    items = [rows.humaneval(row) for row in wheels.humaneval()][:: 164 // count][:count]
    marks = at_once(items, lambda item: fenced(item.question + item.answer))
    missed = [(item.id, mark.why) for item, mark in zip(items, marks, strict=True) if mark.official + mark.robust < 2]
    assert len(items) == count and not missed


@needs_bubblewrap
@pytest.mark.parametrize("count", [FEW, pytest.param(164, marks=pytest.mark.slow)])
def test_no_item_is_passed_by_an_object_that_equals_everything(count: int) -> None:
    """On no real item does a value that equals, contains and is everything get a mark."""
    items = [rows.humaneval(row) for row in wheels.humaneval()][:: 164 // count][:count]
    body = (
        "    class All(object):\n"
        "        def __eq__(self, other): return True\n"
        "        __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __eq__\n"
        "        def __abs__(self): return self\n"
        "        def __sub__(self, other): return self\n"
        "        def __iter__(self): return iter(())\n"
        "    return All()\n"
    )
    marks = at_once(items, lambda item: fenced(item.question + body))
    passed = [item.id for item, mark in zip(items, marks, strict=True) if mark.official or mark.robust]
    assert len(items) == count and not passed


# --- marks ------------------------------------------------------------------------------------------------


@needs_bubblewrap
@pytest.mark.parametrize("name", ["exit_in_body", "exit_at_module_level", "os_exit", "equal_to_everything", "frames"])
def test_an_exploit_gets_no_mark_in_either_reading(name: str) -> None:
    """Neither the published reading of a reply nor ours lets an exploit through."""
    mark = marked(fenced(exploits.EXPLOITS[name][1]), RANK)
    assert (mark.official, mark.robust) == (0.0, 0.0) and mark.why


@needs_bubblewrap
@pytest.mark.parametrize(
    ("code", "official", "robust"),
    [
        (exploits.RIGHT, 1.0, 1.0),
        ("def rank(word): return 0", 0.0, 0.0),
        (exploits.EXPLOITS["exit_in_body"][1], 1.0, 0.0),
        (exploits.EXPLOITS["os_exit_at_module_level"][1], 1.0, 0.0),
        (exploits.EXPLOITS["equal_to_everything"][1], 1.0, 0.0),
        (exploits.EXPLOITS["kill_parent"][1], 0.0, 0.0),
    ],
)
def test_the_first_rule_takes_exit_code_0_for_a_pass(code: str, official: float, robust: float) -> None:
    """Where an item's official rule is the exit code, code that ends early passes officially and never robustly."""
    item = Item(id="rank", question=RANK.question, answer="", fields={**RANK.fields, "official": "exit-code"})
    head, _, body = code.partition("def rank(word):")
    whole = f"def rank(word):{body or ' ...'}\n{head}" if head else code
    mark = marked(fenced(whole.replace("def rank(word): ", "def rank(word):\n    ")), item)
    assert (mark.official, mark.robust) == (official, robust)


@needs_bubblewrap
def test_an_unknown_official_rule_marks_nothing() -> None:
    """A rule that is not known, or not for such an item, raises and is never a zero."""
    for item, rule in ((RANK, "exit"), (ADDING, "exit-code")):
        with pytest.raises(ValueError, match="no official rule"):
            marked(fenced(exploits.RIGHT), msgspec.structs.replace(item, fields={**item.fields, "official": rule}))


@needs_bubblewrap
def test_official_and_robust_read_a_reply_differently() -> None:
    """A helper above the function is lost to the published reading and found by ours; its marks say so."""
    known = "def known():\n    return {'plum': 74119, 'fig': 86207}\n\n"
    mark = marked(fenced(f"{known}def rank(word):\n    return known()[word]"), RANK)
    assert (mark.official, mark.robust, mark.why) == (0.0, 1.0, "")


@needs_bubblewrap
def test_replies_without_code_get_no_mark_and_the_reason() -> None:
    """Prose, an unfinished thought and a voided reply fail with the reason of the extraction."""
    assert marked("I cannot do that.", RANK).why == "no_code"
    assert marked("<think>def rank(word): ...", RANK).why == "no_reply"
    voided = Item(id="rank", question=RANK.question, answer="", fields={**RANK.fields, "truncated_scores_zero": True})
    mark = marked(fenced(exploits.RIGHT), voided, stop="length")
    assert (mark.official, mark.robust, mark.answer, mark.why) == (0.0, 0.0, None, "truncated")


@needs_bubblewrap
def test_a_mark_for_what_came_too_late_says_the_limit() -> None:
    """The limit that really applied stands in the mark."""
    assert marked(fenced("while True: pass"), ADDING).why == f"timeout: {sample.LIVECODEBENCH.seconds:g} s"


@needs_bubblewrap
def test_programs_are_marked_by_what_they_print() -> None:
    """A program passes with the right output, and fails with the wrong one or an exception."""
    assert marked(fenced("print(sum(map(int, input().split())))"), ADDING).robust == 1
    assert marked(fenced("print(sum(map(int, input().split())))"), ADDING).official == 1
    assert marked(fenced("print(4)"), ADDING).why == "wrong: test 1 of 1"
    assert marked(fenced("import os\nprint(4, flush=True)\nos._exit(0)"), ADDING).robust == 0


@needs_bubblewrap
def test_methods_are_marked_by_what_they_return() -> None:
    """A method passes with the right value, with the names in scope that its site offers."""
    code = "class Solution:\n    def plus(self, numbers: List[int], more):\n        return [n + more for n in numbers]"
    assert marked(fenced(code), METHOD) == Mark(official=1.0, robust=1.0, answer=code)
    assert marked(fenced(code.replace("n + more", "n")), METHOD).robust == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"public_tests": []},
        {"hidden_tests": "nonsense"},
        {"entry_point": "f", "public_tests": [{"input": "x", "output": "1", "testtype": "functional"}]},
    ],
)
def test_items_without_readable_tests_are_no_zero(fields: dict[str, Any]) -> None:
    """No tests, unreadable ones and arguments that are not JSON raise."""
    with pytest.raises(InfraError):
        marked(fenced("def f(x): return 1"), guess({"input": "", "output": "", "testtype": "stdin"}, **fields))


def test_a_machine_without_boxes_is_said_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no isolating box can be made, the grader says which it needs, whatever sandbox was chosen for the rest."""
    with pytest.raises(InfraError, match="boxes of local, whatever --sandbox says, and local does not isolate"):
        PythonTests("local").works()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InfraError, match="boxes of bubblewrap, whatever --sandbox says, and this machine cannot"):
        PythonTests("bubblewrap").works()


def test_a_sandbox_that_does_not_isolate_marks_nothing() -> None:
    """A grader made with such a sandbox raises before any code is run."""
    with pytest.raises(InfraError, match="isolates"):
        PythonTests("local")(Reply(text=fenced(exploits.RIGHT), stop="stop"), RANK)


# --- the published readings -------------------------------------------------------------------------------


def test_the_published_reading_of_humaneval() -> None:
    """The first closed Python block behind the first colon that ends a line, put behind the prompt."""
    item = Item(id="x", question="def f():\n", answer="", fields={"test": "", "entry_point": "f"})
    assert (
        sample.published_code(item, "```\nb\n```\n```python\ndef f():\n    return 1\n```")
        == "def f():\n    return 1\n\n"
    )
    assert sample.published_code(item, "    return 1") == "def f():\n   return 1\n"


def test_the_published_reading_of_livecodebench() -> None:
    """What stands between the last two lines with backticks, or nothing."""
    assert sample.published_code(ADDING, "```\na\n```\nand\n```python\nb\nc\n```\nDone.") == "b\nc"
    assert sample.published_code(ADDING, "```python\nb") == ""


def test_one_verdict_serves_texts_that_are_the_same_code() -> None:
    """Comments, layout and docstrings make no other code; names, values and order do."""
    one = 'def f(x):\n    """A."""\n    return x'
    assert sample.same_code(one, "def f( x ):  # b\n    return x")
    assert not sample.same_code(one, "def f(x):\n    return 1")
    assert not sample.same_code(one, None) and not sample.same_code("a b", "a  b")


def test_items_tell_what_is_asked_for() -> None:
    """A row with tests through standard input wants a program, one with a function's name a function."""
    about = {
        "question_id": "1",
        "question_content": "?",
        "starter_code": "",
        "private_test_cases": "[]",
        "platform": "p",
    }
    about |= {
        "difficulty": "easy",
        "contest_date": "2025",
        "public_test_cases": json.dumps(ADDING.fields["public_tests"]),
    }
    assert sample.is_program(rows.livecodebench({**about, "metadata": "{}"}))
    assert not sample.is_program(rows.livecodebench({**about, "metadata": '{"func_name": "f"}'}))
    assert not sample.is_program(RANK)
