"""The keeper: a process of its own for each run. It owns the box, the doors, the clock and the raw output.

`python -m prill.solving.keep RUN [DEFINITIONS…]`, started by `attach.start`. Whoever started it may die or come back:
the agent's hours go on. TERM stops the agent and ends the run as `stopped`. If the keeper itself dies, the box dies
with it; the next keeper goes on in the agent's own session with what is left of time and money, where it has one.
Not covered: what the agent had printed and the keeper had not read when it was killed.
"""

import os
import secrets
import shutil
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from prill import plugins
from prill.catalog import Catalog
from prill.errors import PrillError
from prill.folder import RunFolder, write_whole
from prill.gateway.rent import Rent
from prill.prompt import hours_in_words, render
from prill.redact import Stream
from prill.sockets import Agent, Box, Command, Ended, Keep, Running
from prill.solving import place, preflight
from prill.solving.clock import Clock
from prill.solving.doors import Doors, opened
from prill.solving.rented import rented
from prill.solving.watch import Sampler
from prill.spec import RunSpec

OUTPUT_BYTES = 1 << 30
TICK_SECONDS = 0.1
BEAT_SECONDS = 1.0
RENT_SECONDS = 30.0
FLOOR_BYTES = 128 << 20
"""With less than this free on the disk of the run the agent is stopped, so that what it did can still be written."""
QUICK_SECONDS = 60.0
"""An agent that ends again within this has done nothing worth asking for at once."""


@dataclass
class Hours:
    """Everything that an agent's hours need, together."""

    run: RunFolder
    spec: RunSpec
    agent: Agent
    clock: Clock
    doors: Doors
    stop: threading.Event
    isolated: bool
    rents: list[Rent] = field(default_factory=list)
    broke: bool = False
    beat: float = 0.0
    due: float = 0.0

    def watch(self, running: Running) -> tuple[Ended, str]:
        """To the program's end, or to the end of time, money or patience; and which of them it was."""
        sampler, grace = Sampler(self.run.samples), self.spec.budget.grace_seconds
        while not (ended := running.poll()):
            why = self.over()
            if why:
                return replace(running.stop(grace), timed_out=why == "time"), why
            sampler.tick()
            self.say()
            time.sleep(TICK_SECONDS)
        return ended, "itself"

    def over(self) -> str:
        """Why the agent must stop, if it must."""
        if self.stop.is_set():
            return "stopped"
        if self.clock.left <= 0:
            return "time"
        if self.broke:
            return "money"
        return "disk" if shutil.disk_usage(self.run.path).free < FLOOR_BYTES else ""

    def say(self) -> None:
        """Once a second: what is used and left, on disk; and what the clock on the wall did."""
        if time.monotonic() < self.beat:
            return
        self.beat = time.monotonic() + BEAT_SECONDS
        if jump := self.clock.jumped():
            self.run.append("clock_jumped", "solve", seconds=jump)
        self.clock.write(self.doors.money())
        if self.rents and time.monotonic() >= self.due:
            self.due = time.monotonic() + RENT_SECONDS
            step = self.doors.step()
            paid = [rent.tick(step) for rent in self.rents]
            self.broke = not all(paid)

    def pause(self, seconds: float) -> None:
        """Wait, and go on saying how things stand."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.over():
            self.say()
            time.sleep(TICK_SECONDS)


def keep(run: RunFolder, catalog: Catalog, stop: threading.Event) -> None:
    """The agent's hours, from wherever they stand to the event `ended`."""
    spec = run.spec()
    agent: Agent = plugins.get("agents", spec.entrant.agent)
    resumed = any(event.event == "began" and event.stage == "solve" for event in run.events())
    prompt = render(spec)
    if not resumed:
        write_whole(run.prompt_file, prompt.encode())
        preflight.disk(run.path, spec.budget.disk_gb)
    preflight.graphics(spec)
    known = preflight.keyed(spec)
    session = again(run, spec, agent, "Go on.") if resumed else None
    command = session or agent.command(spec.entrant, prompt)
    run.given.mkdir(exist_ok=True)
    token = f"prill_{secrets.token_hex(24)}"
    with (
        opened(run, spec, catalog, token, Counted(run.stdout, agent)) as doors,
        rented(run, spec, doors.ledger) as rents,
    ):
        need = place.prepare(run, spec, catalog, agent, command, doors.folder)
        with plugins.get("sandboxes", spec.sandbox).open(need) as box:
            ports = doors.ports(box)
            env = place.environment(spec, agent, box.path, ports, os.environ) | doors.told(spec.teacher, ports)
            doors.relay(box, ports, env, run.solving)
            put = partial(place.placed, box=box, env=env, token=token, ports=ports, scratch=run.solving)
            if agent.package is not None:
                preflight.starts(box, put(command), run.solving)
            clock = Clock(spec.budget.hours * 3600, run.solving / "clock.json", run.given / "clock.json")
            hours = Hours(run, spec, agent, clock, doors, stop, box.isolated, rents)
            hours.say()
            run.append(
                "resumed" if resumed else "began",
                "solve",
                limit_seconds=clock.limit_seconds,
                used_seconds=clock.used,
                isolated=box.isolated,
                sandbox=spec.sandbox,
            )
            known |= {"PRILL_TOKEN": token} | ({"PRILL_TEACHER_KEY": doors.teacher_key} if spec.teacher else {})
            work(hours, box, put, command, known, resumed)


def work(hours: Hours, box: Box, put: partial[Command], command: Command, known: dict[str, str], resumed: bool) -> None:
    """The agent's program, and again for as long as it is asked to go on; ends with the event `ended`."""
    run, programs, most = hours.run, 0, hours.spec.entrant.reprompt
    pause = most.pause_seconds if most else 0.0
    while True:
        programs += 1
        before = hours.clock.used
        append = resumed or programs > 1
        running = box.start(
            put(command),
            stdout=run.stdout,
            stderr=run.stderr,
            keep=Keep(
                most_bytes=OUTPUT_BYTES,
                times=run.times,
                append=append,
                elapsed_seconds=before,
                hide=lambda: Stream(known),
            ),
        )
        ended, why = hours.watch(running)
        hours.say()
        nothing = hours.clock.used - before < QUICK_SECONDS
        following = None if why != "itself" else going_on(hours, programs, pause)
        if following is None:
            break
        run.append("asked_on", "solve", exit_code=ended.exit_code, wall_seconds=ended.wall_seconds)
        hours.pause(pause)
        command, pause = following, pause * 2 if nothing else (most.pause_seconds if most else 0.0)
    for rent in hours.rents:
        rent.end()
    run.append(
        "ended", "solve", isolated=hours.isolated, why=why, programs=programs, used_seconds=hours.clock.used,
        **msgspec.to_builtins(ended),
    )  # fmt: skip


def going_on(hours: Hours, programs: int, pause: float) -> Command | None:
    """What to run next for an agent that ended by itself; `None` where it is let go."""
    wish, spec = hours.spec.entrant.reprompt, hours.spec
    if wish is None or programs > wish.most or hours.clock.left - pause < wish.least_seconds or hours.doors.empty():
        return None
    words = wish.words.replace("{time}", hours_in_words(hours.clock.left / 3600))
    return again(hours.run, spec, hours.agent, words) or hours.agent.command(spec.entrant, words)


def again(run: RunFolder, spec: RunSpec, agent: Agent, words: str) -> Command | None:
    """How to go on in the session that the raw output began."""
    try:
        with run.stdout.open("rb") as lines:
            return agent.resume(spec.entrant, words, lines)
    except FileNotFoundError:
        return None


class Counted:
    """The step that an agent is at, by what it has printed so far."""

    def __init__(self, file: Path, agent: Agent) -> None:
        self.file, self.agent, self.offset, self.steps = file, agent, 0, 0
        self.lock = threading.Lock()

    def __call__(self) -> int | None:
        """The number of the last step that is there whole; `None` before the first."""
        with self.lock:
            try:
                with self.file.open("rb") as file:
                    file.seek(self.offset)
                    fresh = file.read(16 << 20)
            except FileNotFoundError:
                return None
            whole = fresh[: fresh.rfind(b"\n") + 1]
            self.offset += len(whole)
            self.steps += sum(1 for _ in self.agent.read(iter(whole.splitlines(keepends=True))))
            return self.steps or None


def main() -> int:
    """Keep one run; what goes wrong is written down for whoever waits."""
    run, folders = RunFolder(Path(sys.argv[1])), [Path(word) for word in sys.argv[2:]]
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with run.keeping():
        (run.solving / "failure.json").unlink(missing_ok=True)
        try:
            keep(run, Catalog(folders), stop)
        except BaseException as error:
            why = str(error) if isinstance(error, PrillError | OSError) else f"{type(error).__name__}: {error}"
            told = {"why": why, "ours": isinstance(error, PrillError), "traceback": traceback.format_exc()}
            write_whole(run.solving / "failure.json", msgspec.json.encode(told))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
