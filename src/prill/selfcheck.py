"""The self-check: a submission looked at, served and asked as it will be when it counts, in a box of its own.

`check` does it and gives back what it found; `python -m prill.selfcheck RUN NUMBER [DEFINITIONS…]` does it for an agent
at work, as a process that the keeper of its box starts, and writes `selfchecks/NUMBER.json`. What is asked are public
items, the same ones each time. Gates that cannot be tried are told as not run, and are not passed.
Not covered: a server's first requests are slower than its later ones; the agent's own programs, which may use the same
processors and GPUs meanwhile; benchmarks that a judge model marks get no predicted score.
"""

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from prill import chat, gates, hosting, plugins, slips, submitted
from prill import contract as contracts
from prill.asking.kept import answers
from prill.asking.reading import Answer
from prill.catalog import Catalog
from prill.checkpoint.audit import audit
from prill.checkpoint.context import Context
from prill.copying import copied
from prill.errors import InfraError, PrillError
from prill.exam import Exam, Result
from prill.folder import RunFolder, list_files, tree_digest
from prill.gates import Asked, Gate, SelfCheck
from prill.hosting import WITHOUT_FILES, Subject, model_files, to_serve
from prill.record import Fault
from prill.seeds import order
from prill.serving import wait
from prill.sitting import Test, settled, sit_in
from prill.sockets import Box, Endpoint, Item, NotServed
from prill.spec import BaseModel, Benchmark

ITEMS = 32
"""Of each benchmark; as many as are asked at a time when it counts."""
START_SECONDS = 300.0
"""For an engine that names no limit of its own."""
HEALTH_SECONDS = 60.0
SPARE_BYTES = 512 << 20
"""Left on the disk beside the copy, so that a check never stops the agent for want of room."""
ENDING = 240
"""Letters that are shown of how a reply ends."""
SERVED = ("startup", "graded_request", "concurrent", "answered", "zero_share", "readable", "healthy_after")
"""Gates that need a server, in their order."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What a submission is checked for."""

    model: BaseModel
    benchmarks: tuple[Benchmark, ...]
    engine: str
    sandbox: str
    items: int = ITEMS
    """Of each benchmark; 0: nothing is served, only files are looked at."""
    submission: submitted.Shape = "weights"


def check(folder: Path, wanted: Wanted, catalog: Catalog, scratch: Path, say: Say = lambda _: None) -> SelfCheck:
    """Check a copy of a submission, or a package that nobody changes meanwhile. `scratch` is an empty folder.

    Raises `InfraError` where nothing follows about the submission: no box, or an engine that serves no base either.
    """
    began = time.monotonic()
    copy, work = scratch / "package", scratch / "work"
    work.mkdir()
    say("copying and hashing")
    refused = copied(folder, copy)
    copy.mkdir(exist_ok=True)
    files = list_files(copy)
    digest = tree_digest(files)
    size = sum(file.bytes for file in files)
    absent = [] if files else [Fault(code="NOTHING_THERE", why="no regular file; leave the finished model there")]
    lacking = submitted.faults(copy, wanted.submission) if files else ()
    found = [gates.files("package", [*refused, *absent, *lacking], f"{len(files)} regular files, {size:,} bytes")]
    say("looking at the files")
    if reads_files(wanted):
        looked = audit(submitted.weights(copy, wanted.submission), wanted.model, known(wanted, catalog))
        found.append(gates.files("audit", looked.faults, "nothing is wrong"))
    folder = to_serve(wanted.engine, copy, wanted.submission)
    subject = Subject(folder, digest, wanted.model, wanted.engine, wanted.sandbox, work)
    tests = [test_of(catalog, benchmark, subject, wanted.items) for benchmark in wanted.benchmarks] if files else []
    if tests:
        faults = list(contract_faults(tests, wanted, catalog))
        unsure = wanted.engine in contracts.UNCERTAIN_SERVERS
        fine = "how this server decodes is not known" if unsure else "requests will be decoded as they should be"
        found.append(gates.files("contract", faults, fine))
    asking = Asking(wanted, subject, catalog, say)
    if wanted.items:
        unfit = [gate.name for gate in found if gate.state == "red"]
        if unfit:
            found += [gates.not_run(name, f"{' and '.join(unfit)} must pass first") for name in SERVED]
        else:
            found += asking.served(tests)
    return SelfCheck(
        digest=digest,
        files=files,
        gates=tuple(found),
        asked=tuple(asking.asked),
        shares=gates.shares(asking.asked, asking.limits) if asking.asked else {},
        zero=gates.zero(asking.asked, asking.limits),
        score=gates.score(asking.asked),
        settings=asking.settings,
        isolated=asking.isolated,
        wall_seconds=time.monotonic() - began,
    )


def reads_files(wanted: Wanted) -> bool:
    """Whether the engine serves the model of the folder; of others the files say nothing about what answers."""
    return wanted.engine not in WITHOUT_FILES


def contract_faults(tests: Sequence[Test], wanted: Wanted, catalog: Catalog) -> Iterable[Fault]:
    """What is wrong with how requests will be decoded, each once. What the base shares does not fail a submission."""
    base = model_files(catalog.asset(wanted.model.path)) if wanted.model.path else None
    told = set()
    for test in tests:
        alike = contracts.resolve(base, test.benchmark, wanted.engine) if base is not None else None
        shared = {fault.code for fault in contracts.fatal(alike)} if alike else set()
        for fault in test.contract.faults:
            if (fault.code, fault.why) not in told:
                told.add((fault.code, fault.why))
                yield msgspec.structs.replace(fault, severity="warning") if fault.code in shared else fault


def known(wanted: Wanted, catalog: Catalog) -> Context:
    """What the audit may know of the base model."""
    if wanted.model.path is None:
        return Context()
    config = catalog.asset(wanted.model.path) / "config.json"
    return Context(base_config=json.loads(config.read_bytes()))


def test_of(catalog: Catalog, benchmark: Benchmark, subject: Subject, most: int) -> Test:
    """A benchmark with a few of its items, chosen once and for all."""
    items = catalog.items(benchmark)
    chosen = [items[at] for at in order(0, benchmark.name, len(items))[: most or 1]]
    ready = catalog.ready(benchmark)
    return Test(ready, tuple(chosen), settled(subject, ready, chosen))


# --- served ------------------------------------------------------------------------------------------------------


class Asking:
    """Requests put to a served submission, and what became of them."""

    def __init__(self, wanted: Wanted, subject: Subject, catalog: Catalog, say: Say) -> None:
        self.wanted, self.subject, self.catalog, self.say = wanted, subject, catalog, say
        self.asked: list[Asked] = []
        self.limits: dict[str, float] = {}
        """Seconds that a request may take, by item."""
        self.settings: dict[str, Any] = {"engine": wanted.engine}
        self.isolated = True
        self.ready: list[float] = []
        self.lost: list[str] = []
        """Why requests got no reply."""
        self.due = 0
        self.one: Gate | None = None
        self.after: Gate | None = None

    def served(self, tests: Sequence[Test]) -> list[Gate]:
        """The gates that need a server; each group of benchmarks that one server can take gets one."""
        engine = plugins.get("engines", self.wanted.engine)
        limit = float(getattr(engine, "start_seconds", START_SECONDS))
        for alike in contracts.started_alike([test.contract for test in tests]):
            group = [test for test in tests if test.contract in alike]
            began = time.monotonic()
            self.say(f"starting the server, which has {limit:g} s")
            try:
                with hosting.served(self.subject, group[0].contract) as (box, endpoint):
                    self.ready.append(time.monotonic() - began)
                    self.isolated = self.isolated and box.isolated
                    self.settings |= endpoint.settings
                    self.put(box, endpoint, group)
            except NotServed as error:
                self.control(group[0], str(error))
                late = time.monotonic() - began >= limit
                gate = gates.startup(
                    None, limit, exited=not late, generation="late" if late else "ok", words=str(error)
                )
                return [gate, *(gates.not_run(name, "the server did not start") for name in SERVED[1:])]
        return self.told(tests, limit)

    def put(self, box: Box, endpoint: Endpoint, tests: Sequence[Test]) -> None:
        """One request alone, many at a time, and one more afterwards."""
        if self.one is None:
            self.say("one request, alone")
            first, most = tests[0].benchmark, tests[0].benchmark.sampling.max_tokens
            alone = self.sit(box, endpoint, tests[0], tests[0].items[:1], "alone")
            self.one = (
                gates.graded_request(alone[0], first.request_seconds, most)
                if alone
                else gates.failed("graded_request", f"no well-formed reply: {self.lost[-1]}")
            )
        for test in tests:
            self.say(f"{len(test.items)} requests of {test.benchmark.name}, {test.benchmark.connections} at a time")
            self.due += len(test.items)
            made = self.sit(box, endpoint, test, test.items, "together")
            self.asked += made
            self.limits |= {each.item: test.benchmark.request_seconds for each in made}
        self.say("one more generation")
        began = time.monotonic()
        try:
            wait(None, box, endpoint.url, endpoint.model, self.subject.scratch, HEALTH_SECONDS, tests[0].contract)
            gate = gates.healthy_after(time.monotonic() - began, HEALTH_SECONDS)
        except NotServed as error:
            gate = gates.healthy_after(None, HEALTH_SECONDS, generation=str(error))
        self.after = gate if self.after is None or self.after.state != "red" else self.after

    def sit(self, box: Box, endpoint: Endpoint, test: Test, items: Sequence[Item], name: str) -> list[Asked]:
        """Some items put to the server; nothing where it spoiled them, and why in `lost`."""
        inside = Path(box.path("/out")) / name / test.benchmark.name
        outside = self.subject.scratch / name / test.benchmark.name
        exam = Exam(
            benchmark=test.benchmark,
            items=tuple(items),
            endpoint=endpoint,
            seed=test.seeds[0],
            max_tokens=test.benchmark.sampling.max_tokens,
            subject=str(self.subject.digest),
            folder=inside,
        )
        try:
            result = sit_in(self.subject, box, exam, outside)
        except InfraError as error:
            self.lost.append(f"{test.benchmark.name}: {error}")
            return []
        if result.no_room:
            self.lost.append(f"{test.benchmark.name}: {result.no_room}")
            return []
        said = {answer.id: answer for answer in answers(outside / "answers.jsonl")}
        unanswered = [answer.why for answer in said.values() if answer.stop == "server"]
        self.lost += [f"{test.benchmark.name}: {why}" for why in unanswered]
        return facts(test, [item for item in items if said[item.id].stop != "server"], result, said)

    def told(self, tests: Sequence[Test], limit: float) -> list[Gate]:
        """What came of it, in the order of `SERVED`."""
        assert self.one is not None and self.after is not None
        slow = max(test.benchmark.request_seconds for test in tests)
        return [
            gates.startup(max(self.ready), limit),
            self.one,
            gates.concurrent(self.asked, slow),
            gates.answered(len(self.asked), self.due, "; ".join(self.lost)[:500]),
            gates.zero_share(gates.zero(self.asked, self.limits)),
            gates.readable(self.asked),
            self.after,
        ]

    def control(self, test: Test, why: str) -> None:
        """Serve the base in the same way, where it is at hand. If that fails too, nothing follows from `why`."""
        if self.wanted.model.path is None or not reads_files(self.wanted):
            return
        self.say("it was not served; is the base?")
        hosting.control(self.subject, self.catalog.asset(self.wanted.model.path), test.benchmark, why)


def facts(test: Test, items: Sequence[Item], result: Result, said: dict[str, Answer]) -> list[Asked]:
    """What is known of each reply. Marks are missing where the benchmark is marked by asking."""
    marks = {mark.item: mark for mark in result.items}
    made = []
    for item in items:
        answer, mark = said[item.id], marks.get(item.id)
        text = answer.text or "".join(call.arguments for call in answer.calls)
        question = chat.render(test.benchmark, chat.shown(test.benchmark, item, test.seeds[0])).text
        made.append(
            Asked(
                item=f"{test.benchmark.name}/{item.id}",
                stop=answer.stop,
                seconds=answer.seconds,
                empty=answer.stop == "empty" or (not answer.calls and slips.empty(answer.text)),
                found=None if mark is None else mark.answer is not None,
                mark=None if mark is None else float(getattr(mark, test.benchmark.counts)),
                looping=slips.looping(text),
                foreign=slips.foreign(question, text),
                letters=len(text),
                tokens=answer.tokens_out,
                ends=text[-ENDING:],
            )
        )
    return made


# --- for an agent at work ----------------------------------------------------------------------------------------


def rationed(run: RunFolder, number: int, catalog: Catalog, say: Say) -> SelfCheck:
    """The run's next check, written down; its files are gone when this returns."""
    spec = run.spec()
    wanted = Wanted(spec.model, spec.benchmarks, spec.engine, spec.sandbox, submission=spec.submission)
    scratch, source = run.scratch("checking"), run.workspace / "final_model"
    size = sum(file.lstat().st_size for file in source.rglob("*") if file.is_file() and not file.is_symlink())
    if shutil.disk_usage(run.path).free < size + SPARE_BYTES:
        raise InfraError(f"there is no room on the disk for a copy of {size:,} bytes; free some and ask again")
    try:
        made = check(source, wanted, catalog, scratch, say)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    made = msgspec.structs.replace(made, number=number, of=spec.budget.self_checks)
    run.selfchecks.mkdir(exist_ok=True)
    run.write(run.selfchecks / f"{number}.json", made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Lines of JSON on standard output: `say` on the way, at the end `result` or `failed`."""

    def tell(**words: Any) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(words) + b"\n")
        sys.stdout.flush()

    threading.Thread(target=leave_with_the_caller, daemon=True).start()
    run, number, folders = RunFolder(Path(arguments[0])), int(arguments[1]), [Path(word) for word in arguments[2:]]
    try:
        made = rationed(run, number, Catalog(folders), lambda words: tell(say=words))
    except (PrillError, OSError) as error:
        tell(failed=str(error))
        return 1
    tell(result=brief(made), lines=gates.lines(made))
    return 0


def leave_with_the_caller() -> None:
    """Whoever started us holds our standard input open. When it is gone, so are we, and our box with us."""
    os.read(0, 1)
    os._exit(1)


def brief(made: SelfCheck) -> dict[str, Any]:
    """A check without its list of files and replies, for whoever reads JSON."""
    told = {name: value for name, value in msgspec.to_builtins(made).items() if name not in ("files", "asked")}
    return told | {"status": made.status, "passed": made.passed, "gates_in_all": len(made.gates)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
