"""A PostTrainBench results tree as run folders: `<root>/<benchmark>_<org>_<model>_<id>/`.

Root: `<agent>_<config>_<hours>h[_<n>gpu][_<experiment>]`; each experiment of one agent, configuration, hours and GPUs
is a seed. Ids are compared as numbers. Every regular file goes along: the trace as raw output, the prompt, `task/` as
the workspace, all others under `imported/`; the weights in `final_model/` stay where they are, and are listed.
A file that is not what it should be is a fault in the report and leaves its value unknown: no crash and no guess.
What lies in a cell's folder is read by `published.py`; names are parsed here and nowhere else.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from prill.catalog import Catalog
from prill.errors import DefinitionError
from prill.folder import create, folders
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
        """Every cell of every root; the report accounts for every entry of the tree."""
        if not tree.is_dir():
            raise DefinitionError(f"{tree}: no such folder; give a folder with roots such as claude_…_10h_run1")
        suite = catalog.suite(suite_name)
        excluded: dict[str, str] = {}
        faults: list[ImportFault] = []
        roots = seeds_of_roots(tree, excluded)
        known = {f.spec().origin.path for f in folders(to) if f.spec().origin}  # type: ignore[union-attr]
        planned = {name: catalog.model(name) for name in suite.models}
        models = {model.repo: model for model in planned.values() if model.repo}
        tests = {name: catalog.benchmark(name) for name in catalog.names("benchmarks")}
        made = already = 0
        for root, (entrant, seed, told) in roots.items():
            ids: dict[int, str] = {}
            for folder in sorted((tree / root).iterdir()):
                path = f"{root}/{folder.name}"
                cell = cell_name(folder.name) if folder.is_dir() else None
                if cell is None:
                    excluded[path] = "not the name of a cell (benchmark_org_model_id)"
                    continue
                if cell.benchmark not in tests or cell.repo not in models:
                    what = "benchmark" if cell.benchmark not in tests else "model"
                    wrong = cell.benchmark if what == "benchmark" else cell.repo
                    allowed = ", ".join(sorted(tests) if what == "benchmark" else sorted(models))
                    faults.append(fault(path, f"UNKNOWN_{what.upper()}", f"{wrong!r} is none of {allowed}; left out"))
                    continue
                if cell.id in ids:
                    faults.append(fault(path, "DUPLICATE_ID", f"{ids[cell.id]} has the same id; both are imported"))
                ids[cell.id] = path
                if path in known:
                    already += 1
                    continue
                [spec] = plan(
                    suite,
                    entrants=[entrant],
                    models=[models[cell.repo]],
                    benchmarks=[tests[cell.benchmark]],
                    prompt=prompt_of(catalog, folder),
                    seeds=[seed],
                    digests=defaultdict(lambda: "imported", catalog.digests),
                )
                content = Published(folder, path)
                create(to, as_imported(spec, suite, content, cell, told), content.fill)
                faults += content.faults
                made += 1
        if not roots:
            raise DefinitionError(f"{tree}: no root of the form <agent>_<config>_<hours>h… in it")
        shown = {root: f"{entrant.name}, seed {seed}" for root, (entrant, seed, _) in roots.items()}
        return ImportReport(
            importer=NAME,
            suite=suite.name,
            roots=shown,
            made=made,
            already=already,
            excluded=excluded,
            faults=tuple(faults),
        )


def fault(path: str, code: str, why: str) -> ImportFault:
    """One line of the report."""
    return ImportFault(path=path, code=code, why=why)


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


def as_imported(spec: RunSpec, suite: Suite, content: Published, cell: CellName, told: Root) -> RunSpec:
    """A planned spec with what the tree tells, and without what it does not."""
    judges = tuple(judgement.judge for judgement in content.judgements)
    exempt = {}
    if "lookup" in suite.verdicts and "ptb_lookup" not in judges and cell.id < LOOKUP_SINCE:
        exempt["lookup"] = f"not judged, run {cell.id} is older than that rule"
    told_decisions = ("budget.hours", "budget.gpus")
    return replace(
        spec,
        budget=replace(spec.budget, hours=float(told.hours), gpus=told.gpus),
        rules=tuple(spec.prompt.rules),
        judges=judges,
        sandbox="not told",
        engine="not told",
        definitions={name: digest for name, digest in spec.definitions.items() if digest != "imported"},
        origin=Origin(importer=NAME, path=content.path, order=cell.id, told=told_decisions, exempt=exempt),
    )


plugin = Importer()
