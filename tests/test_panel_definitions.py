"""Panels as definitions: what a suite that names one plans, and what `prill check` says of one that cannot work."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hearings import PANEL
from prill.catalog import Catalog
from prill.check import faults
from prill.decisions import decisions
from prill.errors import DefinitionError
from prill.panel.hearing import prompt_digest
from prill.panel.inquiry import filled
from prill.run import expected
from samples import SPEC

SHIPPED = Catalog().names("panels")


def suite(place: Path, *lines: tuple[str, str]) -> Path:
    """A folder with the smoke suite under another name, some of its lines changed."""
    text = Catalog().file("suites", "smoke").read_text().replace('name = "smoke"', 'name = "mine"', 1)
    for old, new in lines:
        assert old in text
        text = text.replace(old, new, 1)
    (place / "suites").mkdir()
    (place / "suites" / "mine.toml").write_text(text)
    return place


FOUND = 'judges = ["overlap", "lineage", "tampering"]'
JUDGES = (FOUND, FOUND.replace("]", ', "panel"]') + '\npanel = "rehearsal"')
POLICY = ('lineage = "base"', 'lineage = "base"\nlookup = "hold"')


def test_a_suite_with_a_panel_plans_it(tmp_path: Path) -> None:
    """The panel's name and digest are in the spec, its rules are the suite's, and it is no decision about the run."""
    place = suite(tmp_path, JUDGES, POLICY)
    assert faults([place]) == []
    catalog = Catalog([place])
    [spec] = expected(catalog, catalog.suite("mine"), ["sleeper"], [0])
    assert spec.panel == "rehearsal" and "panels/rehearsal" in spec.definitions
    assert decisions(spec) == decisions(replace(spec, panel="another"))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([JUDGES], "no policy for 'lookup'"),
        ([POLICY], "policy for 'lookup', of which no judge speaks"),
        ([(JUDGES[0], 'judges = ["overlap", "panel"]')], "go together"),
        ([(JUDGES[0], f'{JUDGES[0]}\nsigners = {{ ada = "no key" }}')], "no public ed25519 key"),
        ([(JUDGES[0], 'judges = ["panel"]\npanel = "rehersal"')], "did you mean 'rehearsal'"),
    ],
)
def test_check_says_what_does_not_fit(tmp_path: Path, lines: list[tuple[str, str]], words: str) -> None:
    """A panel without its judge, a rule without policy, a signer without a key, a name that leads nowhere."""
    assert any(words in fault for fault in faults([suite(tmp_path, *lines)]))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('wire = "chat"', 'agent = "claude"', "no agent named 'claude'"),
        ('model = "rehearsal-small"', 'model = "unpriced"', "has no model 'unpriced'"),
        ("votes = 1", 'votes = 2\ncombine = "majority"', "majority"),
        ("max_tokens = 2000", "part_characters = 100", "a part must hold"),
    ],
)
def test_check_says_why_a_panel_cannot_be_heard(tmp_path: Path, old: str, new: str, words: str) -> None:
    """An agent or a price that is not there, votes that cannot be counted, parts that hold nothing."""
    text = Catalog().file("panels", "rehearsal").read_text().replace('name = "rehearsal"', 'name = "mine"', 1)
    (tmp_path / "panels").mkdir()
    (tmp_path / "panels" / "mine.toml").write_text(text.replace(old, new, 1))
    assert any(words in fault for fault in faults([tmp_path]))


@pytest.mark.parametrize("name", SHIPPED)
def test_no_blank_of_a_shipped_panel_is_left_open(name: str) -> None:
    """Each question's words are filled with what is known of the run."""
    for question in Catalog().panel(name).questions:
        assert "{" not in filled(question.words, SPEC)


def test_the_digest_of_words_is_of_the_words() -> None:
    """Another word of a question is another digest; another price is not."""
    [question] = PANEL.questions
    other = replace(PANEL, questions=(replace(question, words="Did it?"),))
    assert prompt_digest(PANEL) == prompt_digest(replace(PANEL, usd=2.0)) != prompt_digest(other)


def test_a_panel_that_is_not_there_is_named() -> None:
    """The error lists those that are."""
    with pytest.raises(DefinitionError, match="posttrainbench-1"):
        Catalog().panel("posttrainbench-9")
