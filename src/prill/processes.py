"""Starting, listening to and ending programs, and carrying single files: what every sandbox is made of.

Each program is started by a small launcher: this very file, run by a fresh interpreter. It enters the namespaces
it is given, gives up every capability, forks, executes, and reports how its child ended. A launcher is needed
because entering namespaces wants a process with one thread, and because dropping the bounding set must happen
between entering and executing, where no command-line tool can stand.

Not covered: a process stuck in the kernel cannot be killed, that is an `InfraError`; output that a leftover of a
program writes after the program's end is lost; kernels before 5.3 (no pidfd) cannot be used.
"""

from __future__ import annotations

import contextlib
import fcntl
import marshal
import os
import resource
import signal
import stat
import sys
import time

if __name__ != "__main__":  # the launcher starts with every command and takes only what it needs
    import secrets
    import subprocess
    import threading
    from collections.abc import Callable, Iterable
    from pathlib import Path, PurePosixPath
    from selectors import EVENT_READ, DefaultSelector
    from typing import Any

    from prill.errors import InfraError
    from prill.sockets import Command, Ended

PIECE = 1 << 18


# --- the launcher: a process with one thread, nothing but the standard library -----------------------------

SET_DUMPABLE, CAPBSET_DROP, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS = 4, 24, 36, 38
NEW_UTS = 0x04000000
JOIN_SESSION_KEYRING = {"x86_64": (250, 1), "aarch64": (219, 1)}
"""Machine → number of the system call `keyctl`, and of its operation."""


def _launch(plan: dict[str, Any]) -> None:
    """Enter, fork, execute, report: `ready` once the child exists, `ended STATUS` when it is gone."""
    os.set_inheritable(plan["status"], False)
    try:
        _enter(plan["namespaces"])
    except OSError as problem:
        os.write(plan["status"], f"failed {problem}\n".encode())
        return
    child = os.fork()
    if child == 0:
        try:
            _become(plan)
        except OSError as problem:
            os.write(2, f"{problem.filename or plan['argv'][0]}: {problem.strerror}\n".encode(errors="replace"))
            missing = isinstance(problem, FileNotFoundError | NotADirectoryError)
            os._exit(127 if missing else 126)  # what a shell answers
    os.write(plan["status"], b"ready\n")
    nothing = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):  # else the pipes stay open for as long as the launcher lives
        os.dup2(nothing, stream)
    with contextlib.suppress(ChildProcessError):  # no children left
        while True:
            pid, how = os.wait()
            if pid == child:
                os.write(plan["status"], f"ended {os.waitstatus_to_exitcode(how)}\n".encode())


def _call(name: str, *arguments: int) -> None:
    """A C function that answers -1 and errno."""
    import ctypes

    if getattr(ctypes.CDLL(None, use_errno=True), name)(*map(ctypes.c_ulong, arguments)) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)


def _enter(namespaces: dict[str, int] | None) -> None:
    """Join the namespaces: their owner's first, the user's own last.

    All processes of a run carry its mark, a UTS namespace: children inherit it, leaving it takes a capability.
    """
    if namespaces is None:
        _call("prctl", SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans come to us and can be found
        return
    _call("setns", namespaces["owner"], 0)
    _call("setns", namespaces["uts"], 0)
    _call("unshare", NEW_UTS)
    for kind in ("ipc", "net", "cgroup", "pid", "mnt"):
        _call("setns", namespaces[kind], 0)
    if "user" in namespaces:
        _call("setns", namespaces["user"], 0)


def _become(plan: dict[str, Any]) -> None:
    """Turn into the program: own session, default signals, no capability, no descriptor beyond the three."""
    os.setsid()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # the interpreter ignores them, programs expect them
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core would be handed to a program of the host
    for group in plan["groups"]:
        os.write(group, b"0")
    if plan["processes"] is not None:
        resource.setrlimit(resource.RLIMIT_NPROC, (plan["processes"], plan["processes"]))
    if plan["namespaces"] is not None:
        _call("prctl", SET_DUMPABLE, 0, 0, 0, 0)  # until the program replaces us, no one in the box looks inside
        if keyctl := JOIN_SESSION_KEYRING.get(os.uname().machine):
            with contextlib.suppress(OSError):  # a kernel without keyrings has none to leak
                _call("syscall", *keyctl, 0)
        with contextlib.suppress(OSError):  # ends at the first capability that this kernel does not know
            for capability in range(64):
                _call("prctl", CAPBSET_DROP, capability, 0, 0, 0)
        _call("prctl", SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.chdir(plan["cwd"])
    os.closerange(3, 1 << 20)
    os.execvpe(plan["argv"][0], plan["argv"], plan["env"])


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), "rb") as file:
        _launch(marshal.load(file))
    os._exit(0)


# --- processes, as the kernel tells them -------------------------------------------------------------------


def everyone() -> list[int]:
    """The ids of all processes that we can see."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def send(number: int, members: Callable[[], set[int]]) -> bool:
    """Signal all of a set that is read anew, so that a recycled id never gets what was meant for another."""
    handles = []
    for pid in members():
        with contextlib.suppress(OSError):
            handles.append((pid, os.pidfd_open(pid)))
    still = members() if handles else set()
    for pid, handle in handles:
        with contextlib.suppress(OSError):
            if pid in still:
                signal.pidfd_send_signal(handle, number)
        os.close(handle)
    return bool(still)


# --- one program -------------------------------------------------------------------------------------------


class Output:
    """One stream of a program, from its pipe into a file, byte for byte up to a cap; what is beyond is counted."""

    def __init__(self, path: Path, cap: int, times: Path | None = None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND  # both streams may share one file
        self.file = os.open(path, flags, 0o644)
        self.times = os.open(times, flags, 0o644) if times else None
        self.cap, self.kept, self.dropped = cap, 0, 0
        self.problem: OSError | None = None
        self.pipe, self.end = os.pipe()
        os.set_blocking(self.pipe, False)

    def take(self, since: float) -> int:
        """Move what is there; returns how many bytes, 0 at the end of the stream."""
        piece = os.read(self.pipe, PIECE)
        keep = piece[: max(0, self.cap - self.kept)]
        try:
            if keep and self.times is not None:
                os.write(self.times, f"{self.kept} {time.monotonic() - since:.6f}\n".encode())
            rest = memoryview(keep)
            while rest:
                rest = rest[os.write(self.file, rest) :]
        except OSError as problem:  # a full disk must not block the program: it goes on, we report it at the end
            self.problem, self.cap, keep = problem, 0, b""
        self.kept += len(keep)
        self.dropped += len(piece) - len(keep)
        return len(piece)

    def drain(self, since: float) -> None:
        """Take what is in the pipe now, and no more: a leftover may write for ever."""
        left = fcntl.fcntl(self.pipe, fcntl.F_GETPIPE_SZ)
        with contextlib.suppress(BlockingIOError):
            while left > 0 and (taken := self.take(since)):
                left -= taken

    def close(self) -> None:
        for descriptor in (self.file, self.times, self.pipe):
            if descriptor is not None:
                os.close(descriptor)


class Program:
    """A program that was started through the launcher, with a thread that listens to it. This is a `Running`."""

    def __init__(
        self,
        command: Command,
        env: dict[str, str],
        cwd: str,
        outputs: tuple[Output, Output],
        *,
        namespaces: dict[str, int] | None = None,
        groups: Iterable[Path] = (),
        processes: int | None = None,
        members: Callable[[int, int], set[int]],
        last_resort: Callable[[], None],
        kills: Callable[[], int] = lambda: 0,
    ) -> None:
        """`members` tells the living processes by the launcher's id and the mark; `last_resort` spares nothing;
        `kills` counts what the kernel killed for memory."""
        self.outputs, self._last_resort, self._kills = outputs, last_resort, kills
        self._killed_before = kills()
        self._lock, self._timed_out = threading.Lock(), False
        self._signals: list[str] = []
        self._code: int | None = None
        self._wall = 0.0
        self._status, status = os.pipe()
        stdin, plan, handles = _sealed(command.stdin), -1, []
        try:
            handles = [os.open(group, os.O_WRONLY) for group in groups]
            plan = _sealed(
                marshal.dumps(
                    {"argv": command.argv, "env": env, "cwd": cwd, "namespaces": namespaces, "groups": handles}
                    | {"processes": processes, "status": status}
                )
            )
            self._launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", __file__, str(plan)],
                stdin=stdin,
                stdout=outputs[0].end,
                stderr=outputs[1].end,
                env={},
                cwd="/",
                pass_fds=[plan, status, *handles, *(namespaces or {}).values()],
                start_new_session=True,
            )
        finally:
            for descriptor in (stdin, plan, status, outputs[0].end, outputs[1].end, *handles):
                if descriptor >= 0:
                    os.close(descriptor)
        self._words = os.fdopen(self._status, "rb", buffering=0)
        word, _, rest = self._words.readline().decode(errors="replace").strip().partition(" ")
        self._anchor = os.open(f"/proc/{self._launcher.pid}/ns/uts", os.O_RDONLY)  # held, so that no one else gets it
        self._since = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="prill-listen", daemon=True)
        self._thread.start()
        if word != "ready":
            raise InfraError(f"cannot start a program in the box: {rest or 'the launcher died'}")
        mark = os.fstat(self._anchor).st_ino
        self.members: Callable[[], set[int]] = lambda: members(self._launcher.pid, mark)

    def _listen(self) -> None:
        with DefaultSelector() as selector:
            for output in self.outputs:
                selector.register(output.pipe, EVENT_READ, output)
            selector.register(self._words, EVENT_READ)
            ended = b""
            while not ended:
                for key, _ in selector.select():
                    if key.data is None:
                        ended = self._words.readline() or b"lost"
                    elif not key.data.take(self._since):
                        selector.unregister(key.fd)
        self._wall = time.monotonic() - self._since
        for output in self.outputs:
            output.drain(self._since)
            output.close()
        self._words.close()
        if ended.startswith(b"ended "):
            self._code = int(ended.split()[1])
        self._done.set()

    def poll(self) -> Ended | None:
        """How it ended, or `None` while it runs."""
        return self._ended() if self._done.is_set() else None

    def _ended(self) -> Ended:
        for output in self.outputs:
            if output.problem:
                raise InfraError(f"cannot write a program's output: {output.problem}") from output.problem
        return Ended(
            exit_code=self._code if self._code is not None and self._code >= 0 else None,
            signals=tuple(self._signals),
            timed_out=self._timed_out,
            oom_killed=self._kills() > self._killed_before,
            wall_seconds=self._wall,
            output_bytes=sum(output.kept for output in self.outputs),
            dropped_bytes=sum(output.dropped for output in self.outputs),
        )

    def wait(self, limit_seconds: float | None, grace_seconds: float) -> Ended:
        """To the end, or to the deadline and then the end of every process that came of it."""
        try:
            if not self._done.wait(limit_seconds):
                self._timed_out = True
                self.stop(grace_seconds)
        except BaseException:  # an interrupt at the keyboard above all
            self.kill()
            raise
        return self._ended()

    def stop(self, grace_seconds: float = 5.0) -> Ended:
        """TERM to all its processes, KILL after the grace to those that are left. Idempotent."""
        with self._lock:
            if send(signal.SIGTERM, self.members):
                self._signals.append("TERM")
            until = time.monotonic() + grace_seconds
            while (alive := self.members()) and time.monotonic() < until:
                time.sleep(0.02)
            if alive or not self._done.is_set():
                self.kill()
        return self._ended()

    def kill(self, patience: float = 5.0) -> None:
        """KILL until nothing is left; what forks faster than we kill takes the whole box with it."""
        for resort in (self._last_resort, None):
            until = time.monotonic() + patience
            while time.monotonic() < until:
                if send(signal.SIGKILL, self.members) and "KILL" not in self._signals:
                    self._signals.append("KILL")
                if not self.members() and self._done.wait(0.02):
                    return
            if resort:
                resort()
        raise InfraError(f"processes of the box cannot be killed: {sorted(self.members())}")

    def close(self) -> None:
        """Once its processes are dead: nothing of ours is left either."""
        self._launcher.wait()
        self._thread.join()
        self.members = set  # the launcher's id and the mark may now become someone else's
        os.close(self._anchor)

    def over(self) -> bool:
        """True once nothing of it needs us any more; it is closed then."""
        if self._launcher.poll() is None:
            return False
        self.close()
        return True


def _sealed(content: bytes) -> int:
    """A descriptor with these bytes that no one can change or grow, not even by opening it again."""
    descriptor = os.memfd_create("prill", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    return descriptor


# --- single files, in and out of folders of hostile making -------------------------------------------------


def _folder(root: int, names: Iterable[str], make: bool) -> int:
    """A descriptor of the folder under `root`, reached without following a single link."""
    here = os.dup(root)
    for name in names:
        try:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=here)
            inner = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
        except NotADirectoryError as problem:
            raise ValueError(f"not a folder but a link or a file: {name!r}") from problem
        finally:
            os.close(here)
        here = inner
    return here


def steps(path: str) -> list[str]:
    """The names of an absolute path; `ValueError` if it is not one or has a way up in it."""
    pure = PurePosixPath(path)
    if not pure.is_absolute() or ".." in pure.parts:
        raise ValueError(f"must be an absolute path without '..': {path!r}")
    return list(pure.parts[1:])


def carry_out(root: int, names: list[str], target: Path, max_bytes: int) -> None:
    """Copy a regular file out. `ValueError` for a link, for what is no regular file, and beyond `max_bytes`."""
    folder = _folder(root, names[:-1], make=False)
    try:
        found = os.open(names[-1], os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    try:  # looked at before it is opened: opening a FIFO waits, opening a device may do anything
        kind = os.fstat(found)
        if not stat.S_ISREG(kind.st_mode):
            raise ValueError(f"not a regular file: {'/'.join(names)!r}")
        left = max_bytes
        with Path(f"/proc/self/fd/{found}").open("rb") as source, target.open("wb") as copy:
            while left >= 0 and (piece := source.read(min(PIECE, left + 1))):
                left -= len(piece)
                copy.write(piece)
    finally:
        os.close(found)
    if left < 0:
        target.unlink()
        raise ValueError(f"larger than {max_bytes} bytes: {'/'.join(names)!r}")


def carry_in(source: Path, root: int, names: list[str]) -> None:
    """Copy a file in, replacing what has the name; missing folders are made; `ValueError` for a link on the way."""
    folder = _folder(root, names[:-1], make=True)
    passing = f".{secrets.token_hex(8)}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with (
            source.open("rb") as original,
            os.fdopen(os.open(passing, flags, 0o600, dir_fd=folder), "wb") as copy,
        ):
            while piece := original.read(PIECE):
                copy.write(piece)
            os.fchmod(copy.fileno(), stat.S_IMODE(os.fstat(original.fileno()).st_mode) & 0o777)
        os.replace(passing, names[-1], src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)
