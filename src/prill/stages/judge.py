"""judge: each judge of the suite reads the evidence in a box of its own, read-only and without network.

Writes findings/<judge>.<n>.json. A judge that fails is our failure: it leaves no file, and the cell is held.
"""

import shutil
import time
from pathlib import Path

import msgspec

from prill import plugins, runtime
from prill.catalog import Catalog
from prill.errors import InfraError
from prill.folder import RunFolder
from prill.inside import JudgeJob, encode_path
from prill.record import Finding, Judgement
from prill.sockets import Command, Evidence, Mount, Need
from prill.spec import RunSpec

HOURS = 1.0


def done(run: RunFolder) -> bool:
    """Whether every judge of the spec has spoken."""
    return all(run.judgement(judge) for judge in run.spec().judges)


def do(run: RunFolder, catalog: Catalog, again: bool = False) -> None:
    """Ask the judges that have not spoken yet, or all once more."""
    spec = run.spec()
    for judge in spec.judges:
        if again or run.judgement(judge) is None:
            run.write(run.next_numbered("findings", judge), ask(run, spec, catalog, judge))


def ask(run: RunFolder, spec: RunSpec, catalog: Catalog, judge: str) -> Judgement:
    """One judge in one box."""
    began = time.monotonic()
    scratch = run.scratch("judging")
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
    need = Need(
        mounts=tuple(mounts),
        runtime=(*runtime.folders(), runtime.package_root()),
        env={**runtime.environment(), "PYTHONPATH": str(runtime.package_root())},
    )
    try:
        with plugins.get("sandboxes", spec.sandbox).open(need) as box:
            evidence = Evidence(
                run=run.read(),
                folder=Path(box.path("/evidence")),
                items={name: Path(box.path(target)) for name, target in items.items()},
                base=Path(box.path("/models/base")),
                siblings={name: Path(box.path(target)) for name, target in siblings.items()},
                fingerprints={path: Path(box.path(target)) for path, target in prints.items()},
            )
            job = JudgeJob(judge=judge, evidence=evidence)
            (scratch / "job.json").write_bytes(msgspec.json.encode(job, enc_hook=encode_path))
            out = box.path("/out")
            ended = box.run(
                Command(
                    argv=("python3", "-m", "prill.inside", "judge", f"{out}/job.json", f"{out}/result.json"),
                    cwd=box.path("/tmp"),
                ),
                stdout=scratch / "judge.txt",
                stderr=scratch / "judge.err.txt",
                limit_seconds=HOURS * 3600,
            )
            if ended.exit_code != 0:
                words = (scratch / "judge.err.txt").read_text(errors="replace").strip()
                raise InfraError(f"judge {judge} failed (exit code {ended.exit_code}): {words[-4000:]}")
            findings = msgspec.json.decode((scratch / "result.json").read_bytes(), type=tuple[Finding, ...])
            isolated = box.isolated
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Judgement(judge=judge, findings=findings, isolated=isolated, wall_seconds=time.monotonic() - began)
