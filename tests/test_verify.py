"""`prill verify` finds each kind of tampering by name, and is not hurt by a bundle that was made to hurt it."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import audit_seed as seed
from prill import cli
from prill.audit import verify as verifying
from prill.audit.pointers import safe_name
from prill.audit.verify import Report, verify

COVERAGE, PROTOCOL = "evidence/coverage.json", "evidence/protocol.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's audit as a bundle; not to be changed."""
    return seed.seal_audit(tmp_path_factory.mktemp("audit"))


@pytest.fixture
def bundle(made: Path, tmp_path: Path) -> Path:
    """A copy of it to do harm to."""
    return Path(shutil.copytree(made, tmp_path / "bundle"))


def codes(report: Report) -> set[str]:
    """The kinds of faults of a report."""
    return {fault.code for fault in report.faults}


def rewrite(bundle: Path, path: str, change: Callable[[Any], object]) -> None:
    """A JSON file with a change, and every digest of files made anew, so that only its meaning can give it away."""
    value = json.loads((bundle / path).read_bytes())
    change(value)
    (bundle / path).write_text(json.dumps(value), encoding="utf-8")
    seed.reseal(bundle)


def edit(file: Path, before: str, after: str) -> None:
    """A text of a file for another, once."""
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after, 1), encoding="utf-8")


def test_an_honest_bundle_has_no_fault(made: Path) -> None:
    """A bundle as prill makes it passes, with every file, pointer, digest, number and shown value looked at."""
    report = verify(made)
    assert report.faults == ()
    assert report.counts["files"] == len([file for file in made.rglob("*") if file.is_file()])
    assert report.counts["shown"] > 500 and report.counts["derived"] > 100 and report.counts["digests"] >= 7


def test_the_command_says_so(made: Path, bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 0 without and 1 with a fault, whose name, place and sentence are printed, as text or JSON."""
    assert cli.main(["verify", str(made)]) == 0
    assert "no fault found" in capsys.readouterr().out
    (bundle / "more.txt").write_text("x", encoding="utf-8")
    assert cli.main(["verify", str(bundle), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert {"code": "UNLISTED", "where": "more.txt", "why": "in the bundle, but not in the manifest"} in told["faults"]
    assert cli.main(["verify", str(bundle / "nowhere")]) == 2


def test_a_changed_digit_on_a_page_is_found(bundle: Path) -> None:
    """A digit of a page is held against its JSON, even where the manifest was made anew."""
    edit(bundle / "index.html", ">1,338</data>", ">1,339</data>")
    assert codes(verify(bundle)) >= {"CHANGED", "WRONG"}
    seed.reseal(bundle)
    report = verify(bundle)
    assert codes(report) == {"WRONG"} and "shows '1,339'" in report.faults[0].why


def test_a_digit_typed_beside_its_pointer_is_found(bundle: Path) -> None:
    """A number that stands on a page without a pointer is found, and so is one that a style writes."""
    edit(bundle / "index.html", '<h2 id="claims">Claims</h2>', '<h2 id="claims">Claims: 3 of 3</h2>')
    edit(bundle / "index.html", "</style>", "h2::after { content: '99'; }</style>")
    seed.reseal(bundle)
    assert [fault.code for fault in verify(bundle).faults].count("TYPED") == 2


def test_a_value_that_differs_from_its_attribute_is_found(bundle: Path) -> None:
    """What a machine reads of a value is checked like what a person reads."""
    edit(bundle / "index.html", 'value="1338">1,338<', 'value="1337">1,338<')
    seed.reseal(bundle)
    assert codes(verify(bundle)) == {"WRONG"}


def test_a_changed_byte_in_evidence_is_found(bundle: Path) -> None:
    """A file whose bytes changed is named with both digests."""
    edit(bundle / COVERAGE, '"tasks": 1338', '"tasks": 1339')
    report = verify(bundle)
    assert codes(report) >= {"CHANGED", "STATEMENT", "WRONG"}
    assert any(fault.where == COVERAGE and "is listed" in fault.why for fault in report.faults)


def test_a_changed_number_in_evidence_is_derived_again(bundle: Path) -> None:
    """With all digests made anew, a number that does not follow from its list is still wrong."""
    rewrite(bundle, COVERAGE, lambda value: value["counts"].update(pairs=1314))
    wrong = {fault.where for fault in verify(bundle).faults if fault.code == "WRONG"}
    assert {f"{COVERAGE}#/counts/pairs", f"{COVERAGE}#/counts/surplus", f"{COVERAGE}#/counts/missing"} <= wrong


def test_a_changed_verdict_is_decided_again(bundle: Path) -> None:
    """A verdict and a status that do not follow from the evidence are wrong."""
    claims = "evidence/claims.json"
    rewrite(bundle, claims, lambda value: value["claims"]["claim_1"]["parts"][5].update(verdict="supported"))
    assert f"{claims}#/claims/claim_1/parts/5/verdict" in {fault.where for fault in verify(bundle).faults}
    rewrite(bundle, claims, lambda value: value["claims"]["claim_2"].update(status="supported"))
    assert f"{claims}#/claims/claim_2/status" in {fault.where for fault in verify(bundle).faults}


def test_a_removed_file_is_found(bundle: Path) -> None:
    """A file that the manifest lists and that is gone is named, and so are the pointers into it."""
    (bundle / PROTOCOL).unlink()
    report = verify(bundle)
    assert codes(report) >= {"MISSING", "DANGLING"}
    seed.reseal(bundle)
    assert "DANGLING" in codes(verify(bundle))


def test_a_pointer_to_an_index_that_moved_is_found(bundle: Path) -> None:
    """An entry put in front of a list moves what pointers lead to, and the page notices, whatever digests say."""
    rewrite(bundle, COVERAGE, lambda value: value["missing"].insert(0, value["missing"].pop()))
    report = verify(bundle)
    assert codes(report) == {"WRONG"} and all(fault.where.startswith("index.html:") for fault in report.faults)


def test_a_citation_of_something_that_changed_is_found(bundle: Path) -> None:
    """Evidence that a claim points to has the digest that the claim kept of it."""
    rewrite(bundle, COVERAGE, lambda value: value["cell_counts"].update(bfcl=value["cell_counts"]["gpqamain"]))
    assert {"MOVED", "WRONG"} <= codes(verify(bundle))


def test_a_text_with_an_added_newline_is_found(bundle: Path) -> None:
    """A text that gained a line break no longer has its digest, and the report says that this is why."""
    rewrite(
        bundle,
        "evidence/claims.json",
        lambda v: v["claims"]["claim_1"].update(text=v["claims"]["claim_1"]["text"] + "\n"),
    )
    report = verify(bundle)
    assert any(fault.code == "HASH" and "without its last line break it would" in fault.why for fault in report.faults)


def test_a_record_whose_source_vanished_is_found(bundle: Path) -> None:
    """Evidence whose input is no longer in the provenance is dangling, and so is what a page shows of it."""
    rewrite(bundle, "provenance.json", lambda value: value["inputs"].pop("listing"))
    report = verify(bundle)
    assert "DANGLING" in codes(report)
    assert any("provenance.json#/inputs/listing" in fault.why for fault in report.faults)


def test_a_number_that_rests_on_nothing_is_found(bundle: Path) -> None:
    """A derivation or an observation that was taken out leaves its values on the page underivable."""
    rewrite(bundle, "derivations.json", lambda value: value["derived"].clear())
    assert codes(verify(bundle)) >= {"UNDERIVABLE"}


def test_a_number_derived_from_itself_is_found(bundle: Path) -> None:
    """Two numbers that are derived from each other rest on nothing."""
    a, b = (f"{COVERAGE}#/counts/{name}" for name in ("tasks", "surplus"))

    def circle(value: Any) -> None:
        value["derived"] = [{"value": a, "how": "sum", "of": [b]}, {"value": b, "how": "sum", "of": [a]}]

    rewrite(bundle, "derivations.json", circle)
    assert any("derived from itself" in fault.why for fault in verify(bundle).faults)


def test_an_unlisted_file_is_found(bundle: Path) -> None:
    """A file too many is named."""
    (bundle / "evidence" / "extra.json").write_text("{}", encoding="utf-8")
    assert ("UNLISTED", "evidence/extra.json") in {fault[:2] for fault in verify(bundle).faults}


@pytest.mark.parametrize(
    "path", ["../outside.json", "/etc/hostname", "a/../../b.json", "evidence//x.json", "..", "a\\b", "C:x"]
)
def test_a_path_that_climbs_is_found(bundle: Path, path: str) -> None:
    """A manifest or a pointer that names a file outside of the bundle is refused, and the file is not looked at."""
    value = json.loads((bundle / "manifest.json").read_bytes())
    value["files"].append({"path": path, "bytes": 1, "sha256": "0" * 64})
    (bundle / "manifest.json").write_text(json.dumps(value), encoding="utf-8")
    assert "CLIMBS" in codes(verify(bundle)) and not safe_name(path)


def test_a_pointer_that_climbs_is_found(bundle: Path) -> None:
    """A page's pointer may not lead out of the bundle either."""
    edit(bundle / "index.html", f'data-at="{COVERAGE}#/counts/roots"', 'data-at="../x.json#/counts/roots"')
    seed.reseal(bundle)
    assert codes(verify(bundle)) == {"CLIMBS"}


def test_a_duplicate_key_is_found(bundle: Path) -> None:
    """JSON that two readers could understand differently is refused by name."""
    edit(bundle / COVERAGE, '"counts": {', '"counts": {"tasks": 1338, ')
    seed.reseal(bundle)
    assert ("DUPLICATE_KEY", COVERAGE) in {fault[:2] for fault in verify(bundle).faults}


def test_a_chain_of_a_billion_pointers_ends(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derivations that double at each step, a very long chain and huge sums are refused by name, in bounded work."""
    numbers = {f"n{n}": 1 for n in range(500)}
    (bundle / "laughs.json").write_text(json.dumps({"all": list(range(50_000)), **numbers}), encoding="utf-8")
    place = [f"laughs.json#/n{n}" for n in range(500)]
    chain = [{"value": place[n], "how": "product", "of": [place[n - 1]] * 2} for n in range(499, 0, -1)]
    sums = [{"value": place[n], "how": "sum", "of": ["laughs.json#/all"] * 20} for n in range(1, 500)]
    ground = [{"under": f"laughs.json#/{name}", "source": "provenance.json#/inputs/listing"} for name in ("n0", "all")]
    rewrite(bundle, "derivations.json", lambda v: (v["derived"].extend(chain), v["observed"].extend(ground)))
    assert any(fault.code == "TOO_DEEP" and "in a row" in fault.why for fault in verify(bundle).faults)
    rewrite(bundle, "derivations.json", lambda v: v["derived"].extend(sums))
    monkeypatch.setattr(verifying, "MOST_WORK", 2_000_000)
    assert "TOO_MUCH_WORK" in codes(verify(bundle))


def test_deep_json_is_refused(bundle: Path) -> None:
    """Lists in lists in lists, whether a hundred or a million, are refused by name."""
    for depth in (100, 1_000_000):
        (bundle / "deep.json").write_text("[" * depth + "]" * depth, encoding="utf-8")
        assert ("TOO_DEEP", "deep.json") in {fault[:2] for fault in verify(bundle).faults}


def test_what_is_no_file_is_named(bundle: Path) -> None:
    """A link, a link to a folder and a pipe in a bundle are named and not opened."""
    (bundle / "link.json").symlink_to("/etc/hostname")
    (bundle / "folder").symlink_to("..")
    os.mkfifo(bundle / "evidence" / "pipe.json")
    found = {fault[:2] for fault in verify(bundle).faults}
    assert {("LINK", "link.json"), ("LINK", "folder"), ("NOT_A_FILE", "evidence/pipe.json")} <= found


def test_a_link_in_a_listed_file_s_place_is_named(bundle: Path) -> None:
    """A listed file that became a link to the same bytes is not the file."""
    (bundle / COVERAGE).rename(bundle.parent / "elsewhere.json")
    (bundle / COVERAGE).symlink_to(bundle.parent / "elsewhere.json")
    assert {"LINK", "MISSING"} <= codes(verify(bundle))


def test_huge_files_and_many_files_are_bounded(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file larger than any bundle needs is not read, and a folder of too many entries is not walked to its end."""
    with (bundle / "huge.json").open("wb") as file:
        file.truncate(verifying.LARGEST_READ + 1)
    assert ("TOO_LARGE", "huge.json") in {fault[:2] for fault in verify(bundle).faults}
    monkeypatch.setattr(verifying, "MOST_FILES", 5)
    assert "TOO_MANY" in codes(verify(bundle))


@pytest.mark.parametrize(
    "harm",
    [
        "<script>alert()</script>",
        '<img src="https://example.org/x.png" alt="">',
        '<p onclick="x()">a</p>',
        '<link rel="stylesheet" href="//example.org/x.css">',
        '<meta http-equiv="refresh" content="soon">',
        '<p style="color: red">a</p>',
        '<a href="javascript:alert()">a</a>',
    ],
)
def test_a_page_that_loads_or_runs_something_is_found(bundle: Path, harm: str) -> None:
    """A script, a handler, a request to elsewhere or a refresh on a page is named."""
    edit(bundle / "index.html", "</main>", f"{harm}</main>")
    seed.reseal(bundle)
    assert "EXTERNAL" in codes(verify(bundle))


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        ("<!--><p>48</p>-->", "MALFORMED"),
        ("<p>48", "MALFORMED"),
        ("<p class=x>a</p>", "MALFORMED"),
        ("<![CDATA[48]]>", "MALFORMED"),
        ("<p>&#52;&#56;</p>", "TYPED"),
        ("<p>\uff14\uff18 \u00bd</p>", "TYPED"),
        ('<p title="48 tasks">a</p>', "TYPED"),
        ("<style>ul { list-style: decimal; }</style>", "TYPED"),
        ('<style>p::before { content: "\\34 8"; }</style>', "TYPED"),
        ("<style>p { background: url(data:image/svg+xml,x); }</style>", "TYPED"),
        ("<ol><li>a</li></ol>", "EXTERNAL"),
    ],
)
def test_what_two_readers_could_see_differently_is_found(bundle: Path, harm: str, code: str) -> None:
    """Loose markup that hides a number from one reader, numbers in other signs and styles that count are faults."""
    edit(bundle / "index.html", "</main>", f"{harm}</main>")
    seed.reseal(bundle)
    assert code in codes(verify(bundle))


def test_an_observation_without_an_input_carries_nothing(bundle: Path) -> None:
    """What says that it was read from something that is no input with a digest is underivable."""

    def loose(value: Any) -> None:
        for entry in value["observed"]:
            entry["source"] = "provenance.json#/tool"

    rewrite(bundle, "derivations.json", loose)
    assert "UNDERIVABLE" in codes(verify(bundle))


def test_a_page_without_its_policy_is_found(bundle: Path) -> None:
    """A page that would let a browser load things is named even if it loads none."""
    edit(bundle / "index.html", "default-src &#39;none&#39;", "default-src *")
    seed.reseal(bundle)
    assert codes(verify(bundle)) == {"EXTERNAL"}


def test_a_record_with_an_unknown_field_is_found(bundle: Path) -> None:
    """A file that names a schema is such a record, and a schema that nobody knows is named."""
    rewrite(bundle, PROTOCOL, lambda value: value.update(more=1))
    assert ("SCHEMA", PROTOCOL) in {fault[:2] for fault in verify(bundle).faults}
    rewrite(bundle, PROTOCOL, lambda value: value.update(schema="prill/protocol/9"))
    assert any("not known to this prill" in fault.why for fault in verify(bundle).faults)


def test_a_statement_about_other_files_is_found(bundle: Path) -> None:
    """A subject that is not in the bundle, or a digest that is not its own, is named."""
    value = json.loads((bundle / "statement.json").read_bytes())
    value["subject"][1]["digest"]["sha256"] = "0" * 64
    (bundle / "statement.json").write_text(json.dumps(value), encoding="utf-8")
    assert codes(verify(bundle)) == {"STATEMENT"}


def keys(place: Path, name: str) -> tuple[Path, Path]:
    """A fresh ed25519 key and its public half."""
    own, public = place / f"{name}.pem", place / f"{name}.pub.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", own], check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", own, "-pubout", "-out", public], check=True, capture_output=True)
    return own, public


def test_a_signature_is_checked_with_the_key_that_is_given(tmp_path: Path) -> None:
    """A signed bundle passes with its key, is told unchecked without one, and fails with another or after a change."""
    own, public = keys(tmp_path, "ours")
    _, other = keys(tmp_path, "other")
    bundle = seed.seal_audit(tmp_path, key=own)
    report = verify(bundle, public)
    assert (report.faults, report.notes) == ((), ("signed by ours.pub.pem",))
    assert "not checked" in verify(bundle).notes[0]
    assert codes(verify(bundle, other)) == {"SIGNATURE"}
    edit(bundle / "statement.json", "urn:prill:bundle:1", "urn:prill:bundle:2")
    assert codes(verify(bundle, public)) == {"SIGNATURE"}


def test_a_missing_signature_is_a_fault_where_a_key_is_given(made: Path, tmp_path: Path) -> None:
    """Whoever asks for a signature is not content with none."""
    assert codes(verify(made, keys(tmp_path, "ours")[1])) == {"SIGNATURE"}
