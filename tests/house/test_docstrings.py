"""Everything public says what it is, and every test says its truth in one sentence (rules 13 and 15)."""

import ast
import re
from pathlib import Path

from house.source import FUNCTIONS, at, definitions, none_in, package_files, parse, plant, python_files

CODE = re.compile(r"`[^`]*`|\"[^\"]*\"|\([^)]*\)")
SENTENCE_END = re.compile(r"[.!?]['\")]*\s+[A-Z`\"]")


def violations(tree: Path) -> list[str]:
    """Modules, public names and tests without words, and tests whose words are not one sentence."""
    found = []
    for file in python_files(tree, "src/prill", "tests", "bench"):
        if not ast.get_docstring(parse(file)):
            found.append(f"{at(tree, file)}: the module has no docstring")
    for file in package_files(tree):
        found += [
            f"{at(tree, file, node)}: {name} has no docstring"
            for name, node in definitions(parse(file).body)
            if not any(part.startswith("_") for part in name.split(".")) and not ast.get_docstring(node)
        ]
    for file in python_files(tree, "tests"):
        for name, node in definitions(parse(file).body):
            if isinstance(node, FUNCTIONS) and node.name.startswith("test"):
                why = not_one_sentence(ast.get_docstring(node))
                found += [f"{at(tree, file, node)}: {name}: {why}"] if why else []
    return found


def not_one_sentence(text: str | None) -> str | None:
    """Why a docstring is not one sentence that ends in a full stop, or `None` where it is."""
    if not text or not text.strip():
        return "no docstring; say the truth it tests in one sentence"
    if "\n\n" in text.strip():
        return "the docstring has more than one paragraph"
    if not text.strip().endswith("."):
        return "the docstring does not end with a full stop"
    return "the docstring is more than one sentence" if SENTENCE_END.search(CODE.sub("x", text)) else None


def test_this_tree_speaks(repo: Path) -> None:
    """Every module, public name and test of this tree has the words it owes."""
    none_in(violations(repo))


def test_silence_is_found(tmp_path: Path) -> None:
    """A module, function, class and method without a docstring are each found by line."""
    plant(tmp_path, "src/prill/x.py", "def f(): ...\nclass A:\n    def g(self): ...\n")
    assert [line.split(": ", 1)[1] for line in violations(tmp_path)] == [
        "the module has no docstring", "f has no docstring", "A has no docstring", "A.g has no docstring",
    ]  # fmt: skip


def test_a_test_without_one_sentence_is_found(tmp_path: Path) -> None:
    """A test that is silent, says two sentences, a fragment or two paragraphs is found."""
    text = '''
        """X."""
        def test_a(): ...
        def test_b():
            """One thing is true. Another too."""
        def test_c():
            """A fragment"""
        class TestD:
            def test_d(self):
                """One thing.

                More of it.
                """
    '''
    plant(tmp_path, "tests/test_x.py", text)
    assert len(violations(tmp_path)) == 4


def test_private_names_and_whole_sentences_are_innocent(tmp_path: Path) -> None:
    """What is private, special or local owes no docstring, and stops inside names or quotes end no sentence."""
    text = '''
        """X."""
        def _f(): ...
        class A:
            """Y."""
            def __call__(self): ...
            def g(self):
                """Z."""
                def local(): ...
    '''
    plant(tmp_path, "src/prill/x.py", text)
    sentence = 'The file `a. B` holds 0.5 of e.g. \\"this. That\\" and that is all (See it. There).'
    plant(tmp_path, "tests/test_x.py", f'"""X."""\ndef test_a():\n    """{sentence}"""\n')
    assert violations(tmp_path) == []
