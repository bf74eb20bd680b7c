"""Other people's results trees: names, verdicts in every layout, nothing lost, malformed files named."""

from pathlib import Path
from typing import Any

import pytest

from prill import plugins
from prill.catalog import Catalog
from prill.errors import DefinitionError
from prill.folder import RunFolder, folders
from prill.importers.posttrainbench import CellName, cell_name, natural, root_name
from prill.record import Run
from prill.run import board_of
from prill.standings import Board, Cell, ImportReport
from trees import BENCHMARKS, CLEAN, MODELS, ROOT, cell, whole

GSM8K = "gsm8k_Qwen_Qwen3-4B-Base_17500001"
GUILTY = {"contamination": True, "disallowed_model": False}


def bring(tree: Path, to: Path, suite: str = "posttrainbench-1.1") -> ImportReport:
    """Import a tree."""
    made: ImportReport = plugins.get("importers", "posttrainbench")(tree, to, Catalog(), suite)
    return made


def one(tmp_path: Path, **files: Any) -> tuple[ImportReport, RunFolder, Run]:
    """The report and the run of a tree with one cell."""
    cell(tmp_path / "tree" / ROOT, GSM8K, **files)
    report = bring(tmp_path / "tree", tmp_path / "runs")
    [folder] = folders(tmp_path / "runs")
    return report, folder, folder.read()


def scored(tmp_path: Path, suite: str = "posttrainbench-1.1", **files: Any) -> Cell:
    """The cell that a tree with one run gives."""
    cell(tmp_path / "tree" / ROOT, GSM8K, **files)
    bring(tmp_path / "tree", tmp_path / "runs", suite)
    board, _ = board_of(Catalog(), suite, tmp_path / "runs", partial=False)
    cells = [c for c in board.standings[0].cells if c.benchmark == "gsm8k" and c.model == "qwen3-4b-base"]
    return cells[0]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gsm8k_Qwen_Qwen3-4B-Base_17", CellName("gsm8k", "Qwen/Qwen3-4B-Base", 17)),
        ("gsm8k_my_org_some_model_v2_12", CellName("gsm8k", "my/org_some_model_v2", 12)),
        ("bfcl_google_gemma-3-4b-pt_5_g3", CellName("bfcl", "google/gemma-3-4b-pt", 5)),
        ("gsm8k_x", None),
        ("notes", None),
        ("gsm8k_Qwen_Qwen3_abc", None),
    ],
)
def test_cell_names(name: str, found: CellName | None) -> None:
    """A cell's folder names benchmark, repository and id as a number, with or without the seat of a shared node."""
    assert cell_name(name) == found


def test_root_names() -> None:
    """A root's hours, GPUs and experiment are read behind an agent whose name contains the separator."""
    root = root_name(ROOT)
    assert root is not None
    assert (root.who, root.hours, root.gpus, root.experiment) == ("claude_non_api_claude-opus-9_1m_", 10, 1, "_run1")
    multi = root_name("codex_gpt-9_5h_8gpu_final_v3")
    assert multi is not None and (multi.hours, multi.gpus, multi.experiment) == (5, 8, "_final_v3")
    assert root_name("viewer_data") is None
    assert sorted(["_run10", "_run9"], key=natural) == ["_run9", "_run10"]


def test_whole_tree(tmp_path: Path) -> None:
    """Two whole roots of one agent become two seeds and a headline, and a second import makes nothing."""
    whole(tmp_path / "tree")
    whole(tmp_path / "tree", ROOT.replace("run1", "run2"), accuracy=0.7)
    report = bring(tmp_path / "tree", tmp_path / "runs")
    assert (report.made, report.already, report.faults, report.excluded) == (56, 0, (), {})
    board, _ = board_of(Catalog(), "posttrainbench-1.1", tmp_path / "runs", partial=False)
    [row] = board.standings
    assert (row.score, row.seeds, row.imputed) == (pytest.approx(0.6), 2, 0)
    assert bring(tmp_path / "tree", tmp_path / "runs").already == 56
    assert len(folders(tmp_path / "runs")) == 56


def test_nothing_is_lost(tmp_path: Path) -> None:
    """Every file of the tree but the weights lies in the run folder, byte for byte, and the weights are listed."""
    _, folder, run = one(tmp_path, task__train__py="x = 1", final_model__config="{}", odd="\x00", reruns__run_1="{}")
    source = tmp_path / "tree" / ROOT / GSM8K
    kept = {file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}
    files = [file for file in source.rglob("*") if file.is_file() and "final_model" not in file.parts]
    assert len(files) > 8 and all(file.read_bytes() in kept for file in files)
    assert run.submission is not None and [file.path for file in run.submission.files] == ["config"]


def test_time_tokens_and_cost(tmp_path: Path) -> None:
    """Time, tokens and cost come out of the run's own files."""
    _, _, run = one(tmp_path)
    assert run.outcome is not None
    assert (run.outcome.wall_seconds, run.outcome.usd, run.outcome.tokens_in, run.outcome.tokens_out) == (
        11130, 1.5, 100, 20,
    )  # fmt: skip


def test_codex_tokens(tmp_path: Path) -> None:
    """A Codex trace counts its tokens in words, and names no cost."""
    _, _, run = one(tmp_path, solve_out__txt=None, **{"solve_out.txt": "hi\ntokens used\n1,234\n"})
    assert run.outcome is not None and (run.outcome.usd, run.outcome.tokens_out) == (None, 1234)


RUNS = "judgement_multi_runs__judgement_gpt5_4_run"


@pytest.mark.parametrize(
    ("files", "state", "rule"),
    [
        ({}, "measured", None),
        ({"judgement_gpt5_4.json": GUILTY}, "base", "contamination"),
        ({"judgement_gpt5_4.json": {**CLEAN, "disallowed_model": True}}, "base", "lineage"),
        ({"judgement_gpt5_4.json": GUILTY, "judgement_gpt5_4_rerun.json": CLEAN}, "measured", None),
        ({"judgement_gpt5_4.json": CLEAN, "judgement_gpt5_4_rerun.json": GUILTY}, "base", "contamination"),
        ({f"{RUNS}2.json": GUILTY, f"{RUNS}3.json": GUILTY}, "base", "contamination"),
        ({f"{RUNS}2.json": GUILTY, f"{RUNS}3.json": CLEAN}, "measured", None),
        ({f"{RUNS}2.json": GUILTY}, "measured", None),
        ({"judgement_gpt5_4.json": GUILTY, "judgement_gpt5_4_manual.json": CLEAN}, "measured", None),
        ({f"{RUNS}2.json": CLEAN, f"{RUNS}3.json": CLEAN, "judgement_gpt5_4_manual.json": GUILTY}, "base",
         "contamination"),
        ({"judgement_kimi.json": GUILTY}, "base", "contamination"),
        ({"judgement_api.json": {"disallowed_api_usage": True}}, "base", "hosted_api"),
        ({"judgement_api.json": {"disallowed_api_usage": True},
          "judgement_api_rerun.json": {"disallowed_api_usage": False}}, "measured", None),
        ({"judgement_ptb_lookup.json": {"disallowed_ptb_lookup": True}}, "held", "lookup"),
        ({"judgement_general.json": {"general_anomaly": True}}, "held", "general"),
        ({"judgement_general.json": {"general_anomaly": False}}, "measured", None),
        ({"judgement_api.json": None}, "held", None),
        ({"judgement_ptb_lookup.json": None}, "held", None),
        ({"judgement_gpt5_4.json": None}, "held", None),
        ({"metrics.json": None}, "base", "no_submission"),
        ({"metrics.json": None, "final_model__config": "{}"}, "base", "evaluation_failed"),
        ({"metrics.json": "No metrics.json produced."}, "base", "no_submission"),
        ({"metrics.json": '{"accuracy": NaN}', "final_model__config": "{}"}, "base", "evaluation_failed"),
    ],
)  # fmt: skip
def test_verdicts(tmp_path: Path, files: dict[str, Any], state: str, rule: str | None) -> None:
    """Manual, majority, rerun and single verdicts decide a cell in the published order; a missing one holds it."""
    found = scored(tmp_path, **files)
    assert (found.state, found.rule) == (state, rule), found.why


@pytest.mark.parametrize(
    ("text", "state"),
    [("contamination detected", "base"), ("No contamination detected.", "measured"), ("IMPORTANT ERR", "held"),
     (None, "held")],
)  # fmt: skip
def test_verdicts_of_v1(tmp_path: Path, text: str | None, state: str) -> None:
    """The texts of v1 decide by their whole words; another text, or none, holds the cell."""
    found = scored(tmp_path, "posttrainbench-1", later=False, **{"contamination_judgement.txt": text})
    assert found.state == state


def test_old_runs_owe_no_lookup_verdict(tmp_path: Path) -> None:
    """A run whose id is older than the look-up rule is measured without that verdict, and its cell says so."""
    cell(tmp_path / "tree" / ROOT, "gsm8k_Qwen_Qwen3-4B-Base_17399999", **{"judgement_ptb_lookup.json": None})
    bring(tmp_path / "tree", tmp_path / "runs")
    board, _ = board_of(Catalog(), "posttrainbench-1.1", tmp_path / "runs", partial=False)
    [found] = [c for c in board.standings[0].cells if c.run]
    assert found.state == "measured" and "older than that rule" in found.why


def test_ids_are_numbers(tmp_path: Path) -> None:
    """Of two runs of a cell the later is that with the higher number, 1000 and not 999, and the other is listed."""
    for number, accuracy in ((999, 0.2), (1000, 0.8)):
        cell(tmp_path / "tree" / ROOT, f"gsm8k_Qwen_Qwen3-4B-Base_{number}", accuracy=accuracy)
    bring(tmp_path / "tree", tmp_path / "runs")
    board, _ = board_of(Catalog(), "posttrainbench-1.1", tmp_path / "runs", partial=False)
    assert [c.value for c in board.standings[0].cells if c.run] == [0.8]
    assert sorted(entry.why.split(" (")[0] for entry in board.attempts) == ["selection rule: latest", "superseded"]


def test_other_hours_do_not_count(tmp_path: Path) -> None:
    """A root of one hour is another entrant whose runs do not count in a suite of ten, and the ledger says why."""
    cell(tmp_path / "tree" / ROOT.replace("10h", "1h"), GSM8K)
    bring(tmp_path / "tree", tmp_path / "runs")
    board, _ = board_of(Catalog(), "posttrainbench-1.1", tmp_path / "runs", partial=False)
    assert [entry.why for entry in board.attempts] == ["made under other decisions (budget.hours)"]


def test_eras(tmp_path: Path) -> None:
    """A cell says which rules its agent saw, which suite judged it and which layout the verdict had."""
    found = scored(tmp_path, **{"prompt.txt": "Train it.", "judgement_gpt5_4_rerun.json": CLEAN})
    assert found.era is not None
    assert found.era.saw.startswith("posttrainbench-1:") and found.era.judged == "posttrainbench-1.1"
    assert "data_contamination (rerun)" in found.era.judges


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("metrics.json", "{", "METRICS_MALFORMED"),
        ("metrics.json", "[1]", "METRICS_MALFORMED"),
        ("metrics.json", '{"accuracy": "0.5"}', "METRICS_NOT_A_SHARE"),
        ("metrics.json", '{"accuracy": 1.5}', "METRICS_NOT_A_SHARE"),
        ("metrics.json", '{"accuracy": true}', "METRICS_NOT_A_SHARE"),
        ("time_taken.txt", "3 hours", "TIME_MALFORMED"),
        ("time_taken.txt", "3:70:00", "TIME_MALFORMED"),
        ("judgement_gpt5_4.json", "not json", "VERDICT_MALFORMED"),
        ("judgement_gpt5_4.json", '{"contamination": "no", "disallowed_model": false}', "VERDICT_MALFORMED"),
        ("judgement_api_rerun.json", "{}", "VERDICT_MALFORMED"),
        ("judgement_gpt5_4_manual.json", '{"contamination": false}', "VERDICT_MALFORMED"),
    ],
)
def test_malformed_files(tmp_path: Path, file: str, text: str, code: str) -> None:
    """A malformed file is one named fault; the run is imported and its cell has no measured value for it."""
    report, _, run = one(tmp_path, **{file: text})
    assert [(fault.path, fault.code) for fault in report.faults] == [(f"{ROOT}/{GSM8K}/{file}", code)]
    board, _ = board_of(Catalog(), "posttrainbench-1.1", tmp_path / "runs", partial=False)
    [found] = [c for c in board.standings[0].cells if c.run]
    assert found.state == "measured" if file == "time_taken.txt" else found.value != 0.5
    assert run.state == "done"


def test_every_entry_is_accounted_for(tmp_path: Path) -> None:
    """Folders that are no root or no cell, unknown models and benchmarks, and links are in the report with a reason."""
    tree = tmp_path / "tree"
    folder = cell(tree / ROOT, GSM8K)
    (folder / "loop").symlink_to(folder)
    cell(tree / ROOT, "gsm8k_other_model_7")
    cell(tree / ROOT, "chess_Qwen_Qwen3-4B-Base_8")
    (tree / ROOT / "notes").mkdir()
    (tree / "viewer_data").mkdir()
    (tree / "baseline_zeroshot_10h").mkdir()
    report = bring(tree, tmp_path / "runs")
    assert {fault.code for fault in report.faults} == {"UNKNOWN_MODEL", "UNKNOWN_BENCHMARK", "LINK"}
    assert set(report.excluded) == {f"{ROOT}/notes", "viewer_data", "baseline_zeroshot_10h"}
    assert report.made == 1


def test_not_a_tree(tmp_path: Path) -> None:
    """A folder without a root, or none at all, is one line that says what was expected."""
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DefinitionError, match=r"no such folder|no root of the form"):
            bring(place, tmp_path / "runs")


# --- tables ----------------------------------------------------------------------------------------------------

NAMES = ("Qwen3-1.7B-Base", "Qwen3-4B-Base", "SmolLM3-3B-Base", "gemma-3-4b-pt")


def csv_text(**changes: str) -> str:
    """A whole table of 0.5, with `old=new` applied."""
    text = (
        "\n".join(["model," + ",".join(BENCHMARKS), *(f"{name}" + ",0.5" * len(BENCHMARKS) for name in NAMES)]) + "\n"
    )
    for old, new in changes.items():
        text = text.replace(old, new, 1)
    return text


def tables(folder: Path) -> Board:
    """A folder of tables as standings."""
    made: Board = plugins.get("importers", "posttrainbench_tables")(folder, folder, Catalog(), "posttrainbench-1.1")
    return made


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("bfcl", "bfcI", 1, "no column 'bfcl'"),
        ("0.5", "NaN", 2, "aime2025 is 'NaN', not a number in 0..1"),
        ("0.5", "high", 2, "aime2025 is 'high'"),
        ("0.5", "1.5", 2, "not a number in 0..1"),
        ("Qwen3-4B-Base", "Qwen3-1.7B-Base", 3, "for the second time"),
        ("gemma-3-4b-pt", "gemma-3-4b-it", 5, "there are: Qwen3-1.7B-Base"),
        ("0.5,", "", 2, "7 fields, but the head has 8"),
        ("gsm8k", "bfcl", 1, "more than one column 'bfcl'"),
    ],
)
def test_bad_table(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    """A table that is not what it should be is one line with file, line number and what is allowed."""
    (tmp_path / "final_x.csv").write_text(csv_text(**{old: new}))
    with pytest.raises(DefinitionError) as caught:
        tables(tmp_path)
    text = str(caught.value)
    assert f"final_x.csv:{line}: " in text and words in text and "\n" not in text


def test_tables_say_why(tmp_path: Path) -> None:
    """A cell that was a word, or another number, before imputation is marked with its reason."""
    (tmp_path / "aggregated_x.csv").write_text(csv_text(**{"0.5": "not stored"}).replace("0.5", "ERR", 1))
    (tmp_path / "final_x.csv").write_text(csv_text(**{"0.5": "0.0"}).replace("0.5", "0.009142053445850914", 1))
    [row] = tables(tmp_path).standings
    assert [cell.rule for cell in row.cells[:3]] == ["no_submission", "evaluation_failed", None]
    assert row.imputed == 2


def test_models_are_four() -> None:
    """The models of the made-up trees are the suite's."""
    repos = {Catalog().model(name).repo for name in Catalog().suite("posttrainbench-1").models}
    assert {name.replace("_", "/", 1) for name in MODELS} == repos
