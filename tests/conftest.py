"""Fixtures that more than one folder of tests needs."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the checkout that these tests stand in."""
    return Path(__file__).parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole suites first: they wait for clocks, so another worker's tests fit beside them."""
    items.sort(key=lambda item: item.path.name != "test_smoke.py")
