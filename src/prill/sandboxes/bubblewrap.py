"""Boxes made by bubblewrap: own user, processes, network, files; the host is not there.

One bwrap process holds the box open; every program enters its namespaces through the launcher of `prill.processes`.
Inside, the user is uid 1000 without any capability, and cannot make namespaces of their own. Only `/tmp`, `/run`,
`/home/agent`, `/dev/shm` (all in memory, gone with the box) and the writable mounts can be written to.

Not covered: bugs of the kernel (few system calls are filtered, and those only on x86-64 and arm64) and of the drivers
behind devices that are passed in; what `/proc` tells of the whole machine (load, memory, kernel); disk quotas for
writable mounts; processor time; memory and processes where no limit can be set (`Box.limits` says which are in force).
Everything in the host's `/usr` can be read. Opened by root, the box's user *is* the machine's root without
capabilities: any file of root's that is mounted in can be read, so mount no secrets. Programs may leave setuid files
of yours in a writable mount: let no other user of the machine reach it. A mount's source is resolved by the host:
whoever mounts what lies in a folder of hostile making must look for links first. If prill is killed, everything in
the box dies, but an empty cgroup may be left behind.
"""

import contextlib
import fcntl
import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from select import select
from shutil import which

from prill.errors import InfraError
from prill.outputs import Output
from prill.processes import Program, carry_in, carry_out, everyone, steps
from prill.sockets import Box, Command, Ended, Keep, Need, Running

PRIVATE = ("/tmp", "/run", "/home/agent", "/dev/shm")
ETC = (
    "alternatives ca-certificates.conf gai.conf host.conf ld.so.cache ld.so.conf ld.so.conf.d localtime mime.types"
    " nsswitch.conf os-release protocols services ssl/certs ssl/openssl.cnf"
    " pki/ca-trust/extracted pki/tls/certs pki/tls/cert.pem pki/tls/openssl.cnf"
)
"""What programs need of the host's /etc. Never a folder that may hold keys."""
MADE = {
    "/etc/passwd": "root:x:0:0::/root:/bin/false\nagent:x:1000:1000::/home/agent:/bin/bash\n"
    "nobody:x:65534:65534::/:/bin/false\n",
    "/etc/group": "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost box\n::1 localhost\n",
    "/etc/hostname": "box\n",
}
MASKED = "kcore keys kmsg kpagecgroup kpagecount kpageflags latency_stats mtrr sched_debug slabinfo sysrq-trigger"
MASKED += " timer_list vmallocinfo"
MASKED_FOLDERS = "acpi asound driver fs pressure scsi"
HOLD = "trap '' CHLD; echo ready; exec sleep infinity </dev/null >/dev/null 2>&1"
"""The first process of a box. It ignores its children's ends, so that the kernel clears them away."""
LIMIT_FILES = {"memory": ("memory.max", "memory.limit_in_bytes"), "processes": ("pids.max",)}
GET_USERNS = 0xB701
"""The ioctl that gives the user namespace which owns another namespace."""
SYSCALLS = {
    "x86_64": (0xC000003E, 41, (248, 249, 250, 298, 321, 323, 425, 426, 427)),
    "aarch64": (0xC00000B7, 198, (217, 218, 219, 241, 280, 282, 425, 426, 427)),
}
"""Machine → its audit number, `socket`, and what much was broken through: keys, perf, bpf, userfaultfd, io_uring."""

NO_BWRAP = (
    "bubblewrap is not installed (no program named bwrap on the PATH); install it with your package manager, "
    "e.g. apt-get install bubblewrap, or run with --sandbox local, which does not isolate"
)
NO_NAMESPACES = (
    "; this machine may forbid user namespaces: look at kernel.unprivileged_userns_clone (must be 1), "
    "kernel.apparmor_restrict_unprivileged_userns (must be 0) and user.max_user_namespaces, "
    "or, in a container, let it make namespaces"
)


def arguments(need: Need) -> list[str]:
    """The command line of bwrap for a box, without program, descriptors and the files made by us. Looks at the host."""
    args = ["--unshare-user", "--uid", "1000", "--gid", "1000", "--disable-userns", "--unshare-pid", "--as-pid-1"]
    args += ["--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--hostname", "box"]
    args += ["--new-session", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"]
    # One harmless capability, for the first process only: nobody without it can trace it or look into it.
    args += ["--cap-add", "CAP_WAKE_ALARM", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        folder = Path("/", name)
        if folder.is_symlink():
            args += ["--symlink", os.fspath(folder.readlink()), f"/{name}"]
        elif folder.is_dir():
            args += ["--ro-bind", f"/{name}", f"/{name}"]
    for name in ("etc", "etc/ssl", "etc/pki", "etc/pki/ca-trust", "etc/pki/tls", "home"):
        args += ["--perms", "0755", "--dir", f"/{name}"]
    for name in ETC.split():
        args += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    # Without capabilities root may still write to kernel settings, and the box's user may be root outside.
    args += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    for device in need.devices:
        args += ["--dev-bind", f"{device}", f"{device}"]
    for name in MASKED.split():
        if Path("/proc", name).exists():
            args += ["--ro-bind", "/dev/null", f"/proc/{name}"]
    for name in MASKED_FOLDERS.split():
        if Path("/proc", name).is_dir():
            args += ["--tmpfs", f"/proc/{name}", "--remount-ro", f"/proc/{name}"]
    size = ["--size", str(need.memory_bytes)] if need.memory_bytes else []
    for place in PRIVATE:
        mode = "0700" if place == "/home/agent" else "1777"
        args += ["--perms", mode, *size, "--tmpfs", place]
    for folder in need.runtime:
        args += ["--ro-bind", f"{folder}", f"{folder}"]
    for mount in sorted(need.mounts, key=lambda mount: steps(mount.target)):  # what lies in another comes after it
        args += ["--bind" if mount.writable else "--ro-bind", f"{mount.source}", mount.target]
    return args


def check(need: Need) -> None:
    """`InfraError` for what is missing, before anything is started."""
    for source, target in [(f, f) for f in (*need.runtime, *need.devices)] + [
        (m.source, m.target) for m in need.mounts
    ]:
        if not source.exists():
            raise InfraError(f"what should be mounted at {target} in the box does not exist: {source}")


def system_calls() -> list[int]:
    """A seccomp filter, one number for each instruction. Of sockets only local ones, IPv4, IPv6 and netlink are left:
    others (vsock) lead out of the box whatever its network namespace is."""

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> int:
        return code | yes << 16 | no << 24 | value << 32

    if os.uname().machine not in SYSCALLS:
        return []
    machine, socket, refused = SYSCALLS[os.uname().machine]
    load, equal, above, answer, allow, no_call, no_family = 0x20, 0x15, 0x35, 0x06, 0x7FFF0000, 0x50026, 0x50061
    code = [step(load, 4), step(equal, machine, 1), step(answer, no_call)]  # a foreign calling convention
    code += [step(load, 0), step(above, 0x40000000, 0, 1), step(answer, no_call)]  # and another one
    for number in refused:
        code += [step(equal, number, 0, 1), step(answer, no_call)]
    code += [step(equal, socket, 1), step(answer, allow), step(load, 16)]
    for family in (1, 2, 10, 16):
        code += [step(equal, family, 0, 1), step(answer, allow)]
    return [*code, step(answer, no_family)]


class Limits:
    """Cgroups for one box, of version 1 or 2, below the one we are in; removed when it closes.

    `names` says what is in force. Where no cgroup can be made, the number of processes still has a limit by the
    kernel's per-user count (not for root, who is exempt); memory has none.
    """

    def __init__(self, need: Need, trial: int) -> None:
        """`trial` is a process that is moved in and out, to know that we may."""
        self.folders: list[Path] = []
        self.names: tuple[str, ...] = ()
        self._events: Path | None = None
        self.processes: int | None = None
        wanted = {"memory": need.memory_bytes, "processes": need.processes}
        for own, place in self.places():
            missing = {name: limit for name, limit in wanted.items() if limit and name not in self.names}
            if missing:
                self._make(place / f"prill-{secrets.token_hex(8)}", own, missing, trial)
        kernel = tuple(int(part) for part in os.uname().release.split(".")[:2] if part.isdigit())
        if need.processes and "processes" not in self.names and os.getuid() != 0 and kernel >= (5, 14):
            self.processes = need.processes  # before 5.14 all the user's processes on the machine would count
            self.names += ("processes",)

    @staticmethod
    def places() -> Iterator[tuple[Path, Path]]:
        """Where we are and where a new cgroup may be made: for version 1 right there, for 2 there or above."""
        own = {}
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            own[controllers] = path
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            before, after = line.split(" - ", 1)
            root, point = before.split()[3:5]
            kind, _, options = after.split()[:3]
            for controllers, path in own.items():
                version = "cgroup" if controllers else "cgroup2"
                if kind != version or (controllers and not set(controllers.split(",")) <= set(options.split(","))):
                    continue
                place = Path(point, os.path.relpath(path, root)) if path.startswith(root) else Path(point)
                yield place, place
                while kind == "cgroup2" and place != Path(point):  # a cgroup with processes cannot divide itself
                    yield Path(point, os.path.relpath(path, root)), place.parent
                    place = place.parent

    def _make(self, folder: Path, own: Path, limits: dict[str, int], trial: int) -> None:
        done = []
        with contextlib.suppress(OSError):
            folder.mkdir()
            for name, limit in limits.items():
                for file in LIMIT_FILES[name]:
                    if (folder / file).exists():
                        (folder / file).write_text(str(limit))
                        done.append(name)
            for swap, most in (("memory.swap.max", "0"), ("memory.memsw.limit_in_bytes", f"{limits.get('memory')}")):
                if "memory" in done and (folder / swap).exists():
                    with contextlib.suppress(OSError):  # a machine without swap accounting
                        (folder / swap).write_text(most)
            if done:
                (folder / "cgroup.procs").write_text(str(trial))
                (own / "cgroup.procs").write_text(str(trial))
                self.folders.append(folder)
                self.names += tuple(done)
                if "memory" in done:
                    new = folder / "memory.events"
                    self._events = new if new.exists() else folder / "memory.oom_control"
                return
        with contextlib.suppress(OSError):
            folder.rmdir()

    def kills(self) -> int:
        """How many processes of the box the kernel has killed for want of memory. Concurrent programs share it."""
        lines = self._events.read_text().splitlines() if self._events else []
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def close(self) -> None:
        """Remove what was made."""
        for folder in self.folders:
            for _ in range(100):  # what has just died is counted for a moment
                with contextlib.suppress(OSError):
                    folder.rmdir()
                if not folder.exists():
                    break
                time.sleep(0.02)


class BubblewrapBox:
    """An open box; see `Box`."""

    isolated = True

    def __init__(self, need: Need, first: int) -> None:
        """`first` is the first process of the box, as the host counts."""
        self._need, self._first = need, first
        self._programs: list[Program] = []
        self._descriptors = {"first": os.pidfd_open(first)}
        for kind in ("ipc", "net", "cgroup", "pid", "mnt", "uts", "user"):
            self._descriptors[kind] = os.open(f"/proc/{first}/ns/{kind}", os.O_RDONLY)
        # Held open, so that files can be fetched even after an agent has killed everything.
        self._root = self._descriptors["root"] = os.open(f"/proc/{first}/root", os.O_PATH | os.O_DIRECTORY)
        self._descriptors["owner"] = fcntl.ioctl(self._descriptors["mnt"], GET_USERNS)
        inodes = {kind: os.fstat(descriptor).st_ino for kind, descriptor in self._descriptors.items()}
        kinds = ["owner", "ipc", "net", "cgroup", "pid", "mnt", "uts"]
        kinds += ["user"] if inodes["user"] != inodes["owner"] else []
        self._namespaces = {kind: self._descriptors[kind] for kind in kinds}
        self._pids = inodes["pid"]
        self._limits = Limits(need, first)
        self.limits = self._limits.names
        """Which of "memory" and "processes" are in force."""

    def path(self, target: str) -> str:
        """See `Box.path`: here every place has its own name."""
        return target

    def _belongs(self, pid: int, mark: int | None = None) -> bool:
        """Whether a process lives in the box, and has the mark. A leader may end before its threads: all are asked."""
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/ns/pid").stat().st_ino == self._pids:
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    with contextlib.suppress(OSError):
                        return (thread / "ns/uts").stat().st_ino == mark or mark is None
        return False

    def _start(self, command: Command, stdout: Path, stderr: Path, keep: Keep) -> Program:
        self._programs = [program for program in self._programs if not program.over()]
        program = Program(
            command,
            {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/agent", "TMPDIR": "/tmp"}
            | dict(self._need.env)
            | dict(command.env),
            (Output(stdout, keep, timed=True), Output(stderr, keep)),
            namespaces=self._namespaces,
            groups=[folder / "cgroup.procs" for folder in self._limits.folders],
            processes=self._limits.processes,
            syscalls=system_calls(),
            belongs=lambda pid, _, mark: self._belongs(pid, mark),
            last_resort=self._end,
            kills=self._limits.kills,
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

    def _inside(self, target: str) -> list[str]:
        """The steps to a place that programs may write to; `ValueError` for any other."""
        places = dict.fromkeys(PRIVATE, True) | {mount.target: mount.writable for mount in self._need.mounts}
        over = [place for place in places if PurePosixPath(target).is_relative_to(place)]
        if not over or not places[max(over, key=len)]:
            raise ValueError(f"not a writable place of the box: {target!r} (there are: {sorted(places)})")
        return steps(target)

    def put(self, source: Path, target: str) -> None:
        """See `Box.put`. `ValueError` for a place that is not writable, or a link on the way."""
        carry_in(source, self._root, self._inside(target))

    def get(self, source: str, target: Path, max_bytes: int = 64 << 30) -> None:
        """See `Box.get`. A file beyond `max_bytes` is refused too."""
        carry_out(self._root, self._inside(source), target, max_bytes)

    def _end(self) -> None:
        """Kill the first process: the kernel then kills all others of the box, in one stroke."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptors["first"], signal.SIGKILL)

    def close(self) -> None:
        """Returns when every process of the box is dead."""
        self._end()
        until = time.monotonic() + 30
        while any(map(self._belongs, everyone())):
            if time.monotonic() > until:
                raise InfraError("processes of a box do not die")
            time.sleep(0.005)
        for program in self._programs:
            program.close()
        self._limits.close()
        for descriptor in self._descriptors.values():
            os.close(descriptor)


class Bubblewrap:
    """See `Sandbox`."""

    @contextmanager
    def open(self, need: Need) -> Iterator[Box]:
        """See `Sandbox.open`."""
        bwrap = which("bwrap")
        if not bwrap:
            raise InfraError(NO_BWRAP)
        check(need)
        with ExitStack() as undo:
            # --die-with-parent means the *thread* that started bwrap, so that thread must live as long as the box.
            thread = undo.enter_context(ThreadPoolExecutor(1, "prill-box"))
            holder, first = self._hold(bwrap, need, thread, undo)
            box = BubblewrapBox(need, first)
            undo.callback(holder.wait)
            undo.callback(box.close)
            yield box

    @staticmethod
    def _hold(
        bwrap: str, need: Need, thread: ThreadPoolExecutor, undo: ExitStack
    ) -> tuple[subprocess.Popen[bytes], int]:
        """Start the holder; returns once all is mounted (bwrap tells the first process's id before that)."""
        info, told = os.pipe()
        args, passed = [bwrap, *arguments(need), "--info-fd", str(told)], [told]
        for path, text in MADE.items():
            reader, writer = os.pipe()
            os.write(writer, text.encode())
            os.close(writer)
            passed.append(reader)
            args += ["--perms", "0444", "--file", str(reader), path]
        args += ["--remount-ro", "/dev", "--remount-ro", "/", "--", "/bin/sh", "-c", HOLD]
        try:
            holder = thread.submit(
                subprocess.Popen,
                args,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"PATH": "/usr/bin:/bin"},
                pass_fds=passed,
            ).result()
        finally:
            for descriptor in passed:
                os.close(descriptor)
        undo.callback(holder.kill)
        undo.enter_context(holder)
        assert holder.stdout and holder.stderr
        with os.fdopen(info, "rb") as told_file:
            waiting = select([holder.stdout], [], [], 60)[0]
            if not waiting or holder.stdout.readline() != b"ready\n":
                holder.kill()
                words = holder.stderr.read().decode(errors="replace").strip() or "it gave no reason"
                if "disable-userns" in words:
                    words += " (bubblewrap 0.8 or newer is needed)"
                forbidden = any(hint in words for hint in ("namespace", "ermi", "uid map", "loopback"))
                raise InfraError(f"bubblewrap cannot make a box: {words}{NO_NAMESPACES if forbidden else ''}")
            first = int(json.load(told_file)["child-pid"])
        return holder, first


plugin = Bubblewrap()
