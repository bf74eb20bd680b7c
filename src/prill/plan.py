"""Suite × entrants × seeds → run specs, each cell once. Pure."""

from collections.abc import Iterable, Mapping
from itertools import product

from prill.outside import HostPolicy, Prices, Provider
from prill.spec import BaseModel, Benchmark, Entrant, Prompt, RunSpec, Suite


def plan(
    suite: Suite,
    *,
    entrants: Iterable[Entrant],
    models: Iterable[BaseModel],
    benchmarks: Iterable[Benchmark],
    prompt: Prompt,
    seeds: Iterable[int],
    digests: Mapping[str, str],
    providers: Mapping[str, Provider] | None = None,
    prices: Prices | None = None,
    hosts: HostPolicy | None = None,
) -> list[RunSpec]:
    """One spec for each entrant, cell and seed, in that order; ids are given when a folder is made.

    `models` and `benchmarks` are the suite's, in its order. `digests` maps `kind/name` to the sha256 of each
    definition; a spec keeps those that it uses. `providers` are those of the entrants and the teacher's, by name.
    """
    entrants, models, benchmarks = list(entrants), list(models), list(benchmarks)
    sittings = [(test,) for test in benchmarks] if "benchmark" in suite.cell else [tuple(benchmarks)]
    shared = {f"suites/{suite.name}", f"prompts/{prompt.name}"}
    shared |= {f"hosts/{hosts.name}"} if hosts else set()
    shared |= {f"panels/{suite.panel}"} if suite.panel else set()
    teacher = (providers or {})[suite.teacher] if suite.teacher else None
    specs = []
    for entrant, model, tests, seed in product(entrants, models, sittings, seeds):
        used = shared | {f"entrants/{entrant.name}", f"models/{model.name}"} | {f"benchmarks/{t.name}" for t in tests}
        provider = (providers or {})[entrant.provider] if entrant.provider else None
        asked = [each for each in (provider, teacher) if each]
        if asked and prices:
            used |= {f"prices/{prices.name}", *(f"providers/{each.name}" for each in asked)}
        specs.append(
            RunSpec(
                id="",
                suite=suite.name,
                entrant=entrant,
                model=model,
                benchmarks=tests,
                seed=seed,
                budget=suite.budget,
                prompt=prompt,
                rules=suite.rules,
                judges=suite.judges,
                sandbox=suite.sandbox,
                engine=suite.engine,
                submission=suite.submission,
                provider=provider,
                teacher=teacher,
                teacher_models=suite.teacher_models,
                prices=prices if asked else None,
                hosts=hosts,
                panel=suite.panel,
                definitions={name: digests[name] for name in sorted(used)},
            )
        )
    return specs
