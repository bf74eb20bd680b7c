"""What the command-line agents have in common: what an entrant must say, and which settings its agent knows."""

import re
from collections.abc import Mapping
from typing import Any

from prill.errors import DefinitionError, oneof
from prill.spec import Entrant

TASK = "/home/agent/task"
"""Where they work."""
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def model(entrant: Entrant) -> str:
    """The model's name. `DefinitionError` where the entrant has none."""
    if not entrant.model:
        raise DefinitionError(f"entrants/{entrant.name}: agent `{entrant.agent}` needs a model")
    return entrant.model


def settings(entrant: Entrant, known: Mapping[str, Any]) -> dict[str, Any]:
    """The entrant's settings over those that the agent knows, with their defaults; each keeps its default's type.

    `DefinitionError` names a setting that is unknown or of another type.
    """
    for name, value in entrant.settings.items():
        if name not in known:
            raise DefinitionError(f"entrants/{entrant.name}: {oneof('setting', name, list(known))}")
        if type(value) is not type(known[name]):
            kind = type(known[name]).__name__
            raise DefinitionError(f"entrants/{entrant.name}: setting {name} = {value!r} must be a {kind}")
    return {**known, **entrant.settings}


def no_subscription(entrant: Entrant) -> None:
    """`DefinitionError` for an account that this agent cannot use."""
    if entrant.account == "subscription":
        raise DefinitionError(
            f"entrants/{entrant.name}: agent `{entrant.agent}` has no way to use a subscription behind the gateway; "
            'account = "api" is what it can'
        )


def session(told: str | None) -> str | None:
    """A session's id as a program may be given it again; `None` for anything that does not look like one."""
    return told if told is not None and _SESSION.fullmatch(told) else None
