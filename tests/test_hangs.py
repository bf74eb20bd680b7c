"""What the pages say a headline hangs on: each figure in its place, unknown as unknown, eras and alerts by name."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from prill.pages import along, render, signed
from prill.standings import Board, Standing
from samples import PASSES
from test_pages import HOSTILE, Page, sample, spec_of


@pytest.fixture(scope="module")
def templates(repo: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in (repo / "src/prill/templates").iterdir()}


@pytest.fixture(scope="module")
def board() -> Board:
    made: Board = sample()["board"]
    return made


def index(templates: dict[str, str], **changes: Any) -> str:
    """The index of the sample, with its board changed."""
    given = sample()
    return render(**given | {"board": replace(given["board"], **changes)}, templates=templates)["index.html"]


def rows(text: str, anchor: str) -> list[list[float]]:
    """The values of each row of the first table below a heading, by row."""
    body = text.split(f'id="{anchor}"')[1].split("<tbody>")[1].split("</tbody>")[0]
    return [[float(value) for value in re.findall(r'<data value="([^"]+)"', row)] for row in body.split("<tr")[1:]]


def hangs(row: Standing) -> list[float]:
    """What a row's headline hangs on, in the order of the table."""
    after = row.next
    compared = (after.value, after.low, after.high, after.detectable) if after else ()
    return [found for found in (*compared, row.clean, row.imputed, row.flag_rate) if found is not None]


def test_each_figure_stands_in_its_row(templates: dict[str, str], board: Board) -> None:
    """Difference, detectable difference, measured-only mean, imputed count and flag rate are those of the row."""
    assert any(row.next and row.next.detectable is not None for row in board.standings)
    assert rows(index(templates), "hangs") == [hangs(row) for row in board.standings]


def test_a_score_stands_beside_its_intervals(templates: dict[str, str], board: Board) -> None:
    """Rank and score are followed by their intervals; a score that policy set has none of its own and says so."""
    text = index(templates)
    found = [values for values in rows(text, "standings") if values]
    for row, values in zip(board.standings, found, strict=True):
        span = row.interval
        drawn = [span.low, span.high] if span and span.parts else []
        head = [row.rank, *(row.ranks or ()), row.score, *drawn] if row.rank is not None else []
        assert values[: len(head)] == head
    alone = [row for row in board.standings if row.interval and not row.interval.parts]
    assert alone and text.count("none: set by policy") == len(alone)


def test_other_rules_are_shown_where_they_differ(templates: dict[str, str], board: Board) -> None:
    """An entrant whose headline depends on the rule of selection, or on imputation, has a row with each of them."""
    differ = [row for row in board.standings if len({s for v in row.variants for s in (v.score, v.measured_only)}) > 1]
    text = index(templates).split("<details")[1].split("</details>")[0]
    assert differ
    assert f"{len(differ)} of {len(board.standings)} headlines would change" in text
    assert text.count("<tr><th") == len(differ) + 1
    alike = tuple(replace(row, variants=()) for row in board.standings)
    assert "Each headline is the same" in index(templates, standings=alike)


def test_unknown_is_said(templates: dict[str, str], board: Board) -> None:
    """Tokens that no run reports are unknown, not zero; an entrant without a counting run has no mean at all."""
    text = index(templates)
    counts = [row.overview.tokens_in for row in board.standings if row.overview]
    for word, number in (
        ("unknown", sum(spent.mean is None and spent.unknown > 0 for spent in counts)),
        ("no run counts", sum(spent.known + spent.unknown == 0 for spent in counts)),
    ):
        assert number and text.count(f'data-label="Tokens in"><span><span class="none">{word}<') == number


def test_eras_are_told_apart(templates: dict[str, str], board: Board) -> None:
    """Cells judged by another version of a judge carry another era; where there is one era, no cell repeats it."""
    text = index(templates)
    assert "judges: overlap;" not in text and "overlap (2)" in text
    eras = [cell.era for row in board.standings for cell in row.cells if cell.era]
    assert text.count('<span class="line">era ') == len(eras) and len(set(eras)) == 2
    one = tuple(replace(row, cells=row.cells[:1]) for row in board.standings)
    assert '<span class="line">era ' not in index(templates, standings=one)


def test_alerts_and_zeros_are_listed(templates: dict[str, str], board: Board) -> None:
    """A cell that equals a reference and one that the clamp put at zero are listed, and what they say is only text."""
    text = index(templates)
    assert "0.9375: tiny&#39;s instruct score of smoke-words" in text
    assert text.count('<li class="alert">') == sum(len(c.alerts) for row in board.standings for c in row.cells) > 0
    first = board.standings[0]
    zero = replace(first.cells[0], value=0.0, unclamped=-0.679, zero_because=f"2 of 16 right {HOSTILE}")
    changed = replace(first, cells=(zero, *first.cells[1:]), raw_mean=0.1244, harmonic_mean=0.0281)
    text = index(templates, standings=(changed, *board.standings[1:]))
    assert {"-0.679", "0.1244", "0.0281"} <= set(Page(text).data)
    assert "2 of 16 right &lt;/script&gt;" in text and "<img" not in text


def test_without_resamples_nothing_is_claimed(templates: dict[str, str]) -> None:
    """Standings without intervals say so, and link to no section that is not there."""
    page = index(templates, resamples=0)
    assert "No intervals were computed" in page
    assert 'href="#hangs"' not in page and 'id="hangs"' not in page


def test_passes_and_contract_are_on_the_run(templates: dict[str, str]) -> None:
    """A run's page shows each pass with its own value, and how requests were decoded, template and faults included."""
    text = render(**sample(), templates=templates)[f"runs/{spec_of('honest').id}.html"]
    for one in PASSES:
        shown = "none" if one.value is None else f'<data value="{one.value}">'
        assert re.search(rf"seed </span>{one.seed}</th>\n<td[^>]*>[^\n]*{shown}", text)
    for words in ("the suite’s", "&lt;|endoftext|&gt;", "151643, 151645", "temperature 0.6", "NO_STOP", "not applied"):
        assert words in text


def test_signs_and_ends() -> None:
    """A difference has a real minus or a plus, nothing has neither; what lies beyond a line stands at its end."""
    assert [signed(value) for value in (0.0125, -0.0125, 0.0)] == ["+1.25", "−1.25", "0.00"]
    assert [along(value) for value in (-0.25, 0.5, 1.5)] == ["0.00", "50.00", "100.00"]
