"""A PostTrainBench results tree as run folders: `<root>/<benchmark>_<org>_<model>_<id>/`.

Root: `<agent>_<config>_<hours>h[_<n>gpu][_<experiment>]`; each experiment of one agent, configuration, hours and GPUs
is a seed. Ids are compared as numbers. Every regular file goes along: the trace as raw output, the prompt, `task/` as
the workspace, all others under `imported/`; the weights in `final_model/` stay where they are, and are listed.
A file that is not what it should be is a fault in the report and leaves its value unknown: no crash and no guess.
What lies in a cell's folder is read by `published.py`; names are parsed here and nowhere else.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from prill.catalog import Catalog
from prill.errors import DefinitionError
from prill.folder import RunFolder, create_all, folders
from prill.plan import plan
from prill.published import Published, text_of
from prill.spec import Entrant, Origin, Prompt, RunSpec, Suite
from prill.standings import ImportFault, ImportReport

NAME = "posttrainbench"
ROOT = re.compile(r"(?P<who>.+?)_(?P<hours>\d+)h(?:_(?P<gpus>\d+)gpu)?(?P<experiment>_.*)?")
CELL = re.compile(r"(?P<benchmark>[^_]+)_(?P<org>[^_]+)_(?P<model>.+)_(?P<id>\d+)(?:_g\d+)?")
AGENTS = (
    "claude_non_api", "codex_non_api", "codexhigh", "codexlow", "claude", "codex", "gemini", "opencode", "glm5",
    "qwen3max",
)  # fmt: skip
"""Longest first: agents' names contain the sign that separates them from their configuration."""
LEFT_OUT = {"baseline": "reference scores, not an agent", "_": "the published aggregation skips names that begin so"}
LOOKUP_SINCE = 17_400_000
"""From this id on the published v1.1 rules ask for a look-up verdict (judges' coverage rule of 2026-07-16)."""


class CellName(NamedTuple):
    """What the name of a cell's folder says."""

    benchmark: str
    repo: str
    id: int


def cell_name(folder: str) -> CellName | None:
    """Benchmark up to the first `_`, id behind the last, between them organisation and model."""
    match = CELL.fullmatch(folder)
    return None if match is None else CellName(match["benchmark"], f"{match['org']}/{match['model']}", int(match["id"]))


def latest(names: Iterable[str]) -> dict[tuple[str, str], str]:
    """(benchmark, repo) → the folder with the highest id, compared as numbers; other names are passed over."""
    best: dict[tuple[str, str], tuple[int, str]] = {}
    for name in names:
        cell = cell_name(name)
        if cell is not None and cell.id > best.get((cell.benchmark, cell.repo), (-1, ""))[0]:
            best[cell.benchmark, cell.repo] = cell.id, name
    return {cell: name for cell, (_, name) in best.items()}


class Root(NamedTuple):
    """What the name of a root says."""

    who: str
    hours: int
    gpus: int
    experiment: str


def root_name(folder: str) -> Root | None:
    """Agent and configuration, hours, GPUs, experiment."""
    match = ROOT.fullmatch(folder)
    if match is None:
        return None
    return Root(match["who"], int(match["hours"]), int(match["gpus"] or 1), match["experiment"] or "")


def natural(text: str) -> list[tuple[int, str]]:
    """A key under which `_run10` comes behind `_run9`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]


# --- the tree --------------------------------------------------------------------------------------------------


class Importer:
    """A results tree into a folder of runs; what was imported before is left as it is."""

    def __call__(self, tree: Path, to: Path, catalog: Catalog, suite_name: str) -> ImportReport:
        """Every cell of every root, or nothing; the report accounts for every entry of the tree."""
        if not tree.is_dir():
            raise DefinitionError(f"{tree}: no such folder; give a folder with roots such as claude_…_10h_run1")
        made = Import(tree, catalog, catalog.suite(suite_name))
        if not made.roots:
            raise DefinitionError(f"{tree}: no root of the form <agent>_<config>_<hours>h… in it")
        known = {origin.path for run in folders(to) if (origin := run.spec().origin)}
        runs = create_all(to, made.contents(known))
        return ImportReport(
            importer=NAME,
            suite=suite_name,
            roots={root: f"{entrant.name}, seed {seed}" for root, (entrant, seed, _) in made.roots.items()},
            made=len(runs),
            already=made.already,
            excluded=made.excluded,
            faults=(*made.faults, *(fault for content in made.read for fault in content.faults)),
        )


class Import:
    """One import under way: what is known of the suite, and what was found in the tree so far."""

    def __init__(self, tree: Path, catalog: Catalog, suite: Suite) -> None:
        self.tree, self.catalog, self.suite = tree, catalog, suite
        self.excluded: dict[str, str] = {}
        self.faults: list[ImportFault] = []
        self.read: list[Published] = []
        self.already = 0
        self.roots = seeds_of_roots(tree, self.excluded)
        self.models = {model.repo: model for name in suite.models if (model := catalog.model(name)).repo}
        self.tests = {name: catalog.benchmark(name) for name in catalog.names("benchmarks")}

    def contents(self, known: set[str]) -> Iterator[tuple[RunSpec, Callable[[RunFolder], None]]]:
        """The spec of each run that is not known yet, and what fills its folder."""
        for root, (entrant, seed, told) in self.roots.items():
            ids: dict[int, str] = {}
            for folder in sorted((self.tree / root).iterdir()):
                path = f"{root}/{folder.name}"
                cell = self.cell(folder, path)
                if cell is None:
                    continue
                if cell.id in ids:
                    why = f"{ids[cell.id]} has the same id; both are imported"
                    self.faults.append(ImportFault(path=path, code="DUPLICATE_ID", why=why))
                ids[cell.id] = path
                if path in known:
                    self.already += 1
                    continue
                content = Published(folder, path)
                self.read.append(content)
                yield self.spec(content, cell, entrant, seed, told), content.fill

    def cell(self, folder: Path, path: str) -> CellName | None:
        """What a cell's folder is for; anything else is left out with a reason, or a fault."""
        cell = cell_name(folder.name) if folder.is_dir() else None
        if cell is None:
            self.excluded[path] = "not the name of a cell (benchmark_org_model_id)"
            return None
        for what, name, allowed in (("benchmark", cell.benchmark, self.tests), ("model", cell.repo, self.models)):
            if name not in allowed:
                why = f"no {what} {name!r} (there are: {', '.join(sorted(map(str, allowed)))}); left out"
                self.faults.append(ImportFault(path=path, code=f"UNKNOWN_{what.upper()}", why=why))
                return None
        return cell

    def spec(self, content: Published, cell: CellName, entrant: Entrant, seed: int, told: Root) -> RunSpec:
        """The suite's spec of a run with what the tree tells, and without what it does not."""
        [spec] = plan(
            self.suite,
            entrants=[entrant],
            models=[self.models[cell.repo]],
            benchmarks=[self.tests[cell.benchmark]],
            prompt=prompt_of(self.catalog, content.source),
            seeds=[seed],
            digests=defaultdict(lambda: "imported", self.catalog.digests),
        )
        judges = tuple(judgement.judge for judgement in content.judgements)
        exempt = {}
        if "lookup" in self.suite.verdicts and "ptb_lookup" not in judges and cell.id < LOOKUP_SINCE:
            exempt["lookup"] = f"not judged, run {cell.id} is older than that rule"
        decisions = ("budget.hours", "budget.gpus")
        return replace(
            spec,
            budget=replace(spec.budget, hours=float(told.hours), gpus=told.gpus),
            rules=tuple(spec.prompt.rules),
            judges=judges,
            sandbox="not told",
            engine="not told",
            definitions={name: digest for name, digest in spec.definitions.items() if digest != "imported"},
            origin=Origin(importer=NAME, path=content.path, order=cell.id, told=decisions, exempt=exempt),
        )


def seeds_of_roots(tree: Path, excluded: dict[str, str]) -> dict[str, tuple[Entrant, int, Root]]:
    """Root folder → entrant, seed and what its name says; others go to `excluded` with the reason."""
    groups: dict[tuple[str, int, int], list[tuple[str, Root]]] = defaultdict(list)
    for entry in sorted(tree.iterdir()):
        skip = next((why for start, why in LEFT_OUT.items() if entry.name.startswith(start)), None)
        root = root_name(entry.name) if entry.is_dir() else None
        if skip or root is None:
            excluded[entry.name] = skip or "not the name of a root (<agent>_<config>_<hours>h…)"
        else:
            groups[root.who, root.hours, root.gpus].append((entry.name, root))
    found = {}
    for (who, hours, gpus), roots in groups.items():
        name = who + (f"_{hours}h" if hours != 10 else "") + (f"_{gpus}gpu" if gpus != 1 else "")
        agent = next((agent for agent in AGENTS if who == agent or who.startswith(f"{agent}_")), who)
        entrant = Entrant(name=name, title=name, agent=agent, model=who.removeprefix(agent).strip("_") or None)
        for seed, (folder, root) in enumerate(sorted(roots, key=lambda entry: natural(entry[1].experiment))):
            found[folder] = entrant, seed, root
    return found


def prompt_of(catalog: Catalog, folder: Path) -> Prompt:
    """Which version's rules the agent was told, by the decontamination tool that came with v1.1."""
    text = text_of(folder / "prompt.txt")
    if not text:
        return Prompt(name="unknown", template="", rules={})
    return catalog.prompt("posttrainbench-1.1" if "contamination_check.py" in text else "posttrainbench-1")


plugin = Importer()
