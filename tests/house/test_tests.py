"""Tests use the shipped doubles and never the clock (rule 7): no mock library, no long sleep, no timed assertion.

A timed assertion is taken to be an ordering comparison of something that a clock call went into, in one function.
"""

import ast
from pathlib import Path

from house.source import FUNCTIONS, at, last_name, none_in, parse, plant, python_files, words

MOCKS = words("unittest.mock mock pytest_mock responses respx requests_mock vcr freezegun time_machine")
CLOCKS = words(
    "time monotonic perf_counter process_time thread_time time_ns monotonic_ns perf_counter_ns process_time_ns"
)
LONGEST_SLEEP = 1.0


def violations(tree: Path) -> list[str]:
    """Mock libraries, long sleeps and timed assertions in the tests."""
    found = []
    for file in python_files(tree, "tests"):
        syntax = parse(file)
        for node in ast.walk(syntax):
            found += [f"{at(tree, file, node)}: {what}" for what in mocks(node)]
            if isinstance(node, ast.Call) and last_name(node.func) == "sleep" and node.args:
                seconds = constant(node.args[0], syntax)
                if seconds is not None and seconds > LONGEST_SLEEP:
                    found.append(f"{at(tree, file, node)}: sleeps {seconds:g} s; wait for the event instead")
            if isinstance(node, FUNCTIONS):
                found += [f"{at(tree, file, line)}: a timed assertion; put it in bench/" for line in timed(node)]
    return found


def mocks(node: ast.AST) -> list[str]:
    """What a node has to do with mock libraries."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    used = [name for name in names if any(name == mock or name.startswith(mock + ".") for mock in MOCKS)]
    used += ["the mocker fixture"] if isinstance(node, ast.arg) and node.arg == "mocker" else []
    return [f"uses {name}; use a shipped double (scripted, local, canned)" for name in used]


def constant(node: ast.expr, syntax: ast.Module) -> float | None:
    """The number that an expression or a name of the module stands for, if it is written out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = constant(node.left, syntax), constant(node.right, syntax)
        return None if left is None or right is None else left * right
    if isinstance(node, ast.Name):
        for statement in syntax.body:
            if isinstance(statement, ast.Assign) and [last_name(name) for name in statement.targets] == [node.id]:
                return constant(statement.value, ast.Module(body=[], type_ignores=[]))
    return None


def timed(function: ast.AST) -> list[ast.Assert]:
    """Assertions that order something a clock went into."""
    clocked: set[str] = set()

    def touches(node: ast.AST) -> bool:
        return any(
            (isinstance(inner, ast.Call) and last_name(inner.func) in CLOCKS)
            or (isinstance(inner, ast.Name) and inner.id in clocked)
            for inner in ast.walk(node)
        )

    found: list[ast.Assert] = []
    for node in sorted((node for node in ast.walk(function) if hasattr(node, "lineno")), key=lambda node: node.lineno):
        if isinstance(node, ast.Assign) and touches(node.value):
            clocked |= {last_name(target) for target in node.targets}
        elif isinstance(node, ast.Assert):
            for compare in ast.walk(node.test):
                ordered = isinstance(compare, ast.Compare) and any(
                    isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in compare.ops
                )
                found += [node] if ordered and touches(compare) else []
    return found


def found_in(tree: Path, text: str) -> list[str]:
    """What the rule says about one test file."""
    plant(tree, "tests/test_x.py", text)
    return violations(tree)


def test_this_tree_s_tests_are_honest(repo: Path) -> None:
    """No test of this tree uses a mock library, a long sleep or a timed assertion."""
    none_in(violations(repo))


def test_mock_libraries_are_found(tmp_path: Path) -> None:
    """A mock library is found in either form of import and as a fixture."""
    text = "from unittest import mock\nimport responses\nfrom unittest.mock import patch\ndef test_a(mocker): ..."
    assert len(found_in(tmp_path, text)) == 4


def test_long_sleeps_are_found(tmp_path: Path) -> None:
    """A sleep of more than a second is found, as a number, a product or a constant of the module."""
    text = "import time\nLONG = 5\ntime.sleep(2)\ntime.sleep(0.5 * 60)\ntime.sleep(LONG)\ntime.sleep(1)\ntime.sleep(x)"
    assert [line.split(":")[1] for line in found_in(tmp_path, text)] == ["3", "4", "5"]


def test_timed_assertions_are_found(tmp_path: Path) -> None:
    """A clock's difference that is compared in an assertion is found, directly or through names."""
    text = """
        def test_a():
            began = time.perf_counter()
            work()
            assert time.perf_counter() - began < 1
        def test_b():
            began = monotonic()
            took = monotonic() - began
            assert 0 < took and other
    """
    assert [line.split(":")[1] for line in found_in(tmp_path, text)] == ["4", "8"]


def test_look_alikes_are_innocent(tmp_path: Path) -> None:
    """A clock in a waiting loop, a recorded time, `monkeypatch` and a short sleep are let through."""
    text = """
        import mockingbird
        def test_a(monkeypatch):
            until = time.monotonic() + 5
            while time.monotonic() < until:
                time.sleep(0.1)
            assert outcome.wall_seconds < 3
            assert record.time == 4
    """
    assert found_in(tmp_path, text) == []
