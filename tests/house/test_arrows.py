"""Imports point down (rule 11): the floors are in `floors.py`; here is how they are held."""

import sys
from pathlib import Path

from house.floors import BOX_OFFERS, FLOORS, ONE_THING, SHELVES, outside, top
from house.source import at, imports, module, none_in, package_files, plant


def violations(tree: Path) -> list[str]:
    """Imports that point up or sideways, modules without a floor, and programs for the box that need an install."""
    found = []
    for file in package_files(tree):
        source = module(tree, file)
        if not outside(source) and top(source) not in FLOORS:
            found.append(f"{at(tree, file)}: {source} has no floor; give it one in tests/house/floors.py")
            continue
        for node, target in imports(tree, file):
            why = wrong(source, target)
            if why:
                found.append(f"{at(tree, file, node)}: {source} imports {target}: {why}")
    return found


def wrong(source: str, target: str) -> str | None:
    """Why one module may not import another, or `None` where it may."""
    ours = target == "prill" or target.startswith("prill.")
    if outside(source):
        if ours:
            return "a program for the agent's box knows nothing of prill"
        if source.startswith("prill.tools") and target.split(".")[0] not in sys.stdlib_module_names | BOX_OFFERS:
            return "a tool may need only the standard library and what the agent's box offers (floors.BOX_OFFERS)"
        return None
    if not ours or source == target:
        return None
    here, there = top(source), top(target)
    if outside(target) or (there == "smoke" and here != "smoke"):
        return f"{there}/ is imported by nobody"
    if there in SHELVES:
        return "plug-ins are got by name, through plugins.get"
    if here == there:
        return None if here in ONE_THING else f"{here}/ files never import each other"
    if there not in FLOORS:
        return f"{there} has no floor; give it one in tests/house/floors.py"
    if FLOORS[there] >= FLOORS[here]:
        return f"floor {FLOORS[here]} may not reach floor {FLOORS[there]}"
    return None


def found_in(tree: Path, path: str, text: str) -> list[str]:
    """What the rule says about a tree with this one file and a few neighbours to import."""
    for neighbour in ("score", "folder", "stages/seal", "graders/number", "overlap/index", "smoke/world", "run"):
        plant(tree, f"src/prill/{neighbour}.py", '"""A neighbour."""\n')
    plant(tree, f"src/prill/{path}", text)
    return violations(tree)


def test_this_tree_points_down(repo: Path) -> None:
    """Every import of this package points to a lower floor."""
    none_in(violations(repo))


def test_an_import_that_points_up_is_found(tmp_path: Path) -> None:
    """A hand that imports a stage is told the two floors."""
    found = found_in(tmp_path, "catalog.py", '"""X."""\nfrom prill.run import once\n')
    assert found == ["src/prill/catalog.py:2: prill.catalog imports prill.run: floor 1f may not reach floor 4"]


def test_imports_in_functions_and_for_types_count(tmp_path: Path) -> None:
    """An arrow hidden in a function, under TYPE_CHECKING, in a relative import or in a literal name is found."""
    text = '''
        """X."""
        from typing import TYPE_CHECKING
        from importlib import import_module
        if TYPE_CHECKING:
            from prill import run
        def late():
            """Y."""
            from . import run as later
            return import_module("prill.run")
    '''
    assert [line.split(":")[1] for line in found_in(tmp_path, "prompt.py", text)] == ["5", "8", "9"]


def test_a_pure_module_that_reaches_for_a_hand_is_found(tmp_path: Path) -> None:
    """On floor 1 the pure half may not import the half that touches the disk."""
    assert "floor 1b may not reach floor 1e" in found_in(tmp_path, "score.py", "from prill.folder import RunFolder")[0]


def test_shelves_are_imported_by_nobody(tmp_path: Path) -> None:
    """A stage, a deep module and a shelf's neighbour are each stopped from importing a plug-in file."""
    for path in ("stages/measure.py", "overlap/scan.py", "graders/math.py", "judges/panel.py"):
        found = found_in(tmp_path / path, path, "from prill.graders import number")
        assert len(found) == 1 and "plug-ins are got by name" in found[0]


def test_stages_never_import_each_other(tmp_path: Path) -> None:
    """A stage that imports another stage is found."""
    assert (
        "stages/ files never import each other" in found_in(tmp_path, "stages/solve.py", "import prill.stages.seal")[0]
    )


def test_fixtures_and_tools_are_imported_by_nobody(tmp_path: Path) -> None:
    """The smoke world cannot be imported from outside itself."""
    assert "imported by nobody" in found_in(tmp_path, "cli.py", "from prill.smoke import world")[0]


def test_programs_for_the_box_know_nothing_of_prill(tmp_path: Path) -> None:
    """A tool or a scripted entrant that imports prill, or a tool that needs a package, is found."""
    assert (
        len(found_in(tmp_path / "a", "tools/timer.py", "import prill.errors\nimport msgspec\nimport json, torch")) == 2
    )
    assert len(found_in(tmp_path / "b", "smoke/entrants/honest.py", "from prill.smoke import world\nimport torch")) == 1


def test_a_module_without_a_floor_is_found(tmp_path: Path) -> None:
    """A module that the table does not know is red until somebody gives it a floor."""
    assert found_in(tmp_path, "novelty.py", "") == [
        "src/prill/novelty.py:1: prill.novelty has no floor; give it one in tests/house/floors.py"
    ]


def test_downward_imports_are_innocent(tmp_path: Path) -> None:
    """Imports to lower floors, inside a deep module, inside the smoke world and of other packages are let through."""
    assert found_in(tmp_path, "stages/measure.py", "import json\nfrom prill import folder, score\n") == []
    assert found_in(tmp_path, "overlap/scan.py", "from prill.overlap.index import Index") == []
    assert found_in(tmp_path, "judges/overlap.py", "from prill.overlap import index") == []
    assert found_in(tmp_path, "smoke/make.py", "import prillwitz\nfrom prill.smoke import world") == []
