"""`docs/where.md` tells where everything is (rule 16): each module and folder of code, on its floor, and no ghosts.

Files of a shelf, of a deep module, of the smoke world and the tools are told by their folder's line.
"""

import re
from pathlib import Path

from house.floors import FLOORS, OUTSIDE
from house.source import none_in, package_files, plant

PAGE = "docs/where.md"
LINE = re.compile(r"^- `([\w./]+)`: \S.*\.$")
FILE_BY_FILE = ("stages",)
"""Folders whose files have a line each."""


def violations(tree: Path) -> list[str]:
    """What the page misses, what it names that is not there, and what stands on the wrong floor."""
    file = tree / PAGE
    if not file.is_file():
        return [f"{PAGE}: there is no such page"]
    found: list[str] = []
    named: dict[str, int] = {}
    heading = ""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        heading = line.removeprefix("## ") if line.startswith("## ") else heading
        match = LINE.match(line)
        if match is None:
            found += [f'{PAGE}:{number}: not of the form "- `name`: words."'] if line.startswith("- ") else []
            continue
        name = match[1]
        if name in named:
            found.append(f"{PAGE}:{number}: `{name}` has a line already ({named[name]})")
        named[name] = number
        if not (tree / "src/prill" / name).exists():
            found.append(f"{PAGE}:{number}: there is no src/prill/{name}")
        elif floor(name) != heading.split(":")[0].split(",")[0]:
            found.append(f"{PAGE}:{number}: `{name}` stands under {heading!r} but belongs to {floor(name)}")
    found += [
        f"{PAGE}: `{name}` has no line; put one under {floor(name)}" for name in wanted(tree) if name not in named
    ]
    return found


def wanted(tree: Path) -> list[str]:
    """Names of modules and folders of code that must have a line."""
    names = set()
    for file in package_files(tree):
        inside = file.relative_to(tree / "src/prill")
        if len(inside.parts) > 1:
            names.add(inside.parent.as_posix() + "/")
        if not inside.stem.startswith("__") and (len(inside.parts) == 1 or inside.parts[0] in FILE_BY_FILE):
            names.add(inside.as_posix())
    return sorted(names)


def floor(name: str) -> str:
    """The first words of the heading that a name belongs under."""
    parts = name.removesuffix(".py").strip("/").split("/")
    if ".".join(["prill", *parts]) in OUTSIDE:
        return "Outside"
    return f"Floor {FLOORS[parts[0]][0]}" if parts[0] in FLOORS else "Facts"


def test_the_page_tells_where_everything_is(repo: Path) -> None:
    """Each module and folder has its line in `where.md`, on its floor, and nothing there is a ghost."""
    none_in(violations(repo))


def test_every_kind_of_drift_is_found(tmp_path: Path) -> None:
    """A missing line, a ghost, a wrong floor, a second line and a line without words are each found."""
    for path in ("spec.py", "plan.py", "stages/seal.py"):
        plant(tmp_path, f"src/prill/{path}", "")
    text = "## Floor 0: words\n- `plan.py`: a.\n- `ghost.py`: b.\n- `spec.py`: c.\n- `spec.py`: d.\n- `x.py`\n"
    plant(tmp_path, PAGE, text)
    assert violations(tmp_path) == [
        "docs/where.md:2: `plan.py` stands under 'Floor 0: words' but belongs to Floor 1",
        "docs/where.md:3: there is no src/prill/ghost.py",
        "docs/where.md:5: `spec.py` has a line already (4)",
        'docs/where.md:6: not of the form "- `name`: words."',
        "docs/where.md: `stages/` has no line; put one under Floor 3",
        "docs/where.md: `stages/seal.py` has no line; put one under Floor 3",
    ]


def test_a_whole_page_is_innocent(tmp_path: Path) -> None:
    """A page with a line for each module and folder is let through; a shelf's files need only the shelf's line."""
    for path in ("__init__.py", "spec.py", "agents/scripted.py", "tools/left.py", "definitions/a.toml"):
        plant(tmp_path, f"src/prill/{path}", "")
    lines = {
        "Floor 0: words": "spec.py",
        "Floor 2: shelves": "agents/",
        "Outside: what the agent's box gets": "tools/",
        "Facts, without code": "definitions/",
    }
    plant(tmp_path, PAGE, "\n".join(f"## {heading}\n- `{name}`: words." for heading, name in lines.items()))
    assert violations(tmp_path) == []
