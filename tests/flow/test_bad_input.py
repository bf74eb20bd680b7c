"""What a person can get wrong, or a machine can lack: one clear line, an exit code, nothing lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prill.catalog import PACKAGE
from prill.folder import create
from samples import SPEC

SMOKE = (PACKAGE / "definitions" / "suites" / "smoke.toml").read_text()


def prill(*arguments: str | Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """One command, with another PATH if asked for."""
    return subprocess.run(
        [sys.executable, "-m", "prill.cli", *map(str, arguments)],
        env={**os.environ, **({"PATH": path} if path else {})},
        capture_output=True,
        text=True,
        timeout=120,
    )


def one_line(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The command's last word on standard error, which must be one line and no traceback."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("prill: ")]
    assert len(said) == 1, done.stderr
    return said[0]


def changed(folder: Path, old: str, new: str) -> Path:
    """A folder of definitions in which the smoke suite is changed."""
    assert old in SMOKE
    (folder / "suites").mkdir(parents=True)
    (folder / "suites" / "smoke.toml").write_text(SMOKE.replace(old, new))
    return folder


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--suite", "smok"), "no suite named 'smok'; did you mean 'smoke'?"),
        (("run", "--suite", "smoke", "--entrant", "honest"), "no entrant named 'honest'"),
        (("run", "--suite", "smoke", "--sandbox", "sand"), "no sandbox named 'sand'"),
        (("run", "--suite", "smoke", "--seeds", "0"), "at least 1"),
        (("run", "--suite", "smoke", "--seeds", "1", "--seed", "2"), "not both"),
        (("run",), "either --suite NAME or one run folder"),
        (("run", "nowhere"), "not a run folder"),
        (("show", "nowhere"), "not a run folder"),
        (("where", "gsm8kk"), "no definition or plug-in named"),
        (("run", "--suite", "smoke", "--definitions", "nowhere"), "no such folder of definitions"),
    ],
)
def test_wrong_words(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    """A wrong name or option is one line that says what is allowed, exit code 2, and makes no run folder."""
    runs = ("--runs", str(tmp_path / "runs")) if arguments[0] == "run" else ()
    assert words in one_line(prill(*arguments, *runs), 2)
    assert not list(tmp_path.glob("runs/*"))


def test_no_runs(tmp_path: Path) -> None:
    """Scoring a folder that is not there says how to make it."""
    assert "`prill run --suite smoke" in one_line(prill("score", "smoke", "--runs", tmp_path / "none"), 1)


def test_wrong_definition(tmp_path: Path) -> None:
    """A field of the wrong type is one line with file, field and what is expected."""
    folder = changed(tmp_path / "d", "hours = 0.05", 'hours = "long"')
    said = one_line(prill("run", "--suite", "smoke", "--definitions", folder, "--runs", tmp_path / "runs"), 2)
    assert "smoke.toml: Expected `float`, got `str` - at `$.budget.hours`" in said


def test_half_written_run(tmp_path: Path) -> None:
    """A damaged record is one line that names the file, and nothing is removed."""
    folder = create(tmp_path, SPEC)
    (folder.path / "outcome.json").write_text('{"schema": "prill/outc')
    assert "outcome.json: damaged JSON" in one_line(prill("score", "smoke", "--runs", tmp_path), 2)
    assert "outcome.json: damaged JSON" in one_line(prill("show", folder.path), 2)
    assert (folder.path / "outcome.json").exists()


def test_newer_schema(tmp_path: Path) -> None:
    """A run folder of a newer prill is refused by name."""
    folder = create(tmp_path, SPEC)
    spec = json.loads((folder.path / "spec.json").read_text())
    (folder.path / "spec.json").write_text(json.dumps({**spec, "schema": "prill/spec/9"}))
    assert "schema 'prill/spec/9', but this prill reads 'prill/spec/1'" in one_line(prill("show", folder.path), 2)


def test_no_bubblewrap(tmp_path: Path) -> None:
    """Without bubblewrap a run says how to get it, nothing is lost, and the run can be carried on later."""
    done = prill("run", "--suite", "smoke", "--entrant", "base-only", "--runs", tmp_path, path="/nowhere")
    assert "bubblewrap is not installed" in one_line(done, 1)
    assert "--sandbox local" in done.stderr
    [folder] = (entry for entry in tmp_path.iterdir() if (entry / "spec.json").exists())
    assert not (folder / "outcome.json").exists()
    assert "0 lost" in prill("plan", "smoke", "--entrant", "base-only", "--runs", tmp_path).stdout


def test_no_space(tmp_path: Path) -> None:
    """A disk with less room than the suite reserves stops the run before it begins."""
    folder = changed(tmp_path / "d", "disk_gb = 1.0", "disk_gb = 1e9")
    options = ("--definitions", folder, "--entrant", "empty-handed", "--runs", tmp_path / "runs")
    assert "reserves 1e+09 GB for a run" in one_line(prill("run", "--suite", "smoke", *options), 1)


def test_unwritable(tmp_path: Path) -> None:
    """A place that cannot be written to is one line with the place."""
    (tmp_path / "file").write_text("")
    said = one_line(prill("run", "--suite", "smoke", "--runs", tmp_path / "file" / "runs"), 1)
    assert "file/runs" in said
    assert (tmp_path / "file").read_text() == ""


def test_changed_model(tmp_path: Path) -> None:
    """A base model whose bytes are not the pinned ones stops the run and names both digests."""
    for part in ("base", "instruct"):
        shutil.copytree(PACKAGE / "smoke" / part, tmp_path / "d" / "smoke" / part)
    (tmp_path / "d" / "smoke" / "base" / "config.json").write_text("{}")
    options = ("--definitions", tmp_path / "d", "--entrant", "empty-handed", "--runs", tmp_path / "runs")
    assert "but the definition pins sha256:" in one_line(prill("run", "--suite", "smoke", *options), 1)


def test_the_machine_is_blamed_not_the_code(tmp_path: Path) -> None:
    """A run folder whose events cannot be written is one line that names the place, and no bug of ours."""
    folder = create(tmp_path, SPEC)
    folder.events_file.unlink()
    folder.events_file.mkdir()
    said = one_line(prill("run", folder.path), 1)
    assert "events.jsonl: Is a directory" in said
    assert "bug" not in said
