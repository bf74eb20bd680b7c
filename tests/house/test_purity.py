"""Pure rooms can't open the window (rule 10): no disk, clock, network, chance or environment.

What is *not* covered: an impure object handed in by the caller, and attributes fetched with `getattr`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from house.floors import PURE, top
from house.source import at, module, none_in, package_files, parse, plant, words

ALLOWED = words(
    """
    __future__ abc ast base64 binascii bisect codecs collections contextlib copy csv dataclasses datetime decimal
    difflib fractions functools hashlib heapq html io itertools json keyword math numbers operator pathlib re shlex
    statistics string textwrap types typing unicodedata urllib.parse
    msgspec jinja2 markupsafe rich numpy prill
    """
)
"""Packages that a pure module may import: they compute and do nothing else (see WINDOWS for their few windows)."""
BUILTINS = words("open print input exec eval breakpoint __import__")
WINDOWS = words(
    """
    now utcnow today astimezone read_text read_bytes write_text write_bytes exists is_file is_dir is_symlink iterdir
    glob rglob stat lstat mkdir rmdir unlink touch symlink_to hardlink_to chmod resolve expanduser cwd home samefile
    open file_digest FileIO open_code FileSystemLoader PackageLoader Console print
    default_rng RandomState fromfile tofile memmap loadtxt savetxt genfromtxt savez
    """
)
"""Attributes and imported names that reach the world from an allowed package."""


def violations(tree: Path) -> list[str]:
    """Every window that a pure module opens."""
    found = []
    for file in package_files(tree):
        if top(module(tree, file)) in PURE:
            found += [f"{at(tree, file, node)}: a pure module uses {what}" for node, what in windows(parse(file))]
    return found


def windows(syntax: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Each impure use in a syntax tree, with its name."""
    nodes = list(ast.walk(syntax))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in syntax.body if isinstance(node, ast.FunctionDef)}
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names if not allowed(alias.name))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            name = node.module or ""
            yield from (
                (node, f"{name}.{alias.name}")
                for alias in node.names
                if alias.name in WINDOWS or not (allowed(name) or allowed(f"{name}.{alias.name}"))
            )
        elif isinstance(node, ast.Name) and node.id in BUILTINS and node.id not in bound:
            yield node, f"{node.id}()"
        elif isinstance(node, ast.Attribute) and node.attr in WINDOWS:
            yield node, f".{node.attr}"


def allowed(name: str) -> bool:
    """Whether a dotted module is on the list, or lies in a package that is."""
    parts = name.split(".")
    return any(".".join(parts[:size]) in ALLOWED for size in range(1, len(parts) + 1))


def uses(tree: Path, text: str) -> list[str]:
    """What the rule finds in `score.py` with that text."""
    plant(tree, "src/prill/score.py", text)
    return [line.split(" uses ")[1] for line in violations(tree)]


def test_this_tree_s_pure_modules_are_pure(repo: Path) -> None:
    """No pure module of this package reaches the world."""
    none_in(violations(repo))


def test_each_kind_of_window_is_found(tmp_path: Path) -> None:
    """Disk, clock, chance, environment, network, threads and the console are each found."""
    for line, said in {
        "open('x')": "open()",
        "print('x')": "print()",
        "import os": "os",
        "from os import environ": "os.environ",
        "import time": "time",
        "from datetime import datetime\ndatetime.now()": ".now",
        "from pathlib import Path\nPath('x').read_text()": ".read_text",
        "import random": "random",
        "from secrets import token_hex": "secrets.token_hex",
        "import uuid": "uuid",
        "import urllib.request": "urllib.request",
        "import subprocess": "subprocess",
        "import threading": "threading",
        "import logging": "logging",
        "def f():\n    import tempfile": "tempfile",
        "from io import open_code": "io.open_code",
        "from jinja2 import PackageLoader": "jinja2.PackageLoader",
    }.items():
        assert uses(tmp_path, line) == [said], line


def test_look_alikes_are_innocent(tmp_path: Path) -> None:
    """Local names, given dates, paths as values and parsing of addresses are let through."""
    text = '''
        """Speaks of open() and time.time() only here."""
        from datetime import UTC, datetime
        from pathlib import PurePosixPath
        from urllib.parse import quote
        def day(input: float) -> str:
            """A day."""
            return datetime.fromtimestamp(input, UTC).strftime("%Y") + quote(PurePosixPath("a").name)
    '''
    assert uses(tmp_path, text) == []


def test_hands_may_touch_the_world(tmp_path: Path) -> None:
    """The rule says nothing about modules that are there to touch the world."""
    plant(tmp_path, "src/prill/folder.py", "import os\nopen('x')")
    assert violations(tmp_path) == []
