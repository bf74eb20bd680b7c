"""The commands about records: what they write, print and refuse; versions and retractions."""

import hashlib
from pathlib import Path

import msgspec
import pytest

from prill import cli
from prill.audit.verify import verify
from prill.records.reading import read
from record_made import changed, copied, in_bundle, sealed_again


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published result's bundle; not to be changed."""
    return in_bundle(tmp_path_factory.mktemp("record") / "bundle")


def test_a_retracted_record_says_why_and_verifies(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A retraction is another version with the same id, values and sources; its page, show and check say why."""
    target = tmp_path / "gone"
    assert cli.main(["record", "retract", str(bundle), "--why", "miscounted", "--to", str(target)]) == 0
    assert verify(target).faults == ()
    before, after = read(bundle), read(target)
    assert (after.record.id, after.record.version, after.record.fields) == (before.record.id, 2, before.record.fields)
    assert after.record.supersedes and after.record.supersedes.sha256 == hashlib.sha256(before.data).hexdigest()
    assert "Retracted" in (target / "index.html").read_text() and "miscounted" in (target / "index.html").read_text()
    assert cli.main(["record", "check", str(target)]) == 0
    assert cli.main(["record", "show", str(target)]) == 0
    assert capsys.readouterr().out.count("miscounted") == 2


def test_new_from_a_file_and_its_next_version(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`record new` writes a bundle that verifies and never over something; --supersedes keeps the id and counts on."""
    template, first, second = repo / "tests/golden/records/opus-4.7-v1.2.toml", tmp_path / "1", tmp_path / "2"
    assert cli.main(["record", "new", str(template), "--to", str(first)]) == 0
    assert cli.main(["record", "new", str(template), "--to", str(first)]) == 2
    assert cli.main(["record", "new", str(template), "--supersedes", str(first), "--to", str(second)]) == 0
    one, two = read(first).record, read(second).record
    assert (one.id, one.version, two.version, two.id) == (one.id, 1, 2, one.id)
    assert verify(first).faults == verify(second).faults == ()
    assert "already there" in capsys.readouterr().err


def test_check_names_faults_and_says_so_by_its_code(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`record check` prints each fault and exits with 1; a file that is no record exits with 2."""
    place = copied(bundle, tmp_path / "b")
    (place / "texts/page.json").unlink()
    assert cli.main(["record", "check", str(place)]) == 1
    assert "MISSING" in capsys.readouterr().out
    (place / "record.json").write_text("{}")
    assert cli.main(["record", "check", str(place)]) == 2
    assert "SCHEMA" in capsys.readouterr().err


def test_verify_holds_a_record_to_its_rules(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`prill verify` accepts a record's bundle, and names a field that somebody silenced under a manifest made anew."""
    assert cli.main(["verify", str(bundle)]) == 0
    place = copied(bundle, tmp_path / "b")
    (place / "record.json").write_bytes(
        changed(read(bundle).record, lambda record: record["not_reported"].pop("filtering"))
    )
    page = place / "index.html"
    lines = [line for line in page.read_text().splitlines(keepends=True) if "not_reported/filtering" not in line]
    page.write_text("".join(lines))
    sealed_again(place)
    assert cli.main(["verify", str(place)]) == 1
    assert "SILENT" in capsys.readouterr().out


def test_show_prints_text_json_and_the_schema(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`record show` prints each field with its source, the record's own bytes, or the schema that its bundle holds."""
    assert cli.main(["record", "show", str(bundle)]) == 0
    told = capsys.readouterr().out
    assert "28.56" in told and "page: “28.56%”" in told and "the page lists it as not reported" in told
    assert cli.main(["record", "show", str(bundle), "--format", "json"]) == 0
    assert capsys.readouterr().out == (bundle / "record.json").read_text(encoding="utf-8")
    assert cli.main(["record", "show", "--format", "schema"]) == 0
    assert capsys.readouterr().out == (bundle / "schemas/record.1.json").read_text(encoding="utf-8")
    assert cli.main(["record", "show"]) == 2


def test_a_record_is_no_audit(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`prill audit page` makes a record's page anew, byte for byte; `prill audit rerun` says that it is no audit."""
    assert cli.main(["audit", "page", str(bundle)]) == 0
    assert capsys.readouterr().out == (bundle / "index.html").read_text(encoding="utf-8")
    assert cli.main(["audit", "rerun", str(bundle)]) == 2
    assert "not an audit's bundle" in capsys.readouterr().err


def test_compare_prints_the_rule_and_the_fields(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`prill compare` prints verdict, rule and fields for a person, and the same as JSON with the rules' digest."""
    other = in_bundle(tmp_path / "b", "v1.2")
    assert cli.main(["compare", str(bundle), str(other)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("not comparable (rule same-measure of post-training)") and "task_count" in told
    assert cli.main(["compare", str(bundle), str(other), "--format", "json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert found["verdict"] == "not comparable" and len(found["rules_sha256"]) == 64


@pytest.mark.parametrize("options", [[], ["x.toml", "--from-run", "y"], ["--from-standings", "smoke"]])
def test_new_wants_one_way(tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`record new` without, with two or with half a way of making a record is told which there are."""
    assert cli.main(["record", "new", *options, "--to", str(tmp_path / "r")]) == 2
    assert "--entrant NAME" in capsys.readouterr().err
