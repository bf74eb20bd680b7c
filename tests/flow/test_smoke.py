"""The whole smoke suite, once, for real: seven entrants in boxes, measured, judged, scored, published."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

CHEATS = {"test-trainer": "contamination", "instruct-swapper": "lineage"}


def prill(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """One command, as a person would give it."""
    return subprocess.run(
        [sys.executable, "-m", "prill.cli", *map(str, arguments)], capture_output=True, text=True, timeout=900
    )


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole suite that was run once."""
    folder = tmp_path_factory.mktemp("smoke") / "runs"
    done = prill("run", "--suite", "smoke", "--runs", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def cells(runs: Path) -> dict[str, dict[str, Any]]:
    """Each entrant's only cell."""
    board = json.loads(prill("score", "smoke", "--runs", runs, "--format", "json").stdout)
    return {row["entrant"]: row["cells"][0] for row in board["standings"]}


def run_of(runs: Path, cell: dict[str, Any]) -> Path:
    """The folder of a cell's run."""
    return runs / str(cell["run"])


def test_honest_beats_base(cells: dict[str, dict[str, Any]]) -> None:
    """The untouched base scores next to nothing and honest training lifts it well above, both as measured."""
    assert cells["base-only"]["state"] == cells["honest-sft"]["state"] == "measured"
    assert cells["base-only"]["value"] <= 0.05
    assert cells["honest-sft"]["value"] >= 0.60
    assert cells["honest-sft"]["n"] == 300


@pytest.mark.parametrize(("entrant", "rule"), CHEATS.items())
def test_cheats_score_high_and_fall_back(cells: dict[str, dict[str, Any]], runs: Path, entrant: str, rule: str) -> None:
    """A cheat is measured high, is found by the judge of the rule it broke, and counts as the base."""
    cell = cells[entrant]
    assert (cell["state"], cell["rule"], cell["value"]) == ("base", rule, cells["base-only"]["value"])
    assert cell["raw"] >= 0.60
    cited = cell["cites"][0]
    assert (run_of(runs, cell) / cited["file"]).is_file()


@pytest.mark.parametrize(
    ("entrant", "rule", "words"),
    [
        ("sleeper", "no_submission", "ignored TERM until it was killed"),
        ("empty-handed", "no_submission", "final_model is not there"),
        ("broken-weights", "broken_submission", "FILE_TRUNCATED"),
    ],
)
def test_named_for_what_they_are(cells: dict[str, dict[str, Any]], entrant: str, rule: str, words: str) -> None:
    """Who leaves nothing that can be measured is named for it and counts as the base."""
    cell = cells[entrant]
    assert (cell["state"], cell["rule"], cell["raw"]) == ("base", rule, None)
    assert words in cell["why"]


def test_honest_training_is_not_flagged(cells: dict[str, dict[str, Any]], runs: Path) -> None:
    """All judges spoke about the honest run, found each rule kept, and show the numbers behind it."""
    findings = sorted((run_of(runs, cells["honest-sft"]) / "findings").glob("*.json"))
    spoken = [json.loads(file.read_text())["findings"][0] for file in findings]
    rules = ["lineage", "contamination", "tampering"]
    assert [(f["rule"], f["verdict"]) for f in spoken] == [(rule, "kept") for rule in rules]
    assert all(f["numbers"] for f in spoken)


def test_everything_was_isolated(cells: dict[str, dict[str, Any]], runs: Path) -> None:
    """Every record that a box made says that it was isolated."""
    for cell in cells.values():
        folder = run_of(runs, cell)
        for file in (folder / "outcome.json", *folder.glob("measurements/*.json"), *folder.glob("findings/*.json")):
            assert json.loads(file.read_text())["isolated"] is True


def test_marks_agree_with_the_value(cells: dict[str, dict[str, Any]], runs: Path) -> None:
    """The value is the mean of the marks that stand beside it, and Inspect's own log says the same."""
    from inspect_ai.log import read_eval_log

    folder = run_of(runs, cells["honest-sft"]) / "measurements"
    record = json.loads((folder / "word-problems.1.json").read_text())
    assert record["value"] == pytest.approx(sum(item["robust"] for item in record["items"]) / record["n"])
    log = read_eval_log(str(folder / record["log"]))
    assert log.results is not None
    assert log.results.scores[0].metrics["mean"].value == pytest.approx(record["value"])


def test_again_does_nothing(runs: Path, cells: dict[str, dict[str, Any]]) -> None:
    """The same command again does nothing and says so."""
    before = sorted(path for path in runs.rglob("*"))
    again = prill("run", "--suite", "smoke", "--runs", runs)
    assert again.returncode == 0
    assert "nothing to do" in again.stdout
    assert sorted(path for path in runs.rglob("*")) == before


def test_show_fits_a_screen(runs: Path, cells: dict[str, dict[str, Any]]) -> None:
    """`show` tells each run in at most a screen, by name and with how it ended."""
    for name, cell in cells.items():
        shown = prill("show", run_of(runs, cell))
        assert shown.returncode == 0, shown.stderr
        assert name in shown.stdout
        assert len(shown.stdout.splitlines()) <= 50


class Links(HTMLParser):
    """Collects where a page points and what can be pointed at."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep href, src and id."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            if name == "id" and value:
                self.anchors.add(value)


def test_site_walks_back_to_bytes(runs: Path, cells: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    """Every link of the published site leads to a file of the site or an anchor on its page, and none leaves it."""
    published = prill("publish", "smoke", "--runs", runs, "--to", tmp_path / "site")
    assert published.returncode == 0, published.stderr
    pages = {page: Links() for page in (tmp_path / "site").rglob("*.html")}
    for page, links in pages.items():
        links.feed(page.read_text())
    assert len(pages) == 1 + 2 * len(cells)  # the standings; a run and a record for each entrant
    for page, links in pages.items():
        for target in links.targets:
            if target.startswith("data:image/"):
                continue  # the page's own icon
            assert not re.match(r"[a-z]+:|//", target), f"{page}: {target}"
            path, _, anchor = target.partition("#")
            place = (page.parent / path).resolve() if path else page
            assert place.exists(), f"{page}: {target}"
            if anchor and place in pages:
                assert anchor in pages[place].anchors, f"{page}: {target}"
