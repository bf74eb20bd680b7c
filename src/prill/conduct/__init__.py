"""What an agent did, read by rule from its commands: programs run, files written, hosts reached, keys used. Pure.

A command counts only where it ran: what was merely written to a file counts once that file is run. Code is parsed,
never executed. Not covered: what a program fetched and ran, what it computed before it ran it, and compiled code.
"""

from prill.conduct.deeds import Deed, deeds

__all__ = ["Deed", "deeds", "worth_judging"]


def worth_judging(steps: int) -> bool:
    """Whether a run is judged (Z5): one without any output is not; one without a model is, for its trace may tell."""
    return steps > 0
