"""The stages in order; what is done is not done again. And a suite's runs, planned, matched to folders, carried on.

A run is carried by at most one process (its lock). A solve that was cut off is lost: its folder stays and is listed,
and another takes its place. Any later stage that was cut off is done again.
"""

import fcntl
import os
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from msgspec.structs import replace

from prill.catalog import Catalog
from prill.decisions import Key, changed, decisions, key
from prill.errors import DefinitionError, InfraError, PrillError
from prill.folder import RunFolder, create, folders
from prill.plan import plan
from prill.record import Run
from prill.score import board, seeds_of
from prill.scrutiny import scrutinise
from prill.solving import attach
from prill.spec import Entrant, RunSpec, Suite
from prill.stages import judge, measure, seal, solve
from prill.standings import Board

STAGES: tuple[tuple[str, ModuleType], ...] = (("solve", solve), ("seal", seal), ("measure", measure), ("judge", judge))

Tell = Callable[[RunSpec, str, str], None]
"""Called with a spec, a stage and `began`, `ended` or `FAILED`."""


def carry(run: RunFolder, catalog: Catalog, tell: Tell) -> None:
    """Carry one run through all its stages. Raises what stopped it, after writing that into its events."""
    with run.lock():
        spec = run.spec()
        for name, stage in STAGES:
            if stage.done(run):
                continue
            tell(spec, name, "began")
            if name != "solve":
                run.append("began", name)  # solve says so itself, once its box is open
            try:
                stage.do(run, catalog)
            except BaseException as error:
                why = str(error) if isinstance(error, PrillError) else f"{type(error).__name__}: {error}"
                run.append("failed", name, why=why, traceback=traceback.format_exc())
                tell(spec, name, "FAILED")
                raise
            if name != "solve":
                run.append("ended", name)
            tell(spec, name, "ended")


# --- a suite -----------------------------------------------------------------------------------------------


def expected(
    catalog: Catalog,
    suite: Suite,
    entrants: Sequence[str],
    seeds: Sequence[int],
    imported: Mapping[str, Entrant] | None = None,
) -> list[RunSpec]:
    """The specs that a suite plans for these entrants and seeds, from definitions as they are now.

    `imported`: entrants of runs that prill did not make, which no definition names.
    """
    known = imported or {}
    chosen = [known.get(name) or catalog.entrant(name) for name in entrants]
    if suite.panel:
        catalog.panel(suite.panel)  # its digest is one of the run's
    callers = {each.provider: f"entrant {each.name} calls a model" for each in chosen if each.provider}
    callers |= {suite.teacher: "it offers a teacher"} if suite.teacher else {}
    if callers and suite.prices is None:
        first = next(iter(callers.values()))
        raise DefinitionError(f"suite {suite.name} names no prices, but {first}; add prices = …")
    return plan(
        suite,
        entrants=chosen,
        models=[catalog.model(name) for name in suite.models],
        benchmarks=[changed(catalog.benchmark(name), suite.changes.get(name)) for name in suite.benchmarks],
        prompt=catalog.prompt(suite.prompt),
        seeds=seeds,
        providers={name: catalog.provider(name) for name in callers},
        prices=catalog.prices(suite.prices) if suite.prices else None,
        hosts=catalog.hosts(suite.hosts) if suite.hosts else None,
        digests=catalog.digests | {f"entrants/{name}": "imported" for name in known},
    )


class Work:
    """What there is to do for a list of specs, given the folders that are there."""

    def __init__(self) -> None:
        self.todo: list[RunFolder] = []
        self.done: list[RunFolder] = []
        self.lost: list[RunFolder] = []
        self.elsewhere: list[RunFolder] = []


def match(specs: Sequence[RunSpec], parent: Path) -> Work:
    """Find or make a folder for each spec; runs made under other decisions are left alone and do not count."""
    known: dict[tuple[Key, str], list[tuple[RunFolder, Run]]] = defaultdict(list)
    for folder in folders(parent):
        run = folder.read()
        known[key(run.spec), decisions(run.spec)].append((folder, run))
    work = Work()
    for spec in specs:
        alive = None
        for folder, run in known[key(spec), decisions(spec)]:
            if run.state == "lost" and not (alive is None and attach.resumable(folder)):
                work.lost.append(folder)
                if not any(event.event == "lost" for event in folder.events()):
                    folder.append("lost", "solve", why="solving began and never ended")
            elif alive is None or run.state == "done":
                alive = folder, run
        if alive is None:
            work.todo.append(create(parent, spec))
        elif alive[1].state == "done":
            work.done.append(alive[0])
        else:
            (work.elsewhere if alive[0].locked() else work.todo).append(alive[0])
    return work


@contextmanager
def planning(parent: Path) -> Iterator[None]:
    """One process at a time matches specs to the folders of `parent`, so that no cell gets two."""
    parent.mkdir(parents=True, exist_ok=True)
    with (parent / ".planning").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def carry_all(
    runs: Sequence[RunFolder],
    catalog: Catalog,
    tell: Tell,
    *,
    jobs: int,
    tick: Callable[[float], None],
    tell_all: Callable[[str], None],
) -> list[str]:
    """Carry runs, `jobs` at a time; a failure of one does not stop the others. Returns one line for each failure.

    `tick` is called about every second with the seconds since the start. On KeyboardInterrupt no further run is
    begun and those under way are carried to their end; a second interrupt ends this process at once: agents at work
    are kept by processes of their own and work on, any other stage is done again next time.
    """
    failures: list[str] = []
    stop = threading.Event()

    def work(run: RunFolder) -> None:
        if not stop.is_set():
            try:
                carry(run, catalog, tell)
            except PrillError as error:
                failures.append(f"{run.path}: {error}")
            except OSError as error:  # the machine's, not a bug: a full disk, a read-only place
                what = error.strerror or str(error)
                failures.append(
                    f"{error.filename or run.path}: {what}; free space or make it writable, then run it again"
                )

    began = time.monotonic()
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        pending = {pool.submit(work, run) for run in runs}
        while pending:
            try:
                finished, pending = wait(pending, timeout=1.0, return_when=FIRST_COMPLETED)
                tick(time.monotonic() - began)
                for future in finished:
                    if error := future.exception():
                        failures.append(f"a bug of ours ({type(error).__name__}: {error}); see that run's events.jsonl")
            except KeyboardInterrupt:
                if stop.is_set():
                    os._exit(130)  # worker threads cannot be interrupted; their boxes die, but for agents' at work
                stop.set()
                failures.append("interrupted: the runs under way were carried to their end, the others not begun")
                tell_all(
                    "finishing the runs under way; Ctrl-C again leaves agents at work for this command to find again"
                )
    return failures


def board_of(
    catalog: Catalog,
    name: str,
    parent: Path,
    *,
    partial: bool,
    sandbox: str | None = None,
    resamples: int = 0,
    seed: int = 0,
) -> tuple[Board, list[Run]]:
    """A suite's standings from the run folders below `parent`, and those runs.

    With `resamples` the standings carry what their headlines hang on, drawn with that seed.
    """
    if not parent.is_dir():
        raise InfraError(f"{parent}: no such folder of runs; `prill run --suite {name} --runs {parent}` makes it")
    suite = catalog.suite(name)
    if sandbox is not None:
        suite = replace(suite, sandbox=sandbox)
    runs = [run for folder in folders(parent) if (run := folder.read()).spec.suite == name]
    entrants = [*suite.entrants, *sorted({run.spec.entrant.name for run in runs} - set(suite.entrants))]
    imported = {run.spec.entrant.name: run.spec.entrant for run in runs if run.spec.origin}
    specs = [
        spec
        for entrant in entrants
        for spec in expected(catalog, suite, [entrant], seeds_of(suite, runs, entrant), imported)
    ]
    made = board(suite, specs, runs, digest=catalog.digests[f"suites/{name}"], partial=partial)
    if resamples:
        import numpy

        chance = numpy.random.default_rng(seed)
        made = scrutinise(made, suite, specs, runs, chance, partial=partial, resamples=resamples)
        made = replace(made, seed=seed)
    return made, runs
