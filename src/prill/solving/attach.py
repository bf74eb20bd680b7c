"""Finding a run's keeper at work, or starting one, and waiting for the agent's hours to end."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import msgspec

from prill import plugins
from prill.catalog import Catalog
from prill.errors import InfraError, PrillError
from prill.folder import RunFolder
from prill.record import Event
from prill.sockets import Agent
from prill.solving.clock import used_before
from prill.solving.keep import again

LOOK_SECONDS = 0.1
START_SECONDS = 60.0
LEAST_SECONDS = 60.0
"""With less time left than this, an agent that was cut off is not begun again."""


def ended(run: RunFolder) -> Event | None:
    """The event that the agent's hours are over, if they are."""
    return next((event for event in reversed(run.events()) if event.event == "ended" and event.stage == "solve"), None)


def began(run: RunFolder) -> bool:
    """Whether an agent ever worked here."""
    return any(event.event == "began" and event.stage == "solve" for event in run.events())


def resumable(run: RunFolder) -> bool:
    """Whether an agent that was cut off can go on: nobody gave it up, it has a session, and there is time left."""
    if run.kept() or ended(run) or any(event.event == "lost" for event in run.events()):
        return False
    spec = run.spec()
    agent: Agent = plugins.get("agents", spec.entrant.agent)
    left = spec.budget.hours * 3600 - used_before(run.solving / "clock.json")
    return left > LEAST_SECONDS and again(run, spec, agent, "Go on.") is not None


def carried(run: RunFolder, catalog: Catalog) -> Event:
    """To the event that the hours are over: by the keeper at work, by a first one, or by one that goes on.

    Raises `InfraError` where the keeper failed, or where a solve was cut off and its agent cannot go on.
    """
    while not (end := ended(run)):
        if not run.kept():
            if began(run) and not resumable(run):
                raise InfraError(
                    f"{run.path}: this solve began and never ended; it is lost, another run takes its place"
                )
            start(run, catalog)
        while run.kept():
            time.sleep(LOOK_SECONDS)
        if (failure := run.solving / "failure.json").exists():
            told = msgspec.json.decode(failure.read_bytes())
            raise InfraError(told["why"]) if told["ours"] else KeeperFailed(f"{told['why']}\n{told['traceback']}")
    while run.kept():  # the doors are still writing their last entries
        time.sleep(LOOK_SECONDS)
    return end


class KeeperFailed(PrillError):
    """A keeper died of something that nobody foresaw; its traceback is in the words."""


def start(run: RunFolder, catalog: Catalog) -> None:
    """Start a keeper that outlives us; returns once it is at work."""
    run.solving.mkdir(exist_ok=True)
    argv = [sys.executable, "-m", "prill.solving.keep", str(run.path), *map(str, catalog.folders[:-1])]
    with (run.solving / "keeper.txt").open("ab") as out:
        program = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    until = time.monotonic() + START_SECONDS
    (run.solving / "keeper.pid").write_text(str(program.pid))
    while not run.kept() and program.poll() is None:
        if time.monotonic() > until:
            program.kill()
            raise InfraError(f"{run.path}: the keeper did not start; see {run.solving / 'keeper.txt'}")
        time.sleep(0.02)
    if program.poll():
        words = (run.solving / "keeper.txt").read_text(errors="replace").strip()
        if not (run.solving / "failure.json").exists():
            raise InfraError(f"{run.path}: the keeper ended at once: {words[-800:]}")


def stop(run: RunFolder) -> bool:
    """Ask the keeper to stop the agent; whether there was one. Returns when nothing of it is left."""
    if not run.kept():
        return False
    with contextlib.suppress(ProcessLookupError, ValueError, FileNotFoundError):
        os.kill(int((run.solving / "keeper.pid").read_text()), signal.SIGTERM)
    while run.kept():
        time.sleep(LOOK_SECONDS)
    return True
