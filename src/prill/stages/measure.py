"""measure: serve the sealed submission in a fresh box that the agent never saw, ask, mark.

The box has no network and none of the agent's mounts. A submission that the engine cannot serve is *unloadable*, a
value, but only if the base model is served in the same way; if that fails too, it is our machine's fault and raises.
Writes measurements/<benchmark>.<n>.json and the Inspect log beside it.
"""

import shutil
from pathlib import Path

import msgspec

from prill import plugins, runtime
from prill.catalog import Catalog
from prill.errors import InfraError
from prill.exam import Exam, Result, mean_and_stderr
from prill.folder import RunFolder, list_files, tree_digest
from prill.inside import OURS, decode_path, encode_path
from prill.record import Measurement, Submission
from prill.sockets import Box, Command, Endpoint, Mount, Need, NotServed
from prill.spec import Benchmark, RunSpec

HOURS = 8.0


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
            write(run, unmeasured(benchmark, submission, f"nothing to measure: the submission is {submission.state}"))
        return
    if tree_digest(list_files(run.submission_files)) != submission.digest:
        raise InfraError(f"{run.submission_files}: not the bytes that were sealed ({submission.digest}); restore them")
    scratch = run.scratch("measuring")
    try:
        served(run, spec, catalog, submission, todo, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def served(
    run: RunFolder, spec: RunSpec, catalog: Catalog, submission: Submission, todo: list[Benchmark], scratch: Path
) -> None:
    """Serve the submission once and put every benchmark to it."""
    engine = plugins.get("engines", spec.engine)
    with open_box(spec, catalog, run.submission_files, scratch) as box:
        try:
            with engine.serve("/model", spec.model, box, scratch) as endpoint:
                for benchmark in todo:
                    result = examine(box, endpoint, benchmark, scratch)
                    write(
                        run,
                        measured(benchmark, submission, endpoint, result, box, run.submission_files),
                        result,
                        scratch,
                    )
                return
        except NotServed as error:
            why = str(error)
    control(spec, catalog, scratch, why)
    for benchmark in todo:
        write(run, unmeasured(benchmark, submission, f"the engine cannot serve it, though it serves the base: {why}"))


def control(spec: RunSpec, catalog: Catalog, scratch: Path, why: str) -> None:
    """Serve the base model in the same way. If that fails too, nothing follows about the submission."""
    engine = plugins.get("engines", spec.engine)
    with open_box(spec, catalog, catalog.asset(str(spec.model.path)), scratch) as box:
        try:
            with engine.serve("/model", spec.model, box, scratch):
                return
        except NotServed as error:
            raise InfraError(
                f"engine {spec.engine} serves neither the submission ({why}) nor the base model ({error})"
            ) from None


def open_box(spec: RunSpec, catalog: Catalog, model: Path, scratch: Path):  # type: ignore[no-untyped-def]
    """A fresh box: the model and the items read-only, prill itself, one folder for results, no network."""
    items = [
        Mount(source=catalog.asset(str(benchmark.data.path)), target=f"/items/{benchmark.name}.jsonl")
        for benchmark in spec.benchmarks
    ]
    need = Need(
        mounts=(Mount(source=model, target="/model"), Mount(source=scratch, target="/out", writable=True), *items),
        runtime=(*runtime.folders(), runtime.package_root()),
        env={**runtime.environment(), "PYTHONPATH": str(runtime.package_root())},
    )
    return plugins.get("sandboxes", spec.sandbox).open(need)


def examine(box: Box, endpoint: Endpoint, benchmark: Benchmark, scratch: Path) -> Result:
    """One benchmark, in the box. Raises `InfraError` in the words of the program that failed."""
    out = Path(box.path("/out"))
    exam = Exam(
        benchmark=benchmark,
        items=Path(box.path(f"/items/{benchmark.name}.jsonl")),
        endpoint=endpoint,
        seed=benchmark.seeds[0],
        logs=out / "logs",
    )
    (scratch / "job.json").write_bytes(msgspec.json.encode(exam, enc_hook=encode_path))
    result = scratch / "result.json"
    result.unlink(missing_ok=True)
    ended = box.run(
        Command(
            argv=("python3", "-m", "prill.inside", "exam", str(out / "job.json"), str(out / "result.json")),
            env={"INSPECT_LOG_LEVEL": "warning"},
            cwd=box.path("/tmp"),
        ),
        stdout=scratch / "exam.txt",
        stderr=scratch / "exam.err.txt",
        limit_seconds=HOURS * 3600,
    )
    if ended.exit_code != 0 or not result.is_file():
        words = (scratch / "exam.err.txt").read_text(errors="replace").strip()
        short = words.splitlines()[-1] if words and ended.exit_code == OURS else words[-4000:]
        raise InfraError(f"measuring {benchmark.name} failed (exit code {ended.exit_code}): {short}")
    return msgspec.json.decode(result.read_bytes(), type=Result, dec_hook=decode_path)


def measured(
    benchmark: Benchmark, submission: Submission, endpoint: Endpoint, result: Result, box: Box, folder: Path
) -> Measurement:
    """The record of a benchmark that was put to the submission."""
    counted = [getattr(mark, benchmark.counts) for mark in result.items]
    value, stderr = mean_and_stderr(counted)
    return Measurement(
        benchmark=benchmark.name,
        seed=benchmark.seeds[0],
        state="measured",
        why=f"all {len(counted)} items asked and marked",
        value=value,
        official=mean_and_stderr([mark.official for mark in result.items])[0],
        robust=mean_and_stderr([mark.robust for mark in result.items])[0],
        n=len(counted),
        stderr=stderr,
        stops=result.stops,
        items=result.items,
        submission=submission.digest,
        settings={
            **endpoint.settings,
            **result.versions,
            "sampling": msgspec.to_builtins(benchmark.sampling),
            "generation_config": generation_config(folder),
        },
        log=None,
        wall_seconds=result.wall_seconds,
        isolated=box.isolated,
    )


def unmeasured(benchmark: Benchmark, submission: Submission, why: str) -> Measurement:
    """The record of a benchmark that could not be put to the submission, which is the submission's doing."""
    return Measurement(
        benchmark=benchmark.name,
        seed=benchmark.seeds[0],
        state="unloadable",
        why=why,
        value=None,
        official=None,
        robust=None,
        n=0,
        stderr=None,
        stops={},
        items=(),
        submission=submission.digest,
        settings={},
        log=None,
        wall_seconds=0.0,
        isolated=True,
    )


def generation_config(folder: Path) -> object:
    """The submission's own generation_config, which the server applies where the benchmark sets nothing."""
    try:
        with (folder / "generation_config.json").open("rb") as file:
            return msgspec.json.decode(file.read(1 << 20))
    except (OSError, msgspec.DecodeError) as error:
        return f"none that can be read ({type(error).__name__})"


def write(run: RunFolder, record: Measurement, result: Result | None = None, scratch: Path | None = None) -> None:
    """The log first, then the record whose existence says that it is measured."""
    target = run.next_numbered("measurements", record.benchmark)
    if result is not None and scratch is not None:
        log = target.with_suffix(".eval")
        (scratch / "logs" / result.log).rename(log)
        record = msgspec.structs.replace(record, log=log.name)
    run.write(target, record)
