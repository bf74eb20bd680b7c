"""Records in four conventions and back: what is kept comes back the same, what is lost is said."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from prill import cli
from prill.audit.making import encoded
from prill.audit.verify import verify
from prill.errors import DefinitionError
from prill.records import every_eval_ever, exchange, hf_eval_results
from prill.records.checking import faults_of
from prill.records.losses import Sent
from prill.records.making import values
from prill.records.reading import digest
from prill.reported import NAMES, Earlier, ResultRecord, Retraction, Told
from record_made import DAY, in_bundle, published

HUB = {"dataset": "org/data", "task": "trial"}
FORMS = ("every-eval-ever", "hf-eval-results", "in-toto", "ro-crate")


def sent(record: ResultRecord, files: dict[str, bytes], form: str) -> Sent:
    """A record in a convention."""
    return exchange.export(record, form, files, **(HUB if form == "hf-eval-results" else {}))


def there_and_back(record: ResultRecord, files: dict[str, bytes], form: str, place: Path) -> tuple[ResultRecord, Sent]:
    """A record sent out and fetched again; what is fetched has no fault."""
    made = sent(record, files, form)
    if form == "ro-crate":
        exchange.into(place / "crate", made.files)
        place = place / "crate"
    else:
        place = place / "sent"
        place.write_bytes(next(iter(made.files.values())))
    back, beside = exchange.bring(place, form, DAY)
    assert faults_of(back, beside) == []
    return back, made


def told(record: ResultRecord) -> dict[str, Any]:
    """Values by field."""
    return {name: one.value for name, one in values(record).items()}


# --- round trips --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["v1.1", "v1.2"])
@pytest.mark.parametrize("form", ["every-eval-ever", "in-toto", "ro-crate"])
def test_every_value_and_reason_comes_back(tmp_path: Path, form: str, version: str) -> None:
    """Three of the conventions bring back every value, every reason and the id, in the same types."""
    record, files = published(version)
    back, _ = there_and_back(record, files, form, tmp_path)
    assert told(back) == told(record)
    assert {name: type(value) for name, value in told(back).items()} == {
        name: type(value) for name, value in told(record).items()
    }
    assert (back.not_reported, back.id) == (record.not_reported, record.id)


def test_a_crate_brings_back_the_very_record(tmp_path: Path) -> None:
    """From an RO-Crate the record comes back whole, with version, places, quotes and sources."""
    record, files = published()
    record = replace(record, version=3, supersedes=Earlier(version=2, sha256="0" * 64))
    assert there_and_back(record, files, "ro-crate", tmp_path)[0] == record


def test_a_statement_brings_back_versions_and_retractions(tmp_path: Path) -> None:
    """From an in-toto Statement version, what it supersedes and the retraction come back."""
    record, files = published()
    gone = replace(
        record,
        version=2,
        supersedes=Earlier(version=1, sha256="0" * 64),
        retracted=Retraction(date=DAY, why="miscounted"),
    )
    back, _ = there_and_back(gone, files, "in-toto", tmp_path)
    assert (back.version, back.supersedes, back.retracted) == (2, gone.supersedes, gone.retracted)


def test_the_hub_keeps_the_number_and_says_what_it_loses(tmp_path: Path) -> None:
    """From a hub's file value and date come back; every other field is in the loss report and not reported then."""
    record, files = published()
    back, made = there_and_back(record, files, "hf-eval-results", tmp_path)
    assert (told(back)["value"], told(back)["date"]) == (28.56, "2026-09-18")
    lost = " ".join(loss.why for loss in made.losses)
    assert all(name in lost for name in told(record) if name not in ("value", "date"))
    assert set(back.not_reported) == set(NAMES) - {"value", "date", "benchmark", "split"}


@pytest.mark.parametrize("form", FORMS)
def test_every_loss_has_a_reason(form: str) -> None:
    """Each convention says what it has no place for; one that has no place for sources says how many."""
    record, files = published()
    losses = sent(record, files, form).losses
    assert losses and all(loss.what and loss.why for loss in losses)
    if form != "ro-crate":
        assert any(loss.what == "sources" for loss in losses)


@settings(max_examples=40, deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**15), 10**15),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30),
    st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=3),
    st.booleans(),
)
def test_any_value_survives_the_texts(value: float, words: str, many: list[str], flag: bool) -> None:
    """Numbers, texts, lists and flags of every kind come back from Every Eval Ever's texts as they went in."""
    record, files = published()
    source = values(record)["value"].source
    wild = {"value": value, "filtering": words, "tests": tuple(many), "internet_access": flag}
    fields = replace(record.fields, **{name: Told(value=one, source=source) for name, one in wild.items()})
    record = replace(
        record, fields=fields, not_reported={k: v for k, v in record.not_reported.items() if k != "filtering"}
    )
    data = next(iter(every_eval_ever.export(record, files).files.values()))
    back, _ = every_eval_ever.bring(data, "x.json", DAY)
    assert {name: told(back)[name] for name in wild} == wild


# --- their own validators -----------------------------------------------------------------------------------------


def test_the_hub_s_library_reads_our_file() -> None:
    """`huggingface_hub` reads our YAML as the entry that it would write itself."""
    hub, yaml = pytest.importorskip("huggingface_hub._eval_results"), pytest.importorskip("yaml")
    record, files = published()
    data = yaml.safe_load(next(iter(sent(record, files, "hf-eval-results").files.values())))
    entries = hub.parse_eval_result_entries(data)
    assert hub.eval_result_entries_to_yaml(entries) == data
    assert (entries[0].dataset_id, entries[0].task_id, entries[0].value) == ("org/data", "trial", 28.56)


def test_in_toto_s_library_validates_our_statement() -> None:
    """`in_toto_attestation` accepts the Statement; its first subject is the record by its digest."""
    pytest.importorskip("in_toto_attestation", reason="in-toto-attestation is in the extra dev")
    from google.protobuf.json_format import Parse
    from in_toto_attestation.v1.statement import Statement
    from in_toto_attestation.v1.statement_pb2 import Statement as Message

    record, files = published()
    data = next(iter(sent(record, files, "in-toto").files.values()))
    statement = Statement.copy_from_pb(Parse(data, Message()))
    statement.validate()
    assert json.loads(data)["subject"][0]["digest"]["sha256"] == digest(encoded(record))


def test_rocrate_opens_our_crate(tmp_path: Path) -> None:
    """`rocrate` opens the folder, finds every file, the profile, the action and one property for each value."""
    crates = pytest.importorskip("rocrate.rocrate", reason="rocrate is in the extra dev")
    record, files = published()
    exchange.into(tmp_path / "crate", sent(record, files, "ro-crate").files)
    crate = crates.ROCrate(str(tmp_path / "crate"))
    kinds = [entity.type for entity in crate.get_entities()]
    assert kinds.count("PropertyValue") == len(told(record)) and "CreateAction" in kinds
    assert crate.root_dataset["conformsTo"].id == "https://w3id.org/ro/wfrun/process/0.5"
    for file in crate.get_by_type("File"):
        assert digest((tmp_path / "crate" / file.id).read_bytes()) == file["sha256"]


def test_every_eval_ever_s_rules_hold_for_our_file() -> None:
    """Our file keeps what the schema requires, and each broken requirement is named."""
    record, files = published()
    document = json.loads(next(iter(sent(record, files, "every-eval-ever").files.values())))
    assert list(every_eval_ever.faults(document)) == []
    broken: list[tuple[Callable[[Any], Any], str]] = [
        (lambda d: d.pop("evaluation_id"), "evaluation_id"),
        (lambda d: d["source_metadata"].update(source_type="blog"), "source_type"),
        (lambda d: d["model_info"].pop("id"), "model_info.id"),
        (lambda d: d["evaluation_results"][0]["metric_config"].pop("min_score"), "min_score"),
        (lambda d: d["evaluation_results"][0]["score_details"].update(score="28"), "score"),
        (lambda d: d["evaluation_results"][0]["score_details"]["details"].update(x=1), "only texts"),
        (lambda d: d["evaluation_results"][0]["source_data"].update(source_type="url"), "url"),
        (lambda d: d.update(eval_library=[]), "eval_library"),
    ]
    for change, named in broken:
        other = json.loads(json.dumps(document))
        change(other)
        assert any(named in fault for fault in every_eval_ever.faults(other)), named


def test_somebody_else_s_file_is_read(tmp_path: Path) -> None:
    """A file of Every Eval Ever that prill did not write gives a record with what it says and nothing made up."""
    own = {
        "schema_version": "0.2.1", "evaluation_id": "b/m/1", "retrieved_timestamp": "1",
        "source_metadata": {"source_type": "documentation", "source_organization_name": "O",
                            "evaluator_relationship": "third_party"},
        "eval_library": {"name": "helm", "version": "unknown"}, "model_info": {"name": "M", "id": "o/m"},
        "evaluation_results": [{"evaluation_name": "B", "source_data": {"dataset_name": "B", "source_type": "other"},
                                "metric_config": {"lower_is_better": False}, "score_details": {"score": 0.5}}],
    }  # fmt: skip
    (tmp_path / "x.json").write_text(json.dumps(own))
    back, files = exchange.bring(tmp_path / "x.json", "every-eval-ever", DAY)
    assert told(back) == {"value": 0.5, "benchmark": "B", "model": "M"}
    assert faults_of(back, files) == []


@pytest.mark.parametrize("form", ["every-eval-ever", "hf-eval-results"])
def test_no_number_is_sent_where_there_is_none(form: str) -> None:
    """A record without a value cannot go where a value is required, and says so instead of sending a zero."""
    record, files = published()
    record = replace(
        record, fields=replace(record.fields, value=None), not_reported={**record.not_reported, "value": "held"}
    )
    with pytest.raises(DefinitionError, match=r"no value \(held\)"):
        sent(record, files, form)


# --- hostile files ------------------------------------------------------------------------------------------------

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("form", "text", "code"),
    [
        ("every-eval-ever", '{"a": 1, "a": 2}', "DUPLICATE_KEY"),
        ("every-eval-ever", '{"a": NaN}', "MALFORMED"),
        ("every-eval-ever", "[" * 5000, "TOO_DEEP"),
        ("every-eval-ever", "[]", "SCHEMA"),
        ("in-toto", '{"_type": "x"}', "SCHEMA"),
        ("in-toto", '{"_type": "https://in-toto.io/Statement/v1", "predicateType": "x"}', "SCHEMA"),
        ("hf-eval-results", BOMB, "MALFORMED"),
        ("hf-eval-results", "- dataset: {id: a, task_id: b}\n  value: 1\n  value: 2\n", "DUPLICATE_KEY"),
        ("hf-eval-results", "- dataset: {id: a, task_id: b}\n  value: .nan\n", "SCHEMA"),
        ("hf-eval-results", "- !!python/object/apply:os.system [id]\n", "MALFORMED"),
        ("hf-eval-results", "[" * 5000, "TOO_DEEP"),
        ("hf-eval-results", "- dataset: {id: a}\n  value: 1\n", "SCHEMA"),
        ("hf-eval-results", "- dataset: {id: a, task_id: b}\n  value: true\n", "SCHEMA"),
    ],
)
def test_hostile_files_are_refused_by_name(tmp_path: Path, form: str, text: str, code: str) -> None:
    """Keys that stand twice, numbers that are none, nesting, aliases and tags of YAML's own are refused by name."""
    (tmp_path / "x").write_text(text)
    with pytest.raises(DefinitionError, match=f": {code}: "):
        exchange.bring(tmp_path / "x", form, DAY)


def test_a_statement_about_something_else_is_refused(tmp_path: Path) -> None:
    """A Statement whose subjects do not have the record's digest is refused."""
    record, files = published()
    document = json.loads(next(iter(sent(record, files, "in-toto").files.values())))
    document["predicate"]["fields"]["value"]["value"] = 29.56
    (tmp_path / "x").write_text(json.dumps(document))
    with pytest.raises(DefinitionError, match="CHANGED"):
        exchange.bring(tmp_path / "x", "in-toto", DAY)


@pytest.mark.parametrize("how", ["value", "digest", "source", "climb", "link"])
def test_a_crate_that_does_not_agree_is_refused(tmp_path: Path, how: str) -> None:
    """A crate whose description, record or sources contradict each other, or that leads outside, is refused by name."""
    record, files = published()
    place = tmp_path / "crate"
    exchange.into(place, sent(record, files, "ro-crate").files)
    metadata = json.loads((place / "ro-crate-metadata.json").read_bytes())
    entities = {one["@id"]: one for one in metadata["@graph"]}
    if how == "value":
        entities["#field-value"]["value"] = 29.56
    elif how == "digest":
        entities["record.json"]["sha256"] = "0" * 64
    elif how == "source":
        (place / "texts/page.json").unlink()
    elif how == "climb":
        data = (place / "record.json").read_bytes().replace(b"texts/page.json", b"../../page.json")
        (place / "record.json").write_bytes(data)
    else:
        (place / "record.json").rename(tmp_path / "r.json")
        (place / "record.json").symlink_to(tmp_path / "r.json")
    (place / "ro-crate-metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(DefinitionError, match=r"CHANGED|MISSING|CLIMBS"):
        exchange.bring(place, "ro-crate", DAY)


SENT = {form: next(iter(sent(*published("v1.2"), form).files.values())) for form in FORMS if form != "ro-crate"}


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(SENT)), st.integers(0, 4_000), st.integers(0, 40), st.binary(max_size=10))
def test_bytes_never_crash_an_import(form: str, start: int, length: int, new: bytes) -> None:
    """Whatever bytes are put into a file, it becomes a record or is refused by name."""
    data = SENT[form][:start] + new + SENT[form][start + length :]
    try:
        assert isinstance(exchange.FORMS[form].fetch(data, "x", DAY)[0], ResultRecord)
    except (exchange.Unsound, DefinitionError) as error:
        assert str(error)


@settings(max_examples=80, deadline=None)
@given(st.text(st.sampled_from("-[]{}:,&*!?|>'\"%@` \n\tab1.~#"), max_size=40))
def test_yaml_never_crashes(text: str) -> None:
    """Whatever text of YAML's own signs is read, it gives a value or is refused by name."""
    try:
        hf_eval_results.loaded(text.encode())
    except exchange.Unsound as error:
        assert error.code in ("MALFORMED", "DUPLICATE_KEY", "TOO_DEEP")


# --- the commands -------------------------------------------------------------------------------------------------


def test_export_and_import_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`record export` writes each convention and tells losses; `record import` makes a bundle that verifies."""
    place = in_bundle(tmp_path / "b")
    for form in FORMS:
        target = tmp_path / form
        options = ["--dataset", "org/data", "--task", "trial"] if form == "hf-eval-results" else []
        assert cli.main(["record", "export", str(place), "--as", form, *options, "--to", str(target)]) == 0
        assert "no place for" in capsys.readouterr().err
        back = tmp_path / f"back-{form}"
        assert cli.main(["record", "import", str(target), "--from", form, "--to", str(back)]) == 0
        assert verify(back).faults == ()
    assert cli.main(["record", "export", str(place), "--as", "hf-eval-results", "--to", str(tmp_path / "x")]) == 2
    assert "--dataset ID and --task ID" in capsys.readouterr().err
