"""A listing of paths → what a released tree holds: roots, tasks, pairs, duplicates, holes, and what is left out.

Pure: entries in, an `Inventory` out, whatever they were read from. Memory is bounded by the number of roots, tasks and
top-level folders (each at most `MOST`), not by the number of paths. A root is a top-level folder whose name fits the
naming; a task is a folder directly in a root whose name fits, with an accepted benchmark and model: a folder by an
entry of its own or by something below it. Names are read here as the naming says, and nowhere else.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from prill.audit.derive import Derivation, Observation
from prill.audit.listing import Entry, Faults
from prill.audit.pointers import join
from prill.errors import DefinitionError
from prill.evidence import Counts, Excluded, Inventory, Listing, Pair, Root, Several, Task
from prill.questions import Naming

MOST = 1_000_000
"""Roots, tasks, left-out folders: more of any of them is no tree of runs."""
REMEMBERED = 100_000
"""Folders whose meaning is kept at hand, and folders of an auxiliary one that are told apart."""
LONGEST_NAME = 255


class CellName(NamedTuple):
    """What the name of a task's folder says."""

    benchmark: str
    model: str
    job: str


class Names:
    """A naming, compiled: reads names of roots and tasks."""

    def __init__(self, naming: Naming) -> None:
        try:
            self.root_form, self.cell_form = re.compile(naming.root), re.compile(naming.cell)
        except re.error as error:
            raise DefinitionError(f"namings/{naming.name}: not a regular expression: {error}") from None
        if not {"benchmark", "model", "job"} <= set(self.cell_form.groupindex):
            raise DefinitionError(f"namings/{naming.name}: cell needs the groups benchmark, model and job")
        self.naming = naming
        self.agents = sorted(naming.agents, key=len, reverse=True)
        self.benchmarks = frozenset(naming.benchmarks)
        self.models = {model.folder: model for model in naming.models}
        self.suspect = re.compile("|".join([r"/\.{0,2}(?:/|$)", *map(re.escape, naming.benchmarks)])).search
        """Whether a folder's path may be odd from a position on: empty parts, dots, or a task's name (each task's name
        contains a benchmark's)."""

    def root(self, name: str) -> Root | None:
        """What a root's name says, or none where it is no root."""
        if len(name) > LONGEST_NAME or name.startswith(tuple(self.naming.left_out)) or name in self.naming.auxiliary:
            return None
        match = self.root_form.fullmatch(name)
        if match is None:
            return None
        said = match.groupdict()
        who, hours, gpus = said.get("who"), said.get("hours"), said.get("gpus")
        agent = next((one for one in self.agents if who == one or (who or "").startswith(f"{one}_")), None)
        config = who[len(agent) + 1 :] if who and agent else None
        return Root(
            name=name,
            agent=agent,
            config=config or None,
            hours=int(hours) if hours else None,
            gpus=int(gpus) if gpus else 1 if "gpus" in said else None,
            experiment=said.get("experiment") or "",
            tasks=0,
        )

    def cell(self, name: str) -> CellName | None:
        """What a task's name says, or none where it is no task."""
        if len(name) > LONGEST_NAME:
            return None
        match = self.cell_form.fullmatch(name)
        return None if match is None else CellName(match["benchmark"], match["model"], match["job"])

    def accepted(self, name: str) -> CellName | None:
        """The same for accepted benchmarks and models only."""
        cell = self.cell(name)
        return cell if cell and cell.benchmark in self.benchmarks and cell.model in self.models else None


class Pile:
    """What was counted below one folder."""

    __slots__ = ("bytes", "directories", "files", "hashed", "path", "sized", "sum", "what", "why")

    def __init__(self, path: str, what: str, why: str = "") -> None:
        self.path, self.what, self.why = path, what, why
        self.files = self.bytes = self.sized = self.hashed = 0
        self.sum: Any = None
        self.directories: set[str] | None = {path}

    def add(self, path: str, digest: str) -> None:
        """A file's digest into the pile's."""
        if self.sum is None:
            self.sum = hashlib.sha256()
        self.sum.update(f"{digest}  {path}\n".encode())
        self.hashed += 1


class Tally:
    """Counts entries, in whatever order they come."""

    def __init__(self, names: Names, below: str = "") -> None:
        self.names, self.below = names, [part for part in below.split("/") if part]
        self.piles: dict[str, Pile] = {}
        self.known: dict[str, Pile | None] = {}
        self.tasks: dict[str, Pile] = {}
        self.root_names: dict[str, Root | None] = {}
        self.bare: set[str] = set()
        self.paths = 0
        self.faults = Faults()

    def feed(self, entries: Iterable[Entry]) -> None:
        """Some more entries."""
        last, pile, in_root, paths = "\0", None, False, 0
        for path, size, digest in entries:
            cut = path.rfind("/")
            folder = path[:cut] if cut >= 0 else ""
            if folder != last:
                last, pile = folder, self.place(folder)
                in_root = pile is not None and pile.what == "root"
            if cut == len(path) - 1:  # a folder's own entry
                continue
            paths += 1
            if pile is None:
                continue
            pile.files += 1
            if size is not None:
                pile.bytes += size
                pile.sized += 1
            if digest is not None:
                pile.add(path, digest)
            if in_root:
                self.in_root(f"{pile.path}/{path[cut + 1 :]}")
        self.paths += paths

    def in_root(self, path: str) -> None:
        """A file directly in a root; where it is named like a task it may be an empty folder."""
        if self.names.accepted(path.rpartition("/")[2]):
            if len(self.bare) >= MOST:
                raise DefinitionError(f"more than {MOST:,} names like a task's with nothing below")
            self.bare.add(path)

    def place(self, folder: str) -> Pile | None:
        """The pile that a folder's files go to; deep in a task, its first two parts usually say it."""
        cut = folder.find("/", folder.find("/") + 1)
        if cut > 0 and (task := self.tasks.get(folder[:cut])) and not self.names.suspect(folder, cut):
            return task
        if folder in self.known:
            return self.known[folder]
        if len(self.known) >= REMEMBERED:
            self.known.clear()
        found = self.known[folder] = self._place(folder)
        if found is not None and found.what == "task" and cut > 0 and found.path == folder[:cut]:
            self.tasks[found.path] = found
        return found

    def _place(self, folder: str) -> Pile | None:
        parts = folder.split("/")
        if parts[0] in (".", ""):
            if folder.startswith("/"):
                self.faults.note(f"an absolute path: {folder[:200]!r}")
                return None
            parts = parts[1:]
        if ".." in parts or "." in parts or "" in parts:
            self.faults.note(f"a path that climbs or has empty parts: {folder[:200]!r}")
            return None
        if self.below:
            if parts[: len(self.below)] != self.below:
                return None
            parts = parts[len(self.below) :]
        if not parts:
            return None
        top = parts[0]
        if top not in self.root_names:
            if len(self.root_names) >= MOST:
                raise DefinitionError(f"more than {MOST:,} top-level folders: not a tree of runs")
            self.root_names[top] = self.names.root(top)
        if self.root_names[top] is None:
            return self.auxiliary(parts)
        for depth in range(2, len(parts)):
            part = parts[depth]
            if part and part[-1].isdigit() and self.names.accepted(part):
                inside = "inside another task" if self.names.accepted(parts[1]) else "not directly in its root"
                return self.pile("/".join(parts[: depth + 1]), "nested", f"a task's name {inside}")
        if len(parts) == 1:
            return self.pile(top, "root")
        path = f"{top}/{parts[1]}"
        if self.names.accepted(parts[1]):
            return self.pile(path, "task")
        cell = self.names.cell(parts[1])
        if cell is None:
            return self.pile(path, "other", "not named like a task")
        what = "benchmark" if cell.benchmark not in self.names.benchmarks else "model"
        return self.pile(path, "other", f"{what} {getattr(cell, what)!r} is not among those accepted")

    def auxiliary(self, parts: list[str]) -> Pile:
        """A top-level folder that is no root, with how many folders it has."""
        naming, top = self.names.naming, parts[0]
        left = next((why for start, why in naming.left_out.items() if top.startswith(start)), None)
        made = self.pile(top, "auxiliary", naming.auxiliary.get(top) or left or "not named like a root")
        if made.directories is not None:
            for depth in range(2, len(parts) + 1):
                made.directories.add("/".join(parts[:depth]))
            if len(made.directories) > REMEMBERED:
                made.directories = None
        return made

    def of(self, what: str) -> list[Pile]:
        """All piles of a kind, by path."""
        return sorted((pile for pile in self.piles.values() if pile.what == what), key=lambda pile: pile.path)

    def pile(self, path: str, what: str, why: str = "") -> Pile:
        """The pile of that path."""
        if path not in self.piles:
            if len(self.piles) >= MOST:
                raise DefinitionError(f"more than {MOST:,} folders that are roots, tasks or left out")
            self.piles[path] = Pile(path, what, why)
        return self.piles[path]


def inventory(tally: Tally, source: Listing, naming_sha256: str) -> Inventory:
    """What was counted, with the list behind each number."""
    naming = tally.names.naming
    tasks = tuple(sorted((task(pile, tally.names) for pile in tally.of("task")), key=lambda one: one.path))
    by_root: dict[str, int] = {}
    by_pair: dict[tuple[str, str, str], list[Task]] = {}
    for one in tasks:
        by_root[one.root] = by_root.get(one.root, 0) + 1
        by_pair.setdefault((one.root, one.benchmark, one.model), []).append(one)
    named = sorted((root for root in tally.root_names.values() if root), key=lambda root: root.name)
    roots = tuple(replace(root, tasks=by_root.get(root.name, 0)) for root in named)
    models = [model.folder for model in naming.models]
    wanted = [(root.name, benchmark, model) for root in roots for benchmark in naming.benchmarks for model in models]
    missing = tuple(Pair(root=r, benchmark=b, model=m) for r, b, m in wanted if (r, b, m) not in by_pair)
    several = tuple(pair_of(key, found) for key, found in sorted(by_pair.items()) if len(found) > 1)
    left = {what: tuple(excluded(pile) for pile in tally.of(what)) for what in ("nested", "auxiliary", "other")}
    counts = {
        (b, m): sum(len(by_pair.get((root.name, b, m), ())) for root in roots)
        for b in naming.benchmarks
        for m in models
    }
    return Inventory(
        naming=naming.name,
        naming_sha256=naming_sha256,
        source=source,
        benchmarks=naming.benchmarks,
        models=naming.models,
        counts=Counts(
            benchmarks=len(naming.benchmarks),
            models=len(models),
            roots=len(roots),
            tasks=len(tasks),
            pairs=len(by_pair),
            expected_pairs=len(wanted),
            surplus=len(tasks) - len(by_pair),
            several=len(several),
            missing=len(missing),
            nested=len(left["nested"]),
            auxiliary=len(left["auxiliary"]),
            unaccepted=len(left["other"]),
            paths=tally.paths,
        ),
        cell_counts={b: tuple(counts[b, m] for m in models) for b in naming.benchmarks},
        roots=roots,
        tasks=tasks,
        several=several,
        missing=missing,
        nested=left["nested"],
        auxiliary=left["auxiliary"],
        unaccepted=left["other"],
        bare=tuple(sorted(path for path in tally.bare if path not in tally.piles)),
        faults=tuple(tally.faults),
    )


def task(pile: Pile, names: Names) -> Task:
    """A task's pile as a record."""
    root, _, name = pile.path.partition("/")
    cell = names.cell(name)
    if cell is None:
        raise ValueError(f"{pile.path} is no task")
    return Task(
        path=pile.path,
        root=root,
        benchmark=cell.benchmark,
        model=cell.model,
        job=cell.job,
        files=pile.files,
        bytes=pile.bytes if pile.sized == pile.files else None,
        sha256=pile.sum.hexdigest() if pile.sum and pile.hashed == pile.files else None,
    )


def pair_of(key: tuple[str, str, str], found: list[Task]) -> Several:
    """A pair with several tasks; ids are compared as numbers where they are numbers."""
    ordered = sorted(found, key=lambda one: (int(one.job) if one.job.isdigit() else -1, one.path))
    root, benchmark, model = key
    folders = tuple(one.path for one in ordered)
    return Several(root=root, benchmark=benchmark, model=model, folders=folders, latest=folders[-1])


def excluded(pile: Pile) -> Excluded:
    """A left-out folder as a record."""
    told = None if pile.directories is None else len(pile.directories)
    directories = told if pile.what == "auxiliary" else None
    return Excluded(path=pile.path, files=pile.files, directories=directories, why=pile.why)


# --- where its numbers come from ----------------------------------------------------------------------------


def derivations(made: Inventory, file: str, source: str) -> tuple[list[Derivation], list[Observation]]:
    """How each count follows from the lists beside it, and that the lists were read from `source`."""

    def at(*steps: str | int) -> str:
        return join(file, *steps)

    def derive(value: str, how: Any, *of: str, **more: Any) -> Derivation:
        return Derivation(value=value, how=how, of=of, **more)

    counts = at("counts")
    lists = ("benchmarks", "models", "roots", "tasks", "several", "missing", "nested", "auxiliary", "unaccepted")
    derived = [derive(f"{counts}/{name}", "length", at(name)) for name in lists]
    derived += [
        derive(f"{counts}/pairs", "distinct", at("tasks"), by=("root", "benchmark", "model")),
        derive(
            f"{counts}/expected_pairs", "product", *(f"{counts}/{name}" for name in ("roots", "benchmarks", "models"))
        ),
        derive(f"{counts}/surplus", "difference", f"{counts}/tasks", f"{counts}/pairs"),
    ]
    derived += [
        derive(at("cell_counts", b, n), "count", at("tasks"), where={"benchmark": b, "model": model.folder})
        for b in made.benchmarks
        for n, model in enumerate(made.models)
    ]
    derived += [
        derive(at("roots", n, "tasks"), "count", at("tasks"), where={"root": root.name})
        for n, root in enumerate(made.roots)
    ]
    read = (
        "benchmarks",
        "models",
        "tasks",
        "several",
        "missing",
        "nested",
        "auxiliary",
        "unaccepted",
        "bare",
        "faults",
        "source",
    )
    observed = [Observation(under=at(name), source=source) for name in (*read, "roots", "naming", "naming_sha256")]
    observed.append(Observation(under=f"{counts}/paths", source=source))
    return derived, observed


def cross_checks(made: Inventory, file: str) -> list[Derivation]:
    """Second ways to the same numbers: what must be equal although it was counted otherwise."""
    counts = join(file, "counts")
    return [
        Derivation(value=f"{counts}/tasks", how="sum", of=(join(file, "cell_counts"),)),
        Derivation(value=f"{counts}/missing", how="difference", of=(f"{counts}/expected_pairs", f"{counts}/pairs")),
    ]
