"""judge: each judge of the suite reads the evidence in a box of its own, read-only and without network.

One that asks models has one door more, to a gateway with a ledger and a limit of the judge's own. Writes
findings/<judge>.<n>.json. A judge that fails is our failure: it leaves no file, and the cell is held.
"""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from prill import plugins, runtime
from prill.catalog import Catalog
from prill.errors import DefinitionError, InfraError
from prill.folder import RunFolder
from prill.inside import Desk, JudgeJob, encode_path
from prill.panel.hearing import prompt_digest
from prill.panel.letters import serve
from prill.panels import Panel
from prill.record import Finding, Judgement
from prill.seating import Seat, described, seated
from prill.sockets import Box, Command, Ended, Evidence, Mount, Need
from prill.spec import RunSpec

HOURS = 1.0
ASKING_HOURS = 12.0
LOOK_SECONDS = 0.05


def done(run: RunFolder) -> bool:
    """Whether every judge of the spec has spoken."""
    return all(run.judgement(judge) for judge in run.spec().judges)


def do(run: RunFolder, catalog: Catalog, again: bool = False) -> None:
    """Ask the judges that have not spoken yet, or all once more."""
    spec = run.spec()
    for judge in spec.judges:
        if again or run.judgement(judge) is None:
            one(run, spec, catalog, judge, spec.panel)


def one(run: RunFolder, spec: RunSpec, catalog: Catalog, judge: str, panel: str | None) -> Path:
    """One judge, heard and written down: the file. A judge that asks needs a panel."""
    target = run.next_numbered("findings", judge)
    if not getattr(plugins.get("judges", judge), "asks", False):
        run.write(target, ask(run, spec, catalog, judge))
        return target
    if panel is None:
        known = ", ".join(catalog.names("panels"))
        raise DefinitionError(
            f"judge {judge} asks models: name its panel, `panel = …` in the suite (there are: {known})"
        )
    run.write(target, heard(run, spec, catalog, judge, catalog.panel(panel), target))
    return target


def heard(run: RunFolder, spec: RunSpec, catalog: Catalog, judge: str, panel: Panel, target: Path) -> Judgement:
    """A judge that asks, behind its gateway. Replies and ledger lie beside `target`, also where it fails."""
    scratch = run.scratch("judging")
    ledger, replies = (target.with_name(f"{target.stem}.{kind}.jsonl") for kind in ("ledger", "replies"))
    try:
        with seated(panel, catalog, spec.sandbox, scratch, ledger) as seat:
            made = ask(run, spec, catalog, judge, seat)
            asked: dict[str, Any] = {**described(panel, prompt_digest(panel)), **seat.spent()}
            if (told := scratch / "spent.json").exists():  # what a plain model was really asked with
                asked["model"] = msgspec.json.decode(told.read_bytes())
            if seat.panel.agent is not None:
                asked["answers"] = seat.answers
    finally:
        if (scratch / "replies").exists():
            shutil.copyfile(scratch / "replies", replies)
        shutil.rmtree(scratch, ignore_errors=True)
    version = f"{panel.name}: {panel.model}" + (
        f", {panel.agent} {panel.version or ''}".rstrip() if panel.agent else ""
    )
    return msgspec.structs.replace(made, by="models", asked=asked, version=version)


@dataclass
class Shown:
    """What a judge's box shows, and where in it."""

    mounts: list[Mount]
    items: dict[str, str]
    siblings: dict[str, str]
    prints: dict[str, str]
    offered: dict[str, str]


def shown(run: RunFolder, spec: RunSpec, catalog: Catalog, scratch: Path) -> Shown:
    """The run, the models and the items, read-only; and one place to write to."""
    mounts = [
        Mount(source=run.path, target="/evidence"),
        Mount(source=scratch, target="/out", writable=True),
        Mount(source=catalog.asset(str(spec.model.path)), target="/models/base"),
    ]
    siblings = {s.name: f"/models/{s.name}" for s in spec.model.siblings if s.path}
    mounts += [Mount(source=catalog.asset(str(s.path)), target=siblings[s.name]) for s in spec.model.siblings if s.path]
    prints = {p.path: f"/models/fingerprints/{n}.safetensors" for n, p in enumerate(spec.model.fingerprints)}
    mounts += [Mount(source=catalog.asset(path), target=target) for path, target in prints.items()]
    items = {test.name: f"/items/{test.name}.jsonl" for test in spec.benchmarks}
    mounts += [Mount(source=catalog.items_file(test), target=items[test.name]) for test in spec.benchmarks]
    offered = {Path(path).name: f"/offered/{Path(path).name}" for test in spec.benchmarks for path in test.offered}
    sources = {Path(path).name: path for test in spec.benchmarks for path in test.offered}
    mounts += [Mount(source=catalog.asset(sources[name]), target=target) for name, target in offered.items()]
    return Shown(mounts, items, siblings, prints, offered)


def ask(run: RunFolder, spec: RunSpec, catalog: Catalog, judge: str, seat: Seat | None = None) -> Judgement:
    """One judge in one box."""
    began = time.monotonic()
    scratch = seat.scratch if seat else run.scratch("judging")
    there = shown(run, spec, catalog, scratch)
    by_door = seat is not None and seat.panel.agent is None
    need = Need(
        mounts=(*there.mounts, *(seat.mounts() if seat and by_door else ())),
        runtime=(*runtime.folders(), runtime.package_root()),
        env={**runtime.environment(), "PYTHONPATH": str(runtime.package_root())},
    )
    try:
        with plugins.get("sandboxes", spec.sandbox).open(need) as box:
            evidence = Evidence(
                run=run.read(),
                folder=Path(box.path("/evidence")),
                items={name: Path(box.path(target)) for name, target in there.items.items()},
                base=Path(box.path("/models/base")),
                siblings={name: Path(box.path(target)) for name, target in there.siblings.items()},
                fingerprints={path: Path(box.path(target)) for path, target in there.prints.items()},
                offered={name: Path(box.path(target)) for name, target in there.offered.items()},
            )
            desk = desk_of(seat, box, by_door=by_door) if seat else None
            job = JudgeJob(judge=judge, evidence=evidence, desk=desk)
            (scratch / "job.json").write_bytes(msgspec.json.encode(job, enc_hook=encode_path))
            ended = carried(box, scratch, None if by_door else seat, ASKING_HOURS if seat else HOURS)
            if ended.exit_code != 0:
                words = (scratch / "judge.err.txt").read_text(errors="replace").strip()
                raise InfraError(f"judge {judge} failed (exit code {ended.exit_code}): {words[-4000:]}")
            findings = msgspec.json.decode((scratch / "result.json").read_bytes(), type=tuple[Finding, ...])
            isolated = box.isolated
    finally:
        if seat is None:
            shutil.rmtree(scratch, ignore_errors=True)
    return Judgement(judge=judge, findings=findings, isolated=isolated, wall_seconds=time.monotonic() - began)


def desk_of(seat: Seat, box: Box, *, by_door: bool) -> Desk:
    """Of whom the judge in this box may ask."""
    url = f"http://127.0.0.1:{seat.opened(box, seat.scratch)['model']}" if by_door else None
    return Desk(panel=seat.panel, url=url, token=seat.token, folder=Path(box.path("/out")))


def carried(box: Box, scratch: Path, seat: Seat | None, hours: float) -> Ended:
    """The judge's program to its end; with a seat, its letters are answered meanwhile."""
    out = box.path("/out")
    argv = ("python3", "-m", "prill.inside", "judge", f"{out}/job.json", f"{out}/result.json")
    command = Command(argv=argv, cwd=box.path("/tmp"))
    said, wrong = scratch / "judge.txt", scratch / "judge.err.txt"
    if seat is None:
        return box.run(command, stdout=said, stderr=wrong, limit_seconds=hours * 3600)
    running, until = box.start(command, stdout=said, stderr=wrong), time.monotonic() + hours * 3600
    while not (ended := running.poll()):
        if time.monotonic() > until:
            return running.stop()
        serve(scratch, seat.answer)
        time.sleep(LOOK_SECONDS)
    return ended
