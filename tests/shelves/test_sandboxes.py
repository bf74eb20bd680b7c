"""Both sandboxes against the conformance suite, and what is true of ours beyond it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from prill.errors import InfraError
from prill.sandboxes import bubblewrap, local
from prill.sockets import Command, Mount, Need
from prill.testing import WRITABLE, opened, sandbox_conformance, unlocked

try:
    with bubblewrap.plugin.open(Need()):
        pass
    NO_BOX = ""
except InfraError as error:
    NO_BOX = str(error)

needs_bubblewrap = pytest.mark.skipif(bool(NO_BOX), reason=NO_BOX)


def cases(checks: list[tuple[str, Callable[[], None]]]) -> list[object]:
    """The checks as parameters with their names."""
    return [pytest.param(check, id=name) for name, check in checks]


@needs_bubblewrap
@pytest.mark.parametrize("check", cases(sandbox_conformance(bubblewrap.plugin, isolated=True)))
def test_bubblewrap_is_a_sandbox_that_isolates(check: Callable[[], None]) -> None:
    """Bubblewrap does all that a sandbox must, and isolates."""
    check()


@pytest.mark.parametrize("check", cases(sandbox_conformance(local.plugin, isolated=False)))
def test_local_is_a_sandbox(check: Callable[[], None]) -> None:
    """Local does all that a sandbox must, and does not claim to isolate."""
    check()
