"""Whether two results may stand side by side: what decides, what is named, and what an unknown does."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert
from msgspec.structs import replace

from prill.catalog import Catalog
from prill.compare import compare
from prill.errors import DefinitionError
from prill.records.written import of_template
from prill.reported import NAMES, Comparison, Fields, Place, ResultRecord, Retraction, Told

RULES = convert(
    {
        "name": "two",
        "title": "Two rules",
        "source": "made up for tests",
        "rules": [
            {"id": "hard", "fields": ["metric", "tests"], "otherwise": "not comparable", "why": "another question"},
            {"id": "soft", "fields": ["gpus"], "otherwise": "near", "unknown": "near", "why": "another machine"},
        ],
        "alike": {"metric": [["accuracy", "share of items right"]]},
    },
    Comparison,
)
PLACE = Place(source="s", at="sources/s.json#/x", sha256="0" * 64)
GIVEN: dict[str, Any] = {"metric": "accuracy", "tests": ("a", "b"), "gpus": 1}


def record(id: str = "rec-a", **said: Any) -> ResultRecord:
    """A record that says this much; everything else is not reported."""
    fields = Fields(**{name: Told(value=value, source=PLACE) for name, value in said.items()})
    reasons = {name: "not looked for" for name in NAMES if name not in said}
    return ResultRecord(
        id=id, version=1, made="2026-01-01", supersedes=None, retracted=None, sources={}, fields=fields,
        not_reported=reasons,
    )  # fmt: skip


def verdict(a: ResultRecord, b: ResultRecord) -> tuple[str, str | None, list[str]]:
    """The verdict, the rule that decided and the fields that are named."""
    found = compare(a, b, RULES)
    return found.verdict, found.rule, [one.field for one in found.differences]


def test_all_deciding_fields_agree() -> None:
    """Two results that report the same in every deciding field are the same, whatever else differs, which is named."""
    found = compare(record(**GIVEN, title="A"), record("rec-b", **GIVEN, title="B"), RULES)
    assert (found.verdict, found.rule, found.differences, found.besides) == ("same", None, (), ("title",))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"gpus": 8}, ("near", "soft", ["gpus"])),
        ({"metric": "loss"}, ("not comparable", "hard", ["metric"])),
        ({"metric": "loss", "gpus": 8}, ("not comparable", "hard", ["metric", "gpus"])),
        ({"tests": ("b", "a")}, ("same", None, [])),
        ({"metric": "  Share of  ITEMS right "}, ("same", None, [])),
    ],
)
def test_a_difference_decides(changed: dict[str, Any], expected: tuple[str, str | None, list[str]]) -> None:
    """The gravest rule decides and every differing field is named; order, case, blanks and listed words count not."""
    assert verdict(record(**GIVEN), record("rec-b", **{**GIVEN, **changed})) == expected


@pytest.mark.parametrize(("name", "expected"), [("metric", "not comparable"), ("gpus", "near")])
@pytest.mark.parametrize("both", [False, True])
def test_what_is_not_reported_cannot_be_seen_to_agree(name: str, expected: str, both: bool) -> None:
    """A deciding field that one or both do not report decides by its own verdict and is named as not reported."""
    known = {key: value for key, value in GIVEN.items() if key != name}
    found = compare(record(**(known if both else GIVEN)), record("rec-b", **known), RULES)
    assert (found.verdict, found.differences[0].field, found.differences[0].why) == (expected, name, "not reported")
    assert f"{name} (not reported)" in found.why


def test_a_retracted_record_is_compared_with_nothing() -> None:
    """One retraction makes two equal records not comparable, and its reason is named."""
    gone = replace(record("rec-b", **GIVEN), retracted=Retraction(date="2026-01-02", why="miscounted"))
    found = compare(record(**GIVEN), gone, RULES)
    assert (found.verdict, found.rule, found.differences[0].b) == ("not comparable", "not-retracted", "miscounted")


def test_a_result_is_the_same_as_itself() -> None:
    """Two versions of one record that say the same are one result, even where fields are not reported."""
    assert compare(record(), replace(record(), version=2), RULES).verdict == "same"


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries({}, optional={"metric": st.sampled_from(["accuracy", "loss"]), "gpus": st.integers(0, 1)}),
    st.fixed_dictionaries({}, optional={"metric": st.sampled_from(["accuracy", "loss"]), "gpus": st.integers(0, 1)}),
)
def test_which_comes_first_does_not_matter(one: dict[str, Any], other: dict[str, Any]) -> None:
    """The verdict, its rule and the named fields are the same whichever record comes first."""
    a, b = record(**one), record("rec-b", **other)
    assert verdict(a, b) == verdict(b, a)


def test_rules_speak_of_fields_that_there_are(tmp_path: Path) -> None:
    """A rule about a field that no record has is refused by name."""
    (tmp_path / "comparisons").mkdir()
    text = 'name = "odd"\ntitle = "Odd"\nsource = "x"\n'
    text += '[[rules]]\nid = "r"\nfields = ["colour"]\notherwise = "near"\nwhy = "x"\n'
    (tmp_path / "comparisons" / "odd.toml").write_text(text)
    with pytest.raises(DefinitionError, match="'colour' is no field of a record"):
        Catalog([tmp_path]).comparison("odd")


def test_two_versions_of_a_benchmark_are_not_comparable(repo: Path) -> None:
    """The published v1.1 result and its v1.2 successor are not comparable, with tests, tasks and version named."""
    golden = repo / "tests/golden/records"
    a, b = (of_template(golden / f"opus-4.7-{v}.toml", "2026-11-30")[0] for v in ("v1.1", "v1.2"))
    found = compare(a, b, Catalog().comparison("post-training"))
    assert found.verdict == "not comparable"
    assert {"benchmark_version", "tests", "task_count", "aggregate_method"} <= {
        one.field for one in found.differences if one.verdict == "not comparable" and one.why == "differs"
    }
    assert {"base_models", "monetary_budget"} <= {one.field for one in found.differences if one.why == "not reported"}
