"""Witnesses, claims and bundles: what they state, that they come out the same again, and that they can be compared."""

import hashlib
import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import ValidationError, convert
from msgspec.structs import replace

import audit_seed as seed
from prill import cli
from prill.audit import bundle as bundling
from prill.audit.assembly import page_again, rerun, spoken
from prill.audit.changes import changes
from prill.audit.claims import assess
from prill.audit.derive import status
from prill.audit.making import evidence_of
from prill.audit.signing import encoding, payload_of
from prill.audit.store import Store
from prill.audit.verify import verify
from prill.audit.witness import look, opened
from prill.catalog import Catalog
from prill.errors import DefinitionError, InfraError
from prill.evidence import Seen
from prill.questions import Audit, Claim, Expectation, Part, Quoted, Witness

AUDIT = Catalog().audit("posttrainbench")
SAID = {"evidence/coverage.json": {"counts": {"models": 4, "roots": 0}}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's sources, their store and the bundle; not to be changed."""
    place = tmp_path_factory.mktemp("audit")
    seed.seal_audit(place)
    return place


def looked(data: bytes | None, **said: Any) -> Seen:
    """A witness with that text."""
    witness = convert({"id": "w", "title": "W", "path": "a/b.txt", "type": "label", **said}, Witness)
    return look(witness, None if data is None else io.BytesIO(data))


# --- witnesses ---


def test_all_printed_hashes_verify(place: Path) -> None:
    """All seven hashes that the page prints are those of the texts in the bundle, byte for byte."""
    documents = evidence_of(place / "bundle")
    texts = [claim["text"] for claim in documents["evidence/claims.json"]["claims"].values()]
    for one in documents["evidence/witnesses.json"]["witnesses"].values():
        texts += [one["content"]["text"]] if one["content"] else []
        texts += [quote["text"] for quote in one["excerpts"]]
    assert {hashlib.sha256(text.encode()).hexdigest() for text in texts} == seed.SEED_HASHES
    witnesses = documents["evidence/witnesses.json"]["witnesses"].values()
    assert [one["content"]["ends_in_newline"] for one in witnesses if one["content"]] == [True, False]


def test_a_trace_is_stated_and_not_copied(place: Path) -> None:
    """Of the trace the bundle has size, digest and three excerpts by record and pointer, and not one other byte."""
    trace = evidence_of(place / "bundle")["evidence/witnesses.json"]["witnesses"]["instruction_tuned_trace"]
    assert (trace["bytes"], trace["redistributed"], trace["content"]) == (seed.TRACE_BYTES, False, None)
    assert trace["sha256"] == hashlib.sha256(seed.trace()).hexdigest()
    assert [(quote["record"], quote["pointer"], quote["found"]) for quote in trace["excerpts"]] == [
        (500, "/part/state/input/content", True), (504, "/part/state/output", True), (531, "/part/text", True),
    ]  # fmt: skip
    assert sum(file.stat().st_size for file in (place / "bundle").rglob("*.json")) < seed.TRACE_BYTES


def test_an_absent_witness_is_a_finding(place: Path) -> None:
    """A file that is not in the released tree is stated as absent, with its path and why, and nothing else of it."""
    witnesses = evidence_of(place / "bundle")["evidence/witnesses.json"]
    absent = witnesses["witnesses"]["discovered_api_keys"]
    assert (absent["state"], absent["bytes"], absent["sha256"], absent["redistributed"]) == (
        "absent",
        None,
        None,
        False,
    )
    assert absent["why"] and (witnesses["present"], witnesses["absent"], witnesses["unreadable"]) == (3, 1, 0)


def test_excerpts_that_are_not_there_are_told() -> None:
    """A missing record or place, other text and a line that is no JSON are each told as such."""
    trace = b'{"a": ["x", 1]}\nno json\n\n'
    asked = [(1, "/a/0"), (1, "/a/7"), (1, "/a/1"), (1, "/b"), (2, "/a"), (3, "/a"), (9, "/a")]
    found = looked(trace, excerpts=[{"record": n, "pointer": p} for n, p in asked]).excerpts
    assert [quote.why for quote in found] == [
        "", "the record has no such place", "what stands there is not text", "the record has no such place",
        "the record is not JSON", "the trace has no such record", "the trace has no such record",
    ]  # fmt: skip
    other = looked(trace, excerpts=[{"record": 1, "pointer": "/a/0", "text": "y"}]).excerpts[0]
    assert (other.found, other.text, other.why) == (False, "y", "other text stands there")
    assert looked(trace, first=0, excerpts=[{"record": 0, "pointer": "/a/0"}]).excerpts[0].text == "x"


def test_a_pinned_digest_is_compared() -> None:
    """A witness says whether it has the digest that was expected; without one it says nothing."""
    assert looked(b"x", sha256=hashlib.sha256(b"x").hexdigest()).pinned is True
    assert looked(b"y", sha256=hashlib.sha256(b"x").hexdigest()).pinned is False
    assert looked(b"y").pinned is None


def test_bytes_that_are_no_text_are_only_stated() -> None:
    """A witness that is not UTF-8, or long, has size and digest and no content, and says why."""
    for data in (b"\xff\xfe", b"x" * 70_000):
        found = looked(data)
        assert found.content is None and found.why and found.bytes == len(data)


def test_a_witness_is_not_looked_for_outside(tmp_path: Path) -> None:
    """A path that climbs is refused; a link on the way, a folder and a pipe are unreadable, not followed."""
    import os

    (tmp_path / "tree").mkdir()
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    (tmp_path / "tree" / "link").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "tree" / "pipe")
    for path in ("../secret", "/etc/hostname", "", "a//b"):
        with pytest.raises(DefinitionError, match="a path inside the tree"):
            opened(tmp_path / "tree", path)
    for path in ("link/secret", "pipe", "link"):
        file, trouble = opened(tmp_path / "tree", path)
        assert file is None and trouble
    assert opened(tmp_path / "tree", "none/x") == (None, "")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80), st.text(max_size=12))
def test_no_trace_breaks_a_witness(data: bytes, pointer: str) -> None:
    """Whatever a trace holds, its size and digest are stated and each excerpt has the digest of its text."""
    found = looked(data, excerpts=[{"record": 1, "pointer": pointer}, {"record": 2, "pointer": "/" + pointer}])
    assert (found.bytes, found.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert all(hashlib.sha256(quote.text.encode()).hexdigest() == quote.sha256 for quote in found.excerpts)


# --- claims ---


def claim(*parts: Part, **said: Any) -> Audit:
    """An audit of one claim with these parts."""
    return Audit(name="x", title="X", claims=(Claim(id="c", text="So it is.", source="here", parts=parts, **said),))


def part(**said: Any) -> Part:
    """One part."""
    return Part(id="p", text="A part.", **said)


def test_the_published_statuses_come_out(place: Path) -> None:
    """Both claims of the page are partially supported, by parts that each point to evidence or are untested."""
    claims = evidence_of(place / "bundle")["evidence/claims.json"]["claims"]
    assert [one["status"] for one in claims.values()] == ["partial support", "partial support"]
    assert [(one["supported"], one["refuted"], one["untested"]) for one in claims.values()] == [(5, 1, 1), (2, 0, 1)]


def test_a_status_follows_from_the_parts() -> None:
    """All supported: supported; some: partial support; none and one refuted: refuted; nothing tested: untested."""
    assert status(["supported", "supported"]) == "supported"
    assert status(["supported", "refuted"]) == status(["supported", "untested"]) == "partial support"
    assert status(["refuted", "untested"]) == "refuted"
    assert status(["untested"]) == status([]) == "untested"


def test_expectations_decide_a_part() -> None:
    """A part is supported if every place holds what is expected, and refuted otherwise; true is not one."""
    models = Expectation(at="evidence/coverage.json#/counts/models", equals=4)
    for expects, verdict in (
        ((models,), "supported"),
        ((models, replace(models, equals=5)), "refuted"),
        ((replace(models, equals=True),), "refuted"),
        ((replace(models, equals=4.0),), "refuted"),
    ):
        [judged] = assess(claim(part(expects=expects)), SAID).claims["c"].parts
        assert judged.verdict == verdict


def test_a_verdict_needs_evidence() -> None:
    """A person's verdict without evidence, and a verdict beside expectations, are refused where they are written."""
    for said in (
        {"verdict": "supported"},
        {"verdict": "refuted"},
        {"verdict": "untested", "expects": [{"at": "a", "equals": 1}]},
    ):
        with pytest.raises(ValidationError):
            convert({"id": "p", "text": "A part.", **said}, Part)


def test_a_pointer_that_leads_nowhere_is_refused() -> None:
    """Evidence that is not in a file that was gathered is an error that names claim, part and pointer."""
    with pytest.raises(DefinitionError, match=r"claim c, part p: .*nothing at /counts/model"):
        assess(claim(part(verdict="supported", evidence=("evidence/coverage.json#/counts/model",))), SAID)
    with pytest.raises(DefinitionError, match="leads out of the bundle"):
        assess(claim(part(verdict="supported", evidence=("../x.json#/a",))), SAID)


def test_evidence_that_was_not_gathered_leaves_a_part_untested() -> None:
    """A part that rests on a part of the audit that was left out is untested, and says which."""
    [judged] = (
        assess(claim(part(verdict="supported", evidence=("evidence/protocol.json#/facts",))), SAID).claims["c"].parts
    )
    assert (judged.verdict, judged.why) == ("untested", "not gathered in this audit: evidence/protocol.json")


def test_a_claim_whose_text_was_pinned_otherwise_is_refused() -> None:
    """A text that is not the pinned one, be it by a line break, is refused."""
    with pytest.raises(DefinitionError, match="is pinned"):
        assess(claim(part(), sha256=hashlib.sha256(b"So it is.\n").hexdigest()), SAID)


# --- bundles ---


def test_every_file_keeps_to_its_schema(place: Path) -> None:
    """Each file that names a schema is valid by the JSON Schema that the bundle carries for it."""
    jsonschema = pytest.importorskip("jsonschema")
    checked = 0
    for file in (place / "bundle").rglob("*.json"):
        value = json.loads(file.read_bytes())
        if isinstance(value, dict) and "schema" in value:
            schema = json.loads((place / "bundle" / bundling.schema_file(value["schema"])).read_bytes())
            jsonschema.validate(value, schema)
            checked += 1
    assert checked == 7


def test_the_statement_is_about_every_file(place: Path) -> None:
    """The in-toto Statement names the manifest and each file with the digest that the file has."""
    said = json.loads((place / "bundle" / "statement.json").read_bytes())
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert {one["name"] for one in said["subject"]} == {
        file.relative_to(place / "bundle").as_posix()
        for file in (place / "bundle").rglob("*")
        if file.is_file() and file.name != "statement.json"
    }
    for one in said["subject"]:
        data = (place / "bundle" / one["name"]).read_bytes()
        assert one["digest"] == {"sha256": hashlib.sha256(data).hexdigest()}


def test_the_envelope_is_plain_dsse(tmp_path: Path) -> None:
    """A signed statement stands in a DSSE envelope whose signature openssl accepts over DSSE's own encoding."""
    key, public = tmp_path / "key.pem", tmp_path / "pub.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True, capture_output=True)
    envelope = json.loads((seed.seal_audit(tmp_path, key=key) / "statement.dsse.json").read_bytes())
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert payload_of(envelope) == (tmp_path / "bundle" / "statement.json").read_bytes()
    assert (
        encoding(b"hello world", "http://example.com/HelloWorld")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert "PRIVATE" not in "".join(file.read_text(encoding="utf-8") for file in (tmp_path / "bundle").rglob("*.json"))


def test_another_kind_of_key_is_refused(tmp_path: Path) -> None:
    """A key that is not ed25519, and a file that is no key, are refused with how to make one."""
    key = tmp_path / "key.pem"
    command = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key]
    subprocess.run(command, check=True, capture_output=True)
    (tmp_path / "a").mkdir()
    with pytest.raises(DefinitionError, match="openssl genpkey -algorithm ed25519"):
        seed.seal_audit(tmp_path / "a", key=key)
    key.write_text("none", encoding="utf-8")
    (tmp_path / "b").mkdir()
    with pytest.raises(DefinitionError, match="openssl genpkey -algorithm ed25519"):
        seed.seal_audit(tmp_path / "b", key=key)
    assert not (tmp_path / "a" / "bundle").exists()


def test_a_bundle_is_never_written_over(place: Path, tmp_path: Path) -> None:
    """A folder with something in it is refused, and what is in it stays."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "mine.txt").write_text("x", encoding="utf-8")
    with pytest.raises(DefinitionError, match="never overwritten"):
        bundling.seal(tmp_path / "old", {"a.json": b"{}"})
    assert [file.name for file in tmp_path.rglob("*")] == ["old", "mine.txt"]


def test_an_audit_comes_out_the_same_from_its_store(place: Path, tmp_path: Path) -> None:
    """Without tree and repository, from the kept inputs alone, evidence and derivations are the same, byte for byte."""
    shutil.copytree(place / "bundle", tmp_path / "bundle")
    shutil.copytree(place / "store", tmp_path / "store")
    _, differing = rerun(tmp_path / "bundle", Store(tmp_path / "store"))
    assert differing == []
    argv = [
        "audit",
        "rerun",
        str(tmp_path / "bundle"),
        "--store",
        str(tmp_path / "store"),
        "--to",
        str(tmp_path / "again"),
    ]
    assert cli.main(argv) == 0
    for file in (*evidence_of(tmp_path / "again" / "evidence"), "../derivations.json"):
        assert (tmp_path / "again/evidence" / file).read_bytes() == (tmp_path / "bundle/evidence" / file).read_bytes()
    assert verify(tmp_path / "again").faults == ()


def test_a_rerun_finds_evidence_that_was_made_up(place: Path, tmp_path: Path) -> None:
    """Evidence that was changed together with all digests and pages is found by computing it from the inputs again."""
    bundle = Path(shutil.copytree(place / "bundle", tmp_path / "bundle"))
    value = json.loads((bundle / "evidence/protocol.json").read_bytes())
    value["facts"]["num_gpus_default"]["value"] = 8
    (bundle / "evidence/protocol.json").write_text(json.dumps(value), encoding="utf-8")
    _, differing = rerun(bundle, Store(place / "store"))
    assert differing == ["~ evidence/protocol.json#/facts/num_gpus_default/value: 8 → 1"]


def test_a_store_is_not_believed(place: Path, tmp_path: Path) -> None:
    """An input that is gone from the store, or has other bytes, is an error that names its file."""
    store = Path(shutil.copytree(place / "store", tmp_path / "store"))
    digest = json.loads((place / "bundle/provenance.json").read_bytes())["inputs"]["listing"]["sha256"]
    file = Store(store).path(digest)
    file.write_bytes(b"other")
    with pytest.raises(InfraError, match="other bytes"):
        rerun(place / "bundle", Store(store))
    file.unlink()
    with pytest.raises(InfraError, match="not in the store"):
        rerun(place / "bundle", Store(store))


def test_a_diff_names_the_places(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two bundles are compared place by place; what only moved in a list does not differ."""
    assert cli.main(["audit", "diff", str(place / "bundle"), str(place / "bundle")]) == 0
    assert capsys.readouterr().out == "nothing differs\n"
    a = {"c.json": {"roots": [{"name": "a", "n": 1}, {"name": "b", "n": 2}], "k": 1, "list": [1, 2]}}
    b = {"c.json": {"roots": [{"name": "b", "n": 3}, {"name": "a", "n": 1}, {"name": "c"}], "list": [1]}, "d.json": 1}
    assert changes(a, b) == [
        "~ c.json#/roots/b/n: 2 → 3", '+ c.json#/roots/c: {"name":"c"}', "- c.json#/k: 1",
        "~ c.json#/list: [1,2] → [1]", "+ d.json",
    ]  # fmt: skip


def test_an_audit_may_leave_sources_out(tmp_path: Path) -> None:
    """Without repository and tree of files the bundle has the inventory and the claims, and passes."""
    bundle = seed.seal_audit(tmp_path, repo=None, files=None)
    assert sorted(file.name for file in (bundle / "evidence").iterdir()) == ["claims.json", "coverage.json"]
    assert verify(bundle).faults == ()
    claims = evidence_of(bundle)["evidence/claims.json"]["claims"]
    assert claims["claim_2"]["status"] == "untested"


def test_the_commands_do_a_whole_audit(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command prints its part for a person, and writes or prints its JSON where that is asked for."""
    commit = evidence_of(place / "bundle")["evidence/protocol.json"]["commit"]
    listed, repo, tree = str(place / "listing.txt"), f"{place / 'repo'}@{commit}", str(place / "tree")
    assert cli.main(["audit", "inventory", listed]) == 0
    assert "47 roots · 1,338 tasks · 1,313 of 1,316 root/cell pairs" in capsys.readouterr().out
    assert cli.main(["audit", "inventory", listed, "--naming", "mine", "--definitions", str(tmp_path / "no")]) == 2
    assert "no such folder of definitions" in capsys.readouterr().err
    assert cli.main(["audit", "protocol", repo, "--to", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["facts"]["mpi_hours"]["value"] == 100
    assert cli.main(["audit", "witness", "posttrainbench", "--files", tree]) == 0
    assert "3 present · 1 absent · 0 unreadable" in capsys.readouterr().out
    assert cli.main(["audit", "claims", "posttrainbench", "--evidence", str(place / "bundle")]) == 0
    assert "claim_1: partial support" in capsys.readouterr().out
    argv = ["audit", "bundle", "posttrainbench", "--tree", listed, "--repo", repo, "--files", tree]
    assert cli.main([*argv, "--store", str(tmp_path / "store"), "--to", str(tmp_path / "made")]) == 0
    assert verify(tmp_path / "made").faults == ()
    assert cli.main(["audit", "page", str(tmp_path / "made"), "--to", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "made/index.html").read_bytes()
    assert page_again(place / "bundle") == (place / "bundle/index.html").read_bytes()


def test_a_command_s_folders_stay_private() -> None:
    """The provenance keeps a command as typed, but of an absolute path only the last part."""
    assert spoken(["prill", "--to", "/somewhere/own/x", "a/b"]) == ("prill", "--to", "…/x", "a/b")


def test_the_shipped_audit_is_whole() -> None:
    """The shipped audit pins both claims' texts, names what is there, and lists what it does not claim."""
    catalog = Catalog()
    assert catalog.naming(str(AUDIT.naming)) and catalog.fact(str(AUDIT.facts)) and AUDIT.not_claimed
    assert all(hashlib.sha256(one.text.encode()).hexdigest() == one.sha256 for one in AUDIT.claims)
    assert all(isinstance(quote, Quoted) for one in AUDIT.witnesses for quote in one.excerpts)
