"""Three clients put the same requests, in the same order, to the same server: ours, AsyncOpenAI, Inspect.

Each takes turns with the others, after a warming-up of its own. The ideal is what a greedy schedule on as many slots
needs, from the times that the server itself took: the next request goes to the slot that is free first. CPU is this
process's; the server is another one.
"""

import asyncio
import heapq
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

from prill.asking.loop import Asking, Question, ask

SLOTS = 32
REQUESTS = 300
ROUNDS = 3
Client = Callable[[str, Sequence[float], Path], None]


@dataclass(frozen=True)
class Figures:
    """What the rounds showed."""

    over_ideal: float
    """Wall time by the ideal's, of the best round: other work on the machine only adds. The ideal is that of the times
    that the server really took."""
    milliseconds: float
    """CPU for one request, median."""


def services() -> list[float]:
    """Seconds of each request: lognormal around half a second, eight at most; longest first."""
    chance = Random(0)
    return sorted((min(8.0, 0.5 * chance.lognormvariate(0, 0.8)) for _ in range(REQUESTS)), reverse=True)


def ideal(seconds: Sequence[float]) -> float:
    """When a greedy schedule on all slots is done."""
    free = [0.0] * SLOTS
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def ours(url: str, seconds: Sequence[float], place: Path) -> None:
    """Our loop, replies on disk included."""
    questions = [
        Question(id=str(n), body=lambda each=each: {"messages": [{"role": "user", "content": str(each)}]})
        for n, each in enumerate(seconds)
    ]
    how = Asking(url=url, model="m", connections=SLOTS, request_seconds=60)
    tally = ask(questions, how, place / f"{time.monotonic_ns()}.jsonl", "bench")
    if tally.stops != {"stop": len(seconds)}:
        raise RuntimeError(f"{tally}: the figure means nothing")


def openai(url: str, seconds: Sequence[float], place: Path) -> None:
    """AsyncOpenAI behind a semaphore."""
    from openai import AsyncOpenAI

    async def all_of_them() -> None:
        slots = asyncio.Semaphore(SLOTS)
        async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

            async def one(each: float) -> None:
                async with slots:
                    await client.chat.completions.create(model="m", messages=[{"role": "user", "content": str(each)}])

            await asyncio.gather(*(one(each) for each in seconds))

    asyncio.run(all_of_them())


def inspect(url: str, seconds: Sequence[float], place: Path) -> None:
    """An Inspect eval without a scorer, its log included."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import GenerateConfig, get_model
    from inspect_ai.solver import generate

    config = GenerateConfig(max_connections=SLOTS, max_retries=0)
    model = get_model("openai-api/prill/m", base_url=url, api_key="none", config=config, memoize=False)
    samples = MemoryDataset([Sample(id=n, input=str(each)) for n, each in enumerate(seconds)])
    [log] = eval(
        Task(dataset=samples, solver=generate()),
        model=model,
        max_samples=SLOTS,
        log_dir=str(place),
        display="none",
        log_realtime=False,
    )
    if log.status != "success":
        raise RuntimeError(f"Inspect: {log.error}")


CLIENTS: dict[str, Client] = {"ours": ours, "AsyncOpenAI": openai, "Inspect": inspect}


@contextmanager
def server() -> Iterator[str]:
    """The mock server's address."""
    command = [sys.executable, "-m", "bench.mock_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


def reported(url: str) -> list[float]:
    """How long each request since the last report took at the server, longest first."""
    request = urllib.request.Request(url.removesuffix("/v1") + "/report", b"{}")
    with urllib.request.urlopen(request) as answer:
        return sorted(json.load(answer), reverse=True)


@cache
def figures() -> dict[str, Figures]:
    """All clients, measured once for every row that asks."""
    os.environ.setdefault("INSPECT_LOG_LEVEL", "critical")
    seconds, found = services(), {name: [] for name in CLIENTS}  # type: ignore[var-annotated]
    with server() as url, TemporaryDirectory(prefix="prill-bench-") as place:
        for client in CLIENTS.values():
            client(url, [0.0] * SLOTS, Path(place))
        reported(url)
        for turn in range(ROUNDS):
            names = list(CLIENTS)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                wall, cpu = time.perf_counter(), time.process_time()
                CLIENTS[name](url, seconds, Path(place))
                cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
                found[name].append((wall / ideal(reported(url)), 1000 * cpu / len(seconds)))
    return {
        name: Figures(over_ideal=min(each[0] for each in rounds), milliseconds=median(each[1] for each in rounds))
        for name, rounds in found.items()
    }
