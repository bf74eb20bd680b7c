"""Published numbers that can be recomputed are; those that cannot are listed here with the reason.

The data lie beside the checkout (`../shared/data`); where they do not, these tests are skipped by name.
"""

import csv
import json
from math import isclose
from pathlib import Path
from statistics import fmean, stdev

import pytest

from prill import plugins
from prill.catalog import Catalog
from prill.scoring import tally
from prill.scoring.overview import clock_of, seconds_of
from prill.spec import Reference
from prill.standings import Board

DATA = Path(__file__).parents[2] / "shared" / "data"
SITE = DATA / "website-2026-03"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")

CANNOT = {
    "SDs of single_metrics_aggregated.csv but Locus's": "run files were never published; per-cell SDs do not give it",
    "averages of GPT-5.1-Codex-Max High and Low": "no per-cell table of them was published",
    "v1.1 averages but Opus 4.7's and Locus's": "of v1.1 only these two have a published per-cell table",
    "SDs of scores-v1.2": "its per-run files were never published",
    "README: GPT 5.3 GSM8K 33.1": "rounded twice (33.0490 → 33.05 → 33.1); the paper prints 33.0",
    "paper: GPT 5.3 High BFCL SD 38.2": "rounded twice (38.2509)",
    "paper: GPT 5.2 Codex GPQA SD 4.7": "rounded twice (4.6484 → 4.65 → 4.7)",
    "paper: Kimi K2.5 GPQA 11.1": "rounded twice (11.0491 → 11.05 → 11.1)",
    "paper: table 2, table 6 averages, figures 4 and 5": "stale: older than the published tables",
    "time_aggregated.csv": "per-run times were never published, but for the single-run methods",
}
"""What was published → why it cannot be computed again."""


def rows(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV."""
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def table(file: Path) -> dict[str, dict[str, float]]:
    """Model → benchmark → number, of a whole table."""
    return {row.pop("model"): {name: float(value) for name, value in row.items()} for row in rows(file)}


def tables(folder: Path, suite: str) -> Board:
    """A folder of published tables as standings."""
    made: Board = plugins.get("importers", "posttrainbench_tables")(folder, folder, Catalog(), suite)
    return made


def weights(suite: str) -> dict[str, float]:
    """A suite's weights."""
    return dict(Catalog().suite(suite).score.weights)


def test_weighted_means_of_the_site() -> None:
    """Every published average whose per-cell table was published is recomputed to 1e-12, and there are eleven."""
    ours = {row.entrant: row.score for row in tables(SITE, "posttrainbench-1").standings}
    published = {row["agent"]: float(row["avg"]) for row in rows(SITE / "single_metrics_aggregated.csv")}
    found = {agent: value for agent, value in published.items() if agent in ours}
    assert set(published) - set(found) == {"GPT-5.1-Codex-Max High", "GPT-5.1-Codex-Max Low"}
    assert all(abs(value - (ours[agent] or 0)) < 1e-12 for agent, value in found.items())


def test_base_instruct_and_few_shot() -> None:
    """The reference rows of the board come out of the reference definitions: 7.52757, 51.13585, 18.07765."""
    suite = Catalog().suite("posttrainbench-1")

    def score(which: str) -> float:
        cells: dict[str, dict[str, float | None]] = {model: {} for model in suite.models}
        for row in suite.references:
            cells[row.model][row.benchmark] = getattr(row, which)
        return 100 * (tally.weighted(suite.score.weights, cells) or 0)

    assert [round(score(which), 5) for which in ("base", "instruct", "fewshot")] == [7.52757, 51.13585, 18.07765]


def published_references() -> list[Reference]:
    """Reference scores straight from baselines.json, which has no bfcl, and bfcl from the site's table."""
    scores = json.loads((DATA / "baselines.json").read_text())["zeroshot"]
    site = table(SITE / "aggregated_baseline.csv")
    pairs = {
        "Qwen3-1.7B-Base": "Qwen3-1.7B", "Qwen3-4B-Base": "Qwen3-4B",
        "SmolLM3-3B-Base": "SmolLM3-3B", "gemma-3-4b-pt": "gemma-3-4b-it",
    }  # fmt: skip
    return [
        Reference(model=base, benchmark=name, base=value, instruct=of[pairs[base]][name])
        for of in (scores, {model: {"bfcl": row["bfcl"]} for model, row in site.items()})
        for base in pairs
        for name, value in of[base].items()
    ]


def test_weights_follow_from_the_baselines() -> None:
    """v1.1 weights come out of the baselines to 1e-14 and v1.2 weights bit for bit, and both suites hold them."""
    references = published_references()
    v11, v12 = weights("posttrainbench-1.1"), weights("posttrainbench-1.2")
    assert all(abs(value - v11[name]) < 1e-14 for name, value in tally.derived(references, sorted(v11)).items())
    assert tally.derived(references, sorted(v12)) == v12
    assert v11 == json.loads((SITE / "factors.json").read_text())
    assert v12 == json.loads((DATA / "factors-v1.2.json").read_text())


def test_reference_definitions_are_the_published_numbers() -> None:
    """Every reference score that the package ships equals the published one to the last bit."""
    published = {(row.model.lower(), row.benchmark): (row.base, row.instruct) for row in published_references()}
    shipped = {(r.model, r.benchmark): (r.base, r.instruct) for r in Catalog().suite("posttrainbench-1").references}
    assert shipped == published


def test_opus_4_7() -> None:
    """Opus 4.7's v1.1 mean is bit for bit the published one, and 24.66 under v1.2's weights."""
    cells = table(DATA / "aggregated_avg_Opus-4.7.csv")
    assert tally.weighted(weights("posttrainbench-1.1"), cells) == 0.28555094936357195
    assert round(100 * (tally.weighted(weights("posttrainbench-1.2"), cells) or 0), 2) == 24.66


def test_locus() -> None:
    """The external submission's mean and SD come out of its three runs, under both versions' weights."""
    folder = DATA / "external" / "intology-locus"
    [row] = tables(folder, "posttrainbench-1.1").standings
    assert isclose(row.score or 0, 0.45579652201605436, abs_tol=1e-12)
    assert isclose(row.sd or 0, 0.007485916531256706, abs_tol=1e-12)
    [later] = tables(folder, "posttrainbench-1.2").standings
    assert (round(100 * (later.score or 0), 2), round(100 * (later.sd or 0), 2), later.seeds) == (41.66, 0.82, 3)


def test_locus_cells() -> None:
    """All 28 cell means and SDs of the external submission are those of its runs, with ddof 1."""
    folder = DATA / "external" / "intology-locus"
    runs = [table(folder / f"locus_run_{number}.csv") for number in (1, 2, 3)]
    for name, compute in (("avg", fmean), ("std", stdev)):
        for model, row in table(folder / f"aggregated_{name}_locus.csv").items():
            assert all(isclose(value, compute([r[model][b] for r in runs]), abs_tol=1e-12) for b, value in row.items())


def test_v1_2_board() -> None:
    """All 18 published v1.2 averages follow from the published cells within the cells' rounding, base and human too."""
    cells: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows(DATA / "scores-v1.2_cells.csv"):
        agent, model = row.pop("agent"), row.pop("model")
        cells.setdefault(agent, {})[model] = {name: float(value) for name, value in row.items()}
    ours = {agent: tally.weighted(weights("posttrainbench-1.2"), grid) or 0 for agent, grid in cells.items()}
    published = json.loads((DATA / "scores-v1.2_aggregatedScores.json").read_text())
    assert len(published) == 18 and all(abs(ours[agent] - row["avg"]) <= 0.01 for agent, row in published.items())
    assert (round(ours["base-model"], 2), round(ours["human"], 2)) == (8.01, 48.41)


def test_v1_1_board_is_the_rounded_table() -> None:
    """Every published v1.1 average and SD of the site is the aggregated table's, rounded to two decimals."""
    table_rows = {
        row["agent"].lower().replace(" (", "-").replace(")", "").replace(" ", "-").replace("_", "-"): row
        for row in rows(DATA / "single_metrics_aggregated.csv")
    }
    for agent, shown in json.loads((DATA / "scores-v1.1_aggregatedScores.json").read_text()).items():
        row = table_rows.get(agent) or table_rows[f"{agent}-max"]
        assert (shown["avg"], shown["std"]) == (round(100 * float(row["avg"]), 2), round(100 * float(row["std"]), 2))


def test_the_hidden_fallbacks() -> None:
    """Of the 336 cells of the site's single-run methods 127 were no number and are the base score to the last bit."""
    board = tables(SITE, "posttrainbench-1")
    bases = {(row.model, row.benchmark): row.base for row in Catalog().suite("posttrainbench-1").references}
    unfinished = [row for row in board.standings if any(c.rule and c.rule != "contamination" for c in row.cells)]
    methods = list(SITE.glob("aggregated_*_10h*.csv"))
    imputed = [cell for row in unfinished for cell in row.cells if cell.state == "base"]
    assert (28 * len(methods), sum(cell.raw is None for cell in imputed)) == (336, 127)
    assert all(cell.value == bases[cell.model, cell.benchmark] for cell in imputed)


def test_times() -> None:
    """Every published time is read and written back as it stands, and its share of ten hours is the published one."""
    for row in rows(SITE / "aggregated_time_overview.csv"):
        seconds = seconds_of(row["average_time"])
        assert seconds is not None and clock_of(seconds) == row["average_time"]
        assert f"{100 * seconds / 36000:.1f}%" == row["percentage"]


def test_a_trial_of_the_wallet() -> None:
    """The public trial's score, raw mean, harmonic mean and unclamped values come out of its four raw values."""
    catalog = Catalog()
    raw = {"gpqa-diamond": 0.0152, "math-500": 0.410, "livecodebench-v6": 0.0180, "mmlu-pro": 0.0543}
    tests = {name: catalog.benchmark(name) for name in catalog.suite("wallet-50").benchmarks}
    found = tally.rescaled({name: (raw[name], test.floor, test.ceiling) for name, test in tests.items()})
    assert (found.score, round(found.raw_mean, 4), round(found.harmonic_mean, 4)) == (0.0, 0.1244, 0.0281)
    assert [round(value, 1) for value in found.unclamped.values()] == [-67.9, -63.5, -62.8, -90.7]


@pytest.mark.parametrize("what", CANNOT)
def test_what_cannot_be_recomputed(what: str) -> None:
    """A published number that cannot be computed again from published files is named with the reason."""
    pytest.skip(f"{what}: {CANNOT[what]}")
