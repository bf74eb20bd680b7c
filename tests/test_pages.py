"""What the pages show: each value a record's, each link leads somewhere, no text of an agent is obeyed."""

import re
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any
from urllib.parse import unquote

import msgspec
import numpy
import pytest
from msgspec.structs import replace

from prill.pages import Copy, render
from prill.record import Citation, Event, Fault, File, ItemMark, Judgement, Measurement, Run, Step
from prill.score import board as board_of
from prill.scrutiny import scrutinise
from prill.spec import Budget, Entrant, Reference, RunSpec, ScoreRule, Suite
from prill.standings import Board
from prill.story import tell
from samples import CONTRACT, PASSES
from test_story import FOUND, MEASURED, OUTCOME, SPEC, SUBMISSION

HOSTILE = "</script></pre><img src=x onerror=alert(1)> https://evil.example/ \u202egnp.exe\x1b[2J"
SHA = "9c0c1fc52ad2a93a9dbe299532b952948c4ecb674f820fe19f78f6a3c33b0073"
TESTS = tuple(
    replace(SPEC.benchmarks[0], name=name, title=title, floor=0.0625, ceiling=0.875)
    for name, title in (("smoke-words", "Word problems"), ("smoke-chains", "Number chains"))
)
WHO = {
    "honest": "Honest tuner",
    "copycat": "Copycat",
    "quitter": "Quitter",
    "tinkerer": "Tinkerer",
    "mute": "Mute",
    "gone": "Gone",
    "late": "Not begun",
}
NAMES = tuple(test.name for test in TESTS)
SUITE = Suite(
    name="smoke",
    title="Smoke: a whole assay on one CPU",
    models=("tiny",),
    benchmarks=NAMES,
    entrants=tuple(WHO),
    cell=("model",),
    prompt="plain",
    rules=("contamination",),
    judges=("overlap",),
    engine="transformers",
    budget=Budget(hours=0.05),
    score=ScoreRule(weights=dict.fromkeys(NAMES, 0.5)),
    policy={"contamination": "base", "no_submission": "zero", "broken_submission": "zero"},
    references=tuple(Reference(model="tiny", benchmark=n, base=0.15625, instruct=0.9375, source="here") for n in NAMES),
)
HOW = replace(
    CONTRACT, stop_tokens=("<|endoftext|>", HOSTILE), ignored=(HOSTILE,), sampling={"temperature": 0.6, "x": HOSTILE}
)
CITES = (
    Citation(file="trajectory.json", step=5, sha256=SHA, quote=HOSTILE),
    Citation(file="raw/stdout", offset=130, length=10, sha256=SHA, quote="python train.py"),
    Citation(file="workspace/copied #1.jsonl", offset=0, length=80, line=1, quote='{"question": "Tom has 7 pens."}'),
    Citation(file="workspace/pruned.jsonl", sha256=SHA),
)
STEPS = [
    Step(step=1, kind="message", text="I will look at the data, then fine-tune.", offset=0, length=46, seconds=0.4),
    Step(step=2, kind="command", text="ls /data && wc -l /data/*.jsonl", offset=46, length=31, seconds=0.9),
    Step(step=3, kind="result", text="2000 /data/train.jsonl\n  16 /data/dev.jsonl", offset=77, length=43, seconds=1.0),
    Step(step=4, kind="command", text="python train.py --epochs 3", offset=120, length=26, seconds=3.2),
    Step(step=5, kind="result", text=HOSTILE, offset=146, length=400, seconds=44.0),
    Step(step=6, kind="other", text="y" * 100_000, offset=546, length=100_000),
]
EVENTS = [
    Event(at=999.0, event="planned"),
    Event(at=1000.0, event="began", stage="solve", detail={"limit_seconds": 180.0, "isolated": True}),
    Event(at=1047.3, event="ended", stage="solve", detail={"exit_code": 0, "text": HOSTILE}),
    Event(at=1049.0, event="ended", stage="seal"),
    Event(at=1060.0, event="failed", stage="measure", detail={"why": "the engine's port was taken"}),
    Event(at=1084.0, event="ended", stage="measure"),
    Event(at=1085.0, event="ended", stage="judge"),
]


def spec_of(entrant: str, seed: int = 0) -> RunSpec:
    """The spec of one run of the sample."""
    who = Entrant(name=entrant, title=WHO[entrant], agent="scripted")
    run = f"20260101T00000{seed}-{entrant}"
    return replace(SPEC, id=run, entrant=who, benchmarks=TESTS, seed=seed, budget=SUITE.budget, rules=SUITE.rules)


def measured(benchmark: str, value: float | None) -> Measurement:
    """A measurement with three plain items and a hostile one, or an unloadable one."""
    if value is None:
        return replace(MEASURED, benchmark=benchmark, state="unloadable", why="none", value=None, official=None, n=0)
    answers = [
        ItemMark(item=f"i{n}", official=n % 3 / 2, robust=n % 2, answer=str(n), target="7", stop="stop", tokens=12)
        for n in range(3)
    ]
    hostile = ItemMark(item="i3", official=0, robust=0, answer=None, target=HOSTILE, stop="length")
    used = {"engine": "transformers 5.24.0", "temperature": 0.0, "max_tokens": 64, "from the model": HOSTILE}
    made = replace(MEASURED, benchmark=benchmark, value=value, robust=value, settings=used, items=(*answers, hostile))
    made = replace(made, passes=PASSES, contract=HOW)
    return replace(made, stops={"stop": 14, "length": 2}, submission=f"sha256:{SHA}")


def run_of(entrant: str, verdict: Any, values: Any = (0.5, 0.53125), seed: int = 0, **changes: Any) -> Run:
    """A run that is done."""
    files = [File(path=path, bytes=1_651_234, sha256=SHA) for path in ("config.json", "model.safetensors", HOSTILE)]
    whole = replace(SUBMISSION, digest=f"sha256:{SHA}", files=tuple(files), faults=(), left=tuple(files))
    numbers = {"shared_8_grams": 118, "share_of_items": 0.8125, "label": HOSTILE}
    cites = CITES if verdict == "broken" else ()
    finding = replace(FOUND, verdict=verdict, numbers=numbers, citations=cites, why=f"judged {verdict}: 13 of 16 items")
    fields = {
        "spec": spec_of(entrant, seed),
        "state": "done",
        "began": 1000.0,
        "outcome": replace(OUTCOME, ended="finished", why="exit code 0", exit_code=0, signals=(), steps=len(STEPS)),
        "submission": whole,
        "measurements": tuple(measured(name, value) for name, value in zip(NAMES, values, strict=True)),
        "judgements": (Judgement(judge="overlap", findings=(finding,), isolated=True, wall_seconds=0.8),),
    }
    return Run(**(fields | changes))


def runs_of() -> list[Run]:
    """One run or more for each state of a cell and of a submission, and each verdict."""
    faults = (
        Fault(code="NO_WEIGHTS", why=f"no *.safetensors in the folder: {HOSTILE}"),
        Fault(code="NO_TEMPLATE", why="no chat template; the base model's is used", severity="warning"),
    )
    nothing: dict[str, Any] = {"digest": None, "tensors": None, "parameters": None}
    broken = replace(SUBMISSION, state="broken", why="1 fatal fault", faults=faults, **nothing)
    absent = replace(SUBMISSION, state="absent", why="nothing at /workspace/final", faults=(), **nothing)
    open_box = replace(OUTCOME, isolated=False)
    again = run_of("honest", "kept", (0.5625, 0.59375), seed=1)
    later = tuple(replace(judgement, version="2") for judgement in again.judgements)
    return [
        run_of("honest", "kept"),
        replace(again, judgements=later),
        run_of("copycat", "broken", (0.9375, 1.0)),
        run_of("quitter", "kept", (None, None), submission=absent, outcome=OUTCOME),
        run_of(
            "tinkerer", "kept", (None, None), submission=broken, outcome=open_box, judgements=(), state="unfinished"
        ),
        run_of("mute", "unknown"),
        Run(spec=spec_of("gone"), state="lost", began=1000.0),
    ]


def files_of() -> list[Copy]:
    """What is published of a run: whole, cut and not at all."""
    whole = [
        "spec.json",
        "events.jsonl",
        "outcome.json",
        "trajectory.json",
        "submission.json",
        "prompt.md",
        "files.json",
    ]
    whole += [f"measurements/{name}.1.json" for name in NAMES] + ["findings/overlap.1.json"]
    size = {"bytes": 100_546, "sha256": SHA}
    copies = [Copy(path=path, published=path, kept=100_546, kept_sha256=SHA, **size) for path in whole]
    for path in ("raw/stdout", "workspace/copied #1.jsonl"):
        copies.append(
            Copy(path=path, published=f"{path}.txt", kept=9, kept_sha256="0" * 64, why="cut at 9 bytes", **size)
        )
    why = "weights are not published"
    return [
        *copies,
        Copy(path="submission/model.safetensors", published=None, kept=0, kept_sha256=None, why=why, **size),
    ]


def sample() -> dict[str, Any]:
    """Everything that `render` takes but the templates."""
    runs = runs_of()
    planned = [spec_of(entrant, seed) for entrant in WHO for seed in range(2 if entrant == "honest" else 1)]
    board = board_of(SUITE, planned, runs, digest=f"sha256:{SHA}")
    board = replace(scrutinise(board, SUITE, planned, runs, numpy.random.default_rng(0), resamples=200), seed=0)
    stray = replace(board.attempts[0], run="elsewhere", counts=False, why=HOSTILE)
    steps = {run.spec.id: STEPS if run.outcome else [] for run in runs}
    return {
        "board": replace(board, attempts=(*board.attempts, stray)),
        "runs": {run.spec.id: run for run in runs},
        "stories": {
            run.spec.id: tell(run, EVENTS[: len(EVENTS) if run.outcome else 2], steps[run.spec.id]) for run in runs
        },
        "steps": steps,
        "files": {run.spec.id: files_of() for run in runs},
    }


class Page(HTMLParser):
    """Tags, ids, links and `data` values of a page; an end tag that closes nothing is an error."""

    VOID = ("meta", "link", "br", "img", "hr", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.data: list[str] = []
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("td", "dd"):
            self.cells.append("")
        for name, value in attrs:
            assert not name.startswith("on")
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.links.append((tag, value or ""))
            if tag == "data" and name == "value":
                self.data.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def templates(repo: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in (repo / "src/prill/templates").iterdir()}


@pytest.fixture(scope="module")
def site(templates: dict[str, str]) -> dict[str, str]:
    return render(**sample(), templates=templates)


@pytest.fixture(scope="module")
def parsed(site: dict[str, str]) -> dict[str, Page]:
    return {path: Page(text) for path, text in site.items() if path.endswith(".html")}


def test_one_page_for_each_run(site: dict[str, str]) -> None:
    """A site is an index, a page for each run, one stylesheet and the standings as JSON."""
    assert set(site) == {
        "index.html",
        "style.css",
        "standings.json",
        *(f"runs/{name}.html" for name in sample()["runs"]),
    }
    assert msgspec.json.decode(site["standings.json"], type=Board) == sample()["board"]


def test_ids_are_one_of_a_kind(parsed: dict[str, Page]) -> None:
    """No page uses an anchor twice."""
    assert all(len(page.ids) == len(set(page.ids)) for page in parsed.values())


def test_every_link_leads_somewhere(site: dict[str, str], parsed: dict[str, Page]) -> None:
    """Each link is relative and meets a page, an anchor on it, or a copied file."""
    files = {f"runs/{name}/{copy.published}" for name, copies in sample()["files"].items() for copy in copies}
    for path, page in parsed.items():
        for tag, link in page.links:
            if tag == "link" and link.startswith("data:"):
                continue
            assert not re.match(r"(?i)\s*[a-z][a-z+.-]*:|//", link), link
            target, _, anchor = link.partition("#")
            goal = normpath(str(PurePosixPath(path).parent / unquote(target))) if target else path
            assert goal in site or goal in files, (path, link)
            assert not anchor or anchor in parsed[goal].ids, (path, link)


def test_nothing_is_run_and_nothing_is_fetched(parsed: dict[str, Page], site: dict[str, str]) -> None:
    """Pages have no script, no image and no frame, and the stylesheet imports nothing."""
    for page in parsed.values():
        assert not {"script", "img", "iframe", "object", "style", "base", "form"} & set(page.tags)
    assert not re.search(r"@import|url\(|https?:", site["style.css"])


def test_hostile_text_is_shown_and_not_obeyed(site: dict[str, str]) -> None:
    """Markup of an agent is text, its overrides and escapes are written out, and its addresses are no links."""
    text = site[f"runs/{spec_of('copycat').id}.html"]
    assert "&lt;/script&gt;&lt;/pre&gt;&lt;img src=x onerror=alert(1)&gt;" in text
    assert "⟨U+202E⟩gnp.exe␛[2J" in text
    for page in (text for path, text in site.items() if path.endswith(".html")):
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x1b]", page)
    assert 'href="https' not in "".join(site.values())


def test_a_long_step_is_cut_with_its_rest_named(site: dict[str, str]) -> None:
    """A step of 100,000 characters is cut; the page says how much is missing and where the whole is."""
    text = site[f"runs/{spec_of('honest').id}.html"]
    assert "cut here: 98,000 more characters" in text
    assert "raw/stdout, bytes 546 to 100545" in text
    assert len(text) < 120_000


def figures(value: Any) -> set[float]:
    """All numbers of a record."""
    if isinstance(value, bool | str) or value is None:
        return set()
    if isinstance(value, int | float):
        return {float(value)}
    parts = value.values() if isinstance(value, dict) else value
    return set().union(*(figures(part) for part in parts), {float(len(value))} if isinstance(value, list) else set())


def test_every_value_is_a_records_value(parsed: dict[str, Page]) -> None:
    """Each figure that a page marks as a value is one that stands in a record, or a small count or rank."""
    known = figures(msgspec.to_builtins(sample()))
    ranks_and_counts = {float(n) for n in range(10)}
    for path, page in parsed.items():
        assert page.data
        assert {float(value) for value in page.data} <= known | ranks_and_counts, path


def test_scores_stand_in_their_own_rows(site: dict[str, str]) -> None:
    """The scores of the standings, top to bottom, are those of the board, and so are the cells of a run."""
    scores = re.findall(r'class="num score"[^>]*><data value="([^"]+)"', site["index.html"])
    board = sample()["board"]
    assert [float(score) for score in scores] == [row.score for row in board.standings if row.score is not None]
    for name in sample()["runs"]:
        values = re.findall(r'class="num big"><data value="([^"]+)"', site[f"runs/{name}.html"])
        cells = [cell for row in board.standings for cell in row.cells if cell.run == name]
        assert [float(value) for value in values] == [cell.value for cell in cells if cell.value is not None]


def test_missing_is_never_blank(parsed: dict[str, Page]) -> None:
    """No cell of a table and no fact is empty, but for the one that indents a reason on the index."""
    for path, page in parsed.items():
        texts = [text.strip() for text in page.cells]
        assert texts.count("") == (len(WHO) if path == "index.html" else 0), path
        assert not {"None", "nan"} & set(texts)


def test_no_score_has_no_rank(site: dict[str, str]) -> None:
    """An entrant without a score is unranked and shows why; it is not a zero at the end of the table."""
    assert site["index.html"].count(">no score</strong>") == 4
    assert site["index.html"].count(">unranked<") == 4


def test_a_citation_names_what_cannot_be_opened(site: dict[str, str]) -> None:
    """A cited file that is not on the site is said to be so, beside its digest; one that is, is linked."""
    text = site[f"runs/{spec_of('copycat').id}.html"]
    assert re.search(r"workspace/pruned\.jsonl <span class=\"none\">\(not published: no such file", text)
    assert f'href="{spec_of("copycat").id}/workspace/copied%20%231.jsonl.txt"' in text
    assert '<a class="to-step" href="#step-4">step 4</a>' in text


def test_not_isolated_is_said_at_the_top(site: dict[str, str]) -> None:
    """A run in an open box says so before its result."""
    text = site[f"runs/{spec_of('tinkerer').id}.html"]
    assert 0 < text.index("NOT ISOLATED") < text.index('id="worth"')


def test_silence_of_a_judge_is_not_innocence(site: dict[str, str]) -> None:
    """A judge that the suite names and that has not spoken is listed as silent."""
    assert "has not spoken; that is not innocence" in site[f"runs/{spec_of('tinkerer').id}.html"]


def test_an_empty_board_is_a_page(templates: dict[str, str]) -> None:
    """A suite without entrants or runs is still a whole page that says so."""
    board = Board(suite="s", title="S", suite_digest="", standings=(), attempts=(), expected=0, covered=0)
    text = render(board, {}, {}, {}, {}, templates)["index.html"]
    assert Page(text).ids
    assert "no run has been made" in text


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_is_enough_to_read(templates: dict[str, str]) -> None:
    """Every colour of text has a contrast of 4.5 or more on both papers, in light and in dark."""
    blocks = re.findall(r":root \{(.*?)\n *\}", templates["style.css"], re.S)[:2]
    for block in blocks:
        colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block))
        for paper in ("paper", "sheet"):
            for name in ("ink", "soft", "accent", "measured", "base", "zero", "held", "lost", "good", "bad"):
                dark, light = sorted((luminance(colours[name]), luminance(colours[paper])))
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, paper)
