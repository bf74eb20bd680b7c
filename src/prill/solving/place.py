"""What the agent's box shows: base and siblings under /hub, data, items, tools, doors, the agent's own program."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from prill import npm, runtime
from prill.catalog import Catalog
from prill.errors import InfraError
from prill.folder import RunFolder, list_files, tree_digest
from prill.gateway.hosts import environment as outside
from prill.sockets import DOOR, EGRESS, HUB, TOKEN, Agent, Box, Command, Mount, Need
from prill.spec import RunSpec

HOME, TASK, SUBMISSION = "/home/agent", "/home/agent/task", "/home/agent/task/final_model"
GIVEN, DOORS, CHECK = "/prill", "/prill/doors", "check.sock"
TOOLS = {
    "decontaminate": "decontaminate.py", "evaluate": "evaluate.py", "prill-left": "prill_left.py", "relay": "relay.py",
    "self-check": "self_check.py",
}  # fmt: skip


def prepare(run: RunFolder, spec: RunSpec, catalog: Catalog, agent: Agent, command: Command, doors: Path) -> Need:
    """Folders of the run, and the box's need of the host. `doors` holds the sockets that lead out."""
    for folder in (run.raw, run.workspace, run.given / "bin", run.given / "nothing", run.given / "doors"):
        folder.mkdir(parents=True, exist_ok=True)
    for name, source in TOOLS.items():
        if name == "self-check" and not spec.budget.self_checks:
            continue
        target = run.given / "bin" / name
        shutil.copyfile(runtime.PACKAGE / "tools" / source, target)
        target.chmod(0o755)
    mounts = [
        Mount(source=run.workspace, target=TASK, writable=True),
        Mount(source=run.given, target=GIVEN),
        Mount(source=doors, target=DOORS),
        *(Mount(source=kept(run, place), target=place, writable=True) for place in command.kept),
        *(Mount(source=pinned(catalog, path, digest), target=f"/hub/{name}") for name, path, digest in models(spec)),
        *(Mount(source=catalog.asset(path), target=f"/data/{Path(path).name}") for path in offered(spec)),
        *(Mount(source=catalog.asset(source), target=target) for target, source in command.files.items()),
        *(Mount(source=run.given / "nothing", target=str(path)) for path in runtime.hidden()),
    ]
    for benchmark in spec.benchmarks:
        catalog.items(benchmark)  # what the agent's evaluator reads is what the definition pins
        mounts.append(Mount(source=catalog.items_file(benchmark), target=f"/items/{benchmark.name}.jsonl"))
    memory = None if spec.budget.memory_gb is None else int(spec.budget.memory_gb * 2**30)
    return Need(
        mounts=tuple(mounts),
        runtime=(*runtime.folders(), *program(spec, agent), *(npm.runtime_folders() if agent.package else ())),
        devices=runtime.gpus() if spec.budget.gpus else (),
        memory_bytes=memory,
        processes=spec.budget.processes,
    )


def kept(run: RunFolder, place: str) -> Path:
    """Where a folder below the box's home lives on while boxes come and go."""
    folder: Path = run.home / Path(place).relative_to(HOME)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def program(spec: RunSpec, agent: Agent) -> tuple[Path, ...]:
    """The folder of the agent's npm package, at the version that the entrant pins."""
    return (npm.folder(agent.package, str(spec.entrant.version)),) if agent.package else ()


def version(spec: RunSpec, agent: Agent) -> str | None:
    """The version of the agent's program that ran, as it says itself; `None` where it comes with no package."""
    return npm.version(agent.package, str(spec.entrant.version)) if agent.package else None


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


def environment(
    spec: RunSpec, agent: Agent, place: Callable[[str], str], ports: Mapping[str, int], host: Mapping[str, str]
) -> dict[str, str]:
    """What the agent's program finds in its environment; `place` spells a path of the box, `host` is ours."""
    ours = {name: text for name, text in runtime.environment().items() if name != "HF_HUB_OFFLINE"}
    ours |= outside({name: f"http://127.0.0.1:{port}" for name, port in ports.items()}, host)
    own = [place(str(folder / npm.COMMANDS)) for folder in program(spec, agent)]
    return {
        **ours,
        "PATH": ":".join([place(f"{GIVEN}/bin"), *own, ours["PATH"]]),
        "HOME": place(HOME),
        "PRILL_BASE_MODEL": place(f"/hub/{spec.model.name}"),
        "PRILL_HUB": place("/hub"),
        "PRILL_DATA": place("/data"),
        "PRILL_ITEMS": place(f"/items/{spec.benchmarks[0].name}.jsonl"),
        "PRILL_SUBMISSION": place(SUBMISSION),
        "PRILL_SEED": str(spec.seed),
        **({"PRILL_CHECK": place(f"{DOORS}/{CHECK}")} if spec.budget.self_checks else {}),
    }


def placed(
    command: Command, box: Box, env: dict[str, str], token: str, ports: dict[str, int], scratch: Path
) -> Command:
    """A command as it is run in this box: paths spelled, token and doors filled in, its written files put there."""
    known = {DOOR: "model", EGRESS: "egress", HUB: "hub"}

    def filled(text: str) -> str:
        for door, name in known.items():
            text = text.replace(door, f"http://127.0.0.1:{ports.get(name, 0)}") if name in ports else text
        return text.replace(TOKEN, token)

    for target, text in command.written.items():
        passing = scratch / "written"
        passing.write_text(filled(text))
        passing.chmod(0o600)
        box.put(passing, target)
        passing.unlink()
    return replace(
        command,
        argv=tuple(filled(box.path(word) if word.startswith("/") else word) for word in command.argv),
        cwd=box.path(command.cwd),
        env={name: filled(value) for name, value in {**env, **command.env}.items()},
    )
