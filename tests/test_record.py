"""Records: nothing is silently absent, what contradicts itself is named, and hostile ones are refused."""

import hashlib
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.audit.pointers import Unsound
from prill.audit.sheets import Sheet
from prill.audit.verify import verify
from prill.errors import DefinitionError
from prill.records.checking import check, said
from prill.records.reading import LARGEST, Kept, decoded, read
from prill.records.written import of_template
from prill.reported import NAMES, ResultRecord
from record_made import DAY, changed, copied, in_bundle, published, sealed_again

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published result's bundle; not to be changed."""
    return in_bundle(tmp_path_factory.mktemp("record") / "bundle")


def codes(place: Path) -> set[str]:
    """The codes of what is wrong with a bundle."""
    return {fault.code for fault in verify(place).faults}


# --- the published record --------------------------------------------------------------------------------------


def test_every_field_of_the_page_is_there() -> None:
    """The record holds each value of the published page, and lists all that the page lists as not reported."""
    record, _ = published()
    told = {name: getattr(record.fields, name) for name in NAMES}
    assert {name for name, one in told.items() if one is None} == set(record.not_reported)
    values = {name: one.value for name, one in told.items() if one is not None}
    figures = ("value", "unit", "dispersion", "dispersion_n", "task_count", "run_count", "gpus", "wall_clock_hours")
    assert [values[name] for name in figures] == [28.56, "percent", 1.7, 3, 28, 3, 1, 10]
    assert (values["internet_access"], values["published"], len(values["limitations"])) == (True, "2026-09-18", 6)
    assert len(values["comparability_caveats"]) == 3 and len(record.sources) == 9
    listed = ("attempts_per_task", "token_budget", "training_budget", "inference_budget", "monetary_cost", "filtering")
    assert {record.not_reported[name] for name in listed} == {"the page lists it as not reported"}


def test_the_bundle_verifies(bundle: Path) -> None:
    """The published record's bundle verifies, every value of its page by a pointer, and its check finds nothing."""
    report = verify(bundle)
    assert report.faults == () and report.counts["shown"] > 500
    assert check(read(bundle)) == []


def test_a_record_keeps_its_json_schema(bundle: Path) -> None:
    """The shipped JSON Schema accepts the record and refuses one with a field of another type or an unknown field."""
    validator = pytest.importorskip("jsonschema").Draft202012Validator(
        json.loads((bundle / "schemas/record.1.json").read_bytes())
    )
    record, _ = published()
    assert validator.is_valid(json.loads((bundle / "record.json").read_bytes()))
    for change in (put("fields/task_count/value", "many"), put("fields/colour", 1), put("version", "1")):
        assert not validator.is_valid(json.loads(changed(record, change)))


# --- what a page may be made of -----------------------------------------------------------------------------------


def test_no_number_is_typed_in_the_template(repo: Path) -> None:
    """Outside of tags and of what the template engine fills in, the page's template has no digit."""
    text = (repo / "src/prill/templates/record.html").read_text(encoding="utf-8")
    bare = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<[^>]*>", " ", text, flags=re.DOTALL)
    assert not re.search(r"\d", bare)


def test_the_page_shows_every_field_and_loads_nothing(bundle: Path) -> None:
    """Each field's value or reason stands on the page with its pointer; nothing is run, loaded or linked outside."""
    sheet = Sheet((bundle / "index.html").read_text(encoding="utf-8"))
    assert sheet.faults == []
    record, _ = published()
    shown = {cell.pointer for cell in sheet.cells}
    for name in NAMES:
        if name in record.not_reported:
            assert f"record.json#/not_reported/{name}" in shown
        else:
            assert any(place.startswith(f"record.json#/fields/{name}/value") for place in shown), name


def test_the_page_can_be_walked(bundle: Path) -> None:
    """Ids are one of a kind, every link leads to one or to a file beside the page, and headings go down in order."""
    text = (bundle / "index.html").read_text(encoding="utf-8")
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids)) and 'href="#main"' in text
    for target in re.findall(r' href="([^"]+)"', text):
        file, _, place = target.partition("#")
        assert (bundle / file).is_file() if file else place in ids, target
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))


# --- what verify catches ------------------------------------------------------------------------------------------


def test_a_changed_digit_on_the_page_is_caught(bundle: Path, tmp_path: Path) -> None:
    """Another digit on the page is wrong even when the manifest was made anew over it."""
    place = copied(bundle, tmp_path / "b")
    page = place / "index.html"
    page.write_text(page.read_text().replace(">28.56<", ">29.56<"))
    sealed_again(place)
    assert codes(place) == {"WRONG"}


def test_a_changed_value_is_caught(bundle: Path, tmp_path: Path) -> None:
    """A value that its quote does not say is a fault of the check, whatever the manifest says."""
    place = copied(bundle, tmp_path / "b")
    (place / "record.json").write_bytes(changed(read(bundle).record, put("fields/value/value", 29.56)))
    sealed_again(place)
    assert {fault.code for fault in check(read(place))} == {"NOT_IN_QUOTE"}


@pytest.mark.parametrize("again", [False, True])
def test_a_vanished_source_is_caught(bundle: Path, tmp_path: Path, again: bool) -> None:
    """A record whose source is gone does not verify, also after manifest and statement were made anew."""
    place = copied(bundle, tmp_path / "b")
    (place / "texts/page.json").unlink()
    if again:
        sealed_again(place)
    assert codes(place) & {"MISSING", "DANGLING"}
    assert "MISSING" in {fault.code for fault in check(read(place))}


def test_other_words_in_a_source_are_caught(bundle: Path, tmp_path: Path) -> None:
    """A source in which other words stand no longer carries its quotes, whoever made the digests anew."""
    place = copied(bundle, tmp_path / "b")
    text = json.loads((place / "texts/page.json").read_bytes())
    text["text"] = text["text"].replace("28.56%", "29.56%")
    text["sha256"] = hashlib.sha256(text["text"].encode()).hexdigest()
    (place / "texts/page.json").write_text(json.dumps(text))
    sealed_again(place)
    assert "WRONG" in codes(place)
    assert {"MOVED", "CHANGED"} <= {fault.code for fault in check(read(place))}


def test_a_moved_pointer_is_caught(tmp_path: Path) -> None:
    """A JSON source in which something else stands at a pointer no longer carries the value."""
    place = in_bundle(tmp_path / "b", "v1.2")
    assert verify(place).faults == () and check(read(place)) == []
    (place / "sources/scores.json").write_text('{"opus-4.7": {"avg": 25.66, "std": 1.34, "n": 3}}')
    sealed_again(place)
    assert {"MOVED", "WRONG"} <= codes(place)
    assert {"MOVED", "WRONG", "CHANGED"} == {fault.code for fault in check(read(place))}


# --- what the check names -----------------------------------------------------------------------------------------


def put(path: str, value: Any) -> Change:
    """A change: this value at that path; `...` takes what is there away."""

    def change(record: dict[str, Any]) -> None:
        *way, last = path.split("/")
        for step in way:
            record = record[step]
        if value is ...:
            record.pop(last, None)
        else:
            record[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "code", "where"),
    [
        (put("not_reported/filtering", ...), "SILENT", "filtering"),
        (put("not_reported/filtering", "  "), "SILENT", "filtering"),
        (put("not_reported/value", "unknown"), "TWICE", "value"),
        (put("not_reported/colour", "unknown"), "UNKNOWN", "colour"),
        (put("fields/value/value", 285.6), "RANGE", "value"),
        (put("fields/gpus/value", -1), "RANGE", "gpus"),
        (put("fields/dispersion_kind", None), "PAIR", "dispersion"),
        (put("fields/published/value", "September"), "DATE", "published"),
        (put("made", "today"), "DATE", "made"),
        (put("version", 2), "VERSION", "version"),
        (put("id", "A b"), "VERSION", "id"),
        (put("retracted", {"date": DAY, "why": ""}), "VERSION", "retracted"),
        (put("supersedes", {"version": 1, "sha256": "0"}), "VERSION", "supersedes"),
        (put("fields/metric/source/source", "nowhere"), "NO_SOURCE", "metric"),
        (put("fields/metric/source/sha256", "0" * 64), "HASH", "metric"),
        (put("fields/metric/source/start", 7), "MOVED", "metric"),
        (put("fields/metric/source/start", None), "UNDATED", "metric"),
        (put("fields/task_count/value", 29), "NOT_IN_QUOTE", "task_count"),
        (put("sources/page/sha256", "0" * 64), "CHANGED", "sources/page"),
        (put("fields/tests/value", ["GSM8K", "GSM8K"]), "SUM", "tests"),
    ],
)
def test_what_contradicts_itself_is_named(bundle: Path, tmp_path: Path, change: Change, code: str, where: str) -> None:
    """Each rule of a record has a code, and what breaks it is named with its field."""
    place = copied(bundle, tmp_path / "b")
    (place / "record.json").write_bytes(changed(read(bundle).record, change))
    assert (code, where) in {(fault.code, fault.where) for fault in check(read(place))}


@pytest.mark.parametrize(
    ("value", "words", "so"),
    [
        (10, "Up to ten hours", True), (11, "Up to ten hours", False), (1338, "1,338 tasks", True),
        (-1.5, "a loss of −1.5", True), (1e-05, "p = 1e-05", True), (28, "28.56%", False), (2, "x2y", True),
        ("GPQA  main", "on GPQA Main", True), ("GPQA", "gsm8k", False), (float(3), "3 seeds", True),
    ],
)  # fmt: skip
def test_what_words_say(value: Any, words: str, so: bool) -> None:
    """Numbers are found as figures or small words, text whatever its case and blanks, and nothing else is found."""
    assert said(value, words) is so


# --- written by hand ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('filtering = "the page lists it as not reported"', "", "silently absent: filtering;"),
        ('quote = "28.56%"', 'quote = "29.56%"', "does not say '29.56%'"),
        ('value = 28, quote', 'value = "28", quote', r"Expected `int"),
        ('value = 28.56, quote = "28.56%"', "value = 28.56", "give the words"),
        ('"page", value = "PostTrainBench" }', '"pge", value = "PostTrainBench" }', "no source 'pge'"),
        ('file = "opus-4.7-v1.1.txt"', 'file = "../x.txt"', "inside the tree"),
        ('file = "opus-4.7-v1.1.txt"', 'file = "gone.txt"', "no such file"),
        ("[not_reported]", "[not_reported]\ncolour = 'x'", "'colour'"),
        ("[not_reported]", "[not_reported]\nvalue = 'x'", "both has a value"),
    ],
)  # fmt: skip
def test_what_a_person_wrote_wrong_is_named(repo: Path, tmp_path: Path, old: str, new: str, says: str) -> None:
    """A field that is silent, unsaid, of another type or of an unknown source stops the making, in one line."""
    golden = repo / "tests/golden/records"
    text = (golden / "opus-4.7-v1.1.toml").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / "opus-4.7-v1.1.txt").write_bytes((golden / "opus-4.7-v1.1.txt").read_bytes())
    (tmp_path / "mine.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DefinitionError, match=re.escape(says) if "`" not in says else says):
        of_template(tmp_path / "mine.toml", DAY)


# --- hostile bytes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text.replace('"version":', '"id": "twice",\n "version":', 1), "DUPLICATE_KEY"),
        (lambda text: text.replace("28.56", "NaN", 1), "MALFORMED"),
        (lambda text: text.replace("28.56", "1e999", 1), "MALFORMED"),
        (lambda text: text.replace("28.56", "[" * 100 + "]" * 100, 1), "TOO_DEEP"),
        (lambda text: text.replace("28.56", "[" * 100_000, 1), "TOO_DEEP"),
        (lambda text: text + " " * LARGEST, "TOO_LARGE"),
        (lambda text: text.replace('"28.56%"', json.dumps("28.56%" * 10_000), 1), "TOO_LARGE"),
        (lambda text: text.replace('"GSM8K",', '"GSM8K",' * 1_001, 1), "TOO_LARGE"),
        (lambda text: text.replace("texts/page.json", "../../etc/passwd"), "CLIMBS"),
        (lambda text: text.replace("texts/page.json", "/etc/passwd"), "CLIMBS"),
        (lambda text: text.replace('"prill/record/1"', '"prill/record/9"'), "SCHEMA"),
        (lambda text: text.replace('"made"', '"colour"'), "SCHEMA"),
        (lambda text: text.replace("28.56", '"28.56"', 1), "SCHEMA"),
        (lambda text: text[:-40], "MALFORMED"),
    ],
)
def test_hostile_records_are_refused_by_name(tmp_path: Path, change: Callable[[str], str], code: str) -> None:
    """What has two readings, nests, swells, climbs or is no record is refused with the name of what is wrong."""
    record, _ = published()
    file = tmp_path / "record.json"
    file.write_text(change(changed(record, lambda _: None).decode()))
    with pytest.raises(DefinitionError, match=f": {code}: "):
        read(file)


def test_work_is_bounded(tmp_path: Path) -> None:
    """A record whose every field counts a long list is stopped at a bound on all of the work together."""
    place = in_bundle(tmp_path / "b", "v1.2")
    (place / "sources/scores.json").write_text(json.dumps({"opus-4.7": [0] * 300_000}))
    record = json.loads((place / "record.json").read_bytes())
    lists = {"source": "scores", "kind": "place", "at": "sources/scores.json#/opus-4.7", "sha256": "0" * 64}
    for name in NAMES:
        record["fields"][name] = {"value": 0, "source": {**lists, "how": "count", "where": {"x": 1}}}
    (place / "record.json").write_text(json.dumps(record))
    with pytest.raises(DefinitionError, match="SCHEMA"):
        read(place)
    for name in NAMES:
        record["fields"][name] = None
    for name in ("value", "cells", "cells_base", "task_count", "run_count", "gpus", "token_budget", "cells_zero"):
        record["fields"][name] = {"value": 0, "source": {**lists, "how": "count", "where": {"x": 1}}}
    (place / "record.json").write_text(json.dumps(record))
    assert "TOO_MUCH_WORK" in {fault.code for fault in check(read(place))}


def test_a_pointer_that_climbs_is_refused(tmp_path: Path) -> None:
    """A value whose pointer leads out of the record's folder is refused by name."""
    record, _ = published("v1.2")
    file = tmp_path / "record.json"
    file.write_bytes(changed(record, put("fields/value/source/at", "../secret.json#/x")))
    with pytest.raises(DefinitionError, match="CLIMBS"):
        read(file)


def test_a_source_that_is_a_link_is_not_followed(bundle: Path, tmp_path: Path) -> None:
    """A source that was replaced by a link is missing, wherever the link leads."""
    place = copied(bundle, tmp_path / "b")
    (place / "texts/page.json").rename(tmp_path / "page.json")
    (place / "texts/page.json").symlink_to(tmp_path / "page.json")
    assert "MISSING" in {fault.code for fault in check(read(place))}
    assert "LINK" in codes(place)


RECORD_BYTES = changed(published("v1.2")[0], lambda _: None)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(RECORD_BYTES)), st.integers(0, 40), st.binary(max_size=12))
def test_bytes_never_crash_the_reader(start: int, length: int, new: bytes) -> None:
    """Whatever bytes are put into a record, it is read as a record or refused by name."""
    try:
        assert isinstance(decoded(RECORD_BYTES[:start] + new + RECORD_BYTES[start + length :]), ResultRecord)
    except Unsound as error:
        assert error.code


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(["fields", "sources", "not_reported", "id", "version", "supersedes", "retracted"]),
       st.sampled_from(["value", "source", "page", "tests", "at", "notes"]), JSON)  # fmt: skip
def test_values_never_crash_the_check(key: str, inner: str, value: Any) -> None:
    """Whatever value stands in a record, it is refused by name or checked without a crash."""
    whole = json.loads(RECORD_BYTES)
    if isinstance(whole[key], dict):
        whole[key][inner] = value
    else:
        whole[key] = value
    try:
        record = decoded(json.dumps(whole).encode())
    except Unsound as error:
        assert error.code
        return
    assert isinstance(check(Kept(record, b"", None)), list)
