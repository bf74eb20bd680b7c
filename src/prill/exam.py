"""One benchmark put to one endpoint through Inspect: items in, marks out, the eval log kept.

It runs inside a box, beside the server, as `python -m prill.inside exam`. A reply that is cut off or empty is the
model's and counts; a request that fails altogether is not, and raises, so that no number comes of it.
"""

import time
from collections import Counter
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from prill import plugins
from prill.errors import InfraError
from prill.record import ItemMark, Reply
from prill.sockets import Endpoint, Grader, Item, Value
from prill.spec import Benchmark

STOPS = {"stop": "stop", "max_tokens": "length", "model_length": "length", "content_filter": "refused"}


class Exam(Value, frozen=True, kw_only=True):
    """What to ask, of whom, and where the log goes. Paths are as the box spells them."""

    benchmark: Benchmark
    items: Path
    endpoint: Endpoint
    seed: int | None
    logs: Path


class Result(Value, frozen=True, kw_only=True):
    """What came of it."""

    items: tuple[ItemMark, ...]
    stops: dict[str, int]
    log: str
    wall_seconds: float
    versions: dict[str, str]


def sit(exam: Exam, items: list[Item]) -> Result:
    """Ask every item, mark every reply. Raises `InfraError` if any request or mark failed."""
    from importlib.metadata import version

    from inspect_ai import eval as inspect_eval

    began = time.monotonic()
    grader: Grader = plugins.get("graders", exam.benchmark.grader)
    [log] = inspect_eval(
        task(exam, items, grader),
        model=model(exam),
        log_dir=str(exam.logs),
        log_format="eval",
        display="none",
        fail_on_error=False,
        score_display=False,
        log_model_api=False,
    )
    failed = [sample for sample in log.samples or [] if sample.error is not None]
    if log.status != "success" or failed or len(log.samples or []) != len(items):
        first = failed[0].error.message if failed and failed[0].error else log.error.message if log.error else "?"
        raise InfraError(f"{len(failed)} of {len(items)} items could not be asked or marked, the first: {first}")
    marks = tuple(item_mark(sample) for sample in log.samples or [])
    return Result(
        items=marks,
        stops=dict(Counter(mark.stop for mark in marks)),
        log=Path(log.location).name,
        wall_seconds=time.monotonic() - began,
        versions={name: version(name) for name in ("inspect-ai", "openai")},
    )


def task(exam: Exam, items: list[Item], grader: Grader) -> Any:
    """The benchmark as an Inspect task: prompt, one generation, our grader as its scorer."""
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import Score, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState, generate, system_message

    by_id = {item.id: item for item in items}
    counts = exam.benchmark.counts

    def marked() -> Any:
        async def score(state: TaskState, target: Target) -> Score:
            reply = reply_of(state.output)
            mark = grader(reply, by_id[str(state.sample_id)])
            return Score(
                value=getattr(mark, counts),
                answer=mark.answer,
                explanation=mark.why,
                metadata={"official": mark.official, "robust": mark.robust, "stop": reply.stop, "tokens": reply.tokens},
            )

        return score

    samples = [
        Sample(id=item.id, input=exam.benchmark.prompt.replace("{question}", item.question), target=item.answer)
        for item in items
    ]
    solver = [generate()] if exam.benchmark.system is None else [system_message(exam.benchmark.system), generate()]
    return Task(
        dataset=MemoryDataset(samples),
        solver=solver,
        scorer=scorer(metrics=[mean(), stderr()], name=exam.benchmark.grader)(marked)(),
        name=exam.benchmark.name,
    )


def model(exam: Exam) -> Any:
    """The endpoint as an Inspect model, with the benchmark's sampling and nothing else set."""
    from inspect_ai.model import GenerateConfig, get_model

    sampling = exam.benchmark.sampling
    return get_model(
        f"openai-api/prill/{exam.endpoint.model}",
        base_url=exam.endpoint.url,
        api_key="none",
        config=GenerateConfig(
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=exam.seed if exam.seed is not None else sampling.seed,
            max_connections=exam.benchmark.connections,
            attempt_timeout=int(exam.benchmark.request_seconds),
            max_retries=2,
        ),
    )


def reply_of(output: Any) -> Reply:
    """An Inspect model output as a reply; what the server said about stopping is kept."""
    stop = STOPS.get(output.stop_reason, "server")
    text = output.completion
    return Reply(
        text=text,
        stop="empty" if not text.strip() else stop,  # type: ignore[arg-type]
        tokens=output.usage.output_tokens if output.usage else None,
        seconds=output.time,
    )


def item_mark(sample: Any) -> ItemMark:
    """One sample of the log as our item mark."""
    [score] = sample.scores.values()
    return ItemMark(
        item=str(sample.id),
        official=score.metadata["official"],
        robust=score.metadata["robust"],
        answer=score.answer,
        target=str(sample.target),
        stop=score.metadata["stop"],
        tokens=score.metadata["tokens"],
    )


def mean_and_stderr(marks: list[float]) -> tuple[float, float | None]:
    """Mean, and its standard error sd/sqrt(n) with ddof 1 (`None` below two items)."""
    return fmean(marks), stdev(marks) / len(marks) ** 0.5 if len(marks) > 1 else None
