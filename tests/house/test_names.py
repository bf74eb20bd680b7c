"""File names say what lives there, and no folder lies deeper than two (rule 14 and section 3 of the design)."""

from pathlib import Path

from house.source import none_in, package_files, plant, python_files, words

FORBIDDEN = words("utils util common helpers helper base manager managers factory misc core")
DEEPEST = 2


def violations(tree: Path) -> list[str]:
    """Files and folders whose name says nothing, and folders of code that lie too deep."""
    found = []
    for file in python_files(tree, "src/prill", "tests", "bench"):
        inside = file.relative_to(tree)
        found += [
            f"{inside.as_posix()}: {part!r} says nothing; name it after what lives there"
            for part in (*inside.parent.parts, inside.stem)
            if part in FORBIDDEN
        ]
    for file in package_files(tree):
        folders = file.relative_to(tree / "src/prill").parts[:-1]
        if len(folders) > DEEPEST:
            found.append(f"{file.relative_to(tree).as_posix()}: {len(folders)} folders deep; {DEEPEST} is the most")
    return found


def test_this_tree_s_names_say_something(repo: Path) -> None:
    """No Python file of this tree has an empty name or lies too deep."""
    none_in(violations(repo))


def test_an_empty_name_is_found(tmp_path: Path) -> None:
    """A file or folder with a forbidden name is found in the package, the tests and the bench."""
    for path in ("src/prill/utils.py", "src/prill/helpers/x.py", "tests/common.py", "bench/base.py"):
        plant(tmp_path, path, "")
    assert len(violations(tmp_path)) == 4


def test_a_deep_folder_is_found(tmp_path: Path) -> None:
    """Code three folders below the package is found."""
    plant(tmp_path, "src/prill/a/b/c/x.py", "")
    assert violations(tmp_path) == ["src/prill/a/b/c/x.py: 3 folders deep; 2 is the most"]


def test_innocent_names_are_let_through(tmp_path: Path) -> None:
    """Names that only contain a forbidden word, code two folders deep and deep folders of data are let through."""
    for path in ("src/prill/database.py", "src/prill/a/b/x.py", "src/prill/smoke/base/deep/down/model.json"):
        plant(tmp_path, path, "")
    assert violations(tmp_path) == []
