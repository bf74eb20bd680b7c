"""Starting, listening to and ending programs, and carrying single files: what every sandbox is made of.

A program is started by a small launcher: this very file, run by a fresh interpreter. It enters namespaces, forks,
gives up every capability, executes, and reports how its child ended. Namespaces want a process with one thread, and
the bounding set can be dropped only between entering and executing, where no command-line tool can stand.

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
    from prill.outputs import Output
    from prill.sockets import Command, Ended

PIECE, NEW_UTS = 1 << 18, 0x04000000
SET_DUMPABLE, SET_SECCOMP, CAPBSET_DROP, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS = 4, 22, 24, 36, 38


def _launch(plan: dict[str, Any]) -> None:
    """Enter, say `ready`, wait for a byte, fork, execute, say `ended STATUS`, live while there are orphans."""
    talk = plan["talk"]
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
        except Exception as problem:
            os.write(2, f"{plan['argv'][0]}: {problem}\n".encode(errors="replace"))
            missing = isinstance(problem, FileNotFoundError | NotADirectoryError)
            os._exit(127 if missing else 126)  # what a shell answers
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


def _call(name: str, *arguments: int, needed: bool = True) -> None:
    """A C function that answers -1 and errno: an `OSError`, where success is needed."""
    if getattr(LIBC, name)(*map(ctypes.c_ulong, arguments)) == -1 and needed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)


def _enter(namespaces: dict[str, int] | None) -> None:
    """Join the namespaces: their owner's first, the user's own last. A new UTS namespace becomes the mark of all
    processes of this run: children inherit it, leaving it takes a capability."""
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
        for capability in range(64):  # more than any kernel knows
            _call("prctl", CAPBSET_DROP, capability, 0, 0, 0, needed=False)
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


def send(number: int, belongs: Callable[[int], bool]) -> bool:
    """Signal every process that belongs, as it is found; true if there was one. Asked again once a handle is held, so
    that a recycled id never gets what was meant for another."""
    found = False
    for pid in filter(belongs, everyone()):
        with contextlib.suppress(OSError), os.fdopen(os.pidfd_open(pid)) as handle:
            if belongs(pid):
                found = True
                signal.pidfd_send_signal(handle.fileno(), number)
    return found


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
        belongs: Callable[[int, int, int], bool],
        last_resort: Callable[[], None],
        kills: Callable[[], int] = lambda: 0,
    ) -> None:
        """`belongs` knows a living process of it by the launcher's id and the mark; `last_resort` kills all of the box;
        `kills` counts what died for want of memory; `processes` is a per-user limit; `syscalls` a seccomp filter."""
        self._outputs, self._last_resort, self._kills = outputs, last_resort, kills
        self._killed_before = kills()
        self._done, self._lock, self._timed_out = threading.Event(), threading.Lock(), False
        self._signals: list[str] = []
        self._code, self._wall, self._oom, self._problem = -1, 0.0, False, ""
        ours, talk = (end.detach() for end in socketpair())
        stdin, handles = _sealed(command.stdin), [os.open(group, os.O_WRONLY) for group in groups]
        plan: dict[str, Any] = {"argv": command.argv, "env": env, "cwd": command.cwd, "talk": talk}
        plan |= {"processes": processes, "namespaces": namespaces, "groups": handles, "filter": [*syscalls]}
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
            raise InfraError(f"cannot start a program in the box: {rest or self._problem}")
        self._mark = os.open(f"/proc/{self._launcher.pid}/ns/uts", os.O_RDONLY)  # held: no other may get its number
        mark = os.fstat(self._mark).st_ino
        self._belongs: Callable[[int], bool] = lambda pid: belongs(pid, self._launcher.pid, mark)
        os.write(ours, b"!")
        self._thread.start()

    def _listen(self) -> None:
        """Move output as it comes, until the launcher says that the program is at its end."""
        ended = b""
        with contextlib.ExitStack() as last:
            last.callback(self._done.set)  # whatever happens, nobody waits for ever
            selector = last.enter_context(DefaultSelector())
            for output in self._outputs:
                selector.register(output.pipe, EVENT_READ, output)
            selector.register(self._talk, EVENT_READ)
            while not ended:
                for key, _ in selector.select():
                    if key.data is None:
                        ended = self._talk.readline() or b"lost"
                    elif not key.data.take(self._since):
                        selector.unregister(key.fd)
            self._wall, self._oom = time.monotonic() - self._since, self._kills() > self._killed_before
            for output in self._outputs:
                output.finish(self._since)
                self._problem = self._problem or output.problem
            self._talk.close()
            if ended == b"lost":
                self._problem = "the launcher of a program was killed"
            else:
                self._code = int(ended.split()[1])

    def poll(self) -> Ended | None:
        """How it ended, or `None` while it runs."""
        if not self._done.is_set():
            return None
        if self._problem:
            raise InfraError(self._problem)
        return Ended(
            exit_code=None if self._code < 0 else self._code,
            signals=tuple(self._signals),
            timed_out=self._timed_out,
            oom_killed=self._oom,
            wall_seconds=self._wall,
            output_bytes=sum(output.kept - output.start for output in self._outputs),
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
            self.kill(grace_seconds)
        ended = self.poll()
        assert ended
        return ended

    def kill(self, grace_seconds: float | None = None) -> None:
        """KILL until nothing is left, after TERM and a grace if there is one. What outruns us takes the box along."""
        until = time.monotonic() + (grace_seconds or 0)
        last_resort = threading.Timer((grace_seconds or 0) + 2, self._last_resort)
        last_resort.start()
        if grace_seconds is not None and send(signal.SIGTERM, self._belongs):
            self._signals.append("TERM")
        while time.monotonic() < until and any(map(self._belongs, everyone())):
            time.sleep(0.02)
        while (alive := send(signal.SIGKILL, self._belongs)) or not self._done.wait(0.02):
            if alive and "KILL" not in self._signals:
                self._signals.append("KILL")
            if time.monotonic() > until + 60:
                raise InfraError("processes of the box cannot be killed")
        if last_resort.finished.is_set() and "KILL" not in self._signals:
            self._signals.append("KILL")
        last_resort.cancel()

    def close(self) -> None:
        """Once its processes are dead: nothing of ours is left either."""
        self._launcher.wait()
        self._thread.join()
        self._belongs = lambda pid: False  # the launcher's id and the mark may now become someone else's
        os.close(self._mark)

    def over(self) -> bool:
        """True once nothing of it is left that could need us; it is closed then."""
        if self._launcher.poll() is None or any(map(self._belongs, everyone())):
            return False
        self.close()
        return True


def _sealed(content: bytes) -> int:
    """A descriptor with these bytes that no one can change or grow, not even by opening it again."""
    descriptor = os.memfd_create("prill", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(content)
        file.seek(0)
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
        if not stat.S_ISREG(os.fstat(found).st_mode):
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
