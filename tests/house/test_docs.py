"""What is not documented is red (rule 16): commands, definition fields, files of a run folder.

Where a reader looks: `docs/reference/commands.md` has each command as code (`prill NAME …`) in a heading or at the
start of a table's row, and each option somewhere; `definitions.md` has a heading for each kind (`suites/`), with the
fields of its struct and of the structs inside it in backticks below; `run-folder.md` has each file of a run folder in
backticks; one of the last two has RunSpec's own fields. A command that a page tells the reader to type must exist.
What is *not* covered: whether the words are true.
"""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from house.source import at, last_name, none_in, package_files, parse, plant, words

ASK = """
import argparse, json, sys
sys.path.insert(0, sys.argv[1])
import msgspec, typing
from prill import catalog, spec
def inside(shape):
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        hints = typing.get_type_hints(shape)
        for field, encoded in zip(shape.__struct_fields__, shape.__struct_encode_fields__):
            yield shape.__name__, encoded
            yield from inside(hints[field])
    for part in typing.get_args(shape):
        yield from inside(part)
def commands(parser, prefix):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield f"{prefix} {name}", [
                    max(option.option_strings, key=len) for option in inner._actions
                    if option.option_strings and not isinstance(option, argparse._HelpAction)
                ]
                yield from commands(inner, f"{prefix} {name}")
answer = {
    "kinds": {kind: list(inside(shape)) for kind, shape in catalog.KINDS.items()},
    "run": list(spec.RunSpec.__struct_encode_fields__),
    "commands": None,
}
try:
    from prill import cli
    answer["commands"] = dict(commands(cli.parser(), "prill"))
except ImportError as error:
    answer["why"] = str(error)
print(json.dumps(answer))
"""
SHELL_WORDS = words("and or is a an the assays itself needs has does gives makes will")
RUN_FILE = re.compile(r"[a-z]\w*\.(json|jsonl|md)|[a-z]+\.times")


def violations(tree: Path) -> list[str]:
    """Everything that a reader of the reference pages would miss, and commands that no longer exist."""
    return [*undocumented_names(tree), *undocumented_files(tree), *names_elsewhere(tree)]


def undocumented_names(tree: Path) -> list[str]:
    """Commands, options and definition fields that the reference does not name."""
    environment = {"PATH": os.environ["PATH"]}
    command = [sys.executable, "-B", "-c", ASK, str(tree / "src")]
    asked = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    if asked.returncode:
        return [f"prill cannot be asked for its commands and fields: {asked.stderr.strip().splitlines()[-1]}"]
    answer = json.loads(asked.stdout)
    if answer["commands"] is None:
        return [f"prill.cli cannot be asked for its commands: {answer['why']}"]
    found = undocumented_commands(page(tree, "commands.md"), answer["commands"])
    text = page(tree, "definitions.md")
    for kind, fields in answer["kinds"].items():
        part = section(text, kind + "/")
        if part is None:
            found.append(f"docs/reference/definitions.md: no heading names {kind}/")
            continue
        missing = [(struct, field) for struct, field in fields if f"`{field}`" not in part]
        found += [
            f"docs/reference/definitions.md: {kind}/ lacks {struct}'s field `{field}`" for struct, field in missing
        ]
    everywhere = text + page(tree, "run-folder.md")
    missing = [field for field in answer["run"] if f"`{field}`" not in everywhere]
    found += [f"docs/reference/definitions.md: lacks RunSpec's field `{field}`" for field in missing]
    return found + commands_in_docs(tree, set(answer["commands"]))


def undocumented_commands(text: str, known: dict[str, list[str]]) -> list[str]:
    """Commands without a heading or row, and options that the page does not name."""
    found = []
    for name, options in known.items():
        if not re.search(rf"(?m)^(?:#+ .*?|\| *)`?{re.escape(name)}\b(?![ -][a-z])", text):
            found.append(f"docs/reference/commands.md: no heading or row for `{name}`")
        missing = [option for option in options if not re.search(rf"`[^`\n]*{re.escape(option)}(?![\w-])", text)]
        found += [f"docs/reference/commands.md: does not name {option} of `{name}`" for option in missing]
    return found


def page(tree: Path, name: str) -> str:
    """The text of a reference page; empty where it is missing."""
    file = tree / "docs/reference" / name
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def section(text: str, heading: str) -> str | None:
    """The text below the heading that has these words, or `None`."""
    parts = re.split(r"(?m)^(#+ .*)$", text)
    return next((text for title, text in zip(parts[1::2], parts[2::2], strict=True) if heading in title), None)


def commands_in_docs(tree: Path, known: set[str]) -> list[str]:
    """Commands that a page tells the reader to type and that do not exist."""
    found = []
    top = {name.split()[1] for name in known}
    for file in [*sorted(tree.glob("*.md")), *sorted((tree / "docs").rglob("*.md"))]:
        if "decisions" in file.parts:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            for match in re.finditer(r"(?:^\s*(?:\$ )?|`)prill ([a-z][a-z-]*)", line):
                if match[1] not in top | SHELL_WORDS:
                    found.append(f"{file.relative_to(tree).as_posix()}:{number}: there is no command prill {match[1]}")
    return found


def run_files(tree: Path) -> dict[str, int]:
    """Names of the files and folders of a run folder, as `folder.py` writes them, with their lines."""
    file = tree / "src/prill/folder.py"
    known: dict[str, int] = {}
    for node in ast.walk(parse(file)) if file.is_file() else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            inner = [node.right]
        elif isinstance(node, ast.Call):
            kinds = last_name(node.func) in ("numbered", "next_numbered")
            inner = [value for value in node.args[:1] if kinds or is_file_name(value)]
        else:
            continue
        for value in inner:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                known.setdefault(value.value, value.lineno)
    return known


def is_file_name(node: ast.expr) -> bool:
    """Whether an argument is written out and looks like a file of a run folder."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(RUN_FILE.fullmatch(node.value))


def undocumented_files(tree: Path) -> list[str]:
    """Files of a run folder that `run-folder.md` does not name."""
    text = page(tree, "run-folder.md")
    return [
        f"docs/reference/run-folder.md: does not name `{name}` (src/prill/folder.py:{line})"
        for name, line in run_files(tree).items()
        if not re.search(rf"`[^`\n]*(?<![\w.]){re.escape(name)}(?![\w.])[^`\n]*`", text)
    ]


def names_elsewhere(tree: Path) -> list[str]:
    """Modules other than `folder.py` that spell the name of a run folder's file."""
    known = {name for name in run_files(tree) if "." in name}
    found = []
    for file in package_files(tree):
        if file.name == "folder.py":
            continue
        for node in ast.walk(parse(file)):
            name = spelt(node, known)
            if name:
                found.append(f"{at(tree, file, node)}: spells {name!r}; only folder.py knows a run folder's file names")
    return found


def spelt(node: ast.AST, known: set[str]) -> str | None:
    """The run-folder file that a node spells: one of the known names, or what follows `run.path /`."""
    if isinstance(node, ast.Constant) and node.value in known:
        return str(node.value)
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant)):
        return None
    new = ast.unparse(node.left) in ("run.path", "folder.path") and node.right.value not in known
    return str(node.right.value) if new else None


def small_tree(tree: Path) -> Path:
    """A tree with one command, one kind, a run folder of three names and pages that name them all."""
    cli = """
        import argparse
        def parser():
            made = argparse.ArgumentParser("prill")
            made.add_subparsers().add_parser("assay").add_argument("--again", action="store_true")
            return made
    """
    folder = """
        class RunFolder:
            raw = property(lambda self: self.path / "raw")
            def outcome(self):
                return self._read("outcome.json", dict)
            def finding(self):
                return self.numbered("findings", "x")
    """
    plant(tree, "src/prill/__init__.py", "")
    plant(tree, "src/prill/cli.py", cli)
    plant(tree, "src/prill/folder.py", folder)
    spec = """
        import msgspec
        class Budget(msgspec.Struct):
            hours: float
        class Suite(msgspec.Struct):
            budget: Budget | None
        class RunSpec(msgspec.Struct):
            id: str
    """
    plant(tree, "src/prill/spec.py", spec)
    plant(tree, "src/prill/catalog.py", "from prill.spec import Suite\nKINDS = {'suites': Suite}\n")
    plant(tree, "docs/reference/commands.md", "# Commands\n| `prill assay RUN` | `--again` does it again |\n")
    plant(tree, "docs/reference/definitions.md", "## suites/\n`budget`: `hours` it may use. A run has an `id`.\n")
    plant(tree, "docs/reference/run-folder.md", "`raw/`, `outcome.json`, `findings/<judge>.<n>.json`\n")
    return tree


def test_this_tree_is_documented(repo: Path) -> None:
    """Every command, option, definition field and run-folder file of this tree is in the reference."""
    none_in(violations(repo))


def test_what_is_documented_is_innocent(tmp_path: Path) -> None:
    """A tree whose pages name everything is let through."""
    assert violations(small_tree(tmp_path)) == []


def test_every_missing_word_is_found(tmp_path: Path) -> None:
    """A missing option, field or file is told with its page."""
    tree = small_tree(tmp_path)
    plant(tree, "docs/reference/commands.md", "# prill assay\nDoes it `--again-and-again`.")
    plant(tree, "docs/reference/definitions.md", "## suites/\nThe `budget` of hours.")
    plant(tree, "docs/reference/run-folder.md", "`raw/` and an `old-outcome.json5`, findings")
    assert violations(tree) == [
        "docs/reference/commands.md: does not name --again of `prill assay`",
        "docs/reference/definitions.md: suites/ lacks Budget's field `hours`",
        "docs/reference/definitions.md: lacks RunSpec's field `id`",
        "docs/reference/run-folder.md: does not name `outcome.json` (src/prill/folder.py:4)",
        "docs/reference/run-folder.md: does not name `findings` (src/prill/folder.py:6)",
    ]


def test_missing_pages_are_found(tmp_path: Path) -> None:
    """Without its page a command, its option and a kind of definition are undocumented."""
    tree = small_tree(tmp_path)
    (tree / "docs/reference/commands.md").unlink()
    (tree / "docs/reference/definitions.md").unlink()
    assert violations(tree) == [
        "docs/reference/commands.md: no heading or row for `prill assay`",
        "docs/reference/commands.md: does not name --again of `prill assay`",
        "docs/reference/definitions.md: no heading names suites/",
        "docs/reference/definitions.md: lacks RunSpec's field `id`",
    ]


def test_a_command_that_does_not_exist_is_found(tmp_path: Path) -> None:
    """A page that has the reader type a command that is not there is told by line, and prose is not."""
    tree = small_tree(tmp_path)
    plant(tree, "README.md", "A prill sinks.\n\n    prill assay x\n    $ prill smelt x\n")
    assert violations(tree) == ["README.md:4: there is no command prill smelt"]


def test_a_file_name_spelt_elsewhere_is_found(tmp_path: Path) -> None:
    """Another module that spells a run folder's file name is found, and one that speaks of it in prose is not."""
    tree = small_tree(tmp_path)
    plant(
        tree,
        "src/prill/run.py",
        '"""Reads outcome.json first."""\nNAME = "outcome.json"\nOTHER = "income.json"\nrun.path / "new"\n',
    )
    said = "only folder.py knows a run folder's file names"
    assert sorted(violations(tree)) == [
        f"src/prill/run.py:2: spells 'outcome.json'; {said}",
        f"src/prill/run.py:4: spells 'new'; {said}",
    ]
