"""Source trees as values: their Python files, syntax trees and imports, and how a place in one is told."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def python_files(tree: Path, *tops: str) -> list[Path]:
    """Every Python file below the named folders of a tree, sorted."""
    return sorted(file for top in tops for file in (tree / top).rglob("*.py") if "__pycache__" not in file.parts)


def package_files(tree: Path) -> list[Path]:
    """Every Python file of the package."""
    return python_files(tree, "src/prill")


def parse(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return _parse(file.read_text(encoding="utf-8"))


@cache
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


def at(tree: Path, file: Path, node: ast.AST | int = 1) -> str:
    """A place as an editor opens it: `src/prill/plan.py:12`."""
    return f"{file.relative_to(tree).as_posix()}:{node if isinstance(node, int) else getattr(node, 'lineno', 1)}"


def module(tree: Path, file: Path) -> str:
    """The dotted name of a package file: `prill.stages.solve`; a folder's `__init__` is the folder."""
    parts = file.relative_to(tree / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: Path, file: Path) -> Iterator[tuple[ast.AST, str]]:
    """Every import of a package file with the dotted module it reaches.

    Those inside functions and under TYPE_CHECKING count, and `import_module` with a literal name does too.
    """
    here = module(tree, file).split(".")
    package = here if file.name == "__init__.py" else here[:-1]
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*origin, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = tree / "src" / Path(*base.split("."), alias.name)
                deeper = inner.is_dir() or inner.with_suffix(".py").is_file()
                yield node, f"{base}.{alias.name}" if deeper else base
        elif isinstance(node, ast.Call) and last_name(node.func) in ("import_module", "__import__") and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node, name.value


def last_name(node: ast.AST) -> str:
    """The last word of a name, attribute or call: `a.b.c(1)` gives `c`."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Functions, classes and methods with their qualified names; what is defined inside a function is left out."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name, node
            yield from definitions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, FUNCTIONS):
            yield prefix + node.name, node
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from definitions(
                [inner for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.stmt)], prefix
            )


def text_files(tree: Path) -> list[Path]:
    """Files that git tracks or would track; all files where a tree is not a checkout. Binary ones are left out."""
    if (tree / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=tree, capture_output=True, check=True).stdout.decode().split("\0")
        found = [tree / name for name in listed if name]
    else:
        found = list(tree.rglob("*"))
    return sorted(file for file in set(found) if file.is_file() and b"\0" not in file.read_bytes()[:8192])


def plant(tree: Path, path: str, text: str) -> Path:
    """A file with that (dedented) text into a tree; its folders are made."""
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return file


def none_in(found: list[str]) -> None:
    """Fail with the whole list, one violation a line."""
    assert not found, "\n" + "\n".join(found)
