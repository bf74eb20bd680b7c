"""Our benchmarks as Inspect tasks: `inspect eval prill/gsm8k --model …`, for people who only want the benchmark.

Same items, prompts, sampling and graders as a measuring; the asking, its retries and its time limits are Inspect's.
`-T data=PLACE` reads the items from a file or folder, `-T seed=1` seeds each request, `-T definitions=DIR` adds yours.
Inspect finds this through the entry point `inspect_ai`, whose loading (not this module's import) registers the tasks.
Not covered: benchmarks that a judge model marks, and tools that a model calls are offered but never run.
"""

import asyncio
from pathlib import Path
from typing import Any

from prill import chat, plugins
from prill.catalog import Catalog
from prill.errors import DefinitionError
from prill.exam import messages_of
from prill.record import Call, Reply, Stop
from prill.seeds import request_seed
from prill.sockets import Item
from prill.spec import Benchmark

STOPS: dict[str, Stop] = {"max_tokens": "length", "model_length": "length", "content_filter": "refused"}


def __getattr__(name: str) -> Any:
    """`tasks`, by which the entry point registers every benchmark."""
    if name == "tasks":
        return registered()
    raise AttributeError(name)


def registered() -> dict[str, Any]:
    """Every benchmark of the package as a task of Inspect, by name."""
    from inspect_ai import task

    def one(name: str) -> Any:
        def made(data: str | None = None, seed: int | None = None, definitions: str | None = None) -> Any:
            catalog = Catalog([Path(definitions)] if definitions else [])
            return as_task(catalog, catalog.benchmark(name), Path(data) if data else None, seed)

        return task(name=name)(made)

    return {name: one(name) for name in Catalog().names("benchmarks")}


def as_task(catalog: Catalog, benchmark: Benchmark, data: Path | None, seed: int | None) -> Any:
    """One benchmark as a task."""
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import GenerateConfig

    if getattr(plugins.get("graders", benchmark.grader), "asks", False):
        raise DefinitionError(
            f"benchmarks/{benchmark.name} is marked by a judge model; `prill` asks it, Inspect cannot"
        )
    if benchmark.ask != "chat":
        raise DefinitionError(f"benchmarks/{benchmark.name} completes text; Inspect only chats")
    ready = catalog.ready(benchmark, data)
    items = {item.id: chat.shown(ready, item, seed) for item in catalog.items(benchmark, data)}
    sampling = benchmark.sampling
    return Task(
        name=f"prill/{benchmark.name}",
        dataset=MemoryDataset(
            [
                Sample(id=item.id, input=messages_of(chat.render(ready, item)), target=item.answer)
                for item in items.values()
            ]
        ),
        solver=answering(ready, items, seed),
        scorer=marking(benchmark, items),
        config=GenerateConfig(
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=sampling.seed if seed is None else None,
            max_connections=benchmark.connections,
            attempt_timeout=int(benchmark.request_seconds),
        ),
    )


def answering(benchmark: Benchmark, items: dict[str, Item], seed: int | None) -> Any:
    """One generation, with the item's tools and its own seed."""
    from inspect_ai.model import GenerateConfig, get_model
    from inspect_ai.solver import solver
    from inspect_ai.tool import ToolInfo, ToolParams

    @solver(name="prill_answer")  # type: ignore[untyped-decorator]
    def made() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            item = items[str(state.sample_id)]
            functions = [tool["function"] for tool in chat.render(benchmark, item).tools]
            tools = [
                ToolInfo(
                    name=each["name"],
                    description=each["description"],
                    parameters=ToolParams.model_validate(each["parameters"]),
                )
                for each in functions
            ]
            config = GenerateConfig() if seed is None else GenerateConfig(seed=request_seed(seed, item.id, state.epoch))
            state.output = await get_model().generate(state.messages, tools=tools, config=config)
            state.messages.append(state.output.message)
            return state

        return solve

    return made()


def marking(benchmark: Benchmark, items: dict[str, Item]) -> Any:
    """Our grader as a scorer: the reading that counts, both readings beside it."""
    from inspect_ai.scorer import Score, mean, scorer, stderr

    grader = plugins.get("graders", benchmark.grader)

    @scorer(metrics=[mean(), stderr()], name=benchmark.grader)  # type: ignore[untyped-decorator]
    def made() -> Any:
        async def score(state: Any, target: Any) -> Any:
            mark = await asyncio.to_thread(grader, reply_of(state.output), items[str(state.sample_id)])
            readings = {"official": mark.official, "robust": mark.robust}
            counted = readings[benchmark.counts]
            return Score(value=counted, answer=mark.answer, explanation=mark.why, metadata=readings)

        return score

    return made()


def reply_of(output: Any) -> Reply:
    """An Inspect model output as graders see it."""
    import json

    calls = tuple(
        Call(name=call.function, arguments=json.dumps(call.arguments)) for call in output.message.tool_calls or ()
    )
    empty = not output.completion.strip() and not calls
    return Reply(
        text=output.completion,
        stop=STOPS.get(output.stop_reason, "empty" if empty else "stop"),
        calls=calls,
        tokens=output.usage.output_tokens if output.usage else None,
        seconds=output.time,
    )
