"""Kind and name → plug-in. Ours are files of the package, yours are entry points; both come through this door."""

from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prill.errors import DefinitionError, oneof

KINDS = {
    "agents": "agent",
    "sandboxes": "sandbox",
    "engines": "engine",
    "graders": "grader",
    "judges": "judge",
    "importers": "importer",
}
"""Folder → the word for one of its residents."""


def names(kind: str) -> list[str]:
    """Every plug-in of a kind, ours and yours."""
    shelf = Path(__file__).with_name(kind)
    ours = {file.stem for file in shelf.glob("*.py") if file.stem != "__init__"}
    return sorted(ours | {entry.name for entry in entry_points(group=f"prill.{kind}")})


def get(kind: str, name: str) -> Any:
    """The plug-in itself, imported now. A name that is not there is an error that lists those that are."""
    if name.isidentifier() and find_spec(f"prill.{kind}.{name}"):
        return import_module(f"prill.{kind}.{name}").plugin
    for entry in entry_points(group=f"prill.{kind}"):
        if entry.name == name:
            return entry.load()
    raise DefinitionError(oneof(KINDS[kind], name, names(kind)))
