"""Our own standings and runs as records: nothing is typed, every value is read from a file that goes along.

Files: `standing.json` (the standings, this row alone), `suite.json` (the suite as it was read), `method.json` (what
prill says of its own way of working) and the spec of the first run that counts. Of the other runs the digests of their
specs are listed. A field that the runs do not share is not reported, and says so.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from prill import bill
from prill.audit.assembly import tool
from prill.audit.making import encoded
from prill.audit.pointers import join, read_json, resolve
from prill.errors import DefinitionError, oneof
from prill.folder import RunFolder
from prill.record import Outcome
from prill.records.making import Making, identity
from prill.reported import Earlier, ResultRecord, Source
from prill.spec import Budget, RunSpec, Suite
from prill.standings import Board, Standing

APART = "the model and what else was bought are told apart, in the run's `bought`"
METHOD = {
    "kind": "numeric",
    "provenance": "computed by prill from its own runs",
    "units": {"raw": "share", "floor-to-ceiling": "share of the way from floor to ceiling"},
    "aggregate_method": {"weighted-mean": "per seed the benchmarks' means over models, weighted; mean over seeds"},
    "dispersion_kind": "sample standard deviation over seeds (ddof 1)",
    "measurement": {
        "metric": "mean of the items' marks, by the reading that counts",
        "dispersion_kind": "standard error between items and between seeds",
        "aggregate_method": "mean over all items, errors in the denominator",
    },
    "internet_access": {"without a policy for hosts": False},
    "monetary_budget": {"without": "no limit of money is set"},
    "hardware": {"without": "no kind of GPU is prescribed"},
    "tool_access": "a shell in the suite's box, with the tools that its prompt names",
    "task_exclusions": "none: every cell of the suite counts or is listed with its reason",
    "human_intervention": "none while an agent is at work; a run that a person stops does not count and is listed",
    "limitations": [
        "The number is about one entrant on these base models and tests under this budget, and about nothing else.",
        "A standard deviation over few seeds describes them; it is no confidence interval.",
        "A cell filled by policy was not measured; how many there are is reported.",
    ],
}
NOTHING = {
    "edition": "standings of prill have no editions; the digest of the suite tells them apart",
    "date": "the files of a run carry times of its stages, not one day for the result",
    "extraction_review": "nothing was read out by a person: prill verify computes every value again",
    "published": "a record is made when it is asked for",
    "attempts_per_task": "every run that began is listed in the standings; no number a task is computed",
    "filtering": "what an agent does with its data is in its trajectory, not in a field",
    "token_budget": "no limit of tokens is set",
    "training_budget": "the time is one budget for all that an agent does",
    "inference_budget": "the time is one budget for all that an agent does",
    "comparability_caveats": "none are written down: prill compare names the fields that differ",
    "comparability": "prill compare computes it for two records",
}
"""Fields that our files do not hold, with the reason."""
NO_RUN = "no run of this entrant counts"


def of_standing(
    board: Board,
    suite: Suite,
    entrant: str,
    runs: Mapping[str, RunFolder],
    made: str,
    before: ResultRecord | None = None,
    clean: Callable[[bytes], bytes] = bytes,
) -> tuple[ResultRecord, dict[str, bytes]]:
    """A standing's record and the files that lie beside it.

    `before`: the version that is there already. `clean`: what takes secrets out of files that go along.
    """
    row = next((one for one in board.standings if one.entrant == entrant), None)
    if row is None:
        raise DefinitionError(oneof("entrant in these standings", entrant, [one.entrant for one in board.standings]))
    attempts = tuple(one for one in board.attempts if one.entrant == entrant)
    making = Making(clean)
    making.json(
        "standing", "standing.json", encoded(replace(board, standings=(row,), attempts=attempts)),
        f"standings of {board.suite}, this row alone",
    )  # fmt: skip
    making.json("suite", "suite.json", encoded(suite), f"the suite {suite.name}, as it was read")
    method(making)
    whole_row(making, row)
    counted(making)
    the_suite(making, suite)
    of_runs(making, [runs[one.run] for one in attempts if one.counts and one.run in runs])
    for name, why in NOTHING.items():
        making.none(name, why)
    id = identity({"suite": board.suite, "entrant": entrant, "program": "prill"})
    return next_version(making.record(id, made), before), making.files


def next_version(record: ResultRecord, before: ResultRecord | None, data: bytes | None = None) -> ResultRecord:
    """A record as it follows on an earlier one: that one itself where nothing but the day differs."""
    if before is None or before.id != record.id:
        return record
    record = replace(record, retracted=before.retracted)  # only a person takes a retraction back
    if said(before) == said(record):
        return before
    digest = hashlib.sha256(data if data is not None else encoded(before)).hexdigest()
    return replace(record, version=before.version + 1, supersedes=Earlier(version=before.version, sha256=digest))


def said(record: ResultRecord) -> Any:
    """What a record says, without which version it is."""
    return record.fields, record.not_reported, record.sources, record.retracted


def method(making: Making) -> None:
    """What prill says of itself, as a source; and the fields that rest on it alone."""
    own = {**METHOD, "evaluator_version": f"prill {tool().version}"}
    making.json("method", "method.json", encoded(own), "what prill says of its own way of working")
    for name in ("kind", "provenance", "evaluator_version", "tool_access", "task_exclusions", "limitations"):
        making.point(name, "method", name)


def whole_row(making: Making, row: Standing) -> None:
    """What the row of the standings says."""
    place = ("standings", 0)
    making.point("title", "standing", *place, "title")
    making.point("agent", "standing", *place, "entrant")
    making.point("benchmark", "standing", "title")
    making.point("benchmark_version", "standing", "suite")
    making.point("task_snapshot", "standing", "suite_digest", otherwise="the standings came without the suite's digest")
    making.point("value", "standing", *place, "score", otherwise=row.why)
    making.point("contamination_concerns", "standing", *place, "why")
    making.point("dispersion", "standing", *place, "sd", otherwise="below two seeds there is none")
    if row.sd is None:
        making.none("dispersion_kind", "there is no dispersion below two seeds")
        making.none("dispersion_n", "there is no dispersion below two seeds")
    else:
        making.point("dispersion_kind", "method", "dispersion_kind")
        making.point("dispersion_n", "standing", *place, "seeds")
    for name in ("low", "high"):
        if row.interval is None:
            making.none(f"interval_{name}", "these standings were computed without resampling")
        else:
            why = row.interval.why or "no interval could be computed"
            making.point(f"interval_{name}", "standing", *place, "interval", name, otherwise=why)
    spent = row.overview.usd if row.overview else None
    if spent is None or spent.mean is None or spent.unknown:
        why = (
            f"{spent.unknown} of {spent.known + spent.unknown} runs do not say what they cost"
            if spent
            else "not computed"
        )
        making.none("monetary_cost", why)
    elif row.overview and row.overview.bought:
        making.none("monetary_cost", APART)
    else:
        making.point("monetary_cost", "standing", *place, "overview", "usd", "mean")


def counted(making: Making) -> None:
    """How many cells there are, of which kind."""
    cells = ("standings", 0, "cells")
    making.point("cells", "standing", *cells, how="length")
    making.point("task_count", "standing", *cells, how="distinct", by=("model", "benchmark"))
    making.point("run_count", "standing", *cells, how="distinct", by=("seed",))
    for state in ("measured", "base", "zero", "held", "lost", "missing"):
        making.point(f"cells_{state}", "standing", *cells, how="count", where={"state": state})


def the_suite(making: Making, suite: Suite) -> None:
    """What the suite decides."""
    making.point("tests", "suite", "benchmarks")
    making.point("base_models", "suite", "models")
    making.point("metric", "suite", "score", "headline")
    making.point("unit", "method", "units", suite.score.scale)
    making.point("selection_rule", "suite", "score", "selection")
    making.point("aggregate_method", "method", "aggregate_method", suite.score.headline)
    budget(making, "suite", suite.budget)
    if suite.hosts is None:
        making.point("internet_access", "method", "internet_access", "without a policy for hosts")
    else:
        making.point("internet_access", "suite", "hosts")


def budget(making: Making, source: str, of: Budget) -> None:
    """What a run may use up; that there is no limit is known too."""
    making.point("wall_clock_hours", source, "budget", "hours")
    making.point("gpus", source, "budget", "gpus")
    for name, field, limit in (("monetary_budget", "usd", of.usd), ("hardware", "gpu_kind", of.gpu_kind)):
        if limit is None:
            making.point(name, "method", name, "without")
        else:
            making.point(name, source, "budget", field)


def of_runs(making: Making, runs: list[RunFolder]) -> None:
    """What the runs that count have in common; their first goes along, of the others the digests."""
    specs = [(folder, folder.spec_file.read_bytes()) for folder in runs]
    told = [read_json(data) for _, data in specs]
    for number, (folder, data) in enumerate(specs):
        if number:
            making.sources[f"run {folder.id}"] = Source(
                title=f"spec of the run {folder.id}; lies in its run folder",
                sha256=hashlib.sha256(data).hexdigest(),
                bytes=len(data),
            )
        else:
            making.json("spec", folder.spec_file.name, data, f"spec of the run {folder.id}")
    for name, *steps in (
        ("model", "entrant", "model"),
        ("effort", "entrant", "effort"),
        ("scaffold", "entrant", "agent"),
    ):
        shared(making, name, steps, told, f"the entrant names no {name}")
    single = bool(told) and all(len(spec["benchmarks"]) == 1 for spec in told)
    if single:
        shared(making, "split", ["benchmarks", 0, "data", "split"], told, "")
    else:
        making.none("split", "each test has its own; they stand in the runs' specs" if told else NO_RUN)
    if not told:
        making.none("human_intervention", NO_RUN)
    elif any(spec["origin"] for spec in told):
        making.none("human_intervention", "runs that prill did not make itself do not say")
    else:
        making.point("human_intervention", "method", "human_intervention")


def shared(making: Making, name: str, steps: list[Any], told: list[Any], otherwise: str) -> None:
    """A field that all runs say the same in."""
    if not told:
        making.none(name, NO_RUN)
        return
    found = [resolve({"spec": one}, join("spec", *steps)) for one in told]
    if any(one != found[0] for one in found):
        making.none(name, f"differs between the {len(told)} runs that count")
    else:
        making.point(name, "spec", *steps, otherwise=otherwise)


# --- one run ----------------------------------------------------------------------------------------------------


def of_run(folder: RunFolder, benchmark: str | None, made: str) -> tuple[ResultRecord, dict[str, bytes]]:
    """One benchmark of one run, as its newest measurement has it."""
    spec = folder.spec()
    names = [one.name for one in spec.benchmarks]
    if benchmark is None and len(names) > 1:
        raise DefinitionError(
            f"{folder.path}: the run has {len(names)} benchmarks; give --benchmark ({', '.join(names)})"
        )
    name = benchmark or names[0]
    if name not in names:
        raise DefinitionError(oneof("benchmark of this run", name, names))
    making = Making()
    method(making)
    making.json("spec", folder.spec_file.name, folder.spec_file.read_bytes(), f"spec of the run {folder.id}")
    if folder.outcome() is not None:
        made_of = folder.outcome_file
        making.json("outcome", made_of.name, made_of.read_bytes(), f"outcome of the run {folder.id}")
    files = folder.numbered("measurements", name)
    if files:
        making.json(
            "measurement", "measurement.json", files[-1].read_bytes(), f"{files[-1].name} of the run {folder.id}"
        )
    measured(making, files, folder.outcome())
    of_spec(making, spec, names.index(name))
    for other, why in NOTHING.items():
        making.none(other, why)
    for other in ("cells", *(f"cells_{state}" for state in ("measured", "base", "zero", "held", "lost", "missing"))):
        making.none(other, "one run's measurement; policy has not been put to it")
    making.none("contamination_concerns", "what judges found is in the run's findings; policy has not been put to it")
    return making.record(identity({"run": spec.id, "benchmark": name, "program": "prill"}), made), making.files


def measured(making: Making, files: list[Path], outcome: Outcome | None) -> None:
    """What the measurement says, and what the run cost."""
    names = ("value", "dispersion", "dispersion_kind", "dispersion_n")
    if not files:
        for name in names:
            making.none(name, "nothing was measured in this run")
    else:
        found = msgspec.json.decode(files[-1].read_bytes())
        making.point("value", "measurement", "value", otherwise=found["why"])
        making.point("dispersion", "measurement", "stderr", otherwise="no standard error was computed")
        if found["stderr"] is None:
            making.none("dispersion_kind", "no standard error was computed")
        else:
            making.point("dispersion_kind", "method", "measurement", "dispersion_kind")
        making.point("dispersion_n", "measurement", "n")
    for name in ("interval_low", "interval_high"):
        making.none(name, "intervals are computed for standings")
    if outcome is None:
        making.none("monetary_cost", "the agent is not done")
    elif bill.by_kind(outcome):
        making.none("monetary_cost", APART)
    else:
        making.point("monetary_cost", "outcome", "usd", otherwise="the run does not say what it cost")


def of_spec(making: Making, spec: RunSpec, at: int) -> None:
    """What the run's spec decides."""
    test = ("benchmarks", at)
    making.point("title", "spec", "entrant", "title")
    making.point("agent", "spec", "entrant", "name")
    making.point("model", "spec", "entrant", "model", otherwise="the entrant names no model")
    making.point("effort", "spec", "entrant", "effort", otherwise="the entrant names no effort")
    making.point("scaffold", "spec", "entrant", "agent")
    making.point("benchmark", "spec", *test, "title")
    making.point("benchmark_version", "spec", *test, "name")
    making.point("split", "spec", *test, "data", "split")
    making.point("task_snapshot", "spec", *test, "data", "digest", otherwise="the benchmark's items have no digest")
    for name, field in (("tests", "benchmark_version"), ("base_models", "title")):
        making.none(name, f"one run: see {field} and the run's spec")
    making.point("metric", "method", "measurement", "metric")
    making.point("unit", "method", "units", "raw")
    making.point("aggregate_method", "method", "measurement", "aggregate_method")
    making.none("selection_rule", "one run; nothing was selected")
    making.none("task_count", "one run on one test")
    making.none("run_count", "one run on one test")
    budget(making, "spec", spec.budget)
    if spec.hosts is None:
        making.point("internet_access", "method", "internet_access", "without a policy for hosts")
    else:
        making.point("internet_access", "spec", "hosts", "name")
    making.point("human_intervention", "method", "human_intervention")


def by_id(folders: Iterable[RunFolder]) -> dict[str, RunFolder]:
    """Run folders by their ids."""
    return {folder.id: folder for folder in folders}
