"""solve: open a box with the base model, the tools and a clock; let the agent work; stop it at the deadline.

Writes prompt.md, given/, raw/, workspace/, trajectory.json and, last, outcome.json. A solve that began and did not
end is lost and is never done again in the same folder; one whose agent had ended is only written up.
Not covered yet: money (there is no gateway, and the box has no network), and re-attaching to a living agent.
"""

import shutil
import time
from pathlib import Path
from typing import Any

import msgspec

from prill import plugins, runtime
from prill.catalog import Catalog
from prill.errors import InfraError
from prill.folder import RunFolder, list_files, tree_digest, write_whole
from prill.prompt import render
from prill.record import Event, Outcome, Step
from prill.sockets import Command, Ended, Keep, Mount, Need
from prill.spec import RunSpec

TASK, SUBMISSION = "/home/agent/task", "/home/agent/task/final_model"
TOOLS = {"evaluate": "evaluate.py", "prill-left": "prill_left.py"}
OUTPUT_BYTES = 1 << 30


def done(run: RunFolder) -> bool:
    """Whether the agent is done and written up."""
    return run.outcome() is not None


def do(run: RunFolder, catalog: Catalog) -> None:
    """Run the agent, unless its end is already in the events; then write up what it did."""
    spec = run.spec()
    events = run.events()
    if not any(event.event == "ended" and event.stage == "solve" for event in events):
        if any(event.event == "began" and event.stage == "solve" for event in events):
            raise InfraError(f"{run.path}: this solve began and never ended; it is lost, another run takes its place")
        let_work(run, spec, catalog)
        events = run.events()
    write_up(run, spec, next(event for event in reversed(events) if event.event == "ended" and event.stage == "solve"))


def let_work(run: RunFolder, spec: RunSpec, catalog: Catalog) -> None:
    """The agent's hours: from an open box to the event `ended`."""
    agent = plugins.get("agents", spec.entrant.agent)
    prompt = render(spec)
    write_whole(run.prompt_file, prompt.encode())
    command: Command = agent.command(spec.entrant, prompt)
    need = prepare(run, spec, catalog, command)
    sandbox = plugins.get("sandboxes", spec.sandbox)
    with sandbox.open(need) as box:
        limit = spec.budget.hours * 3600
        deadline = time.time() + limit
        write_whole(run.given / "clock.json", msgspec.json.encode({"deadline": deadline}))
        run.append("began", "solve", limit_seconds=limit, isolated=box.isolated, sandbox=spec.sandbox)
        placed = msgspec.structs.replace(
            command,
            argv=tuple(box.path(word) if word.startswith("/") else word for word in command.argv),
            cwd=box.path(command.cwd),
            env={**environment(spec, box.path), **command.env},
        )
        ended = box.run(
            placed,
            stdout=run.stdout,
            stderr=run.stderr,
            keep=Keep(times=run.times, most_bytes=OUTPUT_BYTES),
            limit_seconds=limit,
            grace_seconds=spec.budget.grace_seconds,
        )
        run.append("ended", "solve", isolated=box.isolated, **msgspec.to_builtins(ended))


def prepare(run: RunFolder, spec: RunSpec, catalog: Catalog, command: Command) -> Need:
    """Folders of the run, and what the box shows: base and siblings under /hub, data, items, tools, the program."""
    check_disk(run.path, spec.budget.disk_gb)
    for folder in (run.raw, run.workspace, run.given / "bin", run.given / "nothing"):
        folder.mkdir(parents=True, exist_ok=True)
    for name, source in TOOLS.items():
        target = run.given / "bin" / name
        shutil.copyfile(runtime.PACKAGE / "tools" / source, target)
        target.chmod(0o755)
    mounts = [
        Mount(source=run.workspace, target=TASK, writable=True),
        Mount(source=run.given, target="/prill"),
        *(Mount(source=pinned(catalog, path, digest), target=f"/hub/{name}") for name, path, digest in models(spec)),
        *(Mount(source=catalog.asset(path), target=f"/data/{Path(path).name}") for path in offered(spec)),
        *(Mount(source=catalog.asset(source), target=target) for target, source in command.files.items()),
        *(Mount(source=run.given / "nothing", target=str(path)) for path in runtime.hidden()),
    ]
    for benchmark in spec.benchmarks:
        catalog.items(benchmark)  # what the agent's evaluator reads is what the definition pins
        mounts.append(Mount(source=catalog.items_file(benchmark), target=f"/items/{benchmark.name}.jsonl"))
    memory = None if spec.budget.memory_gb is None else int(spec.budget.memory_gb * 2**30)
    return Need(mounts=tuple(mounts), runtime=runtime.folders(), memory_bytes=memory, processes=spec.budget.processes)


def models(spec: RunSpec) -> list[tuple[str, str, str]]:
    """Name, path and digest of the base model and of the siblings that lie in the box's model cache."""
    known = [(spec.model.name, spec.model.path, spec.model.digest)]
    known += [(sibling.name, sibling.path, sibling.digest) for sibling in spec.model.siblings]
    return [(name, path, digest) for name, path, digest in known if path is not None and digest is not None]


def pinned(catalog: Catalog, path: str, digest: str) -> Path:
    """A model folder, refused if its bytes are not those that the definition pins."""
    folder = catalog.asset(path)
    found = tree_digest(list_files(folder))
    if found != digest:
        raise InfraError(f"{folder}: digest {found}, but the definition pins {digest}; restore the model's files")
    return folder


def offered(spec: RunSpec) -> list[str]:
    """Training data that the benchmarks offer, each once."""
    return sorted({path for benchmark in spec.benchmarks for path in benchmark.offered})


def environment(spec: RunSpec, place: Any) -> dict[str, str]:
    """What the agent's program finds in its environment; `place` spells a path of the box."""
    ours = runtime.environment()
    return {
        **ours,
        "PATH": f"{place('/prill/bin')}:{ours['PATH']}",
        "HOME": place("/home/agent"),
        "PRILL_BASE_MODEL": place(f"/hub/{spec.model.name}"),
        "PRILL_HUB": place("/hub"),
        "PRILL_DATA": place("/data"),
        "PRILL_ITEMS": place(f"/items/{spec.benchmarks[0].name}.jsonl"),
        "PRILL_SUBMISSION": place(SUBMISSION),
        "PRILL_SEED": str(spec.seed),
    }


def check_disk(path: Path, need_gb: float) -> None:
    """Refuse to begin on a disk that the run could fill."""
    free = shutil.disk_usage(path).free
    if free < need_gb * 2**30:
        raise InfraError(
            f"{path}: {free / 2**30:.1f} GB free, but the suite reserves {need_gb:g} GB for a run (budget.disk_gb); "
            "free some, or give another place with --runs"
        )


# --- writing up --------------------------------------------------------------------------------------------


def write_up(run: RunFolder, spec: RunSpec, event: Event) -> None:
    """Steps into trajectory.json, then outcome.json, whose existence says that the agent is done."""
    detail = dict(event.detail)
    isolated = bool(detail.pop("isolated"))
    ended = msgspec.convert(detail, Ended)
    agent = plugins.get("agents", spec.entrant.agent)
    with run.stdout.open("rb") as lines:
        steps = list(agent.read(lines))
    steps = timed(steps, run.times)
    write_whole(run.trajectory, msgspec.json.encode(trajectory(spec, steps)))
    how, why = classify(ended, spec.budget.hours * 3600, len(steps))
    run.write(
        run.outcome_file,
        Outcome(
            ended=how,  # type: ignore[arg-type]
            why=why,
            exit_code=ended.exit_code,
            signals=ended.signals,
            wall_seconds=ended.wall_seconds,
            limit_seconds=spec.budget.hours * 3600,
            steps=len(steps),
            isolated=isolated,
            sandbox=spec.sandbox,
            output_bytes=ended.output_bytes,
            output_dropped_bytes=ended.dropped_bytes,
        ),
    )


def classify(ended: Ended, limit_seconds: float, steps: int) -> tuple[str, str]:
    """How it ended, and in words. By exit code and measured time, not by what the agent says."""
    if ended.oom_killed:
        return "oom_killed", "the box ran out of memory and the kernel killed a process"
    if ended.timed_out:
        ignored = " and ignored TERM until it was killed" if "KILL" in ended.signals else ""
        return "time_limit", f"outlived its {limit_seconds:g} seconds{ignored}"
    if ended.exit_code is None:
        return "killed", "a signal that we did not send ended the program"
    if ended.exit_code:
        return "failed", f"the program ended with exit code {ended.exit_code}"
    if not steps:
        return "no_output", "the program ended without having said anything"
    return "finished", f"finished by itself after {ended.wall_seconds:.0f} of {limit_seconds:g} seconds"


def timed(steps: list[Step], times: Path) -> list[Step]:
    """Steps with the second at which their last byte had arrived."""
    try:
        arrivals = [line.split() for line in times.read_text().splitlines()]
    except FileNotFoundError:
        return steps
    pairs = [(int(offset), float(second)) for offset, second in (pair for pair in arrivals if len(pair) == 2)]
    result, index = [], 0
    for step in steps:
        end = step.offset + step.length
        while index + 1 < len(pairs) and pairs[index + 1][0] < end:
            index += 1
        result.append(msgspec.structs.replace(step, seconds=pairs[index][1]) if pairs else step)
    return result


def trajectory(spec: RunSpec, steps: list[Step]) -> dict[str, Any]:
    """Steps in the shape of ATIF 1.7; what ATIF has no word for is in `extra`."""
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": spec.id,
        "agent": {"name": spec.entrant.agent, "version": "1", "model_name": spec.entrant.model},
        "steps": [
            {
                "step_id": step.step,
                "source": "agent",
                "message": step.text,
                "extra": {"kind": step.kind, "offset": step.offset, "length": step.length, "seconds": step.seconds},
            }
            for step in steps
        ],
        "final_metrics": {"total_steps": len(steps)},
    }
