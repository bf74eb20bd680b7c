"""Who is to blame: the few errors that prill raises.

What an *agent* does wrong (time over, no submission, broken weights, a broken rule) is never an error here:
it is a value in a record and it counts. An error means that *we*, or the person at the keyboard, must act.

    PrillError                shown without a traceback: what is wrong, what is allowed, what to do
    ├── DefinitionError       whoever wrote the file or typed the option
    └── InfraError            whoever runs the machine; nothing about the agent follows from it
"""


class PrillError(Exception):
    """One line for a person: what is wrong, what is allowed, what to do."""


class DefinitionError(PrillError):
    """A definition, option or name that prill cannot accept as it stands."""


class InfraError(PrillError):
    """The machine cannot do what is asked; the run is left as it was and no number follows."""


def oneof(what: str, got: str, allowed: list[str]) -> str:
    """The sentence for a name that is not among those allowed, with the nearest one offered."""
    from difflib import get_close_matches

    near = get_close_matches(got, allowed, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(sorted(allowed)) if allowed else "none are defined"
    return f"no {what} named {got!r}{hint} (there are: {listed})"
