"""All that was decided about a run, and which cell it is for: what makes two runs the same assay. Pure."""

import hashlib
from typing import Any

from msgspec import json, to_builtins
from msgspec.structs import replace

from prill.spec import Benchmark, Changes, RunSpec


def changed(benchmark: Benchmark, by: Changes | None) -> Benchmark:
    """The benchmark as a suite puts it."""
    if by is None:
        return benchmark
    seeds = benchmark.seeds if by.seeds is None else by.seeds
    if_greedy = benchmark.seeds_if_greedy if by.seeds_if_greedy is None else by.seeds_if_greedy
    templates = benchmark.templates if by.templates is None else by.templates
    marking = {**benchmark.marking, **by.marking}
    return replace(benchmark, seeds=seeds, seeds_if_greedy=if_greedy, marking=marking, templates=templates)


Key = tuple[str, str, tuple[str, ...], int]


def key(spec: RunSpec) -> Key:
    """Which cell and seed a run is for: entrant, model, benchmarks, seed."""
    return spec.entrant.name, spec.model.name, tuple(benchmark.name for benchmark in spec.benchmarks), spec.seed


NOT_DECIDED = ("id", "definitions", "origin", "panel")
ONLY_SHOWN = ("licence", "source")


def decided(spec: RunSpec) -> dict[str, Any]:
    """All that was decided, as plain values: without ids and digests, and without what is only shown."""
    whole = to_builtins(spec)
    del whole["entrant"]["title"]  # the titles of model and benchmark stay: the agent reads them
    return {field: shorn(value) for field, value in whole.items() if field not in NOT_DECIDED}


def shorn(value: Any) -> Any:
    """A value without the fields that only people read, and with numbers of one kind."""
    if isinstance(value, dict):
        return {name: shorn(inner) for name, inner in value.items() if name not in ONLY_SHOWN}
    if isinstance(value, list | tuple):
        return [shorn(inner) for inner in value]
    return float(value) if type(value) is int else value


def decisions(spec: RunSpec) -> str:
    """Digest of all that was decided, so that runs made under other decisions are told apart."""
    return hashlib.sha256(json.encode(decided(spec), order="sorted")).hexdigest()
