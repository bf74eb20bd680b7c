"""Families put to their judges, and what came of it: counts, rates with Wilson intervals, a table, a file."""

import random
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec

from prill import plugins
from prill.calibration import alike, api, edits, keys, looks, packages, sly, texts, weights
from prill.calibration.family import Family
from prill.error_rates import Calibrated, FamilyRate, JudgeRate, interval

FAMILIES: tuple[Family, ...] = (
    *texts.FAMILIES,
    *weights.FAMILIES,
    *api.FAMILIES,
    *looks.FAMILIES,
    *keys.FAMILIES,
    *edits.FAMILIES,
    *sly.FAMILIES,
    *alike.FAMILIES,
    *packages.FAMILIES,
)

MISSED, ALARMS = 0.02, 0.01
"""The most that a deterministic judge may miss, and of innocent runs call anything but kept."""


RUNS = 400
"""Runs of each side a judge: with none wrong of so many, Wilson's interval ends below 1 %."""


def calibrate(
    seed: int,
    n: int = RUNS,
    judges: Collection[str] = (),
    say: Callable[[str], None] = lambda line: None,
    jobs: int = 1,
) -> Calibrated:
    """At least `n` planted violations and `n` innocent look-alikes for each judge, drawn by a seed.

    `jobs` families are judged at a time; what comes of it
    does not depend on that.
    """
    tasks = [
        (place, seed, each_of(family, n))
        for place, family in enumerate(FAMILIES)
        if not judges or family.judge in judges
    ]
    rows: dict[str, list[FamilyRate]] = {}
    spent = 0.0
    with concurrently(jobs) as does:
        for (place, *_), (row, seconds) in zip(tasks, does(of_task, tasks), strict=True):
            rows.setdefault(FAMILIES[place].judge, []).append(row)
            spent += seconds
            say(f"{FAMILIES[place].judge}: {row.name}, {row.n} runs, {row.wrong} wrong")
    rates = tuple(
        JudgeRate(
            judge=judge,
            rules=plugins.get("judges", judge).rules,
            families=tuple(sorted(own, key=lambda row: not row.planted)),
        )
        for judge, own in rows.items()
    )
    return Calibrated(seed=seed, n=n, versions=versions(), cpu_seconds=spent, judges=rates)


@contextmanager
def concurrently(jobs: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """A `map` that keeps the order and does so many at a time."""
    if jobs == 1:
        yield map
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield pool.map


def each_of(family: Family, n: int) -> int:
    """Runs of one family, so that its judge's side has at least `n` without the blind ones."""
    side = [each for each in FAMILIES if (each.judge, each.planted) == (family.judge, family.planted)]
    return max(1, -(-n // max(1, sum(not each.blind for each in side))))


def of_task(task: tuple[int, int, int]) -> tuple[FamilyRate, float]:
    """One family by its place, with the CPU-seconds that it took."""
    place, seed, count = task
    began = time.process_time()
    plugin = plugins.get("judges", FAMILIES[place].judge)
    return of_family(plugin, FAMILIES[place], seed, count), time.process_time() - began


def of_family(plugin: Any, family: Family, seed: int, count: int) -> FamilyRate:
    """One family: each run in a folder of its own, which goes when it is judged."""
    verdicts = {"broken": 0, "kept": 0, "unknown": 0}
    wrong: list[str] = []
    for number in range(count):
        dice = random.Random(f"{seed}/{family.judge}/{family.name}/{number}")
        with tempfile.TemporaryDirectory(prefix="prill-calibrate-") as folder:
            evidence = family.make(Path(folder), dice)
            (finding,) = plugin(evidence)
        verdicts[finding.verdict] += 1
        if finding.verdict not in family.expected:
            wrong.append(f"{number}: {finding.verdict}: {finding.why}"[:300])
    return FamilyRate(
        name=family.name, planted=family.planted, blind=family.blind, expected=family.expected, n=count,
        wrong=len(wrong), verdicts=verdicts, examples=tuple(wrong[:3]),
    )  # fmt: skip


def versions() -> dict[str, str]:
    """Of what the rates hang on."""
    import platform
    from importlib import metadata

    return {"prill": metadata.version("prill"), "python": platform.python_version(), "numpy": metadata.version("numpy")}


def table(found: Calibrated) -> str:
    """The rates as text, a line a judge and a line a family."""
    lines = [f"seed {found.seed}, {found.n} and {found.n} runs a judge at least, {found.cpu_seconds:.0f} CPU-seconds"]
    for judge in found.judges:
        missed, alarms = judge.missed, judge.alarms
        lines.append("")
        lines.append(f"{judge.judge} (rules: {', '.join(judge.rules)})")
        lines.append(f"  missed        {share(*missed)}")
        lines.append(f"  false alarms  {share(*alarms)}")
        for row in judge.families:
            side = "blind   " if row.blind else "planted " if row.planted else "innocent"
            told = ", ".join(f"{count} {verdict}" for verdict, count in row.verdicts.items() if count)
            lines.append(f"    {side} {row.name:42} {row.n - row.wrong}/{row.n} as it should be: {told}")
    return "\n".join(lines)


def share(wrong: int, n: int) -> str:
    """`1/40` with its rate and interval."""
    low, high = interval(wrong, n)
    return f"{wrong}/{n} = {100 * wrong / max(1, n):.1f} % (95 %: {100 * low:.1f} to {100 * high:.1f} %)"


def enough(found: Calibrated) -> bool:
    """Whether every judge misses at most 2 % and is wrong about at most 1 % of the innocent."""
    sides = [(rate.missed, MISSED, rate.alarms, ALARMS) for rate in found.judges]
    return all(m[0] <= most * m[1] and a[0] <= least * a[1] for m, most, a, least in sides)


def written(found: Calibrated) -> bytes:
    """The file."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
