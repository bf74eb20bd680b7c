"""Run folders: whole files or none, one writer, and a state that is read off what exists."""

import json
import multiprocessing
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from prill.errors import DefinitionError, InfraError
from prill.folder import RunFolder, create, decode, folders, list_files, tree_digest, write_whole
from prill.record import Outcome
from samples import OUTCOME, SPEC, judgement, measurement, submission


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A planned run."""
    return create(tmp_path, SPEC)


def finish(folder: RunFolder) -> None:
    """Write all that the stages write."""
    folder.append("began", "solve")
    folder.write(folder.path / "outcome.json", OUTCOME)
    folder.write(folder.path / "submission.json", submission())
    folder.write(folder.next_numbered("measurements", "sums"), measurement())
    for judge in ("overlap", "lineage"):
        folder.write(folder.next_numbered("findings", judge), judgement(judge, judge))


def test_states(folder: RunFolder) -> None:
    """What exists is the state: planned, running while held, lost when let go, unfinished, done."""
    assert folder.read().state == "planned"
    folder.append("began", "solve")
    with folder.lock():
        assert folder.read().state == "running"
    assert folder.read().state == "lost"
    finish(folder)
    assert folder.read().state == "done"
    (folder.path / "findings" / "overlap.1.json").unlink()
    assert folder.read().state == "unfinished"


def test_agent_that_ended_is_not_lost(folder: RunFolder) -> None:
    """A solve whose agent ended but was not written up is unfinished, not lost."""
    folder.append("began", "solve")
    folder.append("ended", "solve")
    assert folder.read().state == "unfinished"


def test_again_is_beside(folder: RunFolder) -> None:
    """Measuring again adds a file, the newest counts, and numbers compare as numbers."""
    for number in range(11):
        folder.write(folder.next_numbered("measurements", "sums"), measurement(number / 20))
    names = [file.name for file in folder.numbered("measurements", "sums")]
    assert names[-2:] == ["sums.10.json", "sums.11.json"]
    newest = folder.measurement("sums")
    assert newest is not None
    assert newest.value == 0.5


def test_one_writer(folder: RunFolder) -> None:
    """A second process that wants the same run is told so."""
    with folder.lock(), pytest.raises(InfraError, match="another process is at work"), folder.lock():
        pass


def hold(path: Path, held: "multiprocessing.synchronize.Event") -> None:
    """Take the lock and die with it."""
    with RunFolder(path).lock():
        held.set()
        os.kill(os.getpid(), 9)


def test_lock_dies_with_its_holder(folder: RunFolder) -> None:
    """When the writer is killed, its lock is gone."""
    held = multiprocessing.Event()
    process = multiprocessing.Process(target=hold, args=(folder.path, held))
    process.start()
    process.join()
    assert held.is_set()
    assert not folder.locked()


def test_torn_events(folder: RunFolder) -> None:
    """A line that a crash cut is kept as `torn`, and the next event starts on a line of its own."""
    with folder.events_file.open("ab") as file:
        file.write(b'{"at": 1, "eve')
    folder.append("began", "solve")
    assert [event.event for event in folder.events()] == ["planned", "torn", "began"]


def test_half_made_folders_are_no_runs(tmp_path: Path, folder: RunFolder) -> None:
    """A folder that was being made, or holds no spec, is not taken for a run."""
    (tmp_path / ".half").mkdir()
    (tmp_path / "notes").mkdir()
    assert [found.path for found in folders(tmp_path)] == [folder.path]
    assert [found.path for found in folders(folder.path)] == [folder.path]
    assert folders(tmp_path / "nowhere") == []


def test_not_a_run_folder(tmp_path: Path) -> None:
    """Reading a folder that is no run says so in one line."""
    with pytest.raises(DefinitionError, match="not a run folder"):
        RunFolder(tmp_path).spec()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"schema": "prill/outcome/9"}', "schema 'prill/outcome/9', but this prill reads 'prill/outcome/1'"),
        ('{"schema": "prill/outcome/1", "ended": 3}', "ended"),
        ('{"schema": "prill/outc', "damaged JSON"),
        ("", "damaged JSON"),
        ("[]", "schema None"),
        ("\x00\xff", "damaged JSON"),
    ],
)
def test_bad_record(tmp_path: Path, text: str, words: str) -> None:
    """A damaged file, a wrong type or a newer schema is an error that names the file."""
    file = tmp_path / "outcome.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(DefinitionError) as caught:
        decode(file, Outcome)
    assert str(file) in str(caught.value)
    assert words in str(caught.value)


def test_write_whole(tmp_path: Path) -> None:
    """A file is replaced whole, and nothing is left beside it."""
    write_whole(tmp_path / "a", b"one")
    write_whole(tmp_path / "a", b"two")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a", b"two")]


def test_spec_survives(folder: RunFolder) -> None:
    """A spec reads back as it was decided, with the folder's own id."""
    assert folder.spec() == replace(SPEC, id=folder.id)
    assert json.loads((folder.path / "spec.json").read_text())["schema"] == "prill/spec/1"


def test_list_files(tmp_path: Path) -> None:
    """Regular files are listed with digests; links are not followed, and what is to be skipped is."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_bytes(b"x")
    (tmp_path / "skipped").write_bytes(b"y")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    [found] = list_files(tmp_path, skip=("skipped",))
    assert (found.path, found.bytes) == ("sub/a", 1)
    assert found.sha256 == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    with pytest.raises(InfraError, match="more than 1 files"):
        list_files(tmp_path, most=1)


def test_tree_digest(tmp_path: Path) -> None:
    """A tree's digest is that of the lines that sha256sum prints, whatever order the files came in."""
    for name in ("b", "a"):
        (tmp_path / name).write_bytes(b"x")
    files = list_files(tmp_path)
    assert tree_digest(files) == tree_digest(files[::-1])
    (tmp_path / "a").write_bytes(b"y")
    assert tree_digest(list_files(tmp_path)) != tree_digest(files)
