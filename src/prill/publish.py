"""Standings, a record of each, a page for each run and copies of its files, for any web server or a disk to serve.

Secrets are taken out of all of it first, and counted. Built beside the target and swapped in last, so that a reader
sees the old site or the new one. Only a folder that carries the marker of a prill site is ever replaced. What goes onto
the site: every file of a run folder outside the workspace and the submission, and each file that a judge cites; raw
output is cut at a cap. Model weights never. Files that a browser might take for a page get `.txt` added, since an agent
chose their bytes.
Not covered: two publishers at one target, and a power cut between the two renames (the old site then lies beside).
"""

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import DecodeError, json

from prill import discreet
from prill.audit.assembly import now
from prill.audit.bundle import seal
from prill.audit.pointers import safe_name
from prill.error_rates import rates
from prill.errors import DefinitionError
from prill.folder import RunFolder
from prill.pages import Copy, render
from prill.record import Run, Step
from prill.records.bundling import bundle
from prill.records.making import identity
from prill.records.ours import by_id, of_standing
from prill.records.reading import read
from prill.redact import Redactor
from prill.reported import ResultRecord
from prill.spec import Suite
from prill.standings import Board
from prill.story import Story, steps_of, tell

MARKER = "prill-site.json"
MANIFEST = "files.json"
CAP = 5_000_000
"""Bytes that are published of any file that is not a record; a longer one is cut there."""
RECORDS = (".json", ".jsonl", ".md")
"""Published whole, and under their own names: no browser takes them for a page."""
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".ckpt", ".npz", ".npy", ".onnx", ".h5")


def publish(board: Board, folders: Iterable[RunFolder], target: Path, suite: Suite | None = None) -> Path:
    """The site at `target`, with a record of each standing where the suite is given.

    Raises `DefinitionError` rather than replace a folder that is not a prill site.
    """
    folders = list(folders)
    target = target.absolute() if not target.is_symlink() else target.resolve()
    check(target, folders)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    beside.mkdir()
    try:
        links = recorded(board, suite, folders, beside, target) if suite is not None else {}
        build(board, folders, beside, links)
        swap(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return target


def check(target: Path, folders: Iterable[RunFolder]) -> None:
    """Refuses a target that holds something else."""
    if target.exists() and not target.is_dir():
        raise DefinitionError(f"{target}: a file, not a folder; give a folder for the site")
    if target.is_dir() and any(target.iterdir()) and not (target / MARKER).is_file():
        raise DefinitionError(
            f"{target}: not empty and not a prill site (it has no {MARKER}); give a new folder or move this one away"
        )
    for folder in folders:
        home = folder.path.resolve()
        if home in (target.resolve(), *target.resolve().parents):
            raise DefinitionError(f"{target}: inside the run folder {home}; give a folder outside of it")


def swap(beside: Path, target: Path) -> None:
    """The new site into its place; the old one goes only when the new one stands."""
    old = target.with_name(f"{beside.name}.old")
    if target.exists():
        target.rename(old)
    try:
        beside.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def recorded(board: Board, suite: Suite, folders: list[RunFolder], site: Path, before: Path) -> dict[str, str]:
    """A record's bundle for each standing; entrant → its page. What the old site has is superseded or kept."""
    started, runs, links = now(), by_id(folders), {}
    nets = discreet.redactor((folder.spec() for folder in folders), os.environ)
    for row in board.standings:
        fit = safe_name(row.entrant) and "/" not in row.entrant
        place = f"records/{row.entrant if fit else identity(row.entrant)}"
        old = earlier(before / place)
        record, files = of_standing(board, suite, row.entrant, runs, started[:10], old, nets.redact)
        seal(site / place, bundle(record, files, ["prill", "publish", board.suite], started))
        links[row.entrant] = f"{place}/index.html"
    return links


def earlier(place: Path) -> ResultRecord | None:
    """The record that the old site has there, if it can be read."""
    try:
        return read(place).record
    except DefinitionError:
        return None


def build(board: Board, folders: list[RunFolder], site: Path, records: dict[str, str] | None = None) -> None:
    """The whole site into a folder that has at most its records. Runs of other suites are left out."""
    runs: dict[str, Run] = {}
    stories: dict[str, Story] = {}
    steps: dict[str, list[Step]] = {}
    files: dict[str, list[Copy]] = {}
    nets = discreet.redactor((folder.spec() for folder in folders), os.environ)
    for folder in folders:
        run = discreet.value(folder.read(), nets)
        name = run.spec.id
        if run.spec.suite != board.suite:
            continue
        if not name or PurePosixPath(name).name != name or name.startswith("."):
            raise DefinitionError(f"{folder.path}: the id {name!r} in its spec cannot be the name of a page")
        if name in runs:
            raise DefinitionError(f"{folder.path}: a second run folder with the id {name!r}; give each run once")
        runs[name], steps[name] = run, [discreet.value(step, nets) for step in read_steps(folder)]
        known = {each.judge: rates(each.judge) for each in run.judgements}
        stories[name] = tell(run, [discreet.value(event, nets) for event in folder.events()], steps[name], known)
        files[name] = copies(folder, run, site / "runs" / name, nets)
    for path, text in render(board, runs, stories, steps, files, templates(), records).items():
        write(site / path, text.encode(errors="backslashreplace"))
    mark = {"schema": "prill/site/1", "suite": board.suite, "suite_digest": board.suite_digest, "runs": sorted(runs)}
    write(site / MARKER, json.format(json.encode(mark), indent=1) + b"\n")


def templates() -> dict[str, str]:
    """Name → text of every template of the package."""
    return {file.name: file.read_text(encoding="utf-8") for file in (Path(__file__).parent / "templates").iterdir()}


def read_steps(folder: RunFolder) -> list[Step]:
    """The steps of a trajectory; none where it is not there or damaged, and the page says so."""
    try:
        trajectory: Any = json.decode(folder.trajectory.read_bytes())
    except (OSError, DecodeError):
        return []
    return steps_of(trajectory)


# --- copies ---


def copies(folder: RunFolder, run: Run, to: Path, nets: Redactor) -> list[Copy]:
    """Copies the records of a run and every file that a judge cites; says of each what is published, and why not."""
    to.mkdir(parents=True)
    ours = {path: None if path.endswith(RECORDS) else CAP for path in own_files(folder)}
    caps = ours | {path: CAP for path in cited(run) if path not in ours}
    taken: set[str] = {MANIFEST}
    made = [copy for path, cap in caps.items() if (copy := copied(folder.path, path, to, taken, cap, nets))]
    write(to / MANIFEST, json.format(json.encode(made), indent=1) + b"\n")
    return made


def own_files(folder: RunFolder) -> Iterator[str]:
    """Files that prill wrote, and the agent's raw output; not its workspace, its submission or half-written files."""
    others = {folder.workspace, folder.submission_files}
    for directory, subfolders, names in os.walk(folder.path):
        here = Path(directory)
        subfolders[:] = sorted(n for n in subfolders if here / n not in others and not n.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield (here / name).relative_to(folder.path).as_posix()


def cited(run: Run) -> Iterator[str]:
    """Paths that findings cite."""
    for judgement in run.judgements:
        for finding in judgement.findings:
            yield from (citation.file for citation in finding.citations)


def copied(home: Path, path: str, to: Path, taken: set[str], cap: int | None, nets: Redactor) -> Copy | None:
    """One file onto the site, up to a cap; `None` where there is no regular file of that path inside the run folder."""
    parts = PurePosixPath(path).parts
    try:
        linked = any((home / Path(*parts[: depth + 1])).is_symlink() for depth in range(len(parts)))
        if not parts or ".." in parts or parts[0] == "/" or linked or not (home / path).is_file():
            return None
        path.encode()
        name = path if path.endswith(RECORDS) else f"{path}.txt"
        while name in taken:
            name += ".txt"
        weights = path.lower().endswith(WEIGHTS)
        went = discreet.file(home / path, None if weights else to / name, 0 if weights else cap, nets)
    except (OSError, ValueError):  # a name that no file can have, or a file that went away or cannot be read
        return None
    taken.add(name)
    why = [f"cut at {went.kept:,} of {went.bytes:,} bytes"] if cap is not None and went.bytes > cap else []
    why += [f"{went.replaced} secrets taken out"] if went.replaced else []
    return Copy(
        path=path,
        bytes=went.bytes,
        sha256=went.sha256,
        published=None if weights else name,
        kept=went.kept,
        kept_sha256=None if weights else went.kept_sha256,
        why="weights are not published" if weights else "; ".join(why),
    )


def write(target: Path, data: bytes) -> None:
    """A file of the site that is being built."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
