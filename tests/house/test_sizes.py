"""Files of at most 400 lines and functions of at most 60, unless a decision record names them (rule 14)."""

import ast
from pathlib import Path

from house.source import FUNCTIONS, at, none_in, parse, plant, python_files

FILE_LINES = 400
FUNCTION_LINES = 60


def violations(tree: Path) -> list[str]:
    """Files and functions that are too long and that no decision record speaks of.

    A record speaks of a file by its path (`src/prill/score.py`), of a function by path and name
    (`src/prill/score.py:board`).
    """
    decided = "\n".join(file.read_text(encoding="utf-8") for file in sorted((tree / "docs/decisions").glob("*.md")))
    found = []
    for file in python_files(tree, "src/prill", "tests", "bench"):
        path = file.relative_to(tree).as_posix()
        lines = len(file.read_text(encoding="utf-8").splitlines())
        if lines > FILE_LINES and path not in decided:
            found.append(f"{path}: {lines} lines; split it or write a decision record that names {path}")
        for node in ast.walk(parse(file)):
            if isinstance(node, FUNCTIONS) and f"{path}:{node.name}" not in decided:
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES:
                    found.append(
                        f"{at(tree, file, node)}: {node.name} has {length} lines; {FUNCTION_LINES} is the most"
                    )
    return found


def test_this_tree_is_cut_small(repo: Path) -> None:
    """No file or function of this tree is too long without a decision record."""
    none_in(violations(repo))


def test_a_long_file_and_a_long_function_are_found(tmp_path: Path) -> None:
    """One line too many is found, in a file and in a method, with the number of lines."""
    plant(tmp_path, "src/prill/long.py", "x = 1\n" * 401)
    plant(tmp_path, "bench/deep.py", "class A:\n    def f(self):\n" + "        x = 1\n" * 60)
    assert violations(tmp_path) == [
        "bench/deep.py:2: f has 61 lines; 60 is the most",
        "src/prill/long.py: 401 lines; split it or write a decision record that names src/prill/long.py",
    ]


def test_a_decision_record_lets_through(tmp_path: Path) -> None:
    """A file and a function that a decision record names are let through, and so are those just short enough."""
    plant(tmp_path, "docs/decisions/0001-long.md", "`src/prill/long.py` and `src/prill/deep.py:f` stay whole.")
    plant(tmp_path, "src/prill/long.py", "x = 1\n" * 500)
    plant(tmp_path, "src/prill/deep.py", "def f():\n" + "    x = 1\n" * 90)
    plant(tmp_path, "src/prill/short.py", "x = 1\n" * 339 + "def f():\n" + "    x = 1\n" * 59)
    assert violations(tmp_path) == []
