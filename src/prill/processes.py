"""Starting, listening to and ending programs, and carrying single files: what every sandbox is made of.

Each program is started by a small launcher: this very file, run by a fresh interpreter. It enters the namespaces
it is given, gives up every capability, forks, executes, and reports how its child ended. A launcher is needed
because entering namespaces wants a process with one thread, and because dropping the bounding set must happen
between entering and executing, where no command-line tool can stand.

Not covered: a process stuck in the kernel cannot be killed, that is an `InfraError`; output that a leftover of a
program writes after the program's end is lost; kernels before 5.3 (no pidfd) cannot be used.
"""

from __future__ import annotations

import os
import resource
import sys

if __name__ != "__main__":  # the launcher starts with every command and takes only what it needs
    import contextlib
    import fcntl
    import marshal
    import secrets
    import shutil
    import signal
    import stat
    import subprocess
    import threading
    import time
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path, PurePosixPath
    from selectors import EVENT_READ, DefaultSelector
    from socket import socketpair
    from typing import Any

    from prill.errors import InfraError
    from prill.sockets import Command, Ended

PIECE = 1 << 18
SET_DUMPABLE, SET_SECCOMP, CAPBSET_DROP, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS = 4, 22, 24, 36, 38
NEW_UTS = 0x04000000


def _launch(plan: dict[str, Any]) -> None:
    """Enter, say `ready`, wait for a byte, fork, execute, say `ended STATUS`, live while there are orphans."""
    talk = plan["talk"]
    os.set_inheritable(talk, False)
    try:
        _enter(plan["namespaces"])
    except OSError as problem:
        os.write(talk, f"failed {problem}\n".encode())
        return
    os.write(talk, b"ready\n")
    if not os.read(talk, 1):  # whoever started us is gone
        return
    child = os.fork()
    if child == 0:
        try:
            _become(plan)
        except OSError as problem:
            os.write(2, f"{problem.filename or plan['argv'][0]}: {problem.strerror}\n".encode(errors="replace"))
            missing = isinstance(problem, FileNotFoundError | NotADirectoryError)
            os._exit(127 if missing else 126)  # what a shell answers
        finally:
            os._exit(126)
    nothing = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):  # else the pipes stay open for as long as we live
        os.dup2(nothing, stream)
    while True:
        try:
            pid, how = os.wait()
        except ChildProcessError:
            return
        if pid == child:
            os.write(talk, f"ended {os.waitstatus_to_exitcode(how)}\n".encode())


def _call(name: str, *arguments: int, needed: bool = True) -> bool:
    """A C function that answers -1 and errno; False or an `OSError` if it does."""
    if getattr(LIBC, name)(*map(ctypes.c_ulong, arguments)) != -1:
        return True
    if needed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return False


def _enter(namespaces: dict[str, int] | None) -> None:
    """Join the namespaces: their owner's first, the user's own last.

    All processes of a run carry its mark, a UTS namespace: children inherit it, leaving it takes a capability.
    """
    _call("prctl", SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans come to us and can be found, unless we are outside
    if namespaces is None:
        return
    sys.meta_path.clear()  # from here on an import would come from the box
    _call("setns", namespaces["owner"], 0)
    _call("setns", namespaces["uts"], 0)
    _call("unshare", NEW_UTS)
    for kind in ("ipc", "net", "cgroup", "pid", "mnt", "user"):
        if kind in namespaces:
            _call("setns", namespaces[kind], 0)


def _become(plan: dict[str, Any]) -> None:
    """Turn into the program: own session, default signals, no capability, no descriptor beyond the three."""
    os.setsid()
    for ignored in (13, 25):  # PIPE, XFSZ: the interpreter ignores them, programs expect them
        _call("signal", ignored, 0)
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core would be handed to a program of the host
    for group in plan["groups"]:
        os.write(group, b"0")
    if plan["processes"]:
        resource.setrlimit(resource.RLIMIT_NPROC, (plan["processes"], plan["processes"]))
    if plan["namespaces"]:
        _call("prctl", SET_DUMPABLE, 0, 0, 0, 0)  # until the program replaces us, no one in the box looks inside
        while _call("prctl", CAPBSET_DROP, plan["capability"], 0, 0, 0, needed=False):
            plan["capability"] += 1  # up to the first one that the kernel does not know
        _call("prctl", SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if code := (ctypes.c_uint64 * len(plan["filter"]))(*plan["filter"]):
            header = (ctypes.c_uint64 * 2)(len(code), ctypes.addressof(code))
            _call("prctl", SET_SECCOMP, 2, ctypes.addressof(header), 0, 0)
    os.chdir(plan["cwd"])
    os.closerange(3, 1 << 20)
    argv, env = plan["argv"], plan["env"]
    problem: OSError = FileNotFoundError(2, os.strerror(2), argv[0])
    for folder in [""] if "/" in argv[0] else env["PATH"].split(":"):  # os.execvp would import
        try:
            os.execve(f"{folder}/{argv[0]}" if folder else argv[0], argv, env)
        except OSError as reason:
            problem = problem if isinstance(reason, FileNotFoundError | NotADirectoryError) else reason
    raise problem


if __name__ == "__main__":
    import ctypes
    import marshal

    LIBC = ctypes.CDLL(None, use_errno=True)
    with os.fdopen(int(sys.argv[1]), "rb") as file:
        _launch(marshal.load(file))
    os._exit(0)


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

    def finish(self, since: float) -> None:
        """Take what is in the pipe now, and no more: a leftover may write for ever."""
        left = fcntl.fcntl(self.pipe, fcntl.F_GETPIPE_SZ)
        with contextlib.suppress(BlockingIOError):
            while left > 0 and (taken := self.take(since)):
                left -= taken
        for descriptor in (self.file, self.times, self.pipe):
            if descriptor is not None:
                os.close(descriptor)


class Program:
    """A program started through the launcher, with a thread that listens to it. This is a `Running`."""

    def __init__(
        self,
        command: Command,
        env: dict[str, str],
        outputs: tuple[Output, Output],
        *,
        namespaces: dict[str, int] | None = None,
        groups: Iterable[Path] = (),
        processes: int | None = None,
        syscalls: Iterable[int] = (),
        members: Callable[[int, int], set[int]],
        last_resort: Callable[[], None],
        kills: Callable[[], int] = lambda: 0,
    ) -> None:
        """`members` tells its living processes from the launcher's id and the mark; `last_resort` kills the whole
        box; `kills` counts what the kernel killed for memory; `processes` is a limit by the per-user count,
        `syscalls` a filter for seccomp."""
        self._outputs, self._last_resort, self._kills = outputs, last_resort, kills
        self._killed_before = kills()
        self._done, self._lock, self._timed_out = threading.Event(), threading.Lock(), False
        self._signals: list[str] = []
        self._code: int | None = None
        ours, talk = (end.detach() for end in socketpair())
        stdin, handles = _sealed(command.stdin), [os.open(group, os.O_WRONLY) for group in groups]
        plan: dict[str, Any] = {"argv": command.argv, "env": env, "cwd": command.cwd, "talk": talk}
        plan |= {"processes": processes, "namespaces": namespaces, "groups": handles, "capability": 0}
        plan["filter"] = list(syscalls)
        handles += [talk, _sealed(marshal.dumps(plan))]
        self._launcher = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", __file__, str(handles[-1])],
            stdin=stdin,
            stdout=outputs[0].end,
            stderr=outputs[1].end,
            env={},
            cwd="/",
            pass_fds=[*handles, *(namespaces or {}).values()],
            start_new_session=True,
        )
        for descriptor in (stdin, outputs[0].end, outputs[1].end, *handles):
            os.close(descriptor)
        self._talk = os.fdopen(ours, "rb", buffering=0)
        word, _, rest = self._talk.readline().decode(errors="replace").strip().partition(" ")
        self._since = time.monotonic()
        self._thread = threading.Thread(target=self._listen, name="prill-listen", daemon=True)
        if word != "ready":
            self._listen()
            raise InfraError(f"cannot start a program in the box: {rest or 'the launcher died'}")
        self._mark = os.open(f"/proc/{self._launcher.pid}/ns/uts", os.O_RDONLY)  # held: no other may get its number
        mark = os.fstat(self._mark).st_ino
        self._members: Callable[[], set[int]] = lambda: members(self._launcher.pid, mark)
        os.write(ours, b"!")
        self._thread.start()

    def _listen(self) -> None:
        """Move output as it comes, until the launcher says that the program is at its end."""
        ended = b""
        with DefaultSelector() as selector:
            for output in self._outputs:
                selector.register(output.pipe, EVENT_READ, output)
            selector.register(self._talk, EVENT_READ)
            while not ended:
                for key, _ in selector.select():
                    if key.data is None:
                        ended = self._talk.readline() or b"lost"
                    elif not key.data.take(self._since):
                        selector.unregister(key.fd)
        self._wall = time.monotonic() - self._since
        for output in self._outputs:
            output.finish(self._since)
        self._talk.close()
        if ended.startswith(b"ended "):
            self._code = int(ended.split()[1])
        self._done.set()

    def poll(self) -> Ended | None:
        """How it ended, or `None` while it runs."""
        if not self._done.is_set():
            return None
        for output in self._outputs:
            if output.problem:
                raise InfraError(f"cannot write a program's output: {output.problem}") from output.problem
        return Ended(
            exit_code=None if self._code is None or self._code < 0 else self._code,
            signals=tuple(self._signals),
            timed_out=self._timed_out,
            oom_killed=self._kills() > self._killed_before,
            wall_seconds=self._wall,
            output_bytes=sum(output.kept for output in self._outputs),
            dropped_bytes=sum(output.dropped for output in self._outputs),
        )

    def wait(self, limit_seconds: float | None, grace_seconds: float) -> Ended:
        """To the end, or to the deadline and then the end of every process that came of it."""
        try:
            while not (ended := self.poll()):
                if not self._done.wait(limit_seconds):
                    self._timed_out = True
                    self.stop(grace_seconds)
        except BaseException:  # an interrupt at the keyboard above all
            self.kill()
            raise
        return ended

    def stop(self, grace_seconds: float = 5.0) -> Ended:
        """TERM to all its processes, KILL after the grace to those that are left. Idempotent."""
        with self._lock:
            if send(signal.SIGTERM, self._members):
                self._signals.append("TERM")
            until = time.monotonic() + grace_seconds
            while self._members() and time.monotonic() < until:
                time.sleep(0.02)
            self.kill()
        ended = self.poll()
        assert ended
        return ended

    def kill(self, patience: float = 5.0) -> None:
        """KILL until nothing is left; what forks faster than we kill takes the whole box with it."""
        since, last_resort = time.monotonic(), self._last_resort
        while self._members() or not self._done.wait(0.02):
            if send(signal.SIGKILL, self._members) and "KILL" not in self._signals:
                self._signals.append("KILL")
            if time.monotonic() > since + patience:
                last_resort()
            if time.monotonic() > since + 2 * patience:
                raise InfraError(f"processes of the box cannot be killed: {sorted(self._members())}")

    def close(self) -> None:
        """Once its processes are dead: nothing of ours is left either."""
        self._launcher.wait()
        self._thread.join()
        self._members = set  # the launcher's id and the mark may now become someone else's
        os.close(self._mark)

    def over(self) -> bool:
        """True once nothing of it is left that could need us; it is closed then."""
        if self._launcher.poll() is None or self._members():
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


@contextlib.contextmanager
def _folder(root: int, names: Iterable[str], make: bool) -> Iterator[int]:
    """A descriptor of the folder under `root`, reached without following a single link."""
    with contextlib.ExitStack() as opened:
        for name in names:
            try:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, 0o755, dir_fd=root)
                root = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
            except NotADirectoryError as problem:
                raise ValueError(f"not a folder but a link or a file: {name!r}") from problem
            opened.callback(os.close, root)
        yield root


def steps(path: str) -> list[str]:
    """The names of an absolute path; `ValueError` if it is not one or has a way up in it."""
    pure = PurePosixPath(path)
    if not pure.is_absolute() or ".." in pure.parts:
        raise ValueError(f"must be an absolute path without '..': {path!r}")
    return list(pure.parts[1:])


def carry_out(root: int, names: list[str], target: Path, max_bytes: int) -> None:
    """Copy a regular file out. `ValueError` for a link, for what is no regular file, and beyond `max_bytes`."""
    with _folder(root, names[:-1], make=False) as folder:
        found = os.open(names[-1], os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
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
    passing, flags = f".{secrets.token_hex(8)}", os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with _folder(root, names[:-1], make=True) as folder, source.open("rb") as original:
        with os.fdopen(os.open(passing, flags, 0o600, dir_fd=folder), "wb") as copy:
            shutil.copyfileobj(original, copy, PIECE)
            os.fchmod(copy.fileno(), os.fstat(original.fileno()).st_mode & 0o777)
        os.replace(passing, names[-1], src_dir_fd=folder, dst_dir_fd=folder)
