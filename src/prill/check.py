"""Looks through definitions for what one file alone cannot show: names that lead nowhere, weights, pinned digests."""

from collections.abc import Iterator
from pathlib import Path

from prill import plugins
from prill.catalog import KINDS, Catalog
from prill.errors import PrillError
from prill.folder import file_digest, list_files, tree_digest
from prill.hosting import apart
from prill.outside import Provider
from prill.panels import Panel
from prill.score import BROKEN, NO_SUBMISSION, OWN_RULES
from prill.signatures import key_of
from prill.spec import BaseModel, Benchmark, Entrant, Suite

PUBLISHED = {"general"}
"""Rules of which only imported runs can have a verdict, and need not."""


def faults(folders: list[Path]) -> list[str]:
    """One line for each fault in the definitions of these folders and of the package."""
    catalog = Catalog(folders)
    found: list[str] = []
    for kind in KINDS:
        for name in catalog.names(kind):
            try:
                found += of_one(catalog, catalog.definition(kind, name))
            except PrillError as error:
                found.append(str(error))
    return found


def of_one(catalog: Catalog, value: object) -> Iterator[str]:
    """Faults of one definition."""
    match value:
        case Suite():
            yield from of_suite(catalog, value)
        case Benchmark():
            yield from named(f"benchmarks/{value.name}", "graders", [value.grader])
            if value.data.path is not None:
                catalog.items(value)
            for path in value.offered:
                catalog.asset(path)
        case BaseModel():
            pins: list[tuple[str | None, str | None]] = [
                (value.path, value.digest),
                *((sibling.path, sibling.digest) for sibling in value.siblings),
            ]
            for place, pin in pins:
                if place is not None and (found := tree_digest(list_files(catalog.asset(place)))) != pin:
                    yield f"models/{value.name}: {place} has digest {found}, but {pin} is pinned"
            for print in value.fingerprints:
                if (found := f"sha256:{file_digest(catalog.asset(print.path))}") != print.digest:
                    yield f"models/{value.name}: {print.path} has digest {found}, but {print.digest} is pinned"
        case Entrant():
            yield from named(f"entrants/{value.name}", "agents", [value.agent])
            if value.program is not None:
                catalog.asset(value.program)
            if value.provider is not None:
                catalog.provider(value.provider)
            there = value.agent in plugins.names("agents")
            if there and plugins.get("agents", value.agent).package and not value.version:
                yield f"entrants/{value.name}: agent {value.agent} comes from npm; version = … says which one is run"
        case Panel():
            yield from of_panel(catalog, value)
        case Provider():
            if value.scenario is not None:
                catalog.asset(value.scenario)
            elif not value.url:
                yield f"providers/{value.name}: neither a url nor a scenario says who answers"


def of_panel(catalog: Catalog, panel: Panel) -> Iterator[str]:
    """Faults of a panel: who answers, by which prices, as which agent."""
    place = f"panels/{panel.name}"
    if panel.agent is not None:
        yield from named(place, "agents", [panel.agent])
    elif panel.wire not in catalog.provider(panel.provider).wires:
        yield f"{place}: provider {panel.provider} has no wire {panel.wire!r}"
    if panel.model not in catalog.prices(panel.prices).models:
        yield f"{place}: prices/{panel.prices} has no model {panel.model!r}; what has no price may not be asked"


def of_suite(catalog: Catalog, suite: Suite) -> Iterator[str]:
    """Faults of a suite: every name it uses, its weights, its policy, its references."""
    place = f"suites/{suite.name}"
    for get, names in (
        (catalog.model, suite.models),
        (catalog.benchmark, suite.benchmarks),
        (catalog.entrant, suite.entrants),
    ):
        for name in names:
            get(name)
    for name in sorted(set(suite.changes) - set(suite.benchmarks)):
        yield f"{place}: changes {name!r}, which is none of its benchmarks"
    wording = catalog.prompt(suite.prompt).rules
    yield from (
        f"{place}: rule {rule!r} has no wording in prompts/{suite.prompt}"
        for rule in suite.rules
        if rule not in wording
    )
    yield from named(place, "judges", list(suite.judges))
    yield from of_serving(place, suite)
    judged = {
        rule
        for judge in suite.judges
        if judge in plugins.names("judges")
        for rule in plugins.get("judges", judge).rules
    }
    if suite.panel is not None:
        judged |= set(catalog.panel(suite.panel).rules)
    if (suite.panel is not None) != ("panel" in suite.judges):
        yield f"{place}: judge `panel` and a panel go together; name both, or neither"
    yield from (
        f"{place}: signers: {who!r} has no public ed25519 key (the middle line of its PEM file)"
        for who, line in suite.signers.items()
        if key_of(line) is None
    )
    known = judged | set(suite.verdicts) | {NO_SUBMISSION, BROKEN}
    yield from (
        f"{place}: policy for {rule!r}, of which no judge speaks (known: {', '.join(sorted(known))})"
        for rule in suite.policy
        if rule not in known | set(OWN_RULES) | PUBLISHED
    )
    yield from (
        f"{place}: no policy for {rule!r}; it would hold every cell" for rule in sorted(known - set(suite.policy))
    )
    if suite.teacher is not None:
        catalog.provider(suite.teacher)
        priced = catalog.prices(suite.prices).models if suite.prices else {}
        yield from (
            f"{place}: teacher model {model!r} is not in prices/{suite.prices}; what has no price may not be asked"
            for model in suite.teacher_models
            if model not in priced
        )
    if "base" in suite.policy.values():
        have = {(reference.model, reference.benchmark) for reference in suite.references}
        need = {(model, benchmark) for model in suite.models for benchmark in suite.benchmarks}
        yield from (
            f"{place}: no reference score for {model} on {benchmark}, to which policy falls back"
            for model, benchmark in sorted(need - have)
        )


def of_serving(place: str, suite: Suite) -> Iterator[str]:
    """What shuts a submission in and what serves it, which must be able to."""
    yield from named(place, "sandboxes", [suite.sandbox])
    yield from named(place, "engines", [suite.engine])
    if suite.submission == "weights" and suite.engine in plugins.names("engines") and apart(suite.engine):
        yield f'{place}: engine {suite.engine} starts the server of a package; say `submission = "served"`'


def named(place: str, kind: str, names: list[str]) -> Iterator[str]:
    """Plug-ins that are not there."""
    there = plugins.names(kind)
    yield from (
        f"{place}: no {plugins.KINDS[kind]} named {name!r} (there are: {', '.join(there)})"
        for name in names
        if name not in there
    )
