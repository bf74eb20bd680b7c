"""measure: serve the sealed submission in a fresh box that the agent never saw, ask, mark.

The box has no network and none of the agent's mounts. A submission that the engine cannot serve, or whose own files
make every request fail, is *unloadable*, a value; but only if the base model is served in the same way: if that fails
too, it is our machine's fault and raises. A measuring that was cut off carries on at the item where it stopped.
Writes measurements/<benchmark>.<n>.json and the Inspect log of each pass beside it.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from prill import contract
from prill.catalog import Catalog
from prill.errors import InfraError
from prill.folder import RunFolder, list_files, tree_digest
from prill.gateway.ledger import Ledger, entries
from prill.hosting import Subject, control, to_serve
from prill.record import Contract, Measurement
from prill.sitting import Test, put, settled, test_of, with_logs
from prill.sockets import NotServed
from prill.spec import Benchmark


def done(run: RunFolder) -> bool:
    """Whether every benchmark of the spec has a measurement."""
    return all(run.measurement(benchmark.name) for benchmark in run.spec().benchmarks)


def do(run: RunFolder, catalog: Catalog, again: bool = False) -> None:
    """Measure what is not measured yet, or everything once more."""
    spec, submission = run.spec(), run.submission()
    assert submission is not None
    todo = [benchmark for benchmark in spec.benchmarks if again or run.measurement(benchmark.name) is None]
    if submission.state != "sealed":
        for benchmark in todo:
            why = f"nothing to measure: the submission is {submission.state}"
            write(run, unmeasured(benchmark, submission.digest, why))
        return
    if tree_digest(list_files(run.submission_files)) != submission.digest:
        raise InfraError(f"{run.submission_files}: not the bytes that were sealed ({submission.digest}); restore them")
    scratch = run.scratch("measuring", keep=True)
    folder = to_serve(spec.engine, run.submission_files, spec.submission)
    subject = Subject(folder, submission.digest, spec.model, spec.engine, spec.sandbox, scratch)
    base = replace(subject, folder=catalog.asset(str(spec.model.path)), digest=None)
    put_what_can_be(run, subject, base, [test_of(catalog, benchmark, subject) for benchmark in todo])
    shutil.rmtree(scratch, ignore_errors=True)


def put_what_can_be(run: RunFolder, subject: Subject, base: Subject, tests: Sequence[Test]) -> None:
    """Write a measurement for each test: its number, or why the submission has none."""
    waiting = {test.benchmark.name: test for test in tests}

    def keep(record: Measurement, logs: Sequence[Path]) -> None:
        write(run, record, logs)
        del waiting[record.benchmark]

    for test in tests:
        if not contract.fatal(test.contract):
            continue
        alike = settled(base, test.benchmark, test.items)
        if why := contract.broken(test.contract, alike):
            keep(unmeasured(test.benchmark, subject.digest, why, test.contract), ())
    try:
        put(subject, list(waiting.values()), keep)
    except NotServed as error:
        control(subject, base.folder, tests[0].benchmark, str(error))
        why = f"the engine cannot serve it, though it serves the base: {error}"
        for test in list(waiting.values()):
            keep(unmeasured(test.benchmark, subject.digest, why, test.contract), ())


def unmeasured(benchmark: Benchmark, digest: str | None, why: str, decoded: Contract | None = None) -> Measurement:
    """The record of a benchmark that could not be put to the submission, which is the submission's doing."""
    nothing: dict[str, Any] = dict.fromkeys(("value", "official", "robust", "stderr", "log"))
    return Measurement(
        benchmark=benchmark.name,
        seed=benchmark.seeds[0] if len(benchmark.seeds) == 1 else None,
        state="unloadable",
        why=why,
        n=0,
        stops={},
        items=(),
        submission=digest,
        settings={},
        wall_seconds=0.0,
        isolated=True,
        contract=decoded,
        **nothing,
    )


def write(run: RunFolder, record: Measurement, logs: Sequence[Path] = ()) -> None:
    """The logs first, then the record whose existence says that it is measured."""
    target = run.next_numbered("measurements", record.benchmark)
    if record.judged:
        charge(run, target.stem, record.judged.judge)
    run.write(target, with_logs(record, logs, target))


def charge(run: RunFolder, purchase: str, spent: dict[str, Any]) -> None:
    """What a judge model cost into the run's ledger, beside the agent's wallet; once for each measurement."""
    usd = None if spent.get("usd") is None else Decimal(str(spent["usd"]))
    tokens = {kind: spent[name] for kind, name in (("input", "tokens_in"), ("output", "tokens_out")) if spent.get(name)}
    with Ledger(run.ledger, None) as ledger:
        if usd is None:
            why = f"{spent.get('replies')} replies; what they cost is not known: {spent.get('usd_why')}"
            ledger.note("free", kind="judge", model=spent.get("model"), why=why)
        elif all(entry.id != purchase for entry in entries(run.ledger)[0]):
            ledger.hold(purchase, usd, kind="judge", model=spent.get("model"))
            ledger.charge(purchase, usd, tokens=tokens, why=f"{spent.get('replies')} replies")
