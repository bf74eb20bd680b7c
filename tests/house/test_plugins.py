"""A kind is a folder and a name is a file (rule 5): plug-ins are found, so nothing registers or enumerates them."""

import ast
from pathlib import Path

import pytest

from house.floors import SHELVES
from house.source import at, last_name, none_in, package_files, parse, plant, words

ENUMS = words("Enum IntEnum StrEnum Flag IntFlag")
WITHOUT_PLUGIN: dict[str, str] = {}
"""Shelf files that need not end in `plugin = …` yet, each with its reason."""


def violations(tree: Path) -> list[str]:
    """Enums, decorators that register, and shelf files that do not end in their plug-in."""
    found = []
    for file in package_files(tree):
        for node in ast.walk(parse(file)):
            if isinstance(node, ast.ClassDef) and ENUMS & {last_name(base) for base in node.bases}:
                found.append(f"{at(tree, file, node)}: {node.name} is an enum; use Literal")
            for decorator in getattr(node, "decorator_list", []):
                if last_name(decorator).startswith("register") or last_name(decorator).endswith("registry"):
                    found.append(f"{at(tree, file, decorator)}: a decorator registers {getattr(node, 'name', '')}")
    for shelf in sorted(SHELVES):
        for file in sorted((tree / "src/prill" / shelf).glob("*.py")):
            found += shelf_file(tree, file) if file.name != "__init__.py" else []
    return found


def shelf_file(tree: Path, file: Path) -> list[str]:
    """What is wrong with how a shelf file ends."""
    body = parse(file).body
    last = body[-1] if body else None
    targets = last.targets if isinstance(last, ast.Assign) else [last.target] if isinstance(last, ast.AnnAssign) else []
    ends = [last_name(target) for target in targets] == ["plugin"]
    excused = f"{file.parent.name}/{file.name}" in WITHOUT_PLUGIN
    if ends and excused:
        return [f"{at(tree, file)}: has its plug-in now; take it off WITHOUT_PLUGIN in tests/house/test_plugins.py"]
    if not ends and not excused:
        return [f"{at(tree, file, last or 1)}: a shelf file ends in `plugin = …`, at the top level"]
    return []


def test_this_tree_registers_nothing(repo: Path) -> None:
    """This package has no enum and no registering decorator, and each shelf file ends in its plug-in."""
    none_in(violations(repo))


def test_enums_and_registries_are_found(tmp_path: Path) -> None:
    """An enum by any of its bases and a decorator that registers are found."""
    plant(
        tmp_path,
        "src/prill/x.py",
        "import enum\nclass A(enum.StrEnum):\n    B = 'b'\n@agents.register('x')\ndef f(): ...",
    )
    assert violations(tmp_path) == [
        "src/prill/x.py:2: A is an enum; use Literal", "src/prill/x.py:4: a decorator registers f",
    ]  # fmt: skip


def test_a_shelf_file_without_a_plugin_at_its_end_is_found(tmp_path: Path) -> None:
    """A shelf file that is empty, ends in something else or hides its plug-in in a block is found."""
    plant(tmp_path, "src/prill/agents/a.py", "")
    plant(tmp_path, "src/prill/agents/b.py", "plugin = 1\nother = 2\n")
    plant(tmp_path, "src/prill/judges/c.py", "if True:\n    plugin = 1\n")
    assert len(violations(tmp_path)) == 3


def test_an_excuse_that_is_no_longer_needed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An excused file that has its plug-in must leave the list of excuses."""
    monkeypatch.setitem(WITHOUT_PLUGIN, "graders/later.py", "its time has not come")
    plant(tmp_path, "src/prill/graders/later.py", "plugin = 1\n")
    assert "take it off WITHOUT_PLUGIN" in violations(tmp_path)[0]


def test_plugins_and_other_decorators_are_innocent(tmp_path: Path) -> None:
    """A plug-in with or without a type, a folder's own file and ordinary classes and decorators are let through."""
    plant(tmp_path, "src/prill/agents/__init__.py", "")
    plant(tmp_path, "src/prill/agents/a.py", "plugin: int = 1\n")
    plant(tmp_path, "src/prill/judges/b.py", "class Enumerated(Base): ...\n@cache\ndef f(): ...\nplugin = f\n")
    assert violations(tmp_path) == []
