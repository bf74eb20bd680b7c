"""The only module that knows the file names of a run folder, and how its files are written and read.

A file's existence is the state. Every file is written beside its place and renamed last; `events.jsonl` is appended
and fsynced. One writer at a time holds the lock; when a writer dies, the kernel lets the lock go, so a solve that
began, has no outcome and is held by nobody is *lost*.
Not covered: file systems without `flock`, and a disk that lies about fsync.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from prill.errors import DefinitionError, InfraError
from prill.gates import SelfCheck
from prill.record import OURS, Event, File, Judgement, Measurement, Outcome, Run, Submission
from prill.spec import RunSpec

T = TypeVar("T", bound=msgspec.Struct)
OVERRIDE = "override"
"""The name under which a person's signed rulings lie among the findings; no judge may bear it."""
PROBES = 20
"""How often a lock is tried, a fiftieth of a second apart."""


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self.path, self.durable = path, durable

    # --- places ---

    @property
    def id(self) -> str:
        """The folder's name. It means nothing and is never parsed."""
        return self.path.name

    raw = property(lambda self: self.path / "raw")
    workspace = property(lambda self: self.path / "workspace")
    submission_files = property(lambda self: self.path / "submission")
    spec_file = property(lambda self: self.path / "spec.json")
    prompt_file = property(lambda self: self.path / "prompt.md")
    stdout = property(lambda self: self.path / "raw" / "stdout")
    stderr = property(lambda self: self.path / "raw" / "stderr")
    times = property(lambda self: self.path / "raw" / "stdout.times")
    trajectory = property(lambda self: self.path / "trajectory.json")
    events_file = property(lambda self: self.path / "events.jsonl")
    outcome_file = property(lambda self: self.path / "outcome.json")
    submission_file = property(lambda self: self.path / "submission.json")
    given = property(lambda self: self.path / "given")
    imported = property(lambda self: self.path / "imported")
    home = property(lambda self: self.path / "raw" / "home")
    samples = property(lambda self: self.path / "raw" / "machine.jsonl")
    ledger = property(lambda self: self.path / "ledger.jsonl")
    egress = property(lambda self: self.path / "egress.jsonl")
    hub = property(lambda self: self.path / "hub.jsonl")
    provider = property(lambda self: self.path / "provider.jsonl")
    teacher = property(lambda self: self.path / "teacher.jsonl")
    solving = property(lambda self: self.path / ".solving")
    selfchecks = property(lambda self: self.path / "selfchecks")

    def scratch(self, stage: str, *, keep: bool = False) -> Path:
        """A folder for a stage's unfinished work; what a crash left in it is removed first, unless it is to be kept."""
        place = self.path / f".{stage}"
        if not keep:
            shutil.rmtree(place, ignore_errors=True)
        place.mkdir(exist_ok=True)
        return place

    def pace(self) -> dict[str, Any] | None:
        """How far a measuring under way is, as its newest pass says; `None` where there is none."""
        return newest_pace(self.path / ".measuring")

    def numbered(self, kind: str, name: str) -> list[Path]:
        """`measurements` or `findings` of that name, oldest first."""
        found = [file for file in (self.path / kind).glob(f"{name}.*.json") if file.name.split(".")[-2].isdigit()]
        return sorted(found, key=lambda file: int(file.name.split(".")[-2]))

    def next_numbered(self, kind: str, name: str) -> Path:
        """Where the next one goes; nothing is ever overwritten."""
        last = self.numbered(kind, name)
        number = int(last[-1].name.split(".")[-2]) + 1 if last else 1
        (self.path / kind).mkdir(exist_ok=True)
        return self.path / kind / f"{name}.{number}.json"

    # --- reading ---

    def is_run(self) -> bool:
        """Whether a run was planned here."""
        return (self.path / "spec.json").is_file()

    def spec(self) -> RunSpec:
        """What was decided."""
        return self._require("spec.json", RunSpec)

    def outcome(self) -> Outcome | None:
        """How solving ended, if it has."""
        return self._read("outcome.json", Outcome)

    def submission(self) -> Submission | None:
        """What was sealed, if it was."""
        return self._read("submission.json", Submission)

    def measurement(self, benchmark: str) -> Measurement | None:
        """The newest measurement of a benchmark."""
        files = self.numbered("measurements", benchmark)
        return decode(files[-1], Measurement) if files else None

    def judgement(self, judge: str) -> Judgement | None:
        """The newest word of a judge."""
        files = self.numbered("findings", judge)
        return decode(files[-1], Judgement) if files else None

    def self_checks(self) -> list[SelfCheck]:
        """The self-checks that the agent asked for, in order."""
        files = sorted(self.selfchecks.glob("[0-9]*.json"), key=lambda file: (len(file.name), file.name))
        return [decode(file, SelfCheck) for file in files]

    def events(self) -> list[Event]:
        """All events; a line that a crash cut is an event named `torn`."""
        try:
            lines = self.events_file.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [event_of(line) for line in lines if line.strip()]

    def steps(self) -> dict[str, Any]:
        """trajectory.json as it stands, or nothing where the agent is not done."""
        try:
            found = msgspec.json.decode(self.trajectory.read_bytes())
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError as error:
            raise DefinitionError(
                f"{self.trajectory}: damaged JSON ({error}); restore it from a copy; the agent's own words are in raw/"
            ) from None
        return found if isinstance(found, dict) else {}

    def read(self) -> Run:
        """The whole folder as one value."""
        spec, outcome, submission, events = self.spec(), self.outcome(), self.submission(), self.events()
        measurements = tuple(m for b in spec.benchmarks if (m := self.measurement(b.name)))
        judgements = tuple(j for judge in spec.judges if (j := self.judgement(judge)))
        overrides = tuple(decode(file, Judgement) for file in self.numbered("findings", OVERRIDE))
        began = next((event.at for event in events if event.event == "began" and event.stage == "solve"), None)
        if outcome is None:
            over = any(event.event == "ended" and event.stage == "solve" for event in events)
            at_work = self.locked() or self.kept()
            state = "planned" if began is None else "running" if at_work else "unfinished" if over else "lost"
        elif outcome.ended in OURS:
            state = "lost"
        else:
            whole = submission and len(measurements) == len(spec.benchmarks) and len(judgements) == len(spec.judges)
            state = "done" if whole else "unfinished"
        return Run(
            spec=spec,
            state=state,  # type: ignore[arg-type]
            began=began,
            outcome=outcome,
            submission=submission,
            measurements=measurements,
            judgements=(*judgements, *overrides),
            failures=tuple(event for event in events if event.event == "failed"),
        )

    def _read(self, name: str, shape: type[T]) -> T | None:
        return decode(self.path / name, shape) if (self.path / name).exists() else None

    def _require(self, name: str, shape: type[T]) -> T:
        value = self._read(name, shape)
        if value is None:
            raise DefinitionError(f"{self.path}: not a run folder (it has no {name}); `prill run` makes one")
        return value

    # --- writing ---

    def append(self, event: str, stage: str | None = None, **detail: Any) -> None:
        """One more line of `events.jsonl`, on disk before this returns."""
        line = msgspec.json.encode(Event(at=time.time(), event=event, stage=stage, detail=detail)) + b"\n"
        with self.events_file.open("ab+") as file:
            if file.tell() and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                line = b"\n" + line  # a crash cut the last line: leave it as it is and start a fresh one
            file.write(line)
            file.flush()
            if self.durable:
                os.fsync(file.fileno())

    def write(self, target: Path, value: Any) -> None:
        """A record into its place: beside first, renamed last."""
        write_whole(target, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n", durable=self.durable)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """The one runner. Raises `InfraError` while another process is it."""
        with held(self.events_file, f"{self.path}: another process is at work on this run; wait for it"):
            yield

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """The one keeper of the agent's box; it may outlive the runner."""
        self.solving.mkdir(exist_ok=True)
        with held(self.solving / "keeper", f"{self.path}: the agent's box is open already"):
            yield

    def locked(self) -> bool:
        """Whether a living process is the runner."""
        return is_held(self.events_file)

    def kept(self) -> bool:
        """Whether a living process keeps the agent's box open."""
        return is_held(self.solving / "keeper")


@contextmanager
def held(file: Path, otherwise: str) -> Iterator[None]:
    """The lock of a file, which dies with its holder; `InfraError` with those words where somebody has it."""
    with file.open("ab") as opened:
        for attempt in range(PROBES):
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:  # somebody has it, or only looks whether somebody does
                if attempt == PROBES - 1:
                    raise InfraError(otherwise) from None
                time.sleep(0.02)
        yield


def is_held(file: Path) -> bool:
    """Whether a living process has the lock of a file."""
    try:
        with file.open("rb") as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def newest_pace(scratch: Path) -> dict[str, Any] | None:
    """What the newest `pace.json` of a measuring's scratch folder says."""
    found = list(scratch.glob("*/*/pace.json"))
    try:
        newest = max(found, key=lambda file: file.stat().st_mtime)
        told = msgspec.json.decode(newest.read_bytes())
    except (ValueError, OSError):  # none yet, or just gone
        return None
    return told if isinstance(told, dict) else None


def create(parent: Path, spec: RunSpec) -> RunFolder:
    """A new run folder with its spec: whole or not there at all."""
    beside = begun(parent, spec, durable=True)
    beside.path.rename(parent / beside.id.removeprefix("."))
    return RunFolder(parent / beside.id.removeprefix("."))


def create_all(parent: Path, contents: Iterable[tuple[RunSpec, Callable[[RunFolder], None]]]) -> list[RunFolder]:
    """Run folders that are filled when they are made: all of them or, where one cannot be filled, none.

    They go to disk together, since an import may bring thousands.
    """
    made: list[RunFolder] = []
    try:
        for spec, fill in contents:
            made.append(begun(parent, spec, durable=False))
            fill(made[-1])
    except BaseException:
        for folder in made:
            shutil.rmtree(folder.path, ignore_errors=True)
        raise
    os.sync()
    return [RunFolder(folder.path.rename(parent / folder.id.removeprefix("."))) for folder in made]


def begun(parent: Path, spec: RunSpec, *, durable: bool) -> RunFolder:
    """A run folder under a hidden name, with its spec."""
    parent.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    name = f"{stamp}-{''.join(secrets.choice('abcdefghijklmnopqrstuvwxyz') for _ in range(6))}"
    beside = parent / f".{name}"
    beside.mkdir(mode=0o700)  # an agent of root's may leave setuid files: nobody else may reach them
    folder = RunFolder(beside, durable=durable)
    folder.write(beside / "spec.json", replace(spec, id=name))
    folder.append("planned")
    return folder


def folders(parent: Path) -> list[RunFolder]:
    """Every run folder below `parent` (or `parent` itself), oldest name first. Half-made ones are not run folders."""
    if (parent / "spec.json").exists():
        return [RunFolder(parent)]
    if not parent.is_dir():
        return []
    return [RunFolder(entry) for entry in sorted(parent.iterdir()) if (entry / "spec.json").is_file()]


def decode(file: Path, shape: type[T]) -> T:
    """One record out of its file. Errors name the file, and the newer prill that a newer schema needs."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=shape)
    except msgspec.ValidationError as error:
        tag = shape.__struct_config__.tag
        try:
            found = msgspec.json.decode(file.read_bytes()).get("schema")
        except (msgspec.DecodeError, AttributeError):
            found = None
        if found != tag:
            raise DefinitionError(
                f"{file}: schema {found!r}, but this prill reads {tag!r}; read it with the prill that wrote it"
            ) from None
        raise DefinitionError(f"{file}: {error}") from None
    except msgspec.DecodeError as error:
        raise DefinitionError(f"{file}: damaged JSON ({error}); restore it or move the run folder away") from None


def event_of(line: bytes) -> Event:
    """One event out of its line."""
    try:
        return msgspec.json.decode(line, type=Event)
    except msgspec.DecodeError:
        return Event(at=0.0, event="torn", detail={"text": line.decode(errors="replace")[:200]})


def write_whole(target: Path, data: bytes, *, durable: bool = True) -> None:
    """Bytes into a file that is either whole or not there; on disk when this returns, unless it need not be yet."""
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    beside.rename(target)
    if not durable:
        return
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def list_files(folder: Path, *, skip: tuple[str, ...] = (), most: int = 100_000) -> tuple[File, ...]:
    """Every regular file below a folder with its digest, sorted by path; links are not followed, `skip` names
    top-level entries to leave out. Stops after `most` files with an `InfraError`, so that it cannot run for ever."""
    found: list[File] = []
    for directory, subfolders, names in os.walk(folder):
        subfolders.sort()
        if Path(directory) == folder:
            subfolders[:] = [name for name in subfolders if name not in skip]
        for name in sorted(names):
            file = Path(directory, name)
            if file.is_symlink() or not file.is_file() or (Path(directory) == folder and name in skip):
                continue
            if len(found) >= most:
                raise InfraError(f"{folder}: more than {most} files; prune it before going on")
            path = os.fsencode(file.relative_to(folder)).decode(errors="backslashreplace")
            found.append(File(path=path, bytes=file.stat().st_size, sha256=file_digest(file)))
    return tuple(sorted(found, key=lambda entry: entry.path))


def file_digest(file: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def tree_digest(files: tuple[File, ...]) -> str:
    """`sha256:` over lines of "digest, two blanks, path" sorted by path, as `sha256sum` prints them."""
    lines = "".join(f"{file.sha256}  {file.path}\n" for file in sorted(files, key=lambda file: file.path))
    return "sha256:" + hashlib.sha256(lines.encode()).hexdigest()
