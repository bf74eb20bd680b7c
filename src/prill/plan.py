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
    definition; a spec keeps those that it uses. `providers` are those of the entrants, by name.
    """
    entrants, models, benchmarks = list(entrants), list(models), list(benchmarks)
    sittings = [(test,) for test in benchmarks] if "benchmark" in suite.cell else [tuple(benchmarks)]
    shared = {f"suites/{suite.name}", f"prompts/{prompt.name}"}
    shared |= {f"hosts/{hosts.name}"} if hosts else set()
    shared |= {f"panels/{suite.panel}"} if suite.panel else set()
    specs = []
    for entrant, model, tests, seed in product(entrants, models, sittings, seeds):
        used = shared | {f"entrants/{entrant.name}", f"models/{model.name}"} | {f"benchmarks/{t.name}" for t in tests}
        provider = (providers or {})[entrant.provider] if entrant.provider else None
        if provider and prices:
            used |= {f"providers/{provider.name}", f"prices/{prices.name}"}
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
                prices=prices if provider else None,
                hosts=hosts,
                panel=suite.panel,
                definitions={name: digests[name] for name in sorted(used)},
            )
        )
    return specs
