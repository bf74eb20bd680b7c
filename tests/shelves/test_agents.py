"""Our agents keep to their socket."""

from collections.abc import Callable

import pytest

from prill import plugins
from prill.testing import agent_conformance

CHECKS = [
    (agent, *check) for agent in plugins.names("agents") for check in agent_conformance(plugins.get("agents", agent))
]


@pytest.mark.parametrize(("agent", "name", "check"), CHECKS, ids=lambda value: value if isinstance(value, str) else "")
def test_conforms(agent: str, name: str, check: Callable[[], None]) -> None:
    """The agent passes this check of the conformance suite."""
    check()


def test_scripted_needs_a_program() -> None:
    """An entrant of `scripted` without a program is refused by name."""
    from prill.spec import Entrant

    with pytest.raises(ValueError, match="entrant x: agent `scripted` needs a program"):
        plugins.get("agents", "scripted").command(Entrant(name="x", title="X", agent="scripted"), "p")
