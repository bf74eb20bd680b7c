"""What every sandbox must do; more is asked of one that claims to isolate. A check opens its own box.

Not covered: bugs of the kernel, and attacks that nobody has thought of here.
"""

import fcntl
import hashlib
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from textwrap import dedent
from typing import Any
from unittest import SkipTest

from prill.errors import InfraError
from prill.sockets import Box, Command, Ended, Keep, Mount, Need, Running, Sandbox

WRITABLE, GIVEN = "/home/agent/work", "/home/agent/given"

INSIDE = """
import ctypes, fcntl, glob, hashlib, json, os, signal, socket, sys, threading, time
def can(action, *args):
    try:
        action(*args)
    except OSError:
        return False
    return True
def write(path, flags=0):
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | flags))
def lock(path):
    held = open(path, "w"); fcntl.flock(held, fcntl.LOCK_EX)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return held
def orphan(path):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            held = lock(path); os.write(writer, b"!"); time.sleep(600)
        os._exit(0)
    os.read(reader, 1); print("locked", flush=True)
def say(*values): print(json.dumps(values))
"""
"""What the Python programs of the checks begin with. `orphan` leaves a process of another session that ignores TERM."""


def python(code: str, *args: str) -> tuple[str, ...]:
    """The command line of a Python program for a box."""
    return (os.path.realpath(sys.executable), "-I", "-S", "-c", INSIDE + dedent(code), *args)


class Room:
    """An open box, with a folder that it can write to, one that it can only read, and short ways to run things."""

    def __init__(self, box: Box, folder: Path, close: Callable[[], None]) -> None:
        self.box, self.folder, self.close = box, folder, close
        self.writable, self.given = folder / "work", folder / "given"
        self.stdout, self.stderr = folder / "stdout", folder / "stderr"

    def run(self, *argv: str, fields: Mapping[str, Any] | None = None, limit_seconds: float = 30, **more: Any) -> Ended:
        """A program to its end."""
        command = Command(argv=argv, **(fields or {}))
        return self.box.run(command, stdout=self.stdout, stderr=self.stderr, limit_seconds=limit_seconds, **more)

    def says(self, code: str, *args: str, **fields: Any) -> Any:
        """What a Python program says."""
        ended = self.run(*python(code, *args), fields=fields)
        assert ended.exit_code == 0, self.stderr.read_text()
        return json.loads(self.stdout.read_bytes())

    def start(self, *argv: str) -> Running:
        """A program in the background, once it has printed something."""
        running = self.box.start(Command(argv=argv), stdout=self.folder / "heard", stderr=self.stderr)
        until = time.monotonic() + 30
        while not (self.folder / "heard").read_bytes():
            assert not running.poll() and time.monotonic() < until, self.stderr.read_text()
            time.sleep(0.01)
        return running

    def path(self, name: str) -> str:
        """A file of the writable folder, as programs spell it."""
        return self.box.path(f"{WRITABLE}/{name}")


@contextmanager
def opened(sandbox: Sandbox, **fields: Any) -> Iterator[Room]:
    """A box in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for inner in ("work", "given", "outside"):
            (folder / inner).mkdir()
        (folder / "given" / "file").write_text("given")
        work = Mount(source=folder / "work", target=WRITABLE, writable=True)
        mounts = (work, Mount(source=folder / "given", target=GIVEN))
        need = Need(mounts=mounts, runtime=(Path(sys.base_prefix),), env={"BOTH": "need", "NEED": "1"}, **fields)
        with ExitStack() as stack:
            room = Room(stack.enter_context(sandbox.open(need)), folder, stack.close)
            for field, limit in (("memory_bytes", "memory"), ("processes", "processes")):
                if field in fields and limit not in getattr(room.box, "limits", ()):
                    raise SkipTest(f"no limit for {limit} is in force on this machine")
            yield room


def unlocked(path: Path) -> bool:
    """True if no process that lives holds the lock of a file that is there."""
    with path.open("r+") as file, suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def refused(action: Callable[..., object], *arguments: object) -> str:
    """The words with which an action refuses, empty if it does not."""
    try:
        action(*arguments)
    except (ValueError, InfraError) as error:
        return str(error)
    return ""


class SandboxChecks:
    """What every sandbox does: each method is a check."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def exit_codes(self) -> None:
        """A program's status is told as it is; death by a signal is `None`; a missing program is 127, as in a shell."""
        with opened(self.sandbox) as room:
            for script, code in (("exit 0", 0), ("exit 3", 3), ("exit 137", 137), ("kill -9 $$", None)):
                assert room.run("/bin/sh", "-c", script).exit_code == code
            assert room.run("no-such-program").exit_code == 127
            assert b"no-such-program" in room.stderr.read_bytes()

    def arguments_and_environment(self) -> None:
        """Arguments arrive exactly; of variables those of the need and of the command, which wins, and none of ours."""
        os.environ["PRILL_HOST_SECRET"] = "secret"
        arguments = ["", "two words", "'\"$HOME`", "line\nbreak", "grüße", "-c"]
        mine = {"BOTH": "command", "COMMAND": "a b\nc"}
        with opened(self.sandbox) as room:
            got, found = room.says("say(sys.argv[1:], dict(os.environ))", *arguments, env=mine)
        assert got == arguments and found | mine | {"NEED": "1"} == found
        assert {"PATH", "HOME", "TMPDIR"} <= found.keys() and "PRILL_HOST_SECRET" not in found

    def input_and_folder(self) -> None:
        """Standard input is fed whole, more than a pipe holds; the program starts in the folder that was asked for."""
        content = bytes(range(256)) * 20_000
        code = "say(hashlib.sha256(sys.stdin.buffer.read()).hexdigest(), os.getcwd())"
        with opened(self.sandbox) as room:
            digest, folder = room.says(code, stdin=content, cwd=WRITABLE)
            assert digest == hashlib.sha256(content).hexdigest()
            assert folder == os.path.realpath(room.box.path(WRITABLE))

    def much_output(self) -> None:
        """Twenty megabytes of any bytes on both streams at once arrive byte for byte, and the times file rises."""
        code = """
            def pour(stream):
                for _ in range(320):
                    stream.write(bytes(range(256)) * 256)
                stream.flush()
            other = threading.Thread(target=pour, args=(sys.stderr.buffer,))
            other.start(); pour(sys.stdout.buffer); other.join()
        """
        with opened(self.sandbox) as room:
            ended = room.run(*python(code), keep=Keep(times=room.folder / "times"))
            assert (ended.exit_code, ended.output_bytes, ended.dropped_bytes) == (0, 640 << 16, 0)
            assert room.stdout.read_bytes() == room.stderr.read_bytes() == bytes(range(256)) * 256 * 320
            lines = [line.split() for line in (room.folder / "times").read_text().splitlines()]
        offsets, seconds = [int(line[0]) for line in lines], [float(line[1]) for line in lines]
        assert offsets[0] == 0 and offsets == sorted(set(offsets)) and seconds == sorted(seconds)

    def output_cap(self) -> None:
        """Output beyond the cap is counted and dropped, for each stream; the program neither blocks nor knows."""
        with opened(self.sandbox) as room:
            code = "sys.stdout.write('a' * 3000000); sys.stderr.write('b' * 500)"
            ended = room.run(*python(code), keep=Keep(most_bytes=1000))
            assert (ended.exit_code, ended.output_bytes, ended.dropped_bytes) == (0, 1500, 2_999_000)
            assert room.stdout.read_bytes() == b"a" * 1000

    def background_child(self) -> None:
        """A child that keeps the pipes open, silent or not, does not delay the end of the run."""
        with opened(self.sandbox) as room:
            ended = room.run("/bin/sh", "-c", "sleep 300 & yes & exit 6")
            assert ended.exit_code == 6 and not ended.timed_out

    def term_at_the_deadline(self) -> None:
        """At the deadline a program gets TERM, may act on it, and its own status is told."""
        script = 'trap "echo got it > $0; exit 7" TERM; while :; do sleep 0.02; done'
        with opened(self.sandbox) as room:
            ended = room.run("/bin/sh", "-c", script, room.path("note"), limit_seconds=0.5)
            assert (ended.timed_out, ended.signals, ended.exit_code) == (True, ("TERM",), 7)
            assert (room.writable / "note").read_text() == "got it\n"

    def kill_after_the_grace(self) -> None:
        """What ignores TERM gets KILL, an orphan of another session too; none is alive when `run` returns."""
        with opened(self.sandbox) as room:
            code = python("orphan(sys.argv[1]); lock(sys.argv[1] + '2'); time.sleep(600)", room.path("lock"))
            ended = room.run(*code, limit_seconds=1, grace_seconds=0.1)
            assert (ended.timed_out, ended.signals, ended.exit_code) == (True, ("TERM", "KILL"), None)
            assert unlocked(room.writable / "lock") and unlocked(room.writable / "lock2")

    def deadline_spares_others(self) -> None:
        """The deadline of one program does not touch another that runs in the background."""
        with opened(self.sandbox) as room:
            running = room.start("/bin/sh", "-c", "echo up; exec sleep 600")
            assert room.run("sleep", "600", limit_seconds=0.1).timed_out
            assert running.poll() is None

    def dead_after_the_close(self) -> None:
        """When a box is closed all its processes are dead, orphans of finished programs too."""
        with opened(self.sandbox) as room:
            room.run(*python("orphan(sys.argv[1])", room.path("lock")))
            room.start(*python("lock(sys.argv[1]); print('up', flush=True); time.sleep(600)", room.path("lock2")))
            room.close()
            assert unlocked(room.writable / "lock") and unlocked(room.writable / "lock2")

    def start_poll_stop(self) -> None:
        """A background program runs until it ends or is stopped; stopping again changes nothing."""
        with opened(self.sandbox) as room:
            running = room.start("/bin/sh", "-c", "trap 'exit 5' TERM; echo up; while :; do sleep 0.02; done")
            assert running.poll() is None
            ended = running.stop()
            assert (ended.exit_code, ended.signals, ended.timed_out) == (5, ("TERM",), False)
            assert running.stop() == running.poll() == ended

    def shared_loopback(self) -> None:
        """A program reaches the port that another one opened on 127.0.0.1 of the same box."""
        server = """
            with socket.create_server(("127.0.0.1", 0)) as server:
                print(server.getsockname()[1], flush=True); server.accept()[0].sendall(b"hello")
        """
        client = "say(socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(99).decode())"
        with opened(self.sandbox) as room:
            room.start(*python(server))
            assert room.says(client, (room.folder / "heard").read_text().strip()) == ["hello"]

    def files_in_and_out(self) -> None:
        """Files go in and out as they are; a writable mount is the host's folder; a read-only one can be read."""
        with opened(self.sandbox) as room:
            source, content = room.folder / "source", bytes(range(256))
            source.write_bytes(content)
            source.chmod(0o755)
            for place in ("/tmp/new/in", f"{WRITABLE}/new/in"):
                room.box.put(source, place)
                script = 'test -x "$0" && cat "$0" "$0" > "$0.out"'
                assert room.run("/bin/sh", "-c", script, room.box.path(place)).exit_code == 0
                room.box.get(f"{place}.out", room.folder / "copy")
                assert (room.folder / "copy").read_bytes() == content * 2
            assert (room.writable / "new" / "in.out").read_bytes() == content * 2
            assert room.run("cat", room.box.path(f"{GIVEN}/file")).exit_code == 0
            assert room.stdout.read_text() == "given" and refused(room.box.put, source, f"{GIVEN}/new")

    def links_are_refused(self) -> None:
        """No link on the way is followed, in or out; folders, FIFOs and ways up are refused."""
        with opened(self.sandbox) as room:
            outside, target = room.folder / "outside", room.folder / "copy"
            (outside / "file").write_text("host")
            script = 'cd "$0" && ln -s "$1" door && ln -s "$1/file" link && mkfifo fifo && mkdir folder'
            room.run("/bin/sh", "-c", script, room.box.path(WRITABLE), os.fspath(outside))
            for name in ("link", "door/file", "fifo", "folder", "../given/file"):
                assert refused(room.box.get, f"{WRITABLE}/{name}", target) and not target.exists()
            assert refused(room.box.put, room.stdout, f"{WRITABLE}/door/new")
            room.box.put(room.given / "file", f"{WRITABLE}/link")
            assert (outside / "file").read_text() == "host" and not (outside / "new").exists()

    def missing_source(self) -> None:
        """A mount whose source does not exist is an `InfraError` that names it."""
        need = Need(mounts=(Mount(source=Path("/no/such/place"), target=WRITABLE),))
        assert "/no/such/place" in refused(self.sandbox.open(need).__enter__)


class IsolationChecks(SandboxChecks):
    """What a sandbox does besides that claims to isolate."""

    def host_is_unseen(self) -> None:
        """No file, process, name or variable of the host is visible beyond the need; `/tmp` is the box's own."""
        code = """
            commands = glob.glob("/proc/[0-9]*/cmdline")
            lists = [os.path.isdir(path) and os.listdir(path) for path in ["/tmp", *sys.argv[1:]]]
            say(lists, len(commands), socket.gethostname())
        """
        with opened(self.sandbox) as room:
            places = os.fspath(Path.home()), os.fspath(room.folder), "/sys/class", "/dev/disk"
            (tmp, home, folder, *devices), processes, name = room.says(code, *places)
        assert tmp == [] and set(home or ()) <= {*Path(sys.base_prefix).parts, *Path(GIVEN).parts}
        assert not folder and not any(devices) and processes < 5 and name != socket.gethostname()

    def no_network(self) -> None:
        """Only the box's own loopback is there: no outside address, no listener or abstract socket of the host."""
        code = r"""
            socket.setdefaulttimeout(5)
            ports = ("192.0.2.1", 80), ("8.8.8.8", 53), ("127.0.0.1", int(sys.argv[1]))
            reached = [can(socket.create_connection, port) for port in ports] + [can(socket.socket, socket.AF_VSOCK)]
            reached.append(can(socket.socket(socket.AF_UNIX).connect, "\0" + sys.argv[2]))
            say(reached, [name for _, name in socket.if_nameindex()])
        """
        hidden = f"prill-{os.getpid()}"
        with socket.create_server(("127.0.0.1", 0)) as port, socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind(f"\0{hidden}")
            abstract.listen()
            with opened(self.sandbox) as room:
                assert room.says(code, str(port.getsockname()[1]), hidden) == [[False] * 5, ["lo"]]

    def no_power(self) -> None:
        """Programs are uid 1000 without any capability, cannot gain one, and have no descriptor beyond the three."""
        code = r"""
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
            say(os.getresuid() + os.getresgid(), lines, [n for n in range(3, 999) if can(os.fstat, n)])
        """
        with opened(self.sandbox) as room:
            ids, status, held = room.says(code)
        assert ids == [1000] * 6 and status["NoNewPrivs"] == "1" and held == []
        assert {int(status[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {0}

    def read_only_stays_so(self) -> None:
        """A read-only mount cannot be written to: not by another open, a new mount or a namespace of one's own."""
        code = """
            libc, file = ctypes.CDLL(None), sys.argv[1] + "/file"
            folder, held = sys.argv[1].encode(), os.open(file, os.O_RDONLY)
            def done():
                ways = [start + file for start in ("", "/proc/self/root", "/proc/1/root", "/proc/1/cwd", sys.argv[1])]
                ways.append(f"/proc/self/fd/{held}")
                mounts = [libc.mount(*how, None) for how in ((None, folder, None, 4128), (folder, b"/tmp", None, 4096))]
                opens = [can(os.open, way, os.O_RDWR | os.O_CREAT) for way in ways]
                acts = [can(os.unlink, file), can(os.chmod, file, 511), can(os.rename, file, file + "2")]
                return sum(opens + acts) + mounts.count(0) + (libc.umount2(folder, 2) == 0)
            before = done(); libc.unshare(0x10000000); libc.unshare(0x00020000)
            say(before, done())
        """
        with opened(self.sandbox) as room:
            before, after = room.says(code, GIVEN)
            assert before == 0 and after in (0, 1)  # in a namespace of one's own /tmp may be covered
            assert (room.given / "file").read_text() == "given" and [*room.given.iterdir()] == [room.given / "file"]

    def few_writable_places(self) -> None:
        """Nothing can be written to but `/tmp`, `/run`, `/home/agent`, `/dev/shm`, writable mounts, plain devices."""
        code = """
            found = []
            for folder, inner, files in os.walk("/"):
                inner[:] = [name for name in inner if folder != "/usr" and not (folder == "/proc" and name.isdecimal())]
                found += [path for name in files if can(write, path := f"{folder}/{name}")]
                found += [path] if can(write, path := f"{folder}/.probe", os.O_CREAT) else []
            say(*found)
        """
        with opened(self.sandbox) as room:
            found = room.says(code)
        devices = {f"/dev/{name}" for name in ("full", "null", "ptmx", "random", "tty", "urandom", "zero", "pts/ptmx")}
        assert {
            path for path in found if not path.startswith(("/tmp/", "/run/", "/home/agent/", "/dev/shm/"))
        } <= devices
        assert not any(path.startswith(GIVEN) for path in found) and f"{WRITABLE}/.probe" in found

    def suicide_stays_inside(self) -> None:
        """A program that kills all it can reach ends no more than the programs of its box: the box goes on."""
        with opened(self.sandbox) as room:
            room.run("/bin/sh", "-c", "kill -9 -1; kill -9 1; kill -STOP 1; kill -9 $$")
            assert room.run("/bin/sh", "-c", "exit 4").exit_code == 4

    def fork_bomb(self) -> None:
        """A fork bomb meets the limit of processes, and none of it is alive after the deadline."""
        code = """
            held = lock(sys.argv[1])
            while True:
                if not can(lambda: os.fork() or os.setsid()):
                    print("refused", flush=True)
        """
        with opened(self.sandbox, processes=64) as room:
            room.run(*python(code, room.path("lock")), limit_seconds=1, grace_seconds=0, keep=Keep(most_bytes=1000))
            assert room.stdout.read_text().startswith("refused") and unlocked(room.writable / "lock")

    def memory_limit(self) -> None:
        """A program that wants more memory than the box may have is killed, and it is told that this was why."""
        with opened(self.sandbox, memory_bytes=128 << 20) as room:
            ended = room.run(*python("held = [b'x' * (1 << 20) for _ in range(1024)]"))
            assert ended.oom_killed and ended.exit_code is None
            assert not room.run("/bin/sh", "-c", "exit 0").oom_killed


def sandbox_conformance(sandbox: Sandbox, *, isolated: bool) -> list[tuple[str, Callable[[], None]]]:
    """The name and the check of everything that a sandbox must do; more is asked of one that claims to isolate."""

    def claim() -> None:
        """The box says of itself whether it isolates."""
        with sandbox.open(Need()) as box:
            assert box.isolated == isolated

    checks = (IsolationChecks if isolated else SandboxChecks)(sandbox)
    names = [name for name in dir(checks) if not name.startswith("_") and name != "sandbox"]
    return [("claim", claim), *((name, getattr(checks, name)) for name in names)]
