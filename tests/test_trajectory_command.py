"""`prill trajectory` shows and searches steps, and takes secrets out of traces, safely."""

import io
import json
from pathlib import Path

import msgspec
import pytest

from prill.cli import main
from prill.folder import RunFolder, create, write_whole
from prill.trajectory import forms, steps
from prill.trajectory.atif import trajectory
from samples import SPEC
from test_trajectory import STREAMS, claude, raw

HIDDEN = "curl evil.example\recho hi"
KEY = "sk-ant-api03-FAKE0FAKE0FAKE0FAKE0"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run whose agent is written up: a stream with a hidden command, colours and a long output."""
    folder = create(tmp_path / "runs", SPEC)
    long = claude(
        "user", {"type": "tool_result", "tool_use_id": "t9", "content": "\x1b[31mred\x1b[0m\n" + "row\n" * 40}
    )
    sly = claude("assistant", {"type": "tool_use", "id": "t9", "name": "Bash", "input": {"command": HIDDEN}})
    data = raw([*STREAMS["claude_code"][:4], sly, long])
    folder.raw.mkdir()
    folder.stdout.write_bytes(data)
    document = trajectory(SPEC.id, "claude_code", None, None, steps("claude_code", io.BytesIO(data)))
    write_whole(folder.trajectory, msgspec.json.encode(document))
    return folder


def test_steps_are_shown_by_number_and_kind(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """A range of numbers and a kind pick steps, and each is shown with its number, kind and bytes."""
    assert main(["trajectory", "show", str(run.path), "--kind", "command", "--to", "3"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("step 3 · command · Bash · bytes ") and "ls -la" in shown and shown.count("step ") == 1


def test_long_texts_are_cut_unless_asked_for(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not shown of a long text is counted, and --full or the step's own number shows all of it."""
    main(["trajectory", "show", str(run.path), "--kind", "result"])
    assert "… 30 more lines (--full)" in capsys.readouterr().out
    for more in (["--full"], ["--step", "6"]):
        main(["trajectory", "show", str(run.path), *more])
        assert capsys.readouterr().out.count("row") == 40


def test_a_terminal_gets_nothing_that_it_obeys(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Colours of output are gone, and a command behind a carriage return is shown with it."""
    main(["trajectory", "show", str(run.path), "--full"])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "\r" not in shown and "red" in shown and "curl evil.example␍echo hi" in shown


def test_what_is_found_is_told_with_its_step(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """A search prints number, kind and line, as text or JSON, and its exit code says whether anything was found."""
    assert main(["trajectory", "search", str(run.path), "EVIL|never", "--ignore-case"]) == 0
    assert capsys.readouterr().out == "5 command: curl evil.example␍echo hi\n"
    assert main(["trajectory", "search", str(run.path), "ls -la", "--plain", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {"step": 3, "kind": "command", "seconds": None, "line": 1, "text": "ls -la"}
    assert main(["trajectory", "search", str(run.path), "l.*a", "--plain"]) == 1
    assert main(["trajectory", "search", str(run.path), "ls", "--kind", "result"]) == 1


def test_a_pattern_that_runs_away_is_stopped(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """A pattern that would take for ever ends with one line that says what to do, and a broken one too."""
    (run.path / "trajectory.json").unlink()
    run.stdout.write_bytes(b"a" * 5000 + b"\n")
    assert main(["trajectory", "search", str(run.path), "(a+)+b", "--seconds", "0.3"]) == 2
    assert "takes longer than 0.3 s" in capsys.readouterr().err
    assert main(["trajectory", "search", str(run.path), "(("]) == 2
    assert "no regular expression" in capsys.readouterr().err


def test_a_run_that_is_not_written_up_is_read_from_its_output(
    run: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """While an agent is at work, its raw output is shown by its own reader, and before it nothing is there to show."""
    run.trajectory.unlink()
    run.stdout.write_bytes(b'{"kind":"command","text":"make"}\n')
    assert main(["trajectory", "show", str(run.path)]) == 0
    assert "step 1 · command" in capsys.readouterr().out
    run.stdout.unlink()
    assert main(["trajectory", "show", str(run.path)]) == 2
    assert "nothing was printed yet" in capsys.readouterr().err


def test_a_step_that_is_not_there_is_said_so(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """A number out of range is told with the range, and two ways of picking at once are refused."""
    assert main(["trajectory", "show", str(run.path), "--step", "99"]) == 2
    assert "steps 1 to 6" in capsys.readouterr().err
    assert main(["trajectory", "show", str(run.path), "--step", "1", "--from", "2"]) == 2


def test_secrets_are_taken_out_of_a_trace(
    run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both forms lose known values and shapes, counts are printed and values are not, and nothing is overwritten."""
    monkeypatch.setenv("MY_SECRET", "zx81-local-value")
    spoken = claude("assistant", {"type": "text", "text": f"key {KEY} and zx81-local-value"})
    run.stdout.write_bytes(raw([*STREAMS["claude_code"], spoken]))
    clean, text = tmp_path / "clean.jsonl", tmp_path / "clean.txt"
    command = ["trajectory", "redact", str(run.stdout), "--to", str(clean), "--readable", str(text)]
    assert main([*command, "--secret", "MY_SECRET", "--agent", "claude_code"]) == 0
    told = capsys.readouterr().out
    for kept in (clean.read_text(), text.read_text(), told):
        assert KEY[:16] not in kept and "zx81" not in kept
    assert "1  MY_SECRET" in told and "1  shape sk-" in told and "ls -la" in text.read_text()
    assert [json.loads(line)["type"] for line in clean.read_text().splitlines()][-1] == "assistant"
    assert main(command) == 2 and "nothing is overwritten" in capsys.readouterr().err
    assert main([*command, "--secret", "NOT_SET_AT_ALL"]) == 2


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_blocks_of_any_size_give_the_same(size: int) -> None:
    """A secret that is wrapped over lines is found wherever a block ends, and no byte of anything else is lost."""
    secret = "zx81-local-value-0123456789"
    data = b"one\ntwo " + secret[:7].encode() + b"\n" + secret[7:].encode() + b" three\r\n\xff\nfour" + b"\nx" * 50
    redactor = forms.Redactor({"NAME": secret})
    assert b"".join(forms.blocks(io.BytesIO(data), redactor, size)) == (
        b"one\ntwo [NAME]\n three\r\n\xff\nfour" + b"\nx" * 50
    )
