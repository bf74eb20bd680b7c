"""The page of real models, as far as it is computed: its rows and its intervals."""

import pytest

import real_models
from samples import measurement


def test_the_page_has_a_row_for_each_model_and_benchmark() -> None:
    """The page in the docs names each model with each of its benchmarks once, measured or not."""
    rows = [line for line in real_models.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    wanted = [(about.title, name) for about in real_models.MODELS.values() for name in about.benchmarks]
    assert [tuple(row.split(" | ")[:2]) for row in rows[1:]] == [(f"| {title}", f"`{name}`") for title, name in wanted]


def test_a_measurement_is_a_row() -> None:
    """Value, interval and n stand in a row, and what has no number says none."""
    assert list(real_models.cells_of(measurement(0.5)))[:3] == ["0.500", "0.150 – 0.850", "4"]
    assert list(real_models.cells_of(measurement(None)))[:3] == ["none", "", "0"]


def test_the_interval_is_wilson_s() -> None:
    """At none right of ten it ends where his paper's formula does, not at 0."""
    assert real_models.wilson(0.0, 10) == (0.0, pytest.approx(1.96**2 / (10 + 1.96**2)))
    assert real_models.wilson(1.0, 10)[1] == 1.0
