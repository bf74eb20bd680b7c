"""Importing does nothing (rule 12): once by reading the source, once by importing every module in a fresh Python.

What is *not* covered: what an import does in a C extension without telling Python's audit hooks.
"""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from house.floors import outside
from house.source import FUNCTIONS, at, imports, module, none_in, package_files, parse, plant, words

HEAVY = words(
    """
    torch vllm transformers tokenizers safetensors datasets accelerate trl inspect_ai openai aiohttp numpy scipy pandas
    pyarrow numba rich jinja2
    """
)

IMPORT_ALL = """
import importlib, json, os, sys
source, heavy = sys.argv[1], set(sys.argv[3:])
sys.path.insert(0, source)
import logging, subprocess, threading, tempfile, msgspec
did = []
def watch(event, arguments):
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        did.append(f"opened {arguments[0]!r} for writing")
    elif event in ("os.mkdir", "subprocess.Popen", "socket.connect", "socket.bind", "os.remove", "os.rename"):
        did.append(event)
sys.addaudithook(watch)
report = []
before = len(logging.root.handlers), logging.root.level
for name in sys.argv[2].split():
    try:
        importlib.import_module(name)
    except BaseException as error:
        report.append(f"{name}: importing it raised {type(error).__name__}: {error}")
    report += [f"{name}: importing it {what}" for what in did]
    did.clear()
    loaded = heavy & set(sys.modules)
    report += [f"{name}: importing it loads {package}" for package in sorted(loaded)]
    heavy -= loaded
    if (len(logging.root.handlers), logging.root.level) != before:
        before = len(logging.root.handlers), logging.root.level
        report.append(f"{name}: importing it sets up logging")
    if threading.active_count() > 1:
        report.append(f"{name}: importing it starts a thread")
print("\\0" + json.dumps(report), file=sys.__stdout__)
"""


def violations(tree: Path) -> list[str]:
    """Heavy imports outside functions, and whatever importing the modules was seen to do."""
    return [*heavy_at_top(tree), *loud(tree)]


def heavy_at_top(tree: Path) -> list[str]:
    """Imports of heavy packages that happen when a module is imported. Programs for the box are left out."""
    found = []
    for file in package_files(tree):
        if outside(module(tree, file)):
            continue
        early = {id(node) for node in at_import(parse(file).body)}
        for node, target in imports(tree, file):
            if id(node) in early and target.split(".")[0] in HEAVY:
                found.append(f"{at(tree, file, node)}: imports {target} when imported; do it inside the function")
    return found


def at_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Nodes that run when a module is imported: all but functions and blocks for type checkers."""
    for node in body:
        if isinstance(node, FUNCTIONS) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            continue
        yield node
        for field in ("body", "orelse", "handlers", "finalbody"):
            yield from at_import(getattr(node, field, []))


def loud(tree: Path) -> list[str]:
    """What a fresh Python saw while it imported every module but the programs for the box."""
    names = [module(tree, file) for file in package_files(tree)]
    quiet = " ".join(name for name in names if not outside(name) and not name.endswith("__main__"))
    command = [sys.executable, "-B", "-c", IMPORT_ALL, str(tree / "src"), quiet, *HEAVY]
    ran = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, timeout=60)
    printed, _, report = ran.stdout.partition("\0")
    said = [f"importing prill prints {text.strip()[:200]!r}" for text in (printed, ran.stderr) if text.strip()]
    return said + (json.loads(report) if report else ["importing prill ended Python"])


def test_importing_this_package_does_nothing(repo: Path) -> None:
    """Importing every module prints nothing, writes nothing, sets up nothing and loads nothing heavy."""
    none_in(violations(repo))


def test_a_heavy_import_is_found_both_ways(tmp_path: Path) -> None:
    """A heavy package imported by a module's own lines is found in the source and in the running Python."""
    plant(tmp_path, "src/prill/__init__.py", "")
    plant(tmp_path, "src/prill/pages.py", '"""X."""\ntry:\n    import jinja2\nexcept ImportError:\n    pass\n')
    assert violations(tmp_path) == [
        "src/prill/pages.py:3: imports jinja2 when imported; do it inside the function",
        "prill.pages: importing it loads jinja2",
    ]


def test_each_kind_of_noise_is_found(tmp_path: Path) -> None:
    """Output, a file, a folder, logging, a thread, a program and an exception are each told with the module."""
    plant(tmp_path, "src/prill/__init__.py", "print('hello')")
    noise = {
        "a_file": f"open({str(tmp_path / 'new')!r}, 'w').close()",
        "b_folder": f"import os; os.mkdir({str(tmp_path / 'folder')!r})",
        "c_logging": "import logging; logging.basicConfig()",
        "d_program": "import subprocess; subprocess.run(['true'])",
        "e_error": "1 / 0",
        "f_thread": "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
    }
    for name, text in noise.items():
        plant(tmp_path, f"src/prill/{name}.py", text)
    found = "\n".join(loud(tmp_path))
    for said in (
        "prints 'hello'", "a_file: importing it opened", "b_folder: importing it os.mkdir",
        "c_logging: importing it sets up logging", "d_program: importing it subprocess.Popen",
        "e_error: importing it raised ZeroDivisionError", "f_thread: importing it starts a thread",
    ):  # fmt: skip
        assert said in found, said


def test_late_imports_are_innocent(tmp_path: Path) -> None:
    """A heavy package inside a function or for type checkers only, and in a program for the box, is let through."""
    plant(tmp_path, "src/prill/__init__.py", "")
    text = '''
        """X."""
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import torch
        class A:
            """Y."""
            def f(self) -> "torch.Tensor":
                import torch
                return torch.zeros(1)
    '''
    plant(tmp_path, "src/prill/pages.py", text)
    plant(tmp_path, "src/prill/smoke/entrants/honest.py", "import torch")
    assert violations(tmp_path) == []
