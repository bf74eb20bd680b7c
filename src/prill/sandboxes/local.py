"""No box at all: programs run on this machine as you, for machines where no box can be made and for trying things.

A place of the box is a folder of the host: a mount's target is its source, all else lies in a private folder that
goes away at the end (`Box.path` tells). Programs get a clean environment and a session of their own, and die at the
deadline and at the close with all their descendants, however often these have forked.

Not covered: everything else. Programs see your files, your network and each other; read-only mounts can be written to;
there are no limits; if prill itself is killed, its programs live on.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from prill.errors import InfraError
from prill.outputs import Output
from prill.processes import Program, carry_in, carry_out, steps
from prill.sockets import Box, Command, Ended, Keep, Need, Running

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys")
"""Places that are the same in every box, and here simply the host's."""


def descends(pid: int, ancestor: int) -> bool:
    """Whether a process lives and descends from another. A leader that ended while its threads live is alive."""
    first = True
    with contextlib.suppress(OSError):
        while pid > 1:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            if first and fields[0] in b"ZX" and int(fields[17]) <= 1:
                return False
            first, pid = False, int(fields[1])
            if pid == ancestor:
                return True
    return False


class LocalBox:
    """An open box that is none; see `Box`."""

    isolated = False
    limits: tuple[str, ...] = ()
    """No limit is ever in force."""

    def __init__(self, need: Need, room: Path) -> None:
        """`room` is the private folder."""
        self._need, self._room = need, room
        self._programs: list[Program] = []
        for place in ("tmp", "run", "home/agent"):
            (room / place).mkdir(parents=True)

    def path(self, target: str) -> str:
        """The host's path for a place of the box. What is a host path already stays as it is."""
        same: list[str | Path] = [
            *SYSTEM,
            self._room,
            *self._need.runtime,
            *(mount.source for mount in self._need.mounts),
        ]
        root, names = self._place(target)
        if root == self._room and any(PurePosixPath(target).is_relative_to(place) for place in same):
            return target
        return os.fspath(root.joinpath(*names))

    def _place(self, target: str) -> tuple[Path, list[str]]:
        """The host folder that is the innermost mount around a place of the box, and the names below it."""
        pure = PurePosixPath(target)
        around = [mount for mount in self._need.mounts if pure.is_relative_to(mount.target)]
        if not around:
            return self._room, steps(target)
        mount = max(around, key=lambda mount: len(steps(mount.target)))
        return mount.source, steps(target)[len(steps(mount.target)) :]

    def _start(self, command: Command, stdout: Path, stderr: Path, keep: Keep) -> Program:
        self._programs = [program for program in self._programs if not program.over()]
        program = Program(
            replace(command, cwd=self.path(command.cwd)),
            {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.path("/home/agent"), "TMPDIR": self.path("/tmp")}
            | dict(self._need.env)
            | dict(command.env),
            (Output(stdout, keep, timed=True), Output(stderr, keep)),
            belongs=lambda pid, launcher, _: descends(pid, launcher),
            last_resort=lambda: None,
        )
        self._programs.append(program)
        return program

    def run(
        self,
        command: Command,
        *,
        stdout: Path,
        stderr: Path,
        limit_seconds: float | None = None,
        grace_seconds: float = 5.0,
        keep: Keep = Keep(),
    ) -> Ended:
        """See `Box.run`."""
        return self._start(command, stdout, stderr, keep).wait(limit_seconds, grace_seconds)

    def start(self, command: Command, *, stdout: Path, stderr: Path, keep: Keep = Keep()) -> Running:
        """See `Box.start`."""
        return self._start(command, stdout, stderr, keep)

    def _open(self, target: str) -> tuple[int, list[str]]:
        """A descriptor of the host folder and the names below it; a file that is itself a mount is its own name."""
        root, names = self._place(target)
        writable = {mount.source: mount.writable for mount in self._need.mounts} | {self._room: True}
        if not writable[root]:
            raise ValueError(f"not a writable place of the box: {target!r}")
        if not names:
            root, names = root.parent, [root.name]
        return os.open(root, os.O_PATH | os.O_DIRECTORY), names

    def put(self, source: Path, target: str) -> None:
        """See `Box.put`. `ValueError` for a place that is not writable, or a link on the way."""
        root, names = self._open(target)
        try:
            carry_in(source, root, names)
        finally:
            os.close(root)

    def get(self, source: str, target: Path, max_bytes: int = 64 << 30) -> None:
        """See `Box.get`. A file beyond `max_bytes` is refused too."""
        root, names = self._open(source)
        try:
            carry_out(root, names, target, max_bytes)
        finally:
            os.close(root)

    def close(self) -> None:
        """Returns when every process that was started here is dead."""
        for program in self._programs:
            program.kill()
            program.close()


class Local:
    """See `Sandbox`."""

    @contextmanager
    def open(self, need: Need) -> Iterator[Box]:
        """See `Sandbox.open`."""
        for source in [*need.runtime, *(mount.source for mount in need.mounts)]:
            if not source.exists():
                raise InfraError(f"what programs should find does not exist: {source}")
        room = Path(tempfile.mkdtemp(prefix="prill-"))
        box = LocalBox(need, room)
        try:
            yield box
        finally:
            try:
                box.close()
            finally:
                _remove(room)


def _remove(room: Path) -> None:
    """Remove a folder whose inner folders may have been made unwritable. Links are not followed."""
    for folder, names, _ in os.walk(room):
        for inner in (Path(folder, name) for name in names):
            if not inner.is_symlink():
                inner.chmod(0o700)
    shutil.rmtree(room, ignore_errors=True)


plugin = Local()
