"""The sockets: what a plug-in must be. Each is *defined* by its conformance suite in `testing/`.

A plug-in is one file that ends in `plugin = …`; it is found by its kind (the folder) and its name (the file).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from prill.panels import Panel
from prill.record import Contract, Finding, Judged, Mark, Reply, Run, Step
from prill.spec import BaseModel, Entrant


class Value(Struct, frozen=True, forbid_unknown_fields=True):
    """What passes through a socket: plain, frozen, named."""


# --- the box -----------------------------------------------------------------------------------------------


class Mount(Value, frozen=True, kw_only=True):
    """A host file or folder as it appears in a box. Read-only unless said otherwise."""

    source: Path
    target: str
    """Absolute path inside the box."""
    writable: bool = False


class Need(Value, frozen=True, kw_only=True):
    """What a box must offer, decided before it is opened. Nothing of the host is visible beyond this."""

    mounts: tuple[Mount, ...] = ()
    runtime: tuple[Path, ...] = ()
    """Host folders that appear at their own path, read-only: interpreters and installed packages."""
    env: Mapping[str, str] = {}
    devices: tuple[Path, ...] = ()
    """Devices of the host, such as its GPUs, that appear at their own path."""
    memory_bytes: int | None = None
    processes: int | None = None


class Command(Value, frozen=True, kw_only=True):
    """A program to run in a box. Paths in `argv` and `env` are paths inside the box."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    env: Mapping[str, str] = {}
    cwd: str = "/tmp"
    files: Mapping[str, str] = {}
    """Path in the box → name of a file in the catalog's folders; the stage mounts them, read-only."""
    written: Mapping[str, str] = {}
    """Path below the box's home → text of a file that is there when the program starts, such as its settings."""
    kept: tuple[str, ...] = ()
    """Folders below the box's home that outlive the box, such as a program's sessions."""


class Ended(Value, frozen=True, kw_only=True):
    """How a program ended."""

    exit_code: int | None
    """The program's own status; `None` if it was killed by us or by a signal it did not survive."""
    signals: tuple[str, ...]
    """Signals we sent, in order ("TERM", "KILL")."""
    timed_out: bool
    oom_killed: bool
    wall_seconds: float
    output_bytes: int
    dropped_bytes: int
    """Output beyond the cap: counted, not kept."""


class Hider(Protocol):
    """Takes secrets out of a stream of bytes, wherever it is cut."""

    def feed(self, piece: bytes) -> bytes:
        """What of the stream can be kept so far."""

    def flush(self) -> bytes:
        """What was held back, at the end."""


class Keep(Value, frozen=True, kw_only=True):
    """How a program's output is kept."""

    most_bytes: int = 1 << 30
    """In each file; what is beyond is counted and dropped."""
    times: Path | None = None
    """Gets one line `offset seconds` for each piece of stdout as it arrived."""
    append: bool = False
    """Behind what is in the files, as for a program that goes on with another's work."""
    elapsed_seconds: float = 0.0
    """Added to the seconds in `times`."""
    hide: Callable[[], Hider] | None = None
    """Makes what takes secrets out of a stream before it is kept."""


class Running(Protocol):
    """A program in the background of a box."""

    def poll(self) -> Ended | None:
        """How it ended, or `None` while it runs."""

    def stop(self, grace_seconds: float = 5.0) -> Ended:
        """TERM, then KILL after the grace. Idempotent."""


class Box(Protocol):
    """An open box. All programs that run in it share its files, its loopback and its fate."""

    isolated: bool
    """False where programs can see the host; it is written into every record made here."""

    def path(self, target: str) -> str:
        """A path of the box as its programs must spell it (differs from `target` only where nothing is isolated)."""

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
        """Run to the end, or to the deadline: TERM to every process, KILL after the grace. Always returns.

        Output is written as it comes, byte for byte up to a cap for each stream.
        """

    def start(self, command: Command, *, stdout: Path, stderr: Path, keep: Keep = Keep()) -> Running:
        """Run in the background; it dies with the box at the latest."""

    def put(self, source: Path, target: str) -> None:
        """Copy a host file to a writable place of the box."""

    def get(self, source: str, target: Path) -> None:
        """Copy a regular file out of the box's writable mounts. Links and special files are refused (`ValueError`)."""


class Sandbox(Protocol):
    """Shuts programs in. When a box closes, every process that was in it is dead."""

    def open(self, need: Need) -> AbstractContextManager[Box]:
        """A fresh box. Raises `InfraError` where this machine cannot make one."""


# --- the agent ---------------------------------------------------------------------------------------------

DOOR = "http://127.0.0.1:4141"
"""Where a box finds the gateway: the root of every provider's API, without a path."""
EGRESS = "http://127.0.0.1:4142"
"""Where a box finds the proxy to other hosts, if its suite lets it out at all."""
HUB = "http://127.0.0.1:4143"
"""Where a box finds the front of the model and data hub."""
TEACHER = "http://127.0.0.1:4144"
"""Where a box finds the gateway's door to the teacher that its suite offers."""
TOKEN = "{prill-token}"
"""Stands in a command's `env` and `written` for the run's own token, which the gateway knows and swaps for the key."""


class Agent(Protocol):
    """Knows one agent program: how to start it, how to go on with it, and how to read what it prints. All pure."""

    package: str | None
    """The npm package that brings the program, whose commands are then on the box's PATH; `None`: it needs none."""

    def command(self, entrant: Entrant, prompt: str) -> Command:
        """What to run."""

    def resume(self, entrant: Entrant, prompt: str, lines: Iterable[bytes]) -> Command | None:
        """What to run to go on, with these words, in the session that this raw output began; `None` if that cannot be.

        Total: whatever the lines hold, it never raises.
        """

    def read(self, lines: Iterable[bytes]) -> Iterator[Step]:
        """Steps out of raw output. Total: never raises, never drops a line; the unknown becomes kind `other`."""


# --- measuring ---------------------------------------------------------------------------------------------


class Endpoint(Value, frozen=True, kw_only=True):
    """A served model, as programs in the same box reach it."""

    url: str
    """OpenAI-compatible root, ending in `/v1`."""
    model: str
    settings: Mapping[str, Any]
    """Engine, versions, arguments, and what of the submission's generation_config the server applies."""
    own: bool = False
    """Whether a program of the submission answers; then what it spoils is the submission's, and counts."""


class Engine(Protocol):
    """Makes a model folder answer over an OpenAI-compatible endpoint, inside a box.

    One that starts programs of the submission says so: `apart = True`. It is given the whole package, in a box where
    nobody but the server sits, and names in `control` the engine that serves the base model in its place.
    """

    def folders(self) -> tuple[Path, ...]:
        """Host folders that the box must have for this engine, beside our own interpreter's."""

    def serve(
        self, submission: str, model: BaseModel, box: Box, logs: Path, contract: Contract | None = None
    ) -> AbstractContextManager[Endpoint]:
        """Serve the folder at that path of the box, under a contract or as the folder itself says.

        Ready means one finished generation. When the context ends, nothing of the server runs any more. Raises
        `NotServed` with the server's last words; whose fault that is, the stage finds out.
        """


class NotServed(Exception):
    """The engine did not come up with this model. Not yet anybody's fault."""


class Item(Value, frozen=True, kw_only=True):
    """One question of a benchmark, with what the grader needs."""

    id: str
    question: str
    answer: str
    fields: Mapping[str, Any] = {}


class Grader(Protocol):
    """Marks one reply. Raises if it cannot mark; that is never the model's zero."""

    def __call__(self, reply: Reply, item: Item) -> Mark: ...


class Inquiry(Value, frozen=True, kw_only=True):
    """What a judge model is asked, in a conversation of its own."""

    user: str
    system: str | None = None


class Opinion(Value, frozen=True, kw_only=True):
    """What came of one inquiry."""

    value: Any
    """What the reader made of the reply; `None` where no try brought a reply that it could read."""
    text: str
    """The last reply, as it came."""
    why: str
    """Why there is no value; empty where there is one."""
    tries: int


class Ask(Protocol):
    """Asks a judge model. All that is spent on judging goes through one of these."""

    model: str

    def __call__(self, inquiries: Sequence[Inquiry], read: Callable[[str], Any]) -> list[Opinion]:
        """Ask all of them, some at a time; one opinion for each, in their order.

        `read` is total and gives `None` for a reply that says nothing; it is then asked for again, some times.
        Raises `InfraError` where the judge model cannot be asked at all.
        """

    def spent(self) -> dict[str, Any]:
        """The model, its settings, and calls, tokens and price since this was made; unknown is `None` with why."""


class AskingGrader(Protocol):
    """Marks all replies of a benchmark together, by asking. `asks` tells it from a `Grader`, which has no such field.

    A verdict that is missing is never the model's zero: it is counted and, where the score needs it, holds the score.
    """

    asks: bool

    def __call__(self, replies: Sequence[tuple[Reply, Item]], ask: Ask) -> Judged: ...


# --- judging -----------------------------------------------------------------------------------------------


class Evidence(Value, frozen=True, kw_only=True):
    """All that a judge may read, as paths where it runs. Everything under `folder` is hostile bytes."""

    run: Run
    folder: Path
    items: Mapping[str, Path]
    """Benchmark name → its items, JSON lines."""
    base: Path
    siblings: Mapping[str, Path]
    fingerprints: Mapping[str, Path] = {}
    """Path in the base model's definition → the file."""
    offered: Mapping[str, Path] = {}
    """Training data that the benchmarks offer freely, by file name; what stands there may be trained on."""


class Judge(Protocol):
    """Reads the evidence of a finished run and speaks to the rules it names, each exactly once."""

    rules: tuple[str, ...]

    def __call__(self, evidence: Evidence) -> list[Finding]: ...


class AskingJudge(Protocol):
    """A judge that asks a panel's models. `asks` tells it from a `Judge`, which has no such field."""

    rules: tuple[str, ...]
    asks: bool

    def __call__(self, evidence: Evidence, panel: Panel, ask: Ask) -> list[Finding]: ...
