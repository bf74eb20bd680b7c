"""Real agent programs in a box whose only door leads to a scripted provider: what tests of them start from.

The programs are those of the npm cache below `.cache` (`make test` fills it); without one the test is skipped by name.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from prill import npm, plugins, runtime
from prill.catalog import Catalog
from prill.sandboxes import bubblewrap
from prill.sockets import TOKEN, Agent, Command, Ended, Mount, Need
from prill.spec import Entrant

ENTRANTS = ("rehearsal-claude-code", "rehearsal-codex", "rehearsal-gemini-cli", "rehearsal-opencode")
CACHE = Path(__file__).parents[1] / ".cache"
WORLD = {
    "PRILL_BASE_MODEL": "/home/agent/task/base",
    "PRILL_DATA": "/home/agent/task/data",
    "PRILL_SUBMISSION": "/home/agent/task/final_model",
    "PRILL_SEED": "0",
}
KEY = "the-token-of-this-test"
PATIENCE_SECONDS = 90.0


@contextmanager
def playing(scenario: Path, folder: Path, name: str = "truth") -> Iterator[tuple[str, Path]]:
    """The scripted provider with a scenario: where it listens, and the file of its truth."""
    truth = folder / f"{name}.jsonl"
    where = ["--socket", str(folder / "door.sock"), "--truth", str(truth)]
    argv = [sys.executable, "-m", "prill.rehearsal", str(scenario), *where]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            word, _, place = program.stdout.readline().strip().partition(" ")
            assert word == "ready"
            yield place, truth
        finally:
            program.terminate()


def told(truth: Path, *kinds: str) -> list[dict[str, Any]]:
    """Lines of the truth, of some kinds or of all."""
    lines = [msgspec.json.decode(line) for line in truth.read_bytes().splitlines()]
    return [line for line in lines if not kinds or line["kind"] in kinds]


class Boxed:
    """One entrant and the folders that outlive its boxes."""

    def __init__(self, name: str, folder: Path) -> None:
        """Skips the test where the entrant's program is not installed."""
        self.entrant: Entrant = Catalog().entrant(name)
        self.agent: Agent = plugins.get("agents", self.entrant.agent)
        self.folder = folder
        self.package, self.version = str(self.agent.package), str(self.entrant.version)
        if npm.installed(self.package, self.version) is None:
            pytest.skip(f"{self.package}@{self.version} is not in .cache/npm (`make test` puts it there, with npm)")

    def play(self, command: Command, scenario: Path, *, name: str, kill_at: bytes | None = None) -> Ended | None:
        """Run a command in a fresh box against a scenario, to its end or until its output has those bytes.

        Leaves `name.out`, `name.err` and `name.jsonl`, the provider's truth.
        """
        for place in ("task", "door", *command.kept):
            (self.folder / place.strip("/")).mkdir(parents=True, exist_ok=True)
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        programs = npm.folder(self.package, self.version)
        own = runtime.environment()
        env = {**own, **WORLD, "PATH": f"{programs / npm.COMMANDS}:{own['PATH']}", "HOME": "/home/agent"}
        mounts = [
            Mount(source=self.folder / "task", target="/home/agent/task", writable=True),
            Mount(source=self.folder / "door", target="/door"),
            Mount(source=runtime.PACKAGE / "tools", target="/tools"),
            *(Mount(source=self.folder / place.strip("/"), target=place, writable=True) for place in command.kept),
        ]
        folders = (*runtime.folders(), programs, *npm.runtime_folders())
        need = Need(mounts=tuple(mounts), runtime=folders, processes=256)
        with playing(scenario, self.folder / "door", name), bubblewrap.plugin.open(need) as box:
            relay = Command(argv=("python3", "/tools/relay.py", "--ready", "-", "4141=/door/door.sock"), env=env)
            said = self.folder / "relay.out"
            box.start(relay, stdout=said, stderr=self.folder / "relay.err")
            for target, text in command.written.items():
                passing = self.folder / "passing"
                passing.write_text(text.replace(TOKEN, KEY))
                box.put(passing, target)
            filled = {key: value.replace(TOKEN, KEY) for key, value in command.env.items()}
            command = msgspec.structs.replace(command, env={**env, **filled})
            wait_for(said, b"ready")
            if kill_at is None:
                return box.run(command, stdout=out, stderr=err, limit_seconds=PATIENCE_SECONDS)
            box.start(command, stdout=out, stderr=err)
            wait_for(out, kill_at)
            time.sleep(0.5)  # so that the command it began is under way
            return None  # the box kills all that is in it

    def truth(self, name: str, *kinds: str) -> list[dict[str, Any]]:
        """What the provider was asked in the play of that name."""
        return told(self.folder / "door" / f"{name}.jsonl", *kinds)


def wait_for(file: Path, words: bytes) -> None:
    """Until a file has those bytes."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not file.exists() or words not in file.read_bytes():
        if time.monotonic() > until:
            pytest.fail(f"{file.name} never had {words!r}")
        time.sleep(0.05)
