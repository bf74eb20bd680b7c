"""What is said about overlap: by the judge of a run, and by the command."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from prill import cli, plugins
from prill.items import items_digest
from prill.record import Finding
from prill.sockets import Evidence, Item
from samples import BENCHMARK, SPEC, run
from test_overlap import FORM, ITEMS, STORY, cached, chat

__all__ = ["cached"]


# --- the judge -----------------------------------------------------------------------------------------------


def judged(folder: Path, items: list[Item] = FORM, offered: dict[str, Path] | None = None) -> Finding:
    """The judge's finding on a run folder with that workspace."""
    (folder / "raw").mkdir(exist_ok=True)
    (folder / "workspace").mkdir(exist_ok=True)
    rows = [{"id": item.id, "question": item.question, "answer": item.answer} for item in items]
    (folder / "items.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    benchmark = replace(BENCHMARK, data=replace(BENCHMARK.data, count=len(items), digest=items_digest(items)))
    evidence = Evidence(
        run=run(spec=replace(SPEC, benchmarks=(benchmark,))),
        folder=folder,
        items={"sums": folder / "items.jsonl"},
        base=folder,
        siblings={},
        offered=offered or {},
    )
    [finding] = plugins.get("judges", "overlap")(evidence)
    assert isinstance(finding, Finding)
    return finding


@pytest.mark.parametrize(("kept", "verdict"), [(0, "kept"), (3, "kept"), (4, "broken"), (8, "broken")])
def test_tolerance(tmp_path: Path, kept: int, verdict: str) -> None:
    """Up to three items are tolerated, more break the rule, and each citation is the cited bytes with their digest."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "d.jsonl").write_text("\n".join(["noise", *(item.question for item in FORM[:kept])]))
    finding = judged(tmp_path)
    assert (finding.verdict, finding.numbers["items_found"]) == (verdict, kept)
    for cited, item in zip(finding.citations, FORM, strict=False):
        offset, length = cited.offset or 0, cited.length or 0
        data = (tmp_path / cited.file).read_bytes()[offset : offset + length]
        assert data.decode() == item.question.rstrip("?")
        assert cited.sha256 == hashlib.sha256(data).hexdigest()


def test_offered_data_may_be_trained_on(tmp_path: Path) -> None:
    """What also stands in data that a benchmark offers does not count; what does not stand there still does."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "train.jsonl").write_text("\n".join(item.question for item in FORM[:5]))
    (tmp_path / "workspace" / "d.jsonl").write_text("\n".join(item.question for item in FORM))
    assert judged(tmp_path).numbers["items_found"] == 8
    assert judged(tmp_path, offered={"train.jsonl": tmp_path / "train.jsonl"}).numbers["items_found"] == 3


def test_looking_is_allowed(tmp_path: Path) -> None:
    """Items that the agent only printed are counted apart and break nothing."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "stdout").write_text("\n".join(item.question for item in FORM))
    finding = judged(tmp_path)
    assert (finding.verdict, finding.numbers["items_only_printed"]) == ("kept", 8)


def test_unread_is_unknown(tmp_path: Path) -> None:
    """A file that the scanner cannot open makes the verdict unknown and is named."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "data.parquet").write_bytes(b"PAR1")
    finding = judged(tmp_path)
    assert finding.verdict == "unknown"
    assert "data.parquet" in finding.why


def test_a_few_likenesses_are_for_a_person(tmp_path: Path) -> None:
    """Some items with other numbers among hundreds are unknown, not broken; many are broken."""
    letters = str.maketrans("0123456789", "ghijklmnop")
    marks = [hashlib.sha256(str(n).encode()).hexdigest().translate(letters) for n in range(300)]
    words = [" ".join(mark[at : at + 6] for at in range(0, 54, 6)) for mark in marks]
    many = [
        Item(id=str(n), question=f"{STORY.question} He said {said} before tea.", answer="")
        for n, said in enumerate(words)
    ]
    (tmp_path / "workspace").mkdir()
    data = tmp_path / "workspace" / "d.jsonl"
    for count, verdict in ((5, "unknown"), (20, "broken")):
        changed = [item.question.replace("14", "15").replace("35", "36") for item in many[:count]]
        data.write_text("\n".join(chat(text) for text in changed))
        finding = judged(tmp_path, many)
        assert (finding.verdict, finding.numbers["items_found"]) == (verdict, count)


# --- the command ---------------------------------------------------------------------------------------------


@pytest.fixture
def asked(tmp_path: Path) -> tuple[Path, list[str]]:
    """A file for data, and a command line that looks for `ITEMS` in it."""
    rows = [{"id": item.id, "question": item.question, "answer": item.answer} for item in ITEMS]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = tmp_path / "data.jsonl"
    data.write_text(chat("nothing of the kind"))
    return data, ["overlap", str(data), "--items", str(tmp_path / "items.jsonl")]


def test_command(asked: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """0 where all is clean, 1 with both quotes where an item is found, 3 where something could not be read."""
    data, line = asked
    assert cli.main(line) == 0
    assert "0 of 10 test items found" in capsys.readouterr().out
    data.write_text(chat(STORY.question))
    assert cli.main(line) == 1
    told = capsys.readouterr().out
    assert "1 of 10 test items found" in told and "row 1 messages[0].content" in told
    assert told.count("A shipwright in Marstal") == 2
    data.write_bytes(b"PK\x03\x04 no archive")
    assert cli.main(line) == 3
    assert "not read: data.jsonl" in capsys.readouterr().err


def test_command_json(asked: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """With --json each place is one line."""
    data, line = asked
    data.write_text(chat(STORY.question) + "\n" + chat(FORM[0].question))
    assert cli.main([*line, "--json"]) == 1
    rows = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [(row["item"], row["row"], row["kind"]) for row in rows] == [("story", 1, "verbatim"), ("i1", 2, "verbatim")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: line[:2], "give either --against"),
        (lambda line: [*line, "--against", "gsm8k"], "give either --against"),
        (lambda line: ["overlap", "/nowhere/at/all", *line[2:]], "no such file"),
        (lambda line: [*line[:3], line[1]], "no text named question"),
        (lambda line: [*line[:2], "--against", "gsm9k"], "did you mean 'gsm8k'"),
        (lambda line: [*line, "--tokenizer", line[1]], "not a tokenizer"),
    ],
)
def test_command_wrong_use(
    asked: tuple[Path, list[str]],
    change: Callable[[list[str]], list[str]],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A wrong command is one line that says what is wrong, and exit code 2."""
    assert cli.main(change(asked[1])) == 2
    assert said in capsys.readouterr().err
