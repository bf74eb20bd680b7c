"""A model's code run in boxes: what is right passes, what cheats does not, and what breaks is nobody's zero."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

import exploits
from acceptance import Case, case_id, cases
from prill.coderun import checker
from prill.coderun.functions import Call, Code, call_function, check_function
from prill.coderun.peers import Limits
from prill.coderun.programs import Lines, run_program, same_output
from prill.coderun.verdicts import Verdict
from prill.errors import InfraError
from prill.sandboxes import bubblewrap, local
from prill.sockets import Box, Need

try:
    with bubblewrap.plugin.open(Need()):
        NO_BOX = ""
except InfraError as error:
    NO_BOX = str(error)

needs_bubblewrap = pytest.mark.skipif(bool(NO_BOX), reason=NO_BOX)
BOXES = bubblewrap.plugin
LIMITS = Limits(seconds=20.0, memory_bytes=512 << 20, processes=16)
HASTY = replace(LIMITS, seconds=1.0)


def checked(code: str, limits: Limits = LIMITS, test: str = exploits.TEST, prompt: str = exploits.PROMPT) -> Verdict:
    """Code held against the exploits' tests."""
    return check_function(BOXES, Code(code, exploits.ENTRY_POINT), prompt, test, limits)


# --- functions and assertions -----------------------------------------------------------------------------


@needs_bubblewrap
@pytest.mark.parametrize("name", exploits.HONEST)
def test_an_honest_answer_passes(name: str) -> None:
    """Code that gives the right values passes, however it comes by them."""
    why, code = exploits.HONEST[name]
    found = checked(code)
    assert found.passed, f"{why}: {found}"


@needs_bubblewrap
@pytest.mark.parametrize("name", exploits.EXPLOITS)
def test_an_exploit_scores_nothing(name: str) -> None:
    """Code that does not know the answer fails with a reason, and never by an exception of ours."""
    why, code = exploits.EXPLOITS[name]
    found = checked(code, HASTY if name in exploits.HASTY else LIMITS)
    assert not found.passed and found.reason, f"{why}: {found}"


@needs_bubblewrap
def test_reasons_tell_the_faults_apart() -> None:
    """Time, memory, leaving, dying, raising, foreign values and wrong ones each have their own reason."""
    told = {
        "asleep": "timeout",
        "memory": "memory",
        "exit_in_body": "exit",
        "os_exit": "died",
        "input": "exception",
        "equal_to_everything": "not a literal",
        "printed_success": "wrong",
    }
    found = {name: checked(exploits.EXPLOITS[name][1], HASTY if name == "asleep" else LIMITS).reason for name in told}
    assert found == told
    assert checked("def other(): ...").reason == "missing"


@needs_bubblewrap
def test_tests_may_catch_what_a_function_raises() -> None:
    """An exception crosses by the name of its built-in class, so that a test may want it."""
    test = "def check(f):\n    try:\n        f(1)\n    except KeyError:\n        return\n    assert False"
    assert checked("class Own(KeyError): ...\ndef rank(x): raise Own", test=test).passed
    assert not checked("def rank(x): raise ValueError", test=test).passed


@needs_bubblewrap
@pytest.mark.parametrize("value", ["'x' * (9 << 20)", "nested(95)", "stopped()"])
def test_no_value_of_the_model_breaks_the_tests(value: str) -> None:
    """Values at the bounds can be passed on by a test, and a stopped process is late, so none becomes our failure."""
    test = "def check(f):\n    v = f(1)\n    f([v, [v]])\n    assert f(v) == 3"
    code = "import os\ndef stopped(): os.kill(os.getpid(), 19)\n"
    code += "def nested(n): return [nested(n - 1)] if n else []\n"
    assert not checked(f"{code}def rank(x): return {value}", HASTY, test).passed


@needs_bubblewrap
def test_tests_may_use_what_the_prompt_offers() -> None:
    """Helpers of the prompt are there for the tests, also where its last function lacks a body, and words are none."""
    test = "def check(f): assert f(1) == helper(1)"
    prompt = "def helper(x): return x + 1\ndef rank(x):"
    assert checked("def rank(x): return x + 1", test=test, prompt=prompt).passed
    assert not checked("def rank(x): return x + 1", test=test, prompt="Write a function.").passed
    assert checked(exploits.RIGHT, prompt="Write a function.").passed


@needs_bubblewrap
def test_tests_that_catch_everything_do_not_forgive_leaving() -> None:
    """A test that swallows every exception still fails code that leaves, dies or gives what is no literal."""
    test = "def check(f):\n    try:\n        f(1)\n    except BaseException:\n        pass"
    assert checked("def rank(x): return 1", test=test).passed
    for code in ("def rank(x): exit()", "import os\ndef rank(x): os._exit(0)", "def rank(x): return object()"):
        assert not checked(code, test=test).passed, code


@needs_bubblewrap
def test_values_cross_exactly() -> None:
    """What a function is given and gives back has the type and value that it had."""
    test = """
values = [1, True, None, 1.5, -0.0, "é\\ud800", b"\\0\\xff", (1, [2, {3: {4}}]), {}, 1 << 4000, float("inf"), [()]]
def check(f):
    assert [repr(f(value)) for value in values] == [repr(value) for value in values]
    assert f(values) == values and f(a=(1,)) == (1,)
    assert str(f(float("nan"))) == "nan"
"""
    assert checked("def rank(*values, a=None): return values[0] if values else a", test=test).passed


@needs_bubblewrap
@pytest.mark.parametrize(
    "test",
    [
        "import os\ndef check(f):\n    f('plum')\n    os._exit(7)",
        "def check(f): pass",
        "def other(f): pass",
        "this is no Python",
        "raise ValueError",
        "def check(f): f(object())",
        "def check(f): raise SystemExit",
    ],
)
def test_broken_tests_are_no_zero(test: str) -> None:
    """Tests that die, do not load, ask for nothing or ask with what is no literal raise, and say so."""
    with pytest.raises(InfraError):
        checked(exploits.RIGHT, test=test)


# --- arguments and values, programs -----------------------------------------------------------------------


@needs_bubblewrap
def test_a_method_of_a_solution_is_called() -> None:
    """A class named Solution is made once and its method called with each arguments; a tuple counts as a list."""
    code = Code("class Solution:\n    def both(self, a: List[int], b): return a[0], b", "both", "from typing import *")
    calls = [Call(([1], "x"), [1, "x"]), Call(([2], None), [2, None])]
    assert call_function(BOXES, code, calls, LIMITS).passed
    wrong = call_function(BOXES, code, [*calls, Call(([1], 1), [1, 2])], LIMITS)
    assert (wrong.passed, wrong.reason, wrong.detail) == (False, "wrong", "test 3 of 3")


PROGRAMS = {
    "sums": ("print(sum(map(int, input().split())))", ""),
    "reads everything": ("import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))", ""),
    "opens standard input": ("print(sum(map(int, open(0).read().split())))", ""),
    "main guard": ("if __name__ == '__main__':\n    print(sum(map(int, input().split())))", ""),
    "leaves by exit": ("import sys\nprint(sum(map(int, input().split())))\nsys.exit(1)", ""),
    "leaves a thread behind": (
        "import threading\nthreading.Thread(target=lambda: print(sum(map(int, input().split())))).start()",
        "",
    ),
    "prints at the end": ("import atexit\natexit.register(lambda: print(sum(map(int, input().split()))))", ""),
    "wrong": ("print(6)", "wrong"),
    "prints nothing": ("import os\nos._exit(0)", "wrong"),
    "raises at the end": ("print(sum(map(int, input().split())))\n1 / 0", "exception"),
    "reads too much": ("input(); input(); input(); input()", "exception"),
    "no Python": ("print(", "exception"),
    "kills all": ("import os\nos.kill(-1, 9)", "died"),
    "kills its parent": ("import os\nos.kill(os.getppid(), 9)\nprint(6)", "died"),
    "endless": ("while True: pass", "timeout"),
    "floods": ("while True: print('x' * 10000)", "too much output"),
    "eats memory": ("held = [bytearray(1 << 26) for _ in range(10**6)]", "memory"),
    "leaves a child that prints": (
        "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint(sum(map(int, input().split())))",
        "",
    ),
    "speaks on every descriptor": (
        "import os\nfor n in range(3, 64):\n    try: os.write(n, b'\\0\\0\\0\\0o')\n    except OSError: pass\nprint(6)",
        "wrong",
    ),
}


@needs_bubblewrap
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_judged_by_what_it_prints(name: str) -> None:
    """A program passes if it prints what it must for each input and ends well, and otherwise has a reason."""
    code, reason = PROGRAMS[name]
    limits = replace(LIMITS, seconds=2.0 if reason == "timeout" else 20.0, output_bytes=1 << 20)
    found = run_program(BOXES, Code(code), [Lines("1 2\n", "3"), Lines("1 2 4\n", "7\n")], limits)
    assert (found.passed, found.reason) == (not reason, reason), found


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("1 2\n3\n", "1 2\n3", True),
        (" 1 2 \n3", "1 2\n3\n\n", True),
        ("1.0 2", "1 2.00", True),
        ("1e3", "1000", True),
        ("1\n\n2", "1\n2", False),
        ("0.30000000000000004", "0.3", False),
        ("Yes", "YES", False),
        ("", "0", False),
        ("sNaN", "1", False),
        ("1e999999999999999999999", "1", False),
    ],
)
def test_outputs_are_compared_as_published(printed: str, expected: str, same: bool) -> None:
    """Lines are compared without blanks around them, and lines of numbers by their exact values."""
    assert same_output(printed, expected) is same


# --- whose fault it is ------------------------------------------------------------------------------------


def test_a_sandbox_that_does_not_isolate_is_refused() -> None:
    """No code is run where programs can see the host."""
    with pytest.raises(InfraError, match="isolates"):
        check_function(local.plugin, Code(exploits.RIGHT, "rank"), "", exploits.TEST, LIMITS)


class Shut:
    """A sandbox that cannot open a box."""

    @contextmanager
    def open(self, need: Need) -> Iterator[Box]:
        """Nothing to open."""
        raise InfraError("no box today")
        yield


def test_a_box_that_cannot_be_opened_is_no_zero() -> None:
    """Where there is no box there is an exception and no verdict."""
    for run in (
        lambda: check_function(Shut(), Code("x", "rank"), "", exploits.TEST, LIMITS),
        lambda: call_function(Shut(), Code("x", "rank"), [Call((), 1)], LIMITS),
        lambda: run_program(Shut(), Code("x"), [Lines("", "")], LIMITS),
    ):
        with pytest.raises(InfraError, match="no box today"):
            run()


class Interpreterless:
    """Boxes in which our own interpreter is missing."""

    @contextmanager
    def open(self, need: Need) -> Iterator[Box]:
        """A box without what was asked for."""
        with BOXES.open(Need(mounts=need.mounts[:1])) as box:
            yield box


@needs_bubblewrap
def test_a_program_of_ours_that_does_not_start_is_no_zero() -> None:
    """Until our own program has said hello, nothing is the model's fault."""
    with pytest.raises(InfraError, match=r"did not start|cannot start"):
        check_function(Interpreterless(), Code(exploits.RIGHT, "rank"), "", exploits.TEST, LIMITS)


@needs_bubblewrap
@pytest.mark.parametrize("case", cases("evaluator/sandbox"), ids=case_id)
def test_each_sandbox_case_is_met(case: Case) -> None:
    """The acceptance cases about running code get the verdict and the limit that they expect."""
    asked, expected = case["input"], case["expected"]
    call, limits = asked.get("call", "f()"), replace(LIMITS, seconds=float(asked.get("limit_s", 30)))
    value = f"assert {call} == ({asked['equals']})" if "equals" in asked else call
    code = Code(asked.get("solution", "def f(): return 1"), "f")
    found = check_function(BOXES, code, "", f"def check(candidate):\n    {value}", limits)
    verdict = "pass" if found.passed else "timeout" if found.reason == "timeout" else "fail"
    assert verdict == expected.get("verdict", verdict)
    assert found.used_seconds <= expected.get("returns_within_s", math.inf)
    assert found.limit_seconds == expected.get("recorded_effective_limit_s", found.limit_seconds)


def test_exceptions_are_made_by_name_only_if_built_in() -> None:
    """A name that is no built-in exception becomes a plain one, and none leaves the process."""
    assert type(checker.raised("KeyError")) is KeyError
    assert [type(checker.raised(name)) for name in ("SystemExit", "print", "UnicodeDecodeError", "x")] == [
        Exception
    ] * 4
