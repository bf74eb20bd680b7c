"""Both sandboxes against the conformance suite, and what is true of ours beyond it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import prill
from prill.errors import InfraError
from prill.sandboxes import bubblewrap, local
from prill.sockets import Command, Keep, Mount, Need
from prill.testing.sandboxes import WRITABLE, opened, python, refused, sandbox_conformance, unlocked

try:
    with bubblewrap.plugin.open(Need()):
        NO_BOX = ""
except InfraError as error:
    NO_BOX = str(error)

needs_bubblewrap = pytest.mark.skipif(bool(NO_BOX), reason=NO_BOX)
both = pytest.mark.parametrize("sandbox", [pytest.param(bubblewrap.plugin, marks=needs_bubblewrap), local.plugin])


def cases(checks: list[tuple[str, Callable[[], None]]]) -> list[Any]:
    """The checks as parameters with their names."""
    return [pytest.param(check, id=name) for name, check in checks]


@needs_bubblewrap
@pytest.mark.parametrize("check", cases(sandbox_conformance(bubblewrap.plugin, isolated=True)))
def test_bubblewrap_is_a_sandbox_that_isolates(check: Callable[[], None]) -> None:
    """Bubblewrap does all that a sandbox must, and isolates."""
    check()


@pytest.mark.parametrize("check", cases(sandbox_conformance(local.plugin, isolated=False)))
def test_local_is_a_sandbox(check: Callable[[], None]) -> None:
    """Local does all that a sandbox must, and does not claim to isolate."""
    check()


OWNER = """
import sys
from pathlib import Path
from prill.sandboxes import bubblewrap
from prill.sockets import Command, Keep, Mount, Need
from prill.testing.sandboxes import WRITABLE, python
folder = Path(sys.argv[1])
need = Need(mounts=(Mount(source=folder, target=WRITABLE, writable=True),), runtime=(Path(sys.base_prefix),))
with bubblewrap.plugin.open(need) as box:
    code = "orphan(sys.argv[1]); held = lock(sys.argv[1] + str(2)); time.sleep(600)"
    command = Command(argv=python(code, WRITABLE + "/lock"))
    box.run(command, stdout=folder / "stdout", stderr=folder / "stderr")
"""


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether it comes true within half a minute."""
    for _ in range(1500):
        if condition():
            return True
        time.sleep(0.02)
    return False


@needs_bubblewrap
def test_a_killed_owner_takes_the_box_along(tmp_path: Path) -> None:
    """If the process that opened a box is killed, every process in it dies, orphans of other sessions too."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, os.fspath(tmp_path)])
    locks = [tmp_path / "lock", tmp_path / "lock2"]
    assert eventually(lambda: all(lock.exists() and not unlocked(lock) for lock in locks))
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert eventually(lambda: all(unlocked(lock) for lock in locks))


@needs_bubblewrap
def test_a_leader_that_ended_does_not_hide_its_threads() -> None:
    """A process whose first thread has ended is still seen, and dies at the deadline."""
    code = """
        held = lock(sys.argv[1])
        threading.Thread(target=time.sleep, args=(600,)).start()
        print("up", flush=True); ctypes.CDLL(None).syscall(93 if os.uname().machine == "aarch64" else 60, 0)
    """
    with opened(bubblewrap.plugin) as room:
        ended = room.run(*python(code, room.path("lock")), limit_seconds=0.5, grace_seconds=0)
        assert ended.timed_out and room.stdout.read_text() == "up\n" and unlocked(room.writable / "lock")


@needs_bubblewrap
def test_limits_of_the_box_are_named() -> None:
    """A box says which limits are in force, and none that were not asked for."""
    with bubblewrap.plugin.open(Need()) as box:
        assert getattr(box, "limits", None) == ()
    with bubblewrap.plugin.open(Need(memory_bytes=1 << 30, processes=100)) as box:
        assert set(getattr(box, "limits", ())) <= {"memory", "processes"}


@needs_bubblewrap
def test_cgroups_are_removed() -> None:
    """A closed box leaves no cgroup behind."""
    with bubblewrap.plugin.open(Need(memory_bytes=1 << 30, processes=100)) as box:
        made = list(box._limits.folders)  # type: ignore[attr-defined]
    assert not [folder for folder in made if folder.exists()]


@both
def test_a_file_beyond_the_cap_is_refused(sandbox: Any) -> None:
    """Nothing larger than the cap is fetched, and nothing is left of what was begun."""
    with opened(sandbox) as room:
        (room.writable / "large").write_bytes(b"x" * 1001)
        assert "1000" in refused(lambda: room.box.get(f"{WRITABLE}/large", room.folder / "copy", max_bytes=1000))
        assert not (room.folder / "copy").exists()
        room.box.get(f"{WRITABLE}/large", room.folder / "copy", max_bytes=1001)


@both
def test_output_that_cannot_be_written_is_an_infra_error(sandbox: Any) -> None:
    """A full disk does not block the program, and is told as our fault."""
    with opened(sandbox) as room, pytest.raises(InfraError, match="output"):
        room.stdout = Path("/dev/full")
        room.run("/bin/sh", "-c", "echo words; exit 3")


@needs_bubblewrap
def test_a_missing_bubblewrap_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without bwrap on the PATH the error says how to get it, and what else there is."""
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    with pytest.raises(InfraError, match=r"not installed.*apt-get install bubblewrap.*--sandbox local"):
        bubblewrap.plugin.open(Need()).__enter__()


@needs_bubblewrap
def test_forbidden_namespaces_are_explained() -> None:
    """Where no user namespace can be made the error quotes bwrap and names the settings to look at."""
    packages = {Path(module.__file__).parents[1] for module in (prill, msgspec) if module.__file__}
    code = """
        sys.path += sys.argv[1:]
        from prill.sandboxes.bubblewrap import plugin
        from prill.sockets import Need
        try:
            plugin.open(Need()).__enter__()
        except Exception as error:
            say(type(error).__name__, str(error))
    """
    need = Need(runtime=(Path(sys.base_prefix), *packages))
    with opened(bubblewrap.plugin) as room, bubblewrap.plugin.open(need) as box:
        room.box = box
        name, words = room.says(code, *map(str, packages))
    assert name == "InfraError" and "bwrap:" in words and "kernel.unprivileged_userns_clone" in words


@both
def test_hostile_folders_are_removed_with_the_box(sandbox: Any) -> None:
    """A folder that nobody may enter does not stay behind, and a link in it is not followed."""
    with opened(sandbox) as room:
        (room.folder / "outside" / "file").write_text("stays")
        script = 'mkdir -p "$0/a/b" && ln -s "$1" "$0/a/door" && chmod 0 "$0/a/b" "$0/a"'
        place = room.box.path("/tmp/new")
        assert room.run("/bin/sh", "-c", script, place, os.fspath(room.folder / "outside")).exit_code == 0
        room.close()
        assert not Path(place).exists() and (room.folder / "outside" / "file").read_text() == "stays"


def test_local_spells_paths_as_they_are_here(tmp_path: Path) -> None:
    """A place in a mount is its source's, a system place is itself, any other lies in a private folder."""
    mounts = (
        Mount(source=tmp_path, target="/home/agent/task"),
        Mount(source=tmp_path / "x", target="/home/agent/task/y"),
    )
    (tmp_path / "x").mkdir()
    with local.plugin.open(Need(mounts=mounts)) as box:
        assert box.path("/home/agent/task/a/b") == f"{tmp_path}/a/b"
        assert box.path("/home/agent/task/y/z") == f"{tmp_path}/x/z"
        assert box.path("/usr/bin/env") == "/usr/bin/env" and box.path(f"{tmp_path}/a") == f"{tmp_path}/a"
        private = box.path("/home/agent")
        assert Path(private).is_dir() and box.path(private) == private
        ended = box.run(Command(argv=("pwd",), cwd="/tmp"), stdout=tmp_path / "stdout", stderr=tmp_path / "stderr")
        assert ended.exit_code == 0 and (tmp_path / "stdout").read_text().strip() == box.path("/tmp")
    assert not Path(private).exists()


class Shout:
    """A hider that takes `secret` out, wherever the stream is cut."""

    def __init__(self) -> None:
        self.held = b""

    def feed(self, piece: bytes) -> bytes:
        """All but what might begin the word."""
        self.held = (self.held + piece).replace(b"secret", b"[NAME]")
        ready, self.held = self.held[:-5], self.held[-5:]
        return ready

    def flush(self) -> bytes:
        """What is left."""
        return self.held


@both
def test_output_goes_on_behind_what_is_there(sandbox: Any) -> None:
    """A second program's output is appended, times go on, and what a hider hides never touches the disk."""
    with opened(sandbox) as room:
        times = room.folder / "times"
        first = room.run(
            "/bin/sh", "-c", "printf 'a sec'; sleep 0.1; printf 'ret\n'", keep=Keep(times=times, hide=Shout)
        )
        again = Keep(times=times, hide=Shout, append=True, elapsed_seconds=100.0)
        second = room.run("/bin/sh", "-c", "printf 'b\n'", keep=again)
        assert room.stdout.read_bytes() == b"a [NAME]\nb\n"
        assert (first.output_bytes, second.output_bytes) == (9, 2)
        last = times.read_text().splitlines()[-1].split()
        assert last[0] == "9" and float(last[1]) >= 100
