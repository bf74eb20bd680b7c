"""Fixtures that more than one folder of tests needs."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the checkout that these tests stand in."""
    return Path(__file__).parents[1]
