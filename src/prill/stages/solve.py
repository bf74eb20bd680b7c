"""solve: the agent's hours, in a box with a clock, kept by a process of their own; then what it did, written up.

Writes prompt.md, given/, raw/, workspace/, the ledger and the doors' logs, trajectory.json and, last, outcome.json. A
solve whose keeper is at work is waited for; one that was cut off goes on in the agent's own session with what is left
of time and money, or is lost; one whose agent had ended is only written up.
"""

import msgspec

from prill import plugins
from prill.catalog import Catalog
from prill.errors import InfraError
from prill.folder import RunFolder, write_whole
from prill.record import OURS
from prill.solving import attach, place, writeup
from prill.trajectory.atif import document
from prill.trajectory.reading import parse


def done(run: RunFolder) -> bool:
    """Whether the agent is done and written up."""
    return run.outcome() is not None


def do(run: RunFolder, catalog: Catalog) -> None:
    """Run the agent, unless its end is already in the events; then write up what it did.

    Raises `InfraError` where the run cannot count: it is lost, and another takes its place.
    """
    event = attach.carried(run, catalog)
    spec = run.spec()
    agent = plugins.get("agents", spec.entrant.agent)
    with run.stdout.open("rb") as lines:
        steps = writeup.timed(list(agent.read(lines)), run.times)
    told = None
    if agent.package is not None:
        with run.stdout.open("rb") as lines:
            told = parse(spec.entrant.agent, lines)
    version = place.version(spec, agent)
    write_whole(run.trajectory, msgspec.json.encode(document(spec, steps, version, told)))
    outcome = writeup.outcome(run, spec, event, len(steps), version, told)
    run.write(run.outcome_file, outcome)
    if outcome.ended in OURS:
        run.append("lost", "solve", why=outcome.why)
        raise InfraError(f"{run.path}: {outcome.ended}: {outcome.why}; it does not count, another run takes its place")
