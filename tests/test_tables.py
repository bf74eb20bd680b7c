"""What `score`, `diff` and `import` print: every format, one cell down to its files, and what changed."""

import csv
import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from prill.cli import main
from prill.folder import create_all
from prill.score import board
from prill.scoring.changes import changes, lines
from prill.scoring.explain import facts
from prill.standings import Board
from prill.tables import as_csv, as_json, as_markdown
from samples import SPEC, SUITE, judgement, run
from trees import whole

Printed = pytest.CaptureFixture[str]


def boards() -> tuple[Board, Board]:
    """A board before and after a run was flagged."""
    guilty = run(judgements=(judgement("overlap", "contamination", "broken", "items in data.jsonl"),
                             judgement("lineage", "lineage")))  # fmt: skip
    return board(SUITE, [SPEC], [run()], digest="sha256:a"), board(SUITE, [SPEC], [guilty], digest="sha256:a")


def test_csv_keeps_every_digit() -> None:
    """The CSV has a line for each cell, with every digit, and an empty field beside the reason where there is none."""
    [row] = csv.DictReader(io.StringIO(as_csv(board(SUITE, [SPEC], [run(value=1 / 3)]))))
    assert float(row["value"]) == 1 / 3 and row["state"] == "measured"
    [none] = csv.DictReader(io.StringIO(as_csv(board(SUITE, [SPEC], []))))
    assert (none["value"], none["state"], none["why"]) == ("", "missing", "no run yet")


def test_markdown() -> None:
    """The Markdown table has a row for each entrant and the ledger's totals."""
    text = as_markdown(boards()[0])
    assert "| 1 | ada | 0.500 (n=1) |" in text and "1 attempts, 1 count" in text


def test_what_changed() -> None:
    """A diff names the headline and the cell that changed, with the new reason; equal boards have no change."""
    before, after = boards()
    assert lines(changes(before, after)) == [
        "ada headline: 0.500000 (n=1) → 0.250000 (n=1)  (1 cells differ)",
        "ada tiny/sums/0: measured 0.500000 → base 0.250000  (contamination: items in data.jsonl)",
    ]
    assert lines(changes(before, before)) == ["no change"]
    gone = replace(after, standings=(), suite_digest="sha256:b")
    assert [change.after for change in changes(before, gone)] == ["absent", "sha256:b"]
    assert [change.before for change in changes(gone, before)] == ["absent", "sha256:b"]


def test_each_cause_of_a_change_is_told() -> None:
    """Another run, another measurement of the same run and a cell that only one has are told apart."""
    one, again, other = (board(SUITE, [SPEC], [made]) for made in (run(), run(value=0.75), run(id="r2", value=0.75)))
    assert lines(changes(one, again))[1].startswith("ada tiny/sums/0: measured 0.500000 → measured 0.750000")
    assert "measured again: 0.75 instead of 0.5" in lines(changes(one, again))[1]
    assert "run r2 instead of r1" in lines(changes(one, other))[1]
    [row] = one.standings
    bare = replace(one, standings=(replace(row, cells=(), score=None, why="no run yet"),))
    assert lines(changes(one, bare)) == [
        "ada headline: 0.500000 (n=1) → no score  (1 cells differ)",
        "ada tiny/sums/0: measured 0.500000 → no such cell  (the cell is in one of the two only)",
    ]


def test_a_cell_says_what_it_adds_and_why_it_adds_nothing() -> None:
    """A cell is told on the suite's scale before it was clamped, and without a headline the reason stands there."""
    scaled = replace(SUITE, score=replace(SUITE.score, scale="floor-to-ceiling"))
    [row] = board(scaled, [SPEC], [run(value=0.1)]).standings
    told = facts(scaled, row.cells[0], row)
    assert "on the floor-to-ceiling scale -0.2000 before clamping" in told
    [row] = board(SUITE, [SPEC], []).standings
    assert any(line.startswith("no headline: no score") for line in facts(SUITE, row.cells[0], row))


def test_diff_command(tmp_path: Path, capsys: Printed) -> None:
    """`prill diff` reads two files of standings; a file of another kind is one line and exit code 2."""
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, made in zip(files, boards(), strict=True):
        file.write_text(as_json(made))
    assert main(["diff", *map(str, files)]) == 0
    assert "0.500000 (n=1) → 0.250000" in capsys.readouterr().out
    files[1].write_text("{}")
    assert main(["diff", *map(str, files)]) == 2
    assert "prill/standings/1" in capsys.readouterr().err


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run folders of two whole roots, imported."""
    place = tmp_path_factory.mktemp("imported")
    whole(place / "tree")
    whole(place / "tree", "codex_gpt-9_10h_run1", first=1, accuracy=0.25)
    assert main(["import", "posttrainbench", str(place / "tree"), "--suite", "posttrainbench-1.1",
                 "--runs", str(place / "runs"), "--to", str(place / "report.json")]) == 0  # fmt: skip
    return place


def test_import_command(imported: Path) -> None:
    """`prill import` keeps its report, in which the roots, runs and faults of the tree are counted."""
    report = json.loads((imported / "report.json").read_text())
    assert (report["schema"], report["made"], report["faults"]) == ("prill/import/1", 56, [])


def test_score_formats(imported: Path, capsys: Printed) -> None:
    """`prill score` gives the same headline as JSON, CSV, Markdown and a table, with what it hangs on."""
    asked = ["score", "posttrainbench-1.1", "--runs", str(imported / "runs"), "--partial", "--resamples", "200"]
    printed = {}
    for form in ("json", "csv", "md", "table"):
        assert main([*asked, "--format", form]) == 0
        printed[form] = capsys.readouterr().out
    rows = json.loads(printed["json"])["standings"]
    assert [row["score"] for row in rows] == [pytest.approx(0.5), pytest.approx(0.25)]
    assert rows[0]["interval"]["parts"] == ["stderr"] and rows[0]["ranks"] == [1, 1]
    assert rows[0]["overview"]["usd"] == {"mean": 1.5, "known": 28, "unknown": 0, "share": None}
    assert len(printed["csv"].splitlines()) == 1 + 2 * 2 * 28
    assert "What the headlines hang on" in printed["md"] and "detectable" in printed["table"]


def test_no_headline_with_a_hole(imported: Path, capsys: Printed) -> None:
    """Without `--partial` a suite of two seeds has no headline for entrants with one, and says what is missing."""
    assert main(["score", "posttrainbench-1.1", "--runs", str(imported / "runs"), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["standings"]
    assert [row["score"] for row in rows] == [None, None]
    assert rows[0]["why"].startswith("no score: 28 of 56 cells have no value")


def test_explain(imported: Path, capsys: Printed) -> None:
    """One cell is walked down to its run's files with their digests; a cell that is not there is told with its like."""
    name = "codex_gpt-9/qwen3-4b-base/gsm8k"
    asked = ["score", "posttrainbench-1.1", "--runs", str(imported / "runs"), "--partial", "--explain"]
    assert main([*asked, name]) == 0
    text = capsys.readouterr().out
    assert f"{name}, seed 0: 0.25 (its own measurement)" in text
    assert "imported/judgement_api.json  sha256:" in text and "weight 0.0935882347031865" in text
    assert main([*asked, name.replace("gsm8k", "gsm8")]) == 2
    assert f"did you mean '{name}'" in capsys.readouterr().err


def test_an_import_is_whole_or_not(tmp_path: Path) -> None:
    """Where one run folder of an import cannot be filled, none is there."""

    def broken(folder: object) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        create_all(tmp_path, [(SPEC, lambda folder: None), (SPEC, broken)])
    assert list(tmp_path.iterdir()) == []
