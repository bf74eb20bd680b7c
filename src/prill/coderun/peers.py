"""A program of ours in a fresh box of its own, and the socket by which it is spoken to.

The folder with the socket is mounted read-only: enough to connect, nothing to fill. Of the host the box has what every
box has, the interpreter's folder with its installed packages covered up (some ship a benchmark's items), this package's
folder and numpy.
"""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from prill import runtime
from prill.coderun import frames
from prill.coderun.frames import Frame, Gone, Late
from prill.errors import InfraError
from prill.sockets import Box, Command, Mount, Need, Running, Sandbox

START_SECONDS = 60.0
"""For a box's program to say hello; a machine under load takes its time."""
INTERPRETER = Path(sys.base_prefix).resolve()
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
LOADER = "import sys; sys.path.insert(0, '/given'); from prill.coderun.{0} import main; main('/talk/socket')"


@dataclass(frozen=True)
class Limits:
    """What one sample may use. `seconds` counts the time in which we wait for the model's code."""

    seconds: float = 30.0
    memory_bytes: int = 2 << 30
    processes: int = 32
    output_bytes: int = 16 << 20


class Peer:
    """One program in its box."""

    def __init__(self, name: str, listener: socket.socket, running: Running, errors: Path) -> None:
        self.name, self._listener, self._running, self._errors = name, listener, running, errors
        self._link: socket.socket | None = None

    def hello(self) -> socket.socket:
        """Wait until it speaks. Before it does, none of the model's code runs, so what fails is ours: `InfraError`."""
        if self._link is not None:
            return self._link
        until = time.monotonic() + START_SECONDS
        while self._link is None:
            self._listener.settimeout(0.25)
            try:
                self._link, _ = self._listener.accept()
            except TimeoutError:
                if self._running.poll() is not None or time.monotonic() > until:
                    raise self._failed("did not start") from None
        try:
            if frames.receive(self._link, until).kind == "h":
                return self._link
        except (Gone, Late):
            pass
        raise self._failed("did not say hello")

    def _failed(self, how: str) -> InfraError:
        words = self._errors.read_text(errors="replace").strip()[-1000:] or "it gave no reason"
        return InfraError(f"the {self.name} for a model's code {how}: {words}")

    def send(self, kind: str, payload: bytes, until: float) -> None:
        """See `frames.send`."""
        frames.send(self.hello(), kind, payload, until)

    def receive(self, until: float, longest: int) -> Frame:
        """See `frames.receive`."""
        return frames.receive(self.hello(), until, longest)

    def out_of_memory(self) -> bool:
        """End it, and say whether the kernel killed something of it for want of memory."""
        try:
            return self._running.stop(0).oom_killed
        except InfraError:  # how a program of the model's ended is no concern of ours
            return False

    def close(self) -> None:
        """Hang up."""
        if self._link is not None:
            self._link.close()


@contextmanager
def peer(sandbox: Sandbox, name: str, limits: Limits) -> Iterator[Peer]:
    """Start `answer` or `checker` in a fresh box. Raises `InfraError` where there is none that isolates."""
    with ExitStack() as undo:
        folder = Path(undo.enter_context(TemporaryDirectory(prefix="prill-code-")))
        (folder / "talk").mkdir()
        listener = undo.enter_context(socket.socket(socket.AF_UNIX))
        bind(listener, folder / "talk")
        (folder / "nothing").mkdir()
        box = undo.enter_context(sandbox.open(need(folder, limits)))
        if not box.isolated:
            raise InfraError("a model's code is only run in a box that isolates; this sandbox says that it does not")
        running = start(box, name, folder)
        made = Peer(name, listener, running, folder / "errors")
        undo.callback(made.close)
        yield made


def need_boxes(sandbox: Sandbox, name: str) -> None:
    """Raises `InfraError` where a model's code cannot be run in boxes of that sandbox on this machine."""
    whose = f"a model's code is run in boxes of {name}, whatever --sandbox says"
    try:
        with sandbox.open(Need()) as box:
            isolated = box.isolated
    except InfraError as error:
        raise InfraError(f"{whose}, and this machine cannot make one: {error}") from None
    if not isolated:
        raise InfraError(f"{whose}, and {name} does not isolate")


def bind(listener: socket.socket, folder: Path) -> None:
    """Listen in a folder, however long its path is: a socket's own must fit into 108 bytes."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/socket")
    finally:
        os.close(descriptor)
    listener.listen(1)


def start(box: Box, name: str, folder: Path) -> Running:
    """The program, by an interpreter that looks at no variables and no folders of a user."""
    argv = (str(INTERPRETER / "bin" / VERSION), "-I", "-X", "utf8", "-c", LOADER.format(name))
    return box.start(Command(argv=argv), stdout=folder / "output", stderr=folder / "errors")


def need(folder: Path, limits: Limits) -> Need:
    """What the box must offer. `folder` holds the socket's folder and an empty one."""
    mounts = [
        Mount(source=folder / "talk", target="/talk"),
        Mount(source=Path(__file__).parent, target="/given/prill/coderun"),
        *(Mount(source=place, target=f"/given/packages/{place.name}") for place in numpy()),
        *(Mount(source=folder / "nothing", target=str(place)) for place in installed()),
    ]
    inherited = {name: os.environ[name] for name in runtime.ACCELERATOR if name in os.environ and "BLAS" in name}
    return Need(
        mounts=tuple(mounts),
        runtime=() if Path("/usr") == INTERPRETER else (INTERPRETER,),
        env={**inherited, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LANG": "C.UTF-8"},
        memory_bytes=limits.memory_bytes,
        processes=limits.processes,
    )


def installed() -> list[Path]:
    """Folders of installed packages within what every box has."""
    places = [
        INTERPRETER / "lib" / VERSION / "site-packages",
        Path("/usr/lib/python3/dist-packages"),
        *(Path("/usr/local/lib", VERSION, kind) for kind in ("dist-packages", "site-packages")),
    ]
    return [place for place in dict.fromkeys(places) if place.is_dir() and not place.is_symlink()]


def numpy() -> list[Path]:
    """The folders of numpy, which many an answer imports."""
    found = find_spec("numpy")
    places = [Path(place) for place in (found.submodule_search_locations or [])] if found else []
    return [folder for place in places for folder in (place, place.with_name("numpy.libs")) if folder.is_dir()]
