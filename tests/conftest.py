"""Fixtures that more than one folder of tests needs."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("prill", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("prill")  # a machine that does much else is not the code's fault; `bench/` measures time


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the checkout that these tests stand in."""
    return Path(__file__).parents[1]


FIRST = ("test_smoke.py", "test_durable.py", "test_clis.py")
"""The longest files. `make test` hands out whole files in this order, so that no worker is left alone at the end; the
first trains against a clock, and the second, which mostly waits, is what fits beside it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, each file as it stands."""
    order = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(FIRST)))
