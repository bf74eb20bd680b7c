"""What lies on a published site: copies that match their digests, links that open, and nothing else."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from prill.errors import DefinitionError
from prill.folder import RunFolder
from prill.pages import Copy
from prill.publish import CAP, MARKER, publish
from prill.record import Citation, Run
from prill.score import board as board_of
from prill.standings import Board
from test_pages import HOSTILE, SHA, SUITE, Page, run_of

CITED = (
    "workspace/page.html",
    "workspace/link",
    "../outside",
    "submission/model.safetensors",
    "raw/stdout",
    "/etc/passwd",
)


def written(parent: Path, run: Run) -> RunFolder:
    """A run folder with these records, and files of an agent that means ill."""
    folder = RunFolder(parent / run.spec.id)
    for name in ("raw", "workspace", "submission", "measurements", "findings"):
        (folder.path / name).mkdir(parents=True)
    for name, record in (("spec", run.spec), ("outcome", run.outcome), ("submission", run.submission)):
        folder.write(folder.path / f"{name}.json", record)
    for made in run.measurements:
        folder.write(folder.next_numbered("measurements", made.benchmark), made)
    for judgement in run.judgements:
        folder.write(folder.next_numbered("findings", judgement.judge), judgement)
    folder.append("began", "solve")
    folder.append("ended", "solve")
    folder.stdout.write_bytes(b"<script>alert(1)</script>\n" * (CAP // 26 + 2))
    folder.stderr.write_bytes(b"")
    folder.prompt_file.write_text("do it")
    step: dict[str, Any] = {
        "step_id": 1,
        "source": "agent",
        "message": HOSTILE,
        "extra": {"kind": "other", "length": 9},
    }
    folder.trajectory.write_bytes(msgspec.json.encode({"steps": [step]}))
    (folder.path / ".outcome.json.77").write_text("half")
    (folder.workspace / "page.html").write_text(HOSTILE)
    (folder.workspace / "secret.py").write_text("uncited")
    (folder.workspace / "link").symlink_to("/etc/hostname")
    (folder.submission_files / "model.safetensors").write_bytes(b"weights")
    return folder


def cheater() -> Run:
    """A run whose judge cites every kind of file."""
    run = run_of("copycat", "broken")
    finding = run.judgements[0].findings[0]
    cites = tuple(Citation(file=file, offset=0, length=9, sha256=SHA) for file in CITED)
    whole = replace(run.judgements[0], findings=(replace(finding, citations=cites),))
    return replace(run, judgements=(whole,))


def board_for(*runs: Run) -> Board:
    return board_of(SUITE, [run.spec for run in runs], runs, digest=f"sha256:{SHA}")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Path]:
    """A run folder and the site made from it."""
    home = tmp_path_factory.mktemp("publish")
    run = cheater()
    folder = written(home / "runs", run)
    return folder, publish(board_for(run), [folder], home / "site")


def manifest(made: tuple[RunFolder, Path]) -> dict[str, Copy]:
    folder, site = made
    copies = msgspec.json.decode((site / "runs" / folder.id / "files.json").read_bytes(), type=list[Copy])
    return {copy.path: copy for copy in copies}


def test_every_link_opens(made: tuple[RunFolder, Path]) -> None:
    """Each link of each page leads to a file of the site, and each anchor to a place on its page."""
    from urllib.parse import unquote

    _, site = made
    pages = {page: Page(page.read_text()) for page in site.rglob("*.html")}
    assert len(pages) == 2
    for page, parsed in pages.items():
        for _, link in parsed.links:
            if not link.startswith("data:"):
                target, _, anchor = link.partition("#")
                goal = (page.parent / unquote(target)).resolve() if target else page
                assert goal.is_file() and goal.is_relative_to(site), link
                assert not anchor or anchor in pages[goal].ids, link


def test_copies_match_their_digests(made: tuple[RunFolder, Path]) -> None:
    """Every published file has the digest that the manifest says, and so has the file that it was copied from."""
    folder, site = made
    listed = manifest(made)
    here = site / "runs" / folder.id
    for copy in listed.values():
        assert copy.sha256 == hashlib.sha256((folder.path / copy.path).read_bytes()).hexdigest()
        if copy.published:
            assert copy.kept_sha256 == hashlib.sha256((here / copy.published).read_bytes()).hexdigest()
    found = {file.relative_to(here).as_posix() for file in here.rglob("*") if file.is_file()} - {"files.json"}
    assert found == {copy.published for copy in listed.values() if copy.published}


def test_what_is_published(made: tuple[RunFolder, Path]) -> None:
    """Records and cited files are published; weights, uncited files, links and paths that climb out are not."""
    listed = manifest(made)
    assert {"spec.json", "outcome.json", "events.jsonl", "trajectory.json", "prompt.md", "raw/stderr"} <= set(listed)
    assert listed["submission/model.safetensors"].why == "weights are not published"
    assert listed["submission/model.safetensors"].published is None
    assert not {"workspace/link", "workspace/secret.py", "../outside", "/etc/passwd", ".outcome.json.77"} & set(listed)


def test_nothing_of_an_agent_is_served_as_a_page(made: tuple[RunFolder, Path]) -> None:
    """Raw output and an agent's HTML are published as `.txt`, and raw output only up to the cap, which is said."""
    folder, site = made
    listed = manifest(made)
    assert listed["workspace/page.html"].published == "workspace/page.html.txt"
    stdout = listed["raw/stdout"]
    assert (stdout.published, stdout.kept) == ("raw/stdout.txt", CAP)
    assert f"cut at {CAP:,} of {stdout.bytes:,} bytes" in (site / "runs" / f"{folder.id}.html").read_text()


def test_a_site_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    """A second site takes the place of the first and leaves nothing beside; a stranger's folder is refused whole."""
    run = cheater()
    folder = written(tmp_path / "runs", run)
    site = tmp_path / "site"
    publish(board_for(run), [folder], site)
    (site / "old.txt").write_text("old")
    assert publish(board_for(run), [folder], site) == site
    assert (site / MARKER).is_file() and not (site / "old.txt").exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["runs", "site"]
    (site / MARKER).unlink()
    with pytest.raises(DefinitionError, match="not a prill site"):
        publish(board_for(run), [folder], site)
    assert (site / "index.html").is_file()


def test_a_site_is_not_made_inside_a_run(tmp_path: Path) -> None:
    """A target inside a run folder is refused, since a site is not evidence."""
    folder = written(tmp_path, cheater())
    with pytest.raises(DefinitionError, match="inside the run folder"):
        publish(board_for(cheater()), [folder], folder.path / "site")


def test_a_failure_leaves_the_old_site(tmp_path: Path) -> None:
    """When a run folder cannot be read, the site that stood stays as it was and nothing lies beside it."""
    run = cheater()
    folder = written(tmp_path / "runs", run)
    site = publish(board_for(run), [folder], tmp_path / "site")
    before = (site / "index.html").read_text()
    (folder.path / "outcome.json").write_text("{")
    with pytest.raises(DefinitionError, match="damaged JSON"):
        publish(board_for(run), [folder], site)
    assert (site / "index.html").read_text() == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["runs", "site"]


def test_only_runs_of_the_suite_are_published(tmp_path: Path) -> None:
    """Runs of another suite that lie in the same folder have no page on this site."""
    run = cheater()
    other = replace(run, spec=replace(run.spec, id="other", suite="another"))
    folders = [written(tmp_path / "runs", run), written(tmp_path / "runs", other)]
    site = publish(board_for(run), folders, tmp_path / "site")
    assert [page.name for page in (site / "runs").glob("*.html")] == [f"{run.spec.id}.html"]
