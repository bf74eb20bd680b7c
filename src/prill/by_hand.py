"""`prill measure`: benchmarks put to any model folder without a suite, or to a finished run once more.

A model folder's results are DIR/measurements/<benchmark>.<n>.json with the Inspect logs beside them; what was cut off
carries on at the item where it stopped. There is no base model to compare with here, so a folder that cannot be served
is an error in the server's words, and no number comes of it.
"""

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prill.catalog import Catalog
from prill.checkpoint.audit import examine
from prill.checkpoint.context import Context
from prill.contract import fatal
from prill.errors import DefinitionError, InfraError
from prill.folder import RunFolder, list_files, tree_digest
from prill.hosting import WITHOUT_FILES, Subject, apart
from prill.progress import at_pace
from prill.record import Measurement
from prill.sitting import Test, put, test_of, with_logs
from prill.sockets import NotServed
from prill.spec import BaseModel
from prill.stages import measure
from prill.submitted import weights

SECONDS = 5.0
"""Between two lines about progress."""


def of_run(run: RunFolder, catalog: Catalog, say: Callable[[str], None], *, again: bool) -> list[Measurement]:
    """Measure a run whose submission is sealed, or all of it once more. Returns its newest measurements."""
    if run.submission() is None:
        raise DefinitionError(f"{run.path}: nothing is sealed yet; `prill run {run.path}` carries it on")
    with run.lock():
        if again or not measure.done(run):
            run.append("began", "measure")
            with telling(run, say):
                measure.do(run, catalog, again=again)
            run.append("ended", "measure")
    found = (run.measurement(benchmark.name) for benchmark in run.spec().benchmarks)
    return [made for made in found if made is not None]


def of_model(subject: Subject, tests: Sequence[Test], to: RunFolder, say: Callable[[str], None]) -> list[Measurement]:
    """Put benchmarks to a model folder."""
    made: list[Measurement] = []

    def keep(record: Measurement, logs: Sequence[Path]) -> None:
        target = to.next_numbered("measurements", record.benchmark)
        to.write(target, with_logs(record, logs, target))
        made.append(record)
        say(f"{record.benchmark}: {target}")

    with to.lock(), telling(to, say):
        try:
            put(subject, tests, keep)
        except NotServed as error:
            raise InfraError(
                f"{subject.folder}: engine {subject.engine} cannot serve it ({error}; see {subject.scratch})"
            ) from None
    shutil.rmtree(subject.scratch, ignore_errors=True)
    return made


def prepared(
    catalog: Catalog,
    folder: Path,
    names: Sequence[str],
    to: Path,
    *,
    engine: str,
    sandbox: str,
    limit: int | None,
    data: Path | None,
) -> tuple[Subject, list[Test], RunFolder]:
    """All that `of_model` needs. A folder that is no model, or a benchmark that it cannot sit, is an error here."""
    if not folder.is_dir():
        raise DefinitionError(f"{folder}: no such folder; give a model folder or a run folder")
    if limit is not None and limit < 1:
        raise DefinitionError(f"--limit {limit}: at least 1")
    if not names:
        raise DefinitionError(f"say which with --benchmark (there are: {', '.join(catalog.names('benchmarks'))})")
    benchmarks = [catalog.benchmark(name) for name in dict.fromkeys(names)]
    if engine not in WITHOUT_FILES:
        there = weights(folder, "served" if apart(engine) else "weights")
        faults = [each for each in examine(there, Context()).faults if each.severity == "fatal"]
        if faults:
            told = "; ".join(f"{each.code}: {each.why}" for each in faults[:5])
            raise DefinitionError(f"{folder}: not a model that can be served: {told}")
    to.mkdir(parents=True, exist_ok=True)
    place = RunFolder(to)
    digest = tree_digest(list_files(folder))
    model = BaseModel(
        name=folder.resolve().name, title=str(folder), architecture="as its config says", parameters=0,
        digest=digest, path=None, licence="not known",
    )  # fmt: skip
    subject = Subject(folder, digest, model, engine, sandbox, place.scratch("measuring", keep=True), limit)
    tests = [test_of(catalog, benchmark, subject, data) for benchmark in benchmarks]
    for test in tests if engine not in WITHOUT_FILES else ():
        told = "; ".join(f"{each.code}: {each.why}" for each in fatal(test.contract))
        if told:
            raise DefinitionError(f"{folder}: {test.benchmark.name} cannot be put to it: {told}")
    return subject, tests, place


@contextmanager
def telling(run: RunFolder, say: Callable[[str], None]) -> Iterator[None]:
    """A line about progress now and then, while something is measured."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(SECONDS):
            pace = run.pace()
            if pace is not None:
                say(at_pace(pace))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def lines(made: Measurement) -> Iterator[str]:
    """A measurement for a terminal."""
    if made.value is None:
        yield f"{made.benchmark:<20} no number: {made.why}"
        return
    error = "" if made.stderr is None else f" ± {made.stderr:.4f}"
    stops = ", ".join(f"{count} {stop}" for stop, count in sorted(made.stops.items()))
    yield f"{made.benchmark:<20} {made.value:.4f}{error}   {made.why}"
    official, robust = ("none" if value is None else f"{value:.4f}" for value in (made.official, made.robust))
    yield f"{'':<20} official {official}, robust {robust}; ended by: {stops}"
    for fault in made.contract.faults if made.contract else ():
        yield f"{'':<20} {fault.code}: {fault.why}"
