"""One benchmark put to one endpoint, once for one seed: items in, marks and an Inspect log out.

It runs inside a box, beside the server, as `python -m prill.inside exam`. Questions go out on our own loop (`asking/`)
and every reply is kept as it comes, so that a killed exam carries on with what is missing. Marking begins when all
replies are there. A grader that raises ends the exam by the item's name: its crash is never the model's zero.

Graders that must stay out of that box say so: `outside = True` (they open boxes of their own) or `asks = True` (they
ask a judge model). Their exam stops at the replies; whoever has what they need calls `mark` or `mark_by_asking`.
Not covered: an Inspect log is written from memory, so it and all replies of a pass must fit there once.
"""

import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from pathlib import Path
from statistics import fmean, stdev, variance
from typing import Any
from urllib.parse import urlsplit

import msgspec

from prill import chat, plugins
from prill.asking.kept import answers
from prill.asking.loop import REPLY_BYTES, Asking, NoMemory, Pace, Question, Tally, ask, counted
from prill.asking.reading import Answer
from prill.errors import InfraError, PrillError
from prill.record import ItemMark, Judged, Mark, Reply
from prill.seeds import request_seed
from prill.sockets import Ask, Endpoint, Item, Value
from prill.spec import Benchmark

TOKEN_BYTES, ENVELOPE_BYTES = 64, 64 << 10
"""Of a reply of a submission's own server, for each token that it may have and for the rest: it may not count them."""


class Exam(Value, frozen=True, kw_only=True):
    """What to ask, of whom, and where the results go. Paths are as the box spells them."""

    benchmark: Benchmark
    """With its worked examples written in."""
    items: tuple[Item, ...]
    endpoint: Endpoint
    seed: int | None
    max_tokens: int
    """The rung of the benchmark's ladder."""
    last: bool = True
    """Whether this is the lowest rung: then what does not fit the context window counts."""
    subject: str
    """Digest of what is measured."""
    folder: Path
    """Gets the replies, the pace and the log."""
    earlier: Path | None = None
    """Replies of an earlier pass, from which the length of replies is expected; otherwise from that of prompts."""

    @property
    def answers(self) -> Path:
        """All replies, as they came."""
        return self.folder / "answers.jsonl"


class Result(Value, frozen=True, kw_only=True):
    """What came of it."""

    no_room: str | None = None
    """Why nothing could be generated with so many tokens, where fewer may do; then there is nothing else here."""
    memory: bool = False
    """Whether it was memory that lacked; the server is then not to be used again."""
    items: tuple[ItemMark, ...] = ()
    """Empty where the grader must stay out of the box."""
    stops: Mapping[str, int] = {}
    retries: Mapping[str, int] = {}
    resumed: int = 0
    log: str | None = None
    wall_seconds: float = 0.0
    versions: Mapping[str, str] = {}


def sit(exam: Exam) -> Result:
    """Ask every item and mark every reply. Raises `InfraError` if any item could not be asked or marked."""
    from importlib.metadata import version

    exam.folder.mkdir(parents=True, exist_ok=True)
    try:
        tally = put(exam)
    except NoMemory as error:
        return Result(no_room=str(error), memory=True)
    if not exam.last and tally.total and not any(answer.room for answer in answers(exam.answers)):
        return Result(no_room=next(answers(exam.answers)).why)
    asked = Result(
        stops=dict(tally.stops),
        retries=dict(tally.retries),
        resumed=tally.resumed,
        wall_seconds=tally.wall_seconds,
        versions={name: version(name) for name in ("aiohttp", "inspect-ai")},
    )
    grader = plugins.get("graders", exam.benchmark.grader)
    stays_out = getattr(grader, "outside", False) or getattr(grader, "asks", False)
    return asked if stays_out else mark(exam, asked)


# --- asking ------------------------------------------------------------------------------------------------


def put(exam: Exam) -> Tally:
    """Every item to the endpoint, one request each."""
    benchmark, own, spent = exam.benchmark, exam.endpoint.own, {}
    if exam.earlier is not None and exam.earlier.exists():
        spent = {answer.id: float(answer.tokens_out or 0) for answer in answers(exam.earlier)}
    questions = [
        Question(
            id=item.id,
            body=partial(body, exam, item),
            path="/chat/completions" if benchmark.ask == "chat" else "/completions",
            expected=spent.get(item.id, float(len(item.question))),
        )
        for item in exam.items
    ]
    how = Asking(
        url=exam.endpoint.url,
        model=exam.endpoint.model,
        connections=benchmark.connections,
        request_seconds=benchmark.request_seconds,
        own=own,
        reply_bytes=ENVELOPE_BYTES + TOKEN_BYTES * exam.max_tokens if own else REPLY_BYTES,
    )
    return ask(questions, how, exam.answers, settings_of(exam), partial(write_pace, exam, "asked"))


def body(exam: Exam, item: Item) -> dict[str, Any]:
    """One request without the model's name. What the benchmark leaves open is not sent, so the submission decides."""
    benchmark, sampling = exam.benchmark, exam.benchmark.sampling
    said = chat.render(benchmark, chat.shown(benchmark, item, exam.seed))
    asked: dict[str, Any] = {"messages": said.messages} if benchmark.ask == "chat" else {"prompt": said.text}
    if said.tools:
        asked["tools"] = said.tools
    seed = sampling.seed if exam.seed is None else request_seed(exam.seed, item.id)
    chosen = {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": seed}
    return {
        **asked,
        "max_tokens": exam.max_tokens,
        **{name: value for name, value in chosen.items() if value is not None},
    }


def settings_of(exam: Exam) -> str:
    """Digest of all that decides a reply. The server's port, which is another each time, is left out."""
    port = urlsplit(exam.endpoint.url).port
    engine = re.sub(rf"\b{port}\b", "PORT", msgspec.json.encode(exam.endpoint.settings, order="sorted").decode())
    asked = [body(exam, item) for item in exam.items]
    decided = [exam.subject, exam.endpoint.model, engine, exam.benchmark.request_seconds, asked]
    return hashlib.sha256(msgspec.json.encode(decided, order="sorted")).hexdigest()


def write_pace(exam: Exam, what: str, pace: Pace) -> None:
    """How many are `asked`, `marked` or `judged`, for whoever watches: whole or not there."""
    told = {"benchmark": exam.benchmark.name, "seed": exam.seed, "what": what, **msgspec.to_builtins(pace)}
    beside = exam.folder / ".pace"
    beside.write_bytes(msgspec.json.encode(told))
    beside.rename(exam.folder / "pace.json")


# --- marking -----------------------------------------------------------------------------------------------


def replies(exam: Exam) -> list[tuple[Answer, Item]]:
    """Every answer with its item as it was shown, in the order of the items."""
    by_id = {answer.id: answer for answer in answers(exam.answers)}
    return [(by_id[item.id], chat.shown(exam.benchmark, item, exam.seed)) for item in exam.items]


def mark(exam: Exam, asked: Result) -> Result:
    """Mark all replies and write the log."""
    name = exam.benchmark.grader
    grader = plugins.get("graders", name)
    at_a_time = min(8, os.cpu_count() or 1) if getattr(grader, "outside", False) else 1
    answered = replies(exam)
    with ThreadPoolExecutor(at_a_time) as pool:
        coming = pool.map(mark_one, repeat(grader), repeat(name), answered)
        marks = list(counted(coming, len(answered), partial(write_pace, exam, "marked")))
    log = write_log(exam, answered, marks)
    items = tuple(
        ItemMark(
            item=item.id,
            official=mark.official,
            robust=mark.robust,
            answer=mark.answer,
            target=item.answer,
            stop=answer.stop,
            tokens=answer.tokens_out,
            seed=exam.seed,
        )
        for (answer, item), mark in zip(answered, marks, strict=True)
    )
    return msgspec.structs.replace(asked, items=items, log=log)


def mark_one(grader: Callable[[Reply, Item], Mark], name: str, pair: tuple[Answer, Item]) -> Mark:
    """One mark, or an error that names the item."""
    answer, item = pair
    try:
        found = grader(reply_of(answer), item)
    except PrillError as error:
        raise InfraError(f"grader {name} could not mark item {item.id}: {error}") from error
    except Exception as error:
        raise InfraError(f"grader {name} failed on item {item.id}: {type(error).__name__}: {error}") from error
    if not (0 <= found.official <= 1 and 0 <= found.robust <= 1):
        raise InfraError(f"grader {name} gave item {item.id} a mark outside 0..1: {found}")
    return found


def mark_by_asking(exam: Exam, ask_judge: Ask) -> Judged:
    """What a judge model makes of all replies together."""
    judged: Judged = plugins.get("graders", exam.benchmark.grader)(
        [(reply_of(answer), item) for answer, item in replies(exam)], ask_judge
    )
    return judged


def reply_of(answer: Answer) -> Reply:
    """An answer as graders see it."""
    return Reply(
        text=answer.text, stop=answer.stop, calls=answer.calls, tokens=answer.tokens_out, seconds=answer.seconds
    )


# --- summing up --------------------------------------------------------------------------------------------


def standard_error(passes: Sequence[Sequence[float]]) -> float | None:
    """Standard error of the mean over n items and S seeded passes; `passes[s][i]` is item i under seed s.

    A mark is taken as x_is = μ + item_i + seed_s + noise_is, items and seeds both drawn by chance (two-way crossed
    random effects without replication; Searle, Casella and McCulloch, *Variance Components*, 1992, section 4.4). With
    x̄_i an item's mean over the seeds and x̄_s a seed's over the items,

        SE² = Var_i(x̄_i) / n  +  max(0, n·Var_s(x̄_s) − V) / (n·S)

    where all variances have ddof 1 and V is the residual mean square. The first term holds the spread of items and
    the noise within them (the clustered error of Miller, *Adding Error Bars to Evals*, arXiv 2411.00640, section 2.2);
    the second is what whole passes differ by beyond that noise. With one seed it is sd/√n; equal passes do not make
    it smaller, which an average of the passes' own errors, or pooling n·S marks, gets wrong. `None` below two items.
    """
    items, seeds = len(passes[0]) if passes else 0, len(passes)
    if items < 2:
        return None
    by_item = [fmean(marks) for marks in zip(*passes, strict=True)]
    squared = variance(by_item) / items
    if seeds > 1:
        by_seed, whole = [fmean(marks) for marks in passes], fmean(map(fmean, passes))
        rest = sum(
            (mark - by_item[i] - by_seed[s] + whole) ** 2
            for s, marks in enumerate(passes)
            for i, mark in enumerate(marks)
        )
        noise = rest / ((items - 1) * (seeds - 1))
        squared += max(0.0, items * variance(by_seed) - noise) / (items * seeds)
    return squared**0.5 if squared > 0 else 0.0


# --- the log -----------------------------------------------------------------------------------------------


def write_log(exam: Exam, answered: Sequence[tuple[Answer, Item]], marks: Sequence[Mark]) -> str:
    """An Inspect log (`.eval`) of the exam; its file name. `inspect view` and `read_eval_log` open it."""
    from uuid import uuid4

    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalLog,
        EvalPlan,
        EvalPlanStep,
        EvalSpec,
        EvalStats,
        write_eval_log,
    )
    from inspect_ai.model import GenerateConfig, ModelUsage

    benchmark, model = exam.benchmark, f"openai-api/prill/{exam.endpoint.model}"
    sampling = benchmark.sampling
    config = GenerateConfig(
        max_tokens=exam.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        seed=sampling.seed if exam.seed is None else None,  # a seeded pass has another one for each request
        max_connections=benchmark.connections,
    )
    used = [
        sum(filter(None, counts)) for counts in zip(*((a.tokens_in, a.tokens_out) for a, _ in answered), strict=True)
    ]
    usage = ModelUsage(input_tokens=used[0], output_tokens=used[1], total_tokens=sum(used)) if used else ModelUsage()
    ended = time.time()
    began = ended - sum(answer.seconds for answer, _ in answered) / max(1, benchmark.connections)
    log = EvalLog(
        status="success",
        eval=EvalSpec(
            eval_id=uuid4().hex,
            run_id=uuid4().hex,
            task_id=uuid4().hex,
            created=moment(ended),
            task=f"prill/{benchmark.name}",
            task_display_name=benchmark.title,
            task_args={"seed": exam.seed},
            dataset=EvalDataset(
                name=benchmark.name, samples=len(answered), sample_ids=[item.id for _, item in answered]
            ),
            model=model,
            model_base_url=exam.endpoint.url,
            model_generate_config=config,
            config=EvalConfig(epochs=1),
            metadata={"subject": exam.subject, "engine": dict(exam.endpoint.settings), "counts": benchmark.counts},
        ),
        plan=EvalPlan(steps=[EvalPlanStep(solver="generate")], config=config),
        results=log_results(benchmark, marks),
        stats=EvalStats(started_at=moment(began), completed_at=moment(ended), model_usage={model: usage}),
        samples=[log_sample(exam, *pair, mark) for pair, mark in zip(answered, marks, strict=True)],
    )
    name = f"{benchmark.name}.eval"
    write_eval_log(log, str(exam.folder / name), format="eval")
    return name


def moment(seconds: float) -> str:
    """A time as Inspect writes it."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def log_results(benchmark: Benchmark, marks: Sequence[Mark]) -> Any:
    """The score that counts, with its mean and standard error, and both readings beside it."""
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    counted = [getattr(mark, benchmark.counts) for mark in marks]
    figures: Mapping[str, float | None] = {
        "mean": fmean(counted) if counted else None,
        "stderr": stdev(counted) / len(counted) ** 0.5 if len(counted) > 1 else None,
        "official": fmean(mark.official for mark in marks) if marks else None,
        "robust": fmean(mark.robust for mark in marks) if marks else None,
    }
    metrics = {name: EvalMetric(name=name, value=value) for name, value in figures.items() if value is not None}
    score = EvalScore(name=benchmark.grader, scorer=benchmark.grader, scored_samples=len(marks), metrics=metrics)
    return EvalResults(total_samples=len(marks), completed_samples=len(marks), scores=[score])


def log_sample(exam: Exam, answer: Answer, item: Item, mark: Mark) -> Any:
    """One item in the log: what was said, what came back, and what it earned."""
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score

    reason = {"stop": "stop", "empty": "stop", "length": "max_tokens", "refused": "content_filter"}
    said = chat.render(exam.benchmark, item)
    reply = ChatMessageAssistant(content=answer.text, source="generate")
    choice = ChatCompletionChoice(message=reply, stop_reason=reason.get(answer.stop, "unknown"))
    tokens = answer.tokens_in or 0, answer.tokens_out or 0
    usage = ModelUsage(input_tokens=tokens[0], output_tokens=tokens[1], total_tokens=sum(tokens))
    kept = {"stop": answer.stop, "attempts": answer.attempts, "why": answer.why, "reasoning": answer.reasoning}
    asked = messages_of(said)
    return EvalSample(
        id=item.id,
        epoch=1,
        input=asked,
        target=item.answer,
        messages=[*asked, reply],
        output=ModelOutput(model=exam.endpoint.model, choices=[choice], usage=usage, time=answer.seconds),
        scores={
            exam.benchmark.grader: Score(
                value=getattr(mark, exam.benchmark.counts),
                answer=mark.answer,
                explanation=mark.why,
                metadata={"official": mark.official, "robust": mark.robust},
            )
        },
        metadata={
            **{name: value for name, value in kept.items() if value},
            **({"calls": msgspec.to_builtins(answer.calls)} if answer.calls else {}),
            **({"tools": said.tools} if said.tools else {}),
        },
        total_time=answer.seconds,
    )


def messages_of(said: chat.Request) -> list[Any]:
    """A request's messages as Inspect's."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    return [kinds[message["role"]](content=message["content"]) for message in said.messages]
