"""Definitions: what is read, and the one line that says what is wrong with what is not."""

import shutil
from pathlib import Path

import pytest

from prill.catalog import PACKAGE, Catalog, read_items
from prill.check import faults
from prill.errors import DefinitionError
from samples import BENCHMARK

SUITE = (PACKAGE / "definitions" / "suites" / "smoke.toml").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of definitions of one's own, with a copy of the smoke suite named `mine`."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "mine.toml").write_text(SUITE.replace('name = "smoke"', 'name = "mine"'))
    return tmp_path


def test_reads(folder: Path) -> None:
    """A definition is read with its digest, yours before the package's, and the same one only once."""
    catalog = Catalog([folder])
    assert catalog.suite("mine") is catalog.suite("mine")
    assert catalog.digests["suites/mine"].startswith("sha256:")
    assert "mine" in catalog.names("suites")
    assert catalog.suite("smoke").models == ("smoke-base",)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seeds = 1", "seeds = 1\nsedes = 2", "unknown field `sedes`"),
        ("seeds = 1", 'seeds = "one"', "`$.seeds`"),
        ("hours = 0.05", 'hours = "long"', "`$.budget.hours`"),
        ('title = "Smoke', 'title = 7\nx = "Smoke', "`$.title`"),
        ('name = "mine"', 'name = "other"', "the file is called 'mine'"),
        ("seeds = 1", "seeds = ", "not TOML"),
        ('scale = "raw"', 'scale = "log"', "Invalid enum value 'log'"),
        ('prompt = "smoke"\n', "", "missing required field `prompt`"),
    ],
)
def test_bad_definition(folder: Path, old: str, new: str, words: str) -> None:
    """A definition that cannot be accepted is one line that names the file and the fault."""
    file = folder / "suites" / "mine.toml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(DefinitionError) as caught:
        Catalog([folder]).suite("mine")
    assert str(file) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_not_text(folder: Path) -> None:
    """Bytes that are no UTF-8 are an error that says where."""
    (folder / "suites" / "mine.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(DefinitionError, match=r"not UTF-8 text .* at byte 8"):
        Catalog([folder]).suite("mine")


@pytest.mark.parametrize("name", ["smok", "../suites/smoke", "/etc/passwd", ""])
def test_unknown_name(name: str) -> None:
    """A name that is not there is an error that lists those that are, and a path is no name."""
    with pytest.raises(DefinitionError, match=r"no suite named .* \(there are: .*smoke"):
        Catalog().suite(name)


def test_nearest_name() -> None:
    """A slip of the pen is answered with the nearest name."""
    with pytest.raises(DefinitionError, match="did you mean 'smoke'"):
        Catalog().suite("smok")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "smoke/../../x"])
def test_asset_stays_inside(path: str) -> None:
    """An asset's path cannot climb out of the definitions."""
    with pytest.raises(DefinitionError, match="stays inside"):
        Catalog().asset(path)


def test_no_such_asset() -> None:
    """An asset that is nowhere is an error that says where it was looked for."""
    with pytest.raises(DefinitionError, match=r"not found in .*definitions"):
        Catalog().asset("smoke/no-such-file")


def test_no_such_folder(tmp_path: Path) -> None:
    """A folder of definitions that does not exist is said at once."""
    with pytest.raises(DefinitionError, match="no such folder of definitions"):
        Catalog([tmp_path / "nowhere"])


def test_items_are_pinned(tmp_path: Path) -> None:
    """Items whose count or digest is not the pinned one are refused with both named."""
    file = tmp_path / "items.jsonl"
    file.write_text('{"id": "1", "question": "1+1?", "answer": "2"}\n')
    with pytest.raises(DefinitionError, match=r"1 items with digest sha256:\w+, but benchmarks/sums pins 4 with"):
        read_items(file, BENCHMARK)


@pytest.mark.parametrize("line", ["[]", "{}", "no json", '{"id": "1", "question": "q"}'])
def test_bad_item(tmp_path: Path, line: str) -> None:
    """A line that is no item is an error with file and line number."""
    file = tmp_path / "items.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(DefinitionError, match=r"items\.jsonl:1: not an item"):
        read_items(file, BENCHMARK)


def test_own_definitions_are_sound() -> None:
    """The package's definitions have no fault, their pinned digests included."""
    assert faults([]) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("word-problems = 1.0", "word-problems = 0.9", "weights sum to 0.9, not 1"),
        ("word-problems = 1.0", "words = 1.0", "weights are for ['words']"),
        ('judges = ["overlap", "lineage", ', 'judges = ["overlap", "linage", ', "no judge named 'linage'"),
        ('contamination = "base"', 'contamniation = "base"', "of which no judge speaks"),
        ('engine = "transformers"', 'engine = "steam"', "no engine named 'steam'"),
        ('sandbox = "bubblewrap"', 'sandbox = "sand"', "no sandbox named 'sand'"),
        ('rules = ["budget"', 'rules = ["bugdet"', "has no wording"),
        ('models = ["smoke-base"]', 'models = ["smok-base"]', "no model named 'smok-base'"),
        ('"honest-sft"', '"honest-stf"', "did you mean 'honest-sft'"),
        ('model = "smoke-base"\nbenchmark', 'model = "x"\nbenchmark', "no reference score for smoke-base"),
    ],
)
def test_check_finds(folder: Path, old: str, new: str, words: str) -> None:
    """`check` finds names that lead nowhere, weights that do not sum, and policy for rules nobody judges."""
    file = folder / "suites" / "mine.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert any(words in line for line in faults([folder]))


def test_check_finds_changed_bytes(folder: Path) -> None:
    """`check` notices a model whose bytes are not those that its definition pins."""
    shutil.copytree(PACKAGE / "smoke" / "base", folder / "smoke" / "base")
    (folder / "smoke" / "base" / "config.json").write_text("{}")
    assert any("but sha256:" in line and "smoke-base" in line for line in faults([folder]))
