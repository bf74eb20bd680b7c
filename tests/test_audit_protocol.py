"""Facts out of a pinned commit: the published ones, code and comment told apart, and nothing of the repository run."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import audit_seed as seed
from prill.audit.derive import Calculator, Derivations
from prill.audit.gitobjects import Commit, Object, checked, entries, oid_of, reading
from prill.audit.making import plain
from prill.audit.protocol import derivations, protocol
from prill.audit.quoting import SourceText, comment_start
from prill.catalog import Catalog
from prill.errors import DefinitionError, InfraError, PrillError
from prill.evidence import Found, Protocol
from prill.questions import Fact, FactSet, Region

CLONE = os.environ.get("PRILL_POSTTRAINBENCH_CLONE")
"""Where a clone of the public repository lies, for those who have one."""
FACTS = Catalog().fact("posttrainbench")
PUBLISHED = {
    "src/commit_utils/single_task.sub": (
        "ea7f8790b97301dcdb6f3c104c5555d7ddf4e06a",
        "f8ee12da42fdebfc3b4293a22ea8b232c1f8f52cb2f52b103c9f138f0ddc013a",
    ),
    "src/run_task.sh": (
        "0642ec47ee7acd2528cdab7d343ddba11cbc84db",
        "10b0238018f202209c06f12ff05d021a0ca03b98d42c86a65e80cacd4fbe7033",
    ),
    "src/commit_utils/commit.sh": (
        "3c43144e1186a160f450e747b95861fea6d16747",
        "663ecb37cc4e6a16dcfcf8135bdbadf325f0b067192fe7a71d2231ba37eaae8e",
    ),
}


def read(repo: Path, commit: str, facts: FactSet = FACTS) -> Protocol:
    """The facts of a commit."""
    with reading(repo, commit) as objects:
        return protocol(Commit(objects, commit), facts, "none")


def fact_in(place: Path, path: str, text: str, **said: object) -> Found:
    """One fact out of a repository with one file."""
    commit = seed.repository(place, {path: text})
    asked = Fact(id="it", title="It", path=path, **said)  # type: ignore[arg-type]
    return read(place, commit, FactSet(name="x", title="x", source="here", facts=(asked,))).facts["it"]


def test_every_published_fact_comes_out(tmp_path: Path) -> None:
    """Each protocol fact of the page has its value, its lines, and the blob id and digest of the bytes it stands in."""
    commit = str(FACTS.commit) if CLONE else seed.repository(tmp_path)
    found = read(Path(CLONE) if CLONE else tmp_path, commit)
    for name, value in seed.VALUES.items():
        assert found.facts[name].value == value, name
    for name, lines in seed.LINES.items():
        assert found.facts[name].lines == lines, name
    assert found.facts["ten_hour_jobs"].lines + found.facts["one_hour_jobs"].lines == tuple(range(83, 91))
    assert found.facts["cuda_device_requirement"].value.startswith('TARGET.CUDADeviceName == "NVIDIA H100 80GB HBM3"')
    assert found.facts["evaluation_dirs"].count == 7
    for path, blob in found.files.items():
        if CLONE:
            assert (blob.blob, blob.sha256) == PUBLISHED[path]
        else:
            data = seed.SOURCES[path].encode()
            assert blob.sha256 == hashlib.sha256(data).hexdigest() and blob.bytes == len(data)
            assert blob.blob == hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    assert set(found.files) == set(PUBLISHED)


def test_a_whole_expression_is_quoted(tmp_path: Path) -> None:
    """The second clause of a requirement is not dropped, and a trailing comment is not part of it."""
    text = 'requirements = Name == "H100" && \\\n  Machine != "#1"  # not that one\nqueue\n'
    found = fact_in(tmp_path, "task.sub", text, pattern=r"^requirements = (.+)", read="expression")
    assert found.value == 'Name == "H100" && \\\n  Machine != "#1"'
    assert (found.places[0].line, found.places[0].end_line) == (1, 2)


def test_python_is_quoted_by_its_syntax(tmp_path: Path) -> None:
    """An assignment over several lines is quoted to its end, and a `#` in a string begins no comment."""
    text = 'def f(h):\n    """LIMIT: 3"""\n    LIMIT = (\n        h\n        + 5  # grace\n    )\n    NAME = "#LIMIT"\n'
    found = fact_in(tmp_path, "a.py", text, pattern=r"^\s*LIMIT = (.+)", read="expression")
    assert found.value == "(\n        h\n        + 5  # grace\n    )"
    assert (found.places[0].line, found.places[0].end_line, len(found.places)) == (3, 6, 1)


def test_comments_are_told_from_active_lines(tmp_path: Path) -> None:
    """A match in a comment is kept as a place that is not active and makes no value."""
    text = "# hours=1\nhours=10 # hours=2\necho 'hours=10 # no comment'\n#hours=3\n"
    found = fact_in(tmp_path, "run.sh", text, pattern=r"hours=(\d+)", read="integer")
    assert [(place.line, place.active, place.value) for place in found.places] == [
        (1, False, 1), (2, True, 10), (2, False, 2), (3, True, 10), (4, False, 3),
    ]  # fmt: skip
    assert (found.value, found.lines, found.several) == (10, (2, 3), False)
    dead = fact_in(tmp_path / "dead", "run.sh", "#hours=3\n", pattern=r"hours=(\d+)", read="integer")
    assert (dead.value, dead.why, dead.lines) == (None, "only in comments", ())


def test_several_places_are_several(tmp_path: Path) -> None:
    """Active places that differ give no single value; all of them are reported, and the fact says so."""
    found = fact_in(tmp_path, "run.sh", "hours=10\nhours=100\n", pattern=r"hours=(\d+)", read="integer")
    assert (found.value, found.several, [place.value for place in found.places]) == (None, True, [10, 100])
    assert "2 different values" in found.why


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    """No match, no file, a link for a file and a region that never begins are each a finding, never zero."""
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "link.sh").symlink_to("run.sh")
    commit = seed.repository(tmp_path / "repo", {"run.sh": "x=1\n"})
    asked = [
        Fact(id="none", title="", path="run.sh", pattern="y=(.)"),
        Fact(id="gone", title="", path="gone.sh", pattern="y", read="present"),
        Fact(id="link", title="", path="link.sh", pattern="x", read="count"),
        Fact(id="region", title="", path="run.sh", pattern="x", read="count", within=Region(start="^if", stop="^fi")),
        Fact(id="folder", title="", path="src/tasks", pattern=".*", read="folders"),
        Fact(id="odd", title="", path="run.sh", pattern="(x)=", read="integer"),
    ]
    found = read(tmp_path / "repo", commit, FactSet(name="x", title="x", source="x", facts=tuple(asked)))
    assert all(fact.value is None and fact.why for fact in found.facts.values())
    assert "no active line begins the region" in found.facts["region"].why


def test_counts_are_derived_from_places(tmp_path: Path) -> None:
    """A counted fact is derived from its active places, and the length of a list from the list."""
    found = read(tmp_path, seed.repository(tmp_path))
    derived, observed = derivations(found, "p.json", "v.json#/inputs/commit")
    documents = {"p.json": plain(found), "v.json": {"inputs": {"commit": 1}}}
    calculator = Calculator(documents, Derivations(derived=tuple(derived), observed=tuple(observed)))
    values = {entry.value: calculator.evaluate(entry) for entry in derived}
    assert values["p.json#/facts/ten_hour_jobs/value"] == 7
    assert values["p.json#/facts/evaluation_dirs/count"] == 7


def test_nothing_of_a_repository_is_run_or_believed(tmp_path: Path) -> None:
    """Hooks, a broken configuration, replaced objects and a filter of the repository change nothing and run nothing."""
    repo, trap = tmp_path / "repo", tmp_path / "trap"
    commit = seed.repository(repo)
    blob = seed.git(repo, "rev-parse", f"{commit}:src/run_task.sh").strip()
    other = seed.git(repo, "rev-parse", f"{commit}:src/commit_utils/commit.sh").strip()
    seed.git(repo, "replace", blob, other)
    (repo / ".gitattributes").write_text("*.sh filter=evil diff=evil\n", encoding="utf-8")
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {trap}\n", encoding="utf-8")
    evil.chmod(0o755)
    config = (
        f'[core]\n fsmonitor = {evil}\n hooksPath = {tmp_path}\n pager = {evil}\n[filter "evil"]\n smudge = {evil}\n'
    )
    config += f'[diff "evil"]\n textconv = {evil}\n[extensions]\n partialClone = o\n'
    config += f'[remote "o"]\n promisor = true\n url = ext::{evil}\n'
    (repo / ".git" / "config").write_text(config + "[broken\n", encoding="utf-8")
    found = read(repo, commit)
    assert found.facts["timeout_grace_minutes"].value == 5 and found.files["src/run_task.sh"].blob == blob
    with pytest.raises(DefinitionError, match="fetch it first"):
        read(repo, "1" * 40)
    assert not trap.exists()


def test_a_repository_is_left_as_it_was(tmp_path: Path) -> None:
    """Reading writes nothing into the repository, and works for a bare one and for a work tree of its own."""
    repo = tmp_path / "repo"
    commit = seed.repository(repo)
    seed.git(repo, "worktree", "add", "-q", str(tmp_path / "tree"), commit)
    seed.git(tmp_path, "clone", "-q", "--bare", str(repo), str(tmp_path / "bare"))
    before = sorted((path, path.stat().st_mtime_ns) for path in repo.rglob("*"))
    for place in (repo, tmp_path / "tree", tmp_path / "bare"):
        assert read(place, commit).facts["num_gpus_default"].value == 1
    assert sorted((path, path.stat().st_mtime_ns) for path in repo.rglob("*")) == before


@pytest.mark.parametrize("name", ["main", "HEAD", "d3496fa", "HEAD~1", "--help", ""])
def test_only_a_pinned_commit_will_do(tmp_path: Path, name: str) -> None:
    """A branch, a tag, a shortened id or an option in the commit's place is refused."""
    seed.repository(tmp_path)
    with pytest.raises(DefinitionError, match="not a pinned commit"):
        read(tmp_path, name)


def test_a_damaged_object_is_the_machine_s_fault() -> None:
    """Bytes that do not have the id they are asked for by are refused."""
    whole = Object("blob", b"x")
    assert checked(oid_of(whole), whole) is whole
    with pytest.raises(InfraError, match="damaged"):
        checked(oid_of(whole), Object("blob", b"y"))


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    """A plain folder is told to be no git repository."""
    with pytest.raises(DefinitionError, match="no git repository"):
        read(tmp_path, "1" * 40)


def test_a_repository_with_longer_ids_is_read(tmp_path: Path) -> None:
    """A repository whose ids are SHA-256 gives the same facts, with ids of 64 digits."""
    seed.git(tmp_path, "init", "-q", "--object-format=sha256")
    commit = seed.repository(tmp_path)
    found = read(tmp_path, commit)
    assert len(commit) == 64 == len(str(found.facts["mpi_hours"].blob)) and found.facts["mpi_hours"].value == 100


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200))
def test_no_tree_object_breaks_the_walk(data: bytes) -> None:
    """Any bytes in a tree's place are entries or a named error."""
    with suppress(PrillError):
        assert all(len(entry.oid) == 40 for entry in entries(data, 20))


@settings(max_examples=80, deadline=None)
@given(st.text(st.sampled_from("x =#\"'\\\n()\t$:"), max_size=60), st.sampled_from(["a.py", "a.sh"]))
def test_no_source_breaks_the_quoting(text: str, path: str) -> None:
    """Of any text, every line belongs to a statement that contains it, and a comment begins within its line."""
    source = SourceText(path, text.encode())
    for number, line in enumerate(source.lines, 1):
        whole = source.statement(number)
        assert whole.first <= number <= max(whole.last, number) and 0 <= source.active_until(number) <= len(line)
        assert whole.text == "\n".join(source.lines[whole.first - 1 : whole.last])


def test_quotes_hide_a_comment_s_sign() -> None:
    """A sign inside quotes or inside a word begins no comment; one behind a blank does."""
    assert comment_start('x="a # b" # c', "#") == 10
    assert comment_start("echo $# a#b", "#") == 11
    assert comment_start("#x", "#") == 0
