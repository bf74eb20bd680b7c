"""The door: one item's code, judged. Which tests an item has, how the published scorers read a reply, one verdict.

An item with `test` and `entry_point` is HumanEval's; one with `public_tests` is LiveCodeBench's: `entry_point` set
means a function, otherwise a program. The published scorers run everything in one process; here their *reading* of a
reply is kept and the code is judged as ours is, because in their process code that exits early or equals everything
passes. For HumanEval that is what v1.2 of its suite does; `judge_by_exit` is what v1 and v1.1 did.
"""

import ast
import json
import re
import warnings
from dataclasses import replace
from typing import Any

from prill import hidden_tests
from prill.coderun.exits import ends_well
from prill.coderun.functions import Call, Code, call_function, check_function
from prill.coderun.peers import Limits
from prill.coderun.programs import Lines, run_program
from prill.coderun.verdicts import Verdict
from prill.errors import InfraError
from prill.sockets import Item, Sandbox

OFFICIAL = ("apart", "exit-code")
HUMANEVAL = Limits(seconds=30.0)
LIVECODEBENCH = Limits(seconds=6.0, memory_bytes=4 << 30)
"""For each test, as published."""

_STARRED = "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys"
_STARRED += " json builtins typing"
PRELUDE = "".join(f"from {name} import *\n" for name in _STARRED.split())
PRELUDE += f"import {', '.join(_STARRED.split()[:-2])}\nsys.setrecursionlimit(50000)\n"
"""What LiveCodeBench puts before every answer; without it no task with `List` in its signature could be solved."""


def is_program(item: Item) -> bool:
    """Whether an item wants a whole program."""
    return "test" not in item.fields and not item.fields.get("entry_point")


def limits_of(item: Item) -> Limits:
    """What code for an item may use."""
    return HUMANEVAL if "test" in item.fields else LIVECODEBENCH


def judge(sandbox: Sandbox, item: Item, text: str | None, seconds: float | None = None) -> Verdict:
    """Code held against an item's tests. Raises `InfraError` where boxes or tests fail, or where there are no tests."""
    human, limits = "test" in item.fields, limits_of(item)
    limits = limits if seconds is None else replace(limits, seconds=seconds)
    if text is None or not text.strip():
        return Verdict(False, "no code", "", limits.seconds, 0.0)
    if human:
        code = Code(text, item.fields["entry_point"])
        return check_function(sandbox, code, item.question, item.fields["test"], limits)
    tests = cases(item)
    if not is_program(item):
        code = Code(text, item.fields["entry_point"], PRELUDE)
        return call_function(sandbox, code, [call_of(test) for test in tests], limits)
    lines = [Lines(test.input, test.output) for test in tests]
    return run_program(sandbox, Code(text, "", PRELUDE), lines, limits)


def judge_published(sandbox: Sandbox, item: Item, text: str | None, robust: tuple[str | None, Verdict]) -> Verdict:
    """The published reading of a reply, judged by the rule in the item's field `official`.

    `apart`, the default, judges it as ours is, of which `robust` has code and verdict; `exit-code` as HumanEval's v1.
    """
    rule = item.fields.get("official", "apart")
    if rule not in OFFICIAL or (rule == "exit-code" and "test" not in item.fields):
        raise ValueError(f"no official rule {rule!r} for such an item (there are: {', '.join(OFFICIAL)})")
    if rule == "exit-code":
        return judge_by_exit(sandbox, item, text)
    code, verdict = robust
    return verdict if same_code(text, code) else judge(sandbox, item, text)


def judge_by_exit(sandbox: Sandbox, item: Item, text: str | None) -> Verdict:
    """HumanEval's first rule: code, tests and the call of the tests are one program, and exit code 0 is a pass."""
    if text is None or not text.strip():
        return Verdict(False, "no code", "", HUMANEVAL.seconds, 0.0)
    program = f"{text}\n{item.fields['test']}\ncheck({item.fields['entry_point']})"
    return ends_well(sandbox, program, HUMANEVAL)


def cases(item: Item) -> list[hidden_tests.Case]:
    """LiveCodeBench's tests of an item, public and hidden."""
    try:
        public = hidden_tests.decode(json.dumps(item.fields["public_tests"]))
        hidden = hidden_tests.unpack(item.fields["hidden_tests"]) if item.fields.get("hidden_tests") else []
    except ValueError as error:
        raise InfraError(f"the tests of item {item.id} cannot be read: {error}") from None
    if not [*public, *hidden]:
        raise InfraError(f"item {item.id} has no tests: anything would pass")
    return [*public, *hidden]


def call_of(case: hidden_tests.Case) -> Call:
    """A test of a function: one argument a line, each JSON."""
    try:
        return Call(tuple(json.loads(line) for line in case.input.split("\n")), json.loads(case.output))
    except (ValueError, RecursionError) as error:
        raise InfraError(f"a test of a function is not JSON: {error}") from None


# --- the published readings -------------------------------------------------------------------------------

_FENCES = re.compile(r"```python\n(.*?)```", re.DOTALL), re.compile(r"```\n(.*?)```", re.DOTALL)


def published_code(item: Item, completion: str) -> str:
    """What the published scorer runs for a reply."""
    return published_humaneval(item, completion) if "test" in item.fields else published_livecodebench(completion)


def published_humaneval(item: Item, completion: str) -> str:
    """Inspect's: the first closed Python block, else the first bare one, else all; behind the first colon that ends a
    line before four blanks; put behind the prompt. Known to be wrong: helpers and imports above the function are lost,
    and of a reply without such a colon the first character."""
    found = _FENCES[0].findall(completion) + _FENCES[1].findall(completion)
    text = found[0] if found else completion
    return item.question + text[text.find(":\n    ") + 2 :] + "\n"


def published_livecodebench(completion: str) -> str:
    """What stands between the last two lines with three backticks, whatever they open or close."""
    lines = completion.split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    return "\n".join(lines[fences[-2] + 1 : fences[-1]]) if len(fences) > 1 else ""


def same_code(one: str | None, other: str | None) -> bool:
    """Whether two texts are the same code up to comments, layout and docstrings: then one verdict will do for both."""
    if one is None or other is None:
        return False
    return one == other or ((bare := _bare(one)) is not None and bare == _bare(other))


def _bare(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree: Any = ast.parse(text)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [each for each in body if not _is_text(each)] or [ast.Pass()]  # type: ignore[attr-defined]
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
