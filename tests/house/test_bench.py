"""The bench finds its rows by name, and a row that misses its goal or cannot run makes it fail."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

from house.source import at, none_in, parse, plant, python_files


def violations(tree: Path) -> list[str]:
    """Row files without a `measure` function."""
    found = []
    for file in python_files(tree, "bench/rows"):
        functions = {node.name for node in parse(file).body if isinstance(node, ast.FunctionDef)}
        if file.name != "__init__.py" and "measure" not in functions:
            found.append(f"{at(tree, file)}: a row file has a function measure() -> Row")
    return found


def bench(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The bench of a tree, run."""
    command = [sys.executable, "-B", "-m", "bench", *arguments]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=60)


def bare_bench(tree: Path, repo: Path) -> None:
    """This tree's bench without its rows."""
    shutil.copytree(repo / "bench", tree / "bench", ignore=shutil.ignore_patterns("rows", "__pycache__", "latest.md"))


def row(measured: float) -> str:
    """A row file with that figure and a goal of 1."""
    return f"""
        from bench.row import Row
        def measure() -> Row:
            return Row(name="x", against="nothing", goal=1, measured={measured}, unit="s")
    """


def test_this_tree_s_rows_can_be_measured(repo: Path) -> None:
    """Each row file of this tree has its function and is listed."""
    none_in(violations(repo))
    rows = {file.stem for file in python_files(repo, "bench/rows")} - {"__init__"}
    assert set(bench(repo, "--list").stdout.split()) == rows


def test_a_row_without_its_function_is_found(tmp_path: Path) -> None:
    """A row file that names its function otherwise is found."""
    plant(tmp_path, "bench/rows/x.py", "def measured(): ...")
    plant(tmp_path, "bench/rows/y.py", "def measure(): ...")
    assert violations(tmp_path) == ["bench/rows/x.py:1: a row file has a function measure() -> Row"]


def test_a_missed_goal_fails_the_bench(tmp_path: Path, repo: Path) -> None:
    """A figure over its goal is shown as missed and the exit code is 1, one at its goal is met and the code is 0."""
    bare_bench(tmp_path, repo)
    plant(tmp_path, "bench/rows/fast.py", row(1.0))
    ran = bench(tmp_path)
    assert (ran.returncode, "missed" in ran.stdout) == (0, False)
    plant(tmp_path, "bench/rows/slow.py", row(1.01))
    ran = bench(tmp_path, "--write")
    assert ran.returncode == 1
    assert [line.split()[-1] for line in ran.stdout.splitlines()[1:3]] == ["met", "missed"]
    assert "missed" in (tmp_path / "bench/latest.md").read_text(encoding="utf-8")


def test_a_row_that_cannot_run_is_missed_with_its_reason(tmp_path: Path, repo: Path) -> None:
    """An exception in a row is no figure, the reason is in the table, and the other rows are still measured."""
    bare_bench(tmp_path, repo)
    plant(tmp_path, "bench/rows/a.py", "def measure():\n    raise ValueError('no such thing')\n")
    plant(tmp_path, "bench/rows/b.py", row(0.5))
    ran = bench(tmp_path)
    assert ran.returncode == 1
    assert "could not run: ValueError: no such thing" in ran.stdout and "0.5 s" in ran.stdout
