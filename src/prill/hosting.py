"""A subject and its server: in which boxes they stand, who reaches whom, and the base model served as a control.

An engine of ours shares one box with whoever asks it. A submission's own server sits in a box apart: it sees its
package, read-only, and our interpreter; it can write to memory only; no item, key, reply or network is there. Programs
of ours that ask it sit in the other box, and one tunnel leads from them to its port.
Not covered: where the sandbox isolates nothing, the two boxes are none.
"""

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from msgspec import structs

from prill import contract as contracts
from prill import plugins, runtime
from prill.errors import InfraError
from prill.record import Contract
from prill.serving import PROBE_BYTES, free_port, last_words
from prill.sockets import Box, Command, Endpoint, Keep, Mount, Need, NotServed
from prill.spec import BaseModel, Benchmark
from prill.submitted import Shape, weights

Opened = AbstractContextManager[Box]
DOOR = "/door"
WITHOUT_FILES = ("endpoint", "canned")
"""Engines for which a folder need not hold a model."""
START_SECONDS = 60.0
"""Until a tunnel listens."""
PROCESSES = 4096
"""That a submission's own server may have."""
MEMORY_SHARE = 0.5
"""Of the machine's memory for a submission's own server, with all that it writes."""


@dataclass(frozen=True)
class Subject:
    """What is measured, and with what."""

    folder: Path
    """What the engine serves; see `to_serve`."""
    digest: str | None
    model: BaseModel
    engine: str
    sandbox: str
    scratch: Path
    """Keeps replies until all is measured, so that another try carries on."""
    limit: int | None = None
    """Only the first so many items of each benchmark."""


def apart(engine: str) -> bool:
    """Whether an engine starts programs of the submission, so that nobody else may sit in their box."""
    return bool(getattr(plugins.get("engines", engine), "apart", False))


def to_serve(engine: str, submission: Path, shape: Shape) -> Path:
    """What an engine is given: the whole package where it starts the package's own server, else the weights alone."""
    return submission if apart(engine) else weights(submission, shape)


def open_box(subject: Subject, memory_bytes: int | None = None) -> Opened:
    """A fresh box: the model read-only, prill itself, one folder for results, no network."""
    folders = plugins.get("engines", subject.engine).folders()
    mounts = (Mount(source=subject.folder.resolve(), target="/model"), results(subject))
    return opened(subject, *mounts, folders=folders, memory_bytes=memory_bytes)


def opened(subject: Subject, *mounts: Mount, folders: tuple[Path, ...] = (), **limits: int | None) -> Opened:
    """A fresh box with our interpreter, prill, the machine's GPUs and these mounts."""
    need = Need(
        mounts=mounts,
        runtime=(*runtime.folders(), runtime.package_root(), *folders),
        devices=runtime.gpus(),
        env={**runtime.environment(), "PYTHONPATH": str(runtime.package_root())},
        **limits,
    )
    box: Opened = plugins.get("sandboxes", subject.sandbox).open(need)
    return box


def results(subject: Subject) -> Mount:
    """Where programs of ours leave what they found."""
    return Mount(source=subject.scratch.resolve(), target="/out", writable=True)


@contextmanager
def served(subject: Subject, contract: Contract | None) -> Iterator[tuple[Box, Endpoint]]:
    """The box to ask from and the server as it is reached there, ready. Raises `NotServed`."""
    engine = plugins.get("engines", subject.engine)
    if not apart(subject.engine):
        with (
            open_box(subject) as box,
            engine.serve("/model", subject.model, box, subject.scratch, contract) as endpoint,
        ):
            yield box, endpoint
        return
    with TemporaryDirectory(prefix="prill-") as name:  # short: a socket's path has a hundred letters at most
        door = Path(name)
        with (
            opened(subject, results(subject), Mount(source=door, target=DOOR, writable=True)) as box,
            server_box(subject, door) as other,
            engine.serve("/model", subject.model, other, subject.scratch, contract) as endpoint,
        ):
            yield box, joined(box, other, endpoint, subject.scratch)


def server_box(subject: Subject, door: Path) -> Opened:
    """Where a submission's own server is. The smoke world, which lies among our own files, is covered up."""
    nothing = door / "nothing"
    nothing.mkdir()
    return opened(
        subject,
        Mount(source=subject.folder.resolve(), target="/model"),
        Mount(source=door, target=DOOR),
        Mount(source=nothing, target=str(runtime.PACKAGE / "smoke")),
        folders=plugins.get("engines", subject.engine).folders(),
        memory_bytes=int(MEMORY_SHARE * memory()),
        processes=PROCESSES,
    )


def memory() -> int:
    """Bytes of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def joined(box: Box, other: Box, endpoint: Endpoint, logs: Path) -> Endpoint:
    """A tunnel from the box that asks to the server's: the endpoint as it is reached through it."""
    port, far = free_port(), urlsplit(endpoint.url).port
    near = logs / "near.txt"
    running = box.start(tunnel(box, "near", port), stdout=near, stderr=logs / "near.err.txt")
    until = time.monotonic() + START_SECONDS
    while b"ready" not in near.read_bytes():
        if time.monotonic() > until or running.poll() is not None:
            raise InfraError(f"the tunnel to the server did not start: {last_words(logs / 'near.err.txt')}")
        time.sleep(0.02)
    try:
        kept = Keep(most_bytes=PROBE_BYTES)
        other.start(tunnel(other, "far", far), stdout=logs / "far.txt", stderr=logs / "far.err.txt", keep=kept)
    except InfraError as error:  # as when its server has used up all processes of the box
        raise NotServed(f"nothing more can be started beside its server: {error}") from None
    return structs.replace(endpoint, url=f"http://127.0.0.1:{port}/v1")


def tunnel(box: Box, side: str, port: int | None) -> Command:
    """One end of the tunnel."""
    argv = ("python3", "-m", "prill.tunnel", side, box.path(f"{DOOR}/server.sock"), str(port))
    return Command(argv=argv, cwd=box.path("/tmp"))


def control(subject: Subject, base: Path, benchmark: Benchmark, why: str) -> None:
    """Serve the base model as the submission was, by an engine of ours where that was the submission's own server.

    Raises `InfraError` if that fails too: then nothing follows about the submission, of which `why` was said.
    """
    engine = getattr(plugins.get("engines", subject.engine), "control", subject.engine)
    ours = replace(subject, folder=base, digest=None, engine=engine)
    try:
        with served(ours, contracts.resolve(model_files(base), benchmark, engine)):
            return
    except NotServed as error:
        told = f"engine {subject.engine} does not serve the submission ({why})"
        raise InfraError(f"{told}, and engine {engine} does not serve the base model either ({error})") from None


def model_files(folder: Path) -> dict[str, bytes]:
    """What the decoding contract is read from."""
    found = {}
    for name in contracts.FILES:
        if (folder / name).is_file():
            with (folder / name).open("rb") as file:
                found[name] = file.read(contracts.LARGEST_BYTES + 1)
    return found
