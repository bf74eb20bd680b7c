"""Benchmarks put to one model folder: box, server, passes, rungs of the token ladder, and the record that comes of it.

For the stage that measures a run and for `prill measure` alike. The box has no network; the model is read-only.
Replies stay in the scratch folder until the caller removes it, so that another try carries on. Not covered: whose fault
it is that a folder cannot be served (`NotServed`); that is for the caller to find out.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
from msgspec.structs import replace

from prill import chat, judge_model, plugins
from prill import contract as contracts
from prill.asking.loop import Pace
from prill.asking.reading import MEMORY
from prill.catalog import Catalog
from prill.errors import DefinitionError, InfraError
from prill.exam import Exam, Result, mark, mark_by_asking, standard_error, write_pace
from prill.hosting import Subject, model_files, open_box, served
from prill.inside import OURS, CountJob, decode_path, encode_path
from prill.record import Contract, Judged, Measurement, Pass
from prill.sockets import Ask, Box, Command, Endpoint, Item, NotServed
from prill.spec import Benchmark

HOURS = 8.0
"""For one pass over a benchmark."""
COUNTED = 64
"""Prompts, the longest in bytes, of which the longest in tokens is looked for."""
COUNT_SECONDS, COUNT_BYTES = 120.0, 8 << 30
"""For a submission's own tokenizer, which may be anything."""


@dataclass(frozen=True)
class Test:
    """A benchmark with its worked examples written in, its items, and how its requests are decoded."""

    benchmark: Benchmark
    items: tuple[Item, ...]
    contract: Contract

    @property
    def seeds(self) -> tuple[int | None, ...]:
        """One pass for each; fewer where the submission draws nothing by chance and the benchmark says so."""
        fewer = self.benchmark.seeds_if_greedy
        return fewer if self.contract.greedy and fewer is not None else self.benchmark.seeds

    @property
    def rungs(self) -> tuple[int, ...]:
        """The token ladder, highest first."""
        return self.benchmark.sampling.max_tokens, *self.benchmark.sampling.ladder


Keep = Callable[[Measurement, Sequence[Path]], None]
"""Called for each benchmark as soon as it is measured, with the log of each pass, or the replies of its judge."""


def test_of(catalog: Catalog, benchmark: Benchmark, subject: Subject, data: Path | None = None) -> Test:
    """A benchmark made ready for a subject. Items that differ from what is pinned are an error."""
    if asks(benchmark):
        judge_for(benchmark, subject)  # before hours are spent on replies that nobody could mark
    if works := getattr(plugins.get("graders", benchmark.grader), "works", None):
        works()
    items = catalog.items(benchmark, data)[: subject.limit]
    ready = catalog.ready(benchmark, data)
    return Test(ready, tuple(items), settled(subject, ready, items))


def settled(subject: Subject, benchmark: Benchmark, items: Sequence[Item]) -> Contract:
    """The decoding contract of a subject, with the longest of a benchmark's prompts counted by its own tokenizer."""
    certain = subject.engine not in contracts.UNCERTAIN_SERVERS
    files = model_files(subject.folder) if certain else {}
    known = "tokenizer.json" in files
    tokens = longest_prompt(subject, benchmark, items) if known else 0
    return contracts.resolve(files, benchmark, subject.engine, prompt_tokens=tokens)


def longest_prompt(subject: Subject, benchmark: Benchmark, items: Sequence[Item]) -> int:
    """Tokens of the longest prompt, without what a chat template adds; 0 where the tokenizer does not tell.

    The tokenizer is the subject's, so it works in a box. Raises `InfraError` where there is no box.
    """
    requests = [chat.render(benchmark, chat.shown(benchmark, item, benchmark.seeds[0])) for item in items]
    texts = [said.text + (msgspec.json.encode(said.tools).decode() if said.tools else "") for said in requests]
    longest = sorted(texts, key=lambda text: len(text.encode(errors="replace")), reverse=True)[:COUNTED]
    result = subject.scratch / "count.result.json"
    result.unlink(missing_ok=True)
    with open_box(subject, memory_bytes=COUNT_BYTES) as box:
        job = CountJob(tokenizer=Path(box.path("/model")) / "tokenizer.json", texts=tuple(longest))
        (subject.scratch / "count.json").write_bytes(msgspec.json.encode(job, enc_hook=encode_path))
        out = box.path("/out")
        box.run(
            Command(
                argv=("python3", "-m", "prill.inside", "count", f"{out}/count.json", f"{out}/count.result.json"),
                cwd=box.path("/tmp"),
            ),
            stdout=subject.scratch / "count.txt",
            stderr=subject.scratch / "count.err.txt",
            limit_seconds=COUNT_SECONDS,
        )
    try:
        return max(0, msgspec.json.decode(result.read_bytes()[:100], type=int))
    except (OSError, msgspec.DecodeError):
        return 0


def put(subject: Subject, tests: Iterable[Test], keep: Keep) -> None:
    """Put every test to the subject, as many as can be from one served model. Raises `NotServed`."""
    todo = list(tests)
    for alike in contracts.started_alike([test.contract for test in todo]):
        serve_and_put(subject, [test for test in todo if test.contract in alike], keep)


def serve_and_put(subject: Subject, tests: Sequence[Test], keep: Keep) -> None:
    """Tests that one server can take. A server that ran out of memory is started anew for the next rung."""
    todo = [(test, test.rungs) for test in tests]
    once = False
    while todo:
        try:
            with served(subject, todo[0][0].contract) as (box, endpoint):
                once = True
                put_all(subject, box, endpoint, todo, keep)
        except NotServed as error:
            if once:
                raise InfraError(f"the engine served {subject.folder} once and then no more: {error}") from None
            raise


def put_all(
    subject: Subject, box: Box, endpoint: Endpoint, todo: list[tuple[Test, tuple[int, ...]]], keep: Keep
) -> None:
    """Tests one by one, each on the highest rung of its ladder that has room; `todo` keeps what is left.

    Returns early where the server must be started anew. A rung is left only if nothing at all could be generated on it.
    """
    while todo:
        test, rungs = todo[0]
        results = sit_all(subject, box, endpoint, test, rungs)
        short = next((result for result in results if result.no_room), None)
        if short is None:
            made = measured(subject, test, endpoint, results, rungs[0], box.isolated)
            folders = [place(subject, test, seed) for seed in test.seeds]
            logs = [folder / result.log for folder, result in zip(folders, results, strict=True) if result.log]
            said = replies_of_judge(test.benchmark, subject)
            keep(made, [*logs, said] if made.judged and said.exists() else logs)
            todo.pop(0)
            continue
        if len(rungs) == 1:
            raise InfraError(f"{test.benchmark.name} with {rungs[0]} tokens, the lowest rung: {short.no_room}")
        todo[0] = test, rungs[1:]
        if short.memory:
            return


def sit_all(subject: Subject, box: Box, endpoint: Endpoint, test: Test, rungs: Sequence[int]) -> list[Result]:
    """One pass for each seed on one rung; ends early where there is no room."""
    results: list[Result] = []
    for seed in test.seeds:
        exam = Exam(
            benchmark=test.benchmark,
            items=test.items,
            endpoint=endpoint,
            seed=seed,
            max_tokens=rungs[0],
            last=len(rungs) == 1,
            subject=str(subject.digest),
            folder=place(subject, test, seed, Path(box.path("/out"))),
            earlier=place(subject, test, test.seeds[0], Path(box.path("/out"))) / "answers.jsonl" if results else None,
        )
        results.append(sit_in(subject, box, exam, place(subject, test, seed)))
        if results[-1].no_room:
            break
    return results


def place(subject: Subject, test: Test, seed: int | None, root: Path | None = None) -> Path:
    """Where one pass keeps its things."""
    return (root or subject.scratch) / test.benchmark.name / ("unseeded" if seed is None else f"seed {seed}")


def sit_in(subject: Subject, box: Box, exam: Exam, folder: Path) -> Result:
    """One pass, in the box; marked outside of it where the grader says so. Raises `InfraError` in plain words."""
    scratch, out = subject.scratch, box.path("/out")
    (scratch / "job.json").write_bytes(msgspec.json.encode(exam, enc_hook=encode_path))
    (scratch / "result.json").unlink(missing_ok=True)
    ended = box.run(
        Command(
            argv=("python3", "-m", "prill.inside", "exam", f"{out}/job.json", f"{out}/result.json"),
            env={"INSPECT_LOG_LEVEL": "warning"},
            cwd=box.path("/tmp"),
        ),
        stdout=scratch / "exam.txt",
        stderr=scratch / "exam.err.txt",
        limit_seconds=HOURS * 3600,
    )
    if ended.exit_code != 0 or not (scratch / "result.json").is_file():
        words = tail(scratch / "exam.err.txt").strip()
        short = words.splitlines()[-1] if words and ended.exit_code == OURS else words[-4000:]
        if any(MEMORY.search(tail(log)) for log in scratch.glob("server*.txt")):
            return Result(no_room=f"the server ran out of memory: {short}", memory=True)
        late = f" after {HOURS:g} h, which is its limit" if ended.timed_out else ""
        raise InfraError(f"measuring {exam.benchmark.name} failed{late} (exit code {ended.exit_code}): {short}")
    result = msgspec.json.decode((scratch / "result.json").read_bytes(), type=Result, dec_hook=decode_path)
    marked_here = getattr(plugins.get("graders", exam.benchmark.grader), "outside", False)
    return mark(replace(exam, folder=folder), result) if marked_here and not result.no_room else result


def tail(log: Path, most: int = 1 << 16) -> str:
    """The end of a server's log."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - most))
        return file.read().decode(errors="replace")


# --- records -----------------------------------------------------------------------------------------------


def measured(
    subject: Subject, test: Test, endpoint: Endpoint, results: Sequence[Result], rung: int, isolated: bool
) -> Measurement:
    """The record of a benchmark that was put to the subject."""
    benchmark = test.benchmark
    passes = tuple(pass_of(benchmark, seed, result) for seed, result in zip(test.seeds, results, strict=True))
    count = len(test.items)
    asked = f"{count} of {benchmark.data.count}" if count < benchmark.data.count else f"all {count}"
    times = f", {len(passes)} times" if len(passes) > 1 else ""
    record = Measurement(
        benchmark=benchmark.name,
        seed=passes[0].seed if len(passes) == 1 else None,
        state="measured",
        why=f"{asked} items asked and marked{times}",
        value=mean(made.value for made in passes),
        official=mean(made.official for made in passes),
        robust=mean(made.robust for made in passes),
        n=count,
        stderr=standard_error([[getattr(mark, benchmark.counts) for mark in result.items] for result in results]),
        stops=added(result.stops for result in results),
        items=tuple(item for result in results for item in result.items),
        submission=subject.digest,
        settings={
            **endpoint.settings,
            **results[0].versions,
            **marked_with(test),
            "sampling": msgspec.to_builtins(benchmark.sampling),
            "max_tokens": rung,
            "retries": added(result.retries for result in results),
            "replies kept from an earlier try": sum(result.resumed for result in results),
        },
        log=None,
        wall_seconds=sum(result.wall_seconds for result in results),
        isolated=isolated,
        passes=passes,
        limit=subject.limit,
        contract=test.contract,
    )
    if asks(benchmark):
        return with_judge(record, judged(subject, test, endpoint, rung), benchmark.counts)
    return record


def judged(subject: Subject, test: Test, endpoint: Endpoint, rung: int) -> Judged:
    """What the judge model makes of the first pass."""
    seed = test.seeds[0]
    exam = Exam(
        benchmark=test.benchmark,
        items=test.items,
        endpoint=endpoint,
        seed=seed,
        max_tokens=rung,
        subject=str(subject.digest),
        folder=place(subject, test, seed),
    )
    return mark_by_asking(exam, judge_for(test.benchmark, subject, partial(write_pace, exam, "judged")))


def asks(benchmark: Benchmark) -> bool:
    """Whether a judge model marks it."""
    return bool(getattr(plugins.get("graders", benchmark.grader), "asks", False))


def judge_for(benchmark: Benchmark, subject: Subject, tell: Callable[[Pace], None] = lambda _: None) -> Ask:
    """The judge model that the benchmark names, at the server that the environment names."""
    if benchmark.asked is None:
        raise DefinitionError(f"benchmarks/{benchmark.name}: its grader asks a judge model; name it in `asked`")
    return judge_model.from_environment(benchmark.asked, replies_of_judge(benchmark, subject), tell)


def replies_of_judge(benchmark: Benchmark, subject: Subject) -> Path:
    """Where the judge's replies are kept while it is asked."""
    return subject.scratch / f"{benchmark.name}.judge.jsonl"


def marked_with(test: Test) -> dict[str, Any]:
    """Settings of a grader that has some: the sandbox and the limits of one that runs code."""
    told = getattr(plugins.get("graders", test.benchmark.grader), "settings", None)
    return {"marking": told(test.items[0])} if told and test.items else {}


def with_judge(record: Measurement, made: Judged, counts: str) -> Measurement:
    """The record with a judge model's readings. One that is missing is nobody's zero."""
    value: float | None = getattr(made, counts)
    readings = replace(record, value=value, official=made.official, robust=made.robust, stderr=made.stderr, judged=made)
    return readings if value is not None else replace(readings, state="ungraded", why=made.why)


def added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts of several passes, summed."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def pass_of(benchmark: Benchmark, seed: int | None, result: Result) -> Pass:
    """One seed's readings."""
    counted = [getattr(mark, benchmark.counts) for mark in result.items]
    return Pass(
        seed=seed,
        value=mean(counted),
        official=mean(mark.official for mark in result.items),
        robust=mean(mark.robust for mark in result.items),
        stderr=standard_error([counted]),
        stops=dict(result.stops),
        log=None,
        wall_seconds=result.wall_seconds,
    )


def mean(values: Iterable[float | None]) -> float | None:
    """The mean, or `None` where there is nothing or something is missing."""
    found = list(values)
    return fmean(value for value in found if value is not None) if found and None not in found else None


def with_logs(record: Measurement, logs: Sequence[Path], target: Path) -> Measurement:
    """The record with its logs, or its judge's replies, moved beside the file that it will be written to."""
    if record.judged is not None and logs:
        [replies] = logs
        beside = replies.rename(target.with_name(f"{target.stem}.judge.jsonl"))
        return replace(record, judged=replace(record.judged, log=beside.name))
    passes = list(record.passes)
    for number, log in enumerate(logs):
        seed = f".seed-{passes[number].seed}" if len(logs) > 1 else ""
        beside = target.with_name(f"{target.stem}{seed}.eval")
        log.rename(beside)
        passes[number] = replace(passes[number], log=beside.name)
    return replace(record, passes=tuple(passes), log=passes[0].log if passes else None)
