"""Real values for tests of what thinks: a suite of one model and one benchmark, its spec, and finished runs of it."""

from typing import Any

from msgspec.structs import replace

from prill.record import Contract, Fault, File, Finding, Judgement, Measurement, Outcome, Pass, Run, Submission
from prill.spec import (
    BaseModel,
    Benchmark,
    Budget,
    Data,
    Entrant,
    Prompt,
    Reference,
    RunSpec,
    Sampling,
    ScoreRule,
    Suite,
)

DIGEST = "sha256:" + "0" * 64

BENCHMARK = Benchmark(
    name="sums",
    title="Sums",
    data=Data(path="sums.jsonl", count=4, digest=DIGEST),
    prompt="{question}",
    grader="number",
    counts="robust",
    sampling=Sampling(max_tokens=16),
    licence="Apache-2.0",
    source="made up for tests",
    floor=0.2,
    ceiling=0.7,
)
MODEL = BaseModel(
    name="tiny", title="Tiny", architecture="Qwen3ForCausalLM", parameters=1, digest=DIGEST, path="x", licence="x"
)
ENTRANT = Entrant(name="ada", title="Ada", agent="scripted", program="ada.py")
PROMPT = Prompt(
    name="words", template="{time}{money}: {model} on {benchmarks}.\n{rules}", rules={"a": "Be fair.", "b": "Be brief."}
)
SUITE = Suite(
    name="trial",
    title="Trial",
    models=("tiny",),
    benchmarks=("sums",),
    entrants=("ada",),
    prompt="words",
    rules=("a",),
    judges=("overlap", "lineage"),
    engine="transformers",
    budget=Budget(hours=1),
    score=ScoreRule(weights={"sums": 1.0}),
    policy={"no_submission": "base", "broken_submission": "zero", "contamination": "base", "lineage": "hold"},
    references=(Reference(model="tiny", benchmark="sums", base=0.25, source="made up for tests"),),
)
SPEC = RunSpec(
    id="",
    suite="trial",
    entrant=ENTRANT,
    model=MODEL,
    benchmarks=(BENCHMARK,),
    seed=0,
    budget=SUITE.budget,
    prompt=PROMPT,
    rules=SUITE.rules,
    judges=SUITE.judges,
    sandbox=SUITE.sandbox,
    engine=SUITE.engine,
    submission="weights",
    definitions={},
)
OUTCOME = Outcome(
    ended="finished",
    why="finished by itself",
    exit_code=0,
    signals=(),
    wall_seconds=10.0,
    limit_seconds=3600.0,
    steps=3,
    isolated=True,
    sandbox="bubblewrap",
    output_bytes=100,
    output_dropped_bytes=0,
)


def submission(state: Any = "sealed", why: str = "1 file, readable") -> Submission:
    """A submission in one of its three states."""
    files = (File(path="config.json", bytes=2, sha256="0" * 64),) if state != "absent" else ()
    digest = DIGEST if files else None
    return Submission(state=state, why=why, digest=digest, files=files, faults=(), tensors=1, parameters=1, left=())


def measurement(value: float | None = 0.5, **changes: Any) -> Measurement:
    """A measurement of the benchmark, or one that could not be made where `value` is None."""
    made = Measurement(
        benchmark="sums",
        seed=None,
        state="measured" if value is not None else "unloadable",
        why="all 4 items asked and marked" if value is not None else "the engine cannot serve it",
        value=value,
        official=value,
        robust=value,
        n=4 if value is not None else 0,
        stderr=0.1 if value is not None else None,
        stops={},
        items=(),
        submission=DIGEST,
        settings={},
        log=None,
        wall_seconds=1.0,
        isolated=True,
    )
    return replace(made, **changes)


def judgement(judge: str, rule: str, verdict: Any = "kept", why: str = "looked and found nothing") -> Judgement:
    """One judge's word on one rule."""
    finding = Finding(rule=rule, verdict=verdict, why=why)
    return Judgement(judge=judge, findings=(finding,), isolated=True, wall_seconds=0.1)


def run(id: str = "r1", **changes: Any) -> Run:
    """A finished run whose judges found nothing, with `seed`, `entrant`, `value` and the Run's own fields to change."""
    spec = replace(
        changes.pop("spec", SPEC),
        id=id,
        seed=changes.pop("seed", 0),
        entrant=changes.pop("entrant", ENTRANT),
    )
    value = changes.pop("value", 0.5)
    made = Run(
        spec=spec,
        state="done",
        began=100.0,
        outcome=OUTCOME,
        submission=submission(),
        measurements=(measurement(value),),
        judgements=(judgement("overlap", "contamination"), judgement("lineage", "lineage")),
    )
    return replace(made, **changes)


PASSES = tuple(
    Pass(seed=seed, value=value, official=value, robust=0.5, stderr=0.125, stops={"stop": 9}, log=None, wall_seconds=1)
    for seed, value in ((41, 0.46875), (42, 0.53125), (43, None))
)
"""Three seeds of a measurement; the last gave no number."""
CONTRACT = Contract(
    engine="vllm",
    chat=True,
    family="qwen3",
    template="suite",
    template_sha256="9" * 64,
    suite_template="{{ messages }}",
    stop_ids=(151_643, 151_645),
    stop_tokens=("<|endoftext|>", "<|im_end|>"),
    context=None,
    max_tokens=4096,
    sampling={"temperature": 0.6},
    greedy=False,
    faults=(Fault(code="NO_STOP", why="no stop token is named", severity="warning"),),
)
