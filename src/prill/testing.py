"""The conformance suite of each socket: what a plug-in must do, as checks that anyone can run over theirs.

    @pytest.mark.parametrize(("name", "check"), sandbox_conformance(plugin, isolated=True))
    def test_my_sandbox(name, check):
        check()

Each check opens its own box and says its truth in its docstring. A check that cannot be made on this machine raises
`unittest.SkipTest`. Not covered: that a box withstands bugs of the kernel, or attacks that nobody has thought of here.
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
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any
from unittest import SkipTest

from prill.errors import InfraError
from prill.sockets import Box, Command, Ended, Mount, Need, Running, Sandbox

PYTHON = Path(sys.executable).resolve()
WRITABLE, GIVEN = "/home/agent/work", "/home/agent/given"

ORPHAN = """
import fcntl, os, signal, sys, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        lock = open(sys.argv[1], "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(writer, b"!")
        time.sleep(600)
    os._exit(0)
os.read(reader, 1)
print("locked", flush=True)
"""
"""Leaves a process of another session and no parent, that ignores TERM and holds a lock on a file."""


class Room:
    """An open box, with a folder that it can write to, one that it can only read, and short ways to run things."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.box, self.folder = box, folder
        self.writable, self.given = folder / "work", folder / "given"
        self.stdout, self.stderr = folder / "stdout", folder / "stderr"

    def run(self, *argv: str, fields: Mapping[str, Any] | None = None, **options: Any) -> Ended:
        """A program to its end, with half a minute at most."""
        options = {"limit_seconds": 30, "stdout": self.stdout, "stderr": self.stderr} | options
        return self.box.run(Command(argv=argv, **(fields or {})), **options)

    def says(self, code: str, *args: str, fields: Mapping[str, Any] | None = None) -> Any:
        """What a Python program prints, as JSON."""
        ended = self.run(os.fspath(PYTHON), "-I", "-S", "-c", dedent(code), *args, fields=fields)
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

    def python(self, code: str, *args: str) -> tuple[str, ...]:
        return (os.fspath(PYTHON), "-I", "-S", "-c", dedent(code), *args)

    def path(self, name: str) -> str:
        """A file of the writable folder, as programs spell it."""
        return self.box.path(f"{WRITABLE}/{name}")

    def limited(self, limit: str) -> None:
        if limit not in getattr(self.box, "limits", ()):
            raise SkipTest(f"no limit for {limit} is in force on this machine")


@contextmanager
def opened(sandbox: Sandbox, **fields: Any) -> Iterator[Room]:
    """A box in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for inner in ("work", "given", "outside"):
            (folder / inner).mkdir()
        (folder / "given" / "file").write_text("given")
        mounts = (
            Mount(source=folder / "work", target=WRITABLE, writable=True),
            Mount(source=folder / "given", target=GIVEN),
        )
        need = Need(mounts=mounts, runtime=(Path(sys.base_prefix),), env={"BOTH": "need", "NEED": "1"}, **fields)
        with sandbox.open(need) as box:
            yield Room(box, folder)


def unlocked(path: Path) -> bool:
    """True if no process that lives holds the lock."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def refused(action: Callable[[], object], error: type[Exception] = ValueError) -> None:
    try:
        action()
    except error:
        return
    raise AssertionError(f"no {error.__name__} was raised")


class SandboxChecks:
    """What every sandbox does: each method is a check."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def exit_codes(self) -> None:
        """A program's status is told as it is; death by a signal is `None`; a missing program is 127, as in a shell."""
        with opened(self.sandbox) as room:
            assert room.run("/bin/sh", "-c", "exit 0").exit_code == 0
            assert room.run("/bin/sh", "-c", "exit 3").exit_code == 3
            assert room.run("/bin/sh", "-c", "exit 137").exit_code == 137
            assert room.run("/bin/sh", "-c", "kill -9 $$").exit_code is None
            assert room.run("no-such-program").exit_code == 127
            assert b"no-such-program" in room.stderr.read_bytes()

    def arguments_and_environment(self) -> None:
        """Arguments arrive exactly; of variables only those of the need and the command, which wins, and none of ours."""
        os.environ["PRILL_HOST_SECRET"] = "secret"
        arguments = ["", "two words", "'\"$HOME`", "line\nbreak", "grüße", "-c"]
        code = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
        with opened(self.sandbox) as room:
            fields = {"env": {"BOTH": "command", "COMMAND": "a b\nc"}}
            got, environment = room.says(code, *arguments, fields=fields)
        assert got == arguments
        mine = {"BOTH": "command", "NEED": "1", "COMMAND": "a b\nc"}
        assert {name: environment[name] for name in mine} == mine
        assert {"PATH", "HOME", "TMPDIR"} <= environment.keys()
        assert "PRILL_HOST_SECRET" not in environment

    def input_and_folder(self) -> None:
        """Standard input is fed whole, more than a pipe holds; the program starts in the folder that was asked for."""
        content = bytes(range(256)) * 20_000
        code = "import hashlib, json, os, sys; print(json.dumps([hashlib.sha256(sys.stdin.buffer.read()).hexdigest(), os.getcwd()]))"
        with opened(self.sandbox) as room:
            digest, folder = room.says(code, fields={"stdin": content, "cwd": WRITABLE})
            assert digest == hashlib.sha256(content).hexdigest()
            assert folder == os.path.realpath(room.box.path(WRITABLE))

    def much_output(self) -> None:
        """Twenty megabytes of any bytes on both streams at once arrive byte for byte, and the times file rises."""
        code = """
            import sys, threading
            def write(stream, piece):
                for _ in range(320):
                    stream.write(piece)
                stream.flush()
            other = threading.Thread(target=write, args=(sys.stderr.buffer, bytes(range(255, -1, -1)) * 256))
            other.start(); write(sys.stdout.buffer, bytes(range(256)) * 256); other.join()
        """
        with opened(self.sandbox) as room:
            ended = room.run(*room.python(code), times=room.folder / "times")
            assert ended.exit_code == 0 and (ended.output_bytes, ended.dropped_bytes) == (2 * 320 * 65536, 0)
            assert room.stdout.read_bytes() == bytes(range(256)) * 256 * 320
            assert room.stderr.read_bytes() == bytes(range(255, -1, -1)) * 256 * 320
            lines = [line.split() for line in (room.folder / "times").read_text().splitlines()]
        offsets, seconds = [int(line[0]) for line in lines], [float(line[1]) for line in lines]
        assert offsets[0] == 0 and offsets == sorted(set(offsets)) and offsets[-1] < 320 * 65536
        assert seconds == sorted(seconds) and seconds[0] >= 0

    def output_cap(self) -> None:
        """Output beyond the cap is counted and dropped, for each stream; the program neither blocks nor knows."""
        with opened(self.sandbox) as room:
            code = "import sys; sys.stdout.write('a' * 3000000); sys.stderr.write('b' * 500)"
            ended = room.run(*room.python(code), max_output_bytes=1000)
            assert ended.exit_code == 0 and (ended.output_bytes, ended.dropped_bytes) == (1500, 2_999_000)
            assert room.stdout.read_bytes() == b"a" * 1000

    def background_child(self) -> None:
        """A child that keeps the pipes open does not delay the end of the run."""
        with opened(self.sandbox) as room:
            ended = room.run("/bin/sh", "-c", "sleep 300 & yes & echo $!")
            assert ended.exit_code == 0 and not ended.timed_out and room.stdout.read_bytes()

    def term_at_the_deadline(self) -> None:
        """At the deadline a program gets TERM, may act on it, and its own status is told."""
        script = 'trap "echo got it > $0; exit 7" TERM; while :; do sleep 0.02; done'
        with opened(self.sandbox) as room:
            ended = room.run("/bin/sh", "-c", script, room.path("note"), limit_seconds=0.5)
            assert ended.timed_out and ended.signals == ("TERM",) and ended.exit_code == 7
            assert (room.writable / "note").read_text() == "got it\n"

    def kill_after_the_grace(self) -> None:
        """What ignores TERM gets KILL; an orphan of another session too; none is alive when `run` returns."""
        with opened(self.sandbox) as room:
            code = ORPHAN + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n"
            ended = room.run(*room.python(code, room.path("lock")), limit_seconds=1, grace_seconds=0.1)
            assert ended.timed_out and ended.signals == ("TERM", "KILL") and ended.exit_code is None
            assert room.stdout.read_bytes() == b"locked\n" and unlocked(room.writable / "lock")

    def deadline_spares_others(self) -> None:
        """The deadline of one program does not touch another that runs in the background."""
        with opened(self.sandbox) as room:
            running = room.start("/bin/sh", "-c", "echo up; exec sleep 600")
            assert room.run("sleep", "600", limit_seconds=0.1).timed_out
            assert running.poll() is None

    def dead_after_the_close(self) -> None:
        """When a box is closed all its processes are dead, orphans of finished programs too."""
        with tempfile.TemporaryDirectory() as name:
            lock = Path(name, "work", "lock")
            lock.parent.mkdir()
            mounts = (Mount(source=lock.parent, target=WRITABLE, writable=True),)
            with self.sandbox.open(Need(mounts=mounts, runtime=(Path(sys.base_prefix),))) as box:
                room = Room(box, Path(name))
                room.run(*room.python(ORPHAN, room.path("lock")))
                room.start("/bin/sh", "-c", "echo up; exec sleep 600")
            assert room.stdout.read_bytes() == b"locked\n" and unlocked(lock)

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
            import socket
            with socket.create_server(("127.0.0.1", 0)) as server:
                print(server.getsockname()[1], flush=True)
                server.accept()[0].sendall(b'"hello"')
        """
        client = (
            "import socket, sys; print(socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(99).decode())"
        )
        with opened(self.sandbox) as room:
            room.start(*room.python(server))
            assert room.says(client, (room.folder / "heard").read_text().strip()) == "hello"

    def files_in_and_out(self) -> None:
        """Files go in and out as they are; a writable mount is the host's folder; a read-only one can be read."""
        with opened(self.sandbox) as room:
            for place in ("/tmp/new/in", f"{WRITABLE}/new/in"):
                (room.folder / "source").write_bytes(bytes(range(256)))
                (room.folder / "source").chmod(0o755)
                room.box.put(room.folder / "source", place)
                inside = room.box.path(place)
                assert room.run("/bin/sh", "-c", 'test -x "$0" && cat "$0" "$0" > "$0.out"', inside).exit_code == 0
                room.box.get(f"{place}.out", room.folder / "copy")
                assert (room.folder / "copy").read_bytes() == bytes(range(256)) * 2
            assert (room.writable / "new/in.out").stat().st_size == 512
            assert room.run("cat", room.box.path(f"{GIVEN}/file")).exit_code == 0
            assert room.stdout.read_text() == "given"
            refused(lambda: room.box.put(room.folder / "source", f"{GIVEN}/new"))

    def links_are_refused(self) -> None:
        """No link on the way is followed, in or out; folders, FIFOs and ways up are refused."""
        with opened(self.sandbox) as room:
            outside, target = room.folder / "outside", room.folder / "copy"
            (outside / "file").write_text("host")
            script = 'cd "$0" && ln -s "$1" door && ln -s "$1/file" link && mkfifo fifo && mkdir folder'
            room.run("/bin/sh", "-c", script, room.box.path(WRITABLE), os.fspath(outside))
            for name in ("link", "door/file", "fifo", "folder", "../given/file"):
                refused(partial(room.box.get, f"{WRITABLE}/{name}", target))
            assert not target.exists()
            refused(lambda: room.box.put(room.stdout, f"{WRITABLE}/door/new"))
            room.box.put(room.given / "file", f"{WRITABLE}/link")
            assert (outside / "file").read_text() == "host" and not (outside / "new").exists()

    def missing_source(self) -> None:
        """A mount whose source does not exist is an `InfraError` that names it."""
        mounts = (Mount(source=Path("/no/such/place"), target=WRITABLE),)
        try:
            with self.sandbox.open(Need(mounts=mounts)):
                raise AssertionError("a box was opened")
        except InfraError as error:
            assert "/no/such/place" in str(error)


class IsolationChecks(SandboxChecks):
    """What a sandbox does besides that claims to isolate."""

    def host_is_unseen(self) -> None:
        """No file, process, name or variable of the host is visible beyond the need; `/tmp` is the box's own."""
        code = """
            import glob, json, os, socket, sys
            lists = [sorted(os.listdir(p)) if os.path.isdir(p) else None for p in ("/tmp", sys.argv[1], sys.argv[2])]
            commands = [open(p, "rb").read().decode() for p in glob.glob("/proc/[0-9]*/cmdline")]
            print(json.dumps([lists, commands, socket.gethostname(), os.path.exists("/etc/shadow")]))
        """
        with opened(self.sandbox) as room:
            home = os.fspath(Path.home())
            lists, commands, name, shadow = room.says(code, home, os.fspath(room.folder))
        shown = {part for folder in (Path(sys.base_prefix), Path(GIVEN)) for part in folder.parts}
        assert lists[0] == [] and set(lists[1] or ()) <= shown and lists[2] is None
        assert len(commands) < 5 and not any(Path(__file__).name in command for command in commands)
        assert name != socket.gethostname() and not shadow

    def no_network(self) -> None:
        """Only the box's own loopback is there: no outside address, no listener of the host, no abstract socket of it."""
        code = """
            import json, socket, sys
            def reaches(family, address):
                try:
                    with socket.socket(family) as s:
                        s.settimeout(5); s.connect(address)
                    return True
                except OSError:
                    return False
            ports = (("192.0.2.1", 80), ("8.8.8.8", 53), ("127.0.0.1", int(sys.argv[1])))
            reached = [reaches(socket.AF_INET, port) for port in ports] + [reaches(socket.AF_UNIX, "\\0" + sys.argv[2])]
            print(json.dumps([reached, [name for _, name in socket.if_nameindex()]]))
        """
        hidden = f"prill-{os.getpid()}"
        with (
            socket.create_server(("127.0.0.1", 0)) as port,
            socket.socket(socket.AF_UNIX) as abstract,
            opened(self.sandbox) as room,
        ):
            abstract.bind(f"\0{hidden}")
            abstract.listen()
            reached, names = room.says(code, str(port.getsockname()[1]), hidden)
        assert not any(reached) and names == ["lo"]

    def no_power(self) -> None:
        """Programs are uid 1000 without any capability, cannot gain one, and have no descriptor beyond the three."""
        code = """
            import json, os
            lines = dict(line.rstrip("\\n").split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
            held = [n for n in range(3, 1024) if os.path.exists(f"/proc/self/fd/{n}")]
            print(json.dumps([os.getresuid() + os.getresgid(), lines, held]))
        """
        with opened(self.sandbox) as room:
            ids, status, held = room.says(code)
        assert ids == [1000] * 6 and status["NoNewPrivs"] == "1" and held == []
        assert {int(status[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {0}

    def read_only_stays_so(self) -> None:
        """A read-only mount cannot be written to: not by another open of it, a new mount or a namespace of one's own."""
        code = """
            import ctypes, json, os, sys
            libc, file, folder = ctypes.CDLL(None), sys.argv[1] + "/file", sys.argv[1].encode()
            def written():
                done = []
                for path in (file, f"/proc/self/fd/{os.open(file, os.O_RDONLY)}", f"/proc/self/root{file}", f"/proc/1/root{file}"):
                    try:
                        os.close(os.open(path, os.O_WRONLY)); done.append(path)
                    except OSError:
                        pass
                for action in (os.unlink, lambda path: os.chmod(path, 0o777), lambda path: os.rename(path, path + "2")):
                    try:
                        action(file); done.append("changed")
                    except OSError:
                        pass
                return done
            remount, bind = 32 | 4096, 4096
            def mounts():
                return [libc.mount(None, folder, None, remount, None), libc.mount(folder, b"/tmp", None, bind, None)]
            result = [written(), mounts(), libc.umount2(folder, 2)]
            libc.unshare(0x10000000); libc.unshare(0x00020000)
            print(json.dumps(result + [mounts()[:1], written()]))
        """
        with opened(self.sandbox) as room:
            first, mounts, umount, again, last = room.says(code, GIVEN)
            assert (first, mounts, umount, again, last) == ([], [-1, -1], -1, [-1], [])
            assert (room.given / "file").read_text() == "given"

    def few_writable_places(self) -> None:
        """Nothing can be written to but `/tmp`, `/run`, `/home/agent`, `/dev/shm`, writable mounts and plain devices."""
        code = """
            import json, os
            found = []
            for folder, inner, files in os.walk("/"):
                inner[:] = [name for name in inner if folder != "/proc" or not name.isdecimal()]
                inner[:] = [name for name in inner if folder != "/usr"]
                for path, flags in [(f"{folder}/.probe", os.O_CREAT)] + [(f"{folder}/{name}", 0) for name in files]:
                    try:
                        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | flags))
                        found.append(path)
                    except OSError:
                        pass
            print(json.dumps(found))
        """
        with opened(self.sandbox) as room:
            found = room.says(code)
        places = ("//tmp/", "/tmp/", "/run/", "/home/agent/", "/dev/shm/")
        devices = {f"/dev/{name}" for name in ("full", "null", "ptmx", "random", "tty", "urandom", "zero")} | {
            "/dev/pts/ptmx"
        }
        assert {path for path in found if not path.startswith(places)} <= devices
        assert not any(path.startswith(GIVEN) for path in found) and f"{WRITABLE}/.probe" in found

    def suicide_stays_inside(self) -> None:
        """A program that kills all it can reach ends no more than the programs of its box: the box goes on."""
        with opened(self.sandbox) as room:
            for _ in range(2):
                room.run("/bin/sh", "-c", "kill -9 -1; kill -9 1; kill -STOP 1; kill -9 $$")
                assert room.run("/bin/sh", "-c", "exit 4").exit_code == 4
                room.box.put(room.given / "file", f"{WRITABLE}/file")

    def fork_bomb(self) -> None:
        """A fork bomb meets the limit of processes, and none of it is alive after the deadline."""
        code = """
            import fcntl, os, signal, sys
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            lock = open(sys.argv[1], "w"); fcntl.flock(lock, fcntl.LOCK_EX)
            while True:
                try:
                    if os.fork() == 0:
                        os.setsid()
                except OSError:
                    print("refused", flush=True)
        """
        with opened(self.sandbox, processes=64) as room:
            room.limited("processes")
            room.run(*room.python(code, room.path("lock")), limit_seconds=1, grace_seconds=0, max_output_bytes=1000)
            assert room.stdout.read_text().startswith("refused") and unlocked(room.writable / "lock")

    def memory_limit(self) -> None:
        """A program that wants more memory than the box may have is killed, and it is told that this was why."""
        with opened(self.sandbox, memory_bytes=128 << 20) as room:
            room.limited("memory")
            ended = room.run(*room.python("held = [b'x' * (1 << 20) for _ in range(1024)]"))
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
