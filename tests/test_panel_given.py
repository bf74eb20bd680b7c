"""What an agent that judges may open, and what two judgements say differently."""

import os
import stat
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from hearings import PANEL, finished
from prill.panel.changes import changes
from prill.panel.given import MOST_OF_ONE, copy
from prill.record import Finding, Judgement


def test_copies_are_plain_bounded_and_cannot_be_started(tmp_path: Path) -> None:
    """Regular files only, under their own names, cut at a bound, without the right to be executed; what is left out is
    listed; verdicts, scores, models and hidden folders are not there."""
    files = {"run.sh": b"#!/bin/sh\n", "big.jsonl": b"x" * (MOST_OF_ONE + 10), "final_model/config.json": b"{}"}
    run = finished(
        tmp_path / "runs", ["true"], {**files, "w.safetensors": b"w", "a\nb.py": b"1", "findings/f.py": b"1"}
    )
    (run.workspace / "run.sh").chmod(0o4755)
    (run.workspace / "link").symlink_to("/etc/passwd")
    os.mkfifo(run.workspace / "pipe")
    for name in ("findings", "measurements", ".solving"):
        (run.path / name).mkdir()
        (run.path / name / "secret.1.json").write_text("{}")
    (run.path / ".hidden.json").write_text("{}")
    to = tmp_path / "to"
    to.mkdir()
    notes = copy(run.path, to)
    there = {str(file.relative_to(to)): file for file in to.rglob("*") if file.is_file()}
    assert {"workspace/run.sh", "workspace/big.jsonl", "workspace/findings/f.py", "trajectory.json"} < set(there)
    assert not [name for name in there if "secret" in name or "passwd" in name or "link" in name or "hidden" in name]
    assert not [name for name in there if "final_model" in name or name.endswith(".safetensors")]
    modes = {stat.S_IMODE(file.stat().st_mode) for name, file in there.items() if name != "NOT-WHOLE.txt"}
    assert modes == {0o444}
    assert there["workspace/big.jsonl"].stat().st_size == MOST_OF_ONE
    listed = there["NOT-WHOLE.txt"].read_text()
    assert listed.splitlines() == notes and "big.jsonl: its first" in listed and "a\\u000ab.py: not given" in listed


def made(verdict: Any, votes: list[str], panel: Any = PANEL, **more: Any) -> Judgement:
    """A panel's judgement."""
    numbers = {"votes": [{"vote": number, "said": said} for number, said in enumerate(votes, 1)]}
    found = Finding(rule="lookup", verdict=verdict, why=f"because {verdict}", numbers=numbers)
    asked = {"panel": to_builtins(panel), "prompts": more.pop("prompts", "sha256:1")}
    return Judgement(judge="panel", findings=(found,), isolated=True, wall_seconds=1, by="models", asked=asked, **more)


def test_a_difference_is_told_with_its_circumstances() -> None:
    """Another verdict is counted and told with both reasons; another model, vote rule or wording is named."""
    [question] = PANEL.questions
    other = replace(
        PANEL, model="newer", questions=(replace(question, votes=3, combine="majority", words="Did it, now?"),)
    )
    lines, differ = changes(made("kept", ["kept"]), made("broken", ["broken"] * 3, other, prompts="sha256:2"))
    text = "\n".join(lines)
    assert differ == 1 and "lookup: kept → broken" in text
    assert "- because kept" in text and "+ because broken" in text
    assert "panel.model: 'canned' → 'newer'" in text and "question look: votes: 1 → 3" in text
    assert "question look: words" in text and "digest of words" in text and "Did it, now?" not in text


def test_votes_that_moved_are_told_where_the_verdict_did_not() -> None:
    """Three to none and two to one are the same verdict, and not the same vote."""
    lines, differ = changes(made("kept", ["kept"] * 3), made("kept", ["kept", "broken", "kept"]))
    assert differ == 0 and "as before (votes" in lines[-1]
    lines, differ = changes(made("kept", ["kept"] * 3), made("kept", ["kept"] * 3))
    assert lines == ["  lookup: kept, as before"]


def test_a_rule_that_only_one_speaks_of_is_a_difference() -> None:
    """No word is not kept."""
    _, differ = changes(made("kept", ["kept"]), replace(made("kept", ["kept"]), findings=()))
    assert differ == 1
