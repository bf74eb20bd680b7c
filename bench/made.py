"""Seeded definitions and finished run folders for the rows; nothing here resembles a real result."""

from pathlib import Path
from random import Random

from prill import folder
from prill.plan import plan
from prill.record import File, Finding, ItemMark, Judgement, Measurement, Outcome, Submission
from prill.spec import (
    BaseModel,
    Benchmark,
    Budget,
    Data,
    Entrant,
    Prompt,
    RunSpec,
    Sampling,
    ScoreRule,
    Suite,
)

DIGEST = "sha256:" + "0" * 64
JUDGES = ("overlap", "lineage")


def benchmark(number: int) -> Benchmark:
    """One benchmark."""
    return Benchmark(
        name=f"test-{number}",
        title=f"Test {number}",
        data=Data(path=f"items-{number}.jsonl", count=300, digest=DIGEST),
        prompt="{question}",
        grader="number",
        counts="robust",
        sampling=Sampling(max_tokens=512, temperature=0.0),
        licence="none",
        source="made by bench/made.py",
    )


def world(entrants: int, models: int, benchmarks: int) -> tuple[Suite, list[Entrant], list[BaseModel], list[Benchmark]]:
    """A suite of one run for each model and benchmark, with its definitions."""
    bases = [
        BaseModel(
            name=f"base-{n}", title=f"Base {n}", architecture="none", parameters=10**9, digest=DIGEST, licence="none"
        )
        for n in range(models)
    ]
    tests = [benchmark(number) for number in range(benchmarks)]
    players = [Entrant(name=f"entrant-{n}", title=f"Entrant {n}", agent="scripted") for n in range(entrants)]
    suite = Suite(
        name="bench",
        title="Bench",
        models=tuple(base.name for base in bases),
        benchmarks=tuple(test.name for test in tests),
        entrants=tuple(player.name for player in players),
        prompt="plain",
        rules=("contamination", "lineage"),
        judges=JUDGES,
        engine="canned",
        budget=Budget(hours=10.0),
        score=ScoreRule(weights={test.name: 1 / len(tests) for test in tests}),
        policy={"contamination": "zero", "lineage": "zero", "no_submission": "zero", "broken_submission": "zero"},
    )
    return suite, players, bases, tests


def specs(
    suite: Suite, players: list[Entrant], bases: list[BaseModel], tests: list[Benchmark], n: int
) -> list[RunSpec]:
    """The plan of such a suite for `n` seeds."""
    named = [f"suites/{suite.name}", f"prompts/{suite.prompt}"]
    named += [f"entrants/{player.name}" for player in players] + [f"models/{base.name}" for base in bases]
    named += [f"benchmarks/{test.name}" for test in tests]
    return plan(
        suite,
        entrants=players,
        models=bases,
        benchmarks=tests,
        prompt=Prompt(name="plain", template="{rules}", rules={"contamination": "No items.", "lineage": "From base."}),
        seeds=range(n),
        digests=dict.fromkeys(named, DIGEST),
    )


def finish(parent: Path, spec: RunSpec, chance: Random) -> None:
    """A run folder in which every stage is done."""
    run = folder.create(parent, spec)
    for stage in ("solve", "seal", "measure", "judge"):
        run.append("began", stage)
        run.append("ended", stage)
    run.write(run.path / "outcome.json", outcome(chance))
    run.write(run.path / "submission.json", submission(chance))
    for test in spec.benchmarks:
        run.write(run.next_numbered("measurements", test.name), measurement(test, chance))
    for judge, rule in zip(JUDGES, spec.rules, strict=True):
        finding = Finding(rule=rule, verdict="broken" if chance.random() < 0.05 else "kept", why="as drawn")
        judgement = Judgement(judge=judge, findings=(finding,), isolated=True, wall_seconds=1.0)
        run.write(run.next_numbered("findings", judge), judgement)


def outcome(chance: Random) -> Outcome:
    """How an agent ended."""
    return Outcome(
        ended="finished",
        why="finished by itself",
        exit_code=0,
        signals=(),
        wall_seconds=chance.uniform(1e3, 3e4),
        limit_seconds=36_000,
        steps=chance.randrange(20, 400),
        isolated=True,
        sandbox="bubblewrap",
        output_bytes=10**6,
        output_dropped_bytes=0,
    )


def submission(chance: Random) -> Submission:
    """Ten files sealed, forty left."""
    files = [
        File(path=f"part-{n}.bin", bytes=chance.randrange(10**9), sha256=f"{chance.getrandbits(256):064x}")
        for n in range(50)
    ]
    return Submission(
        state="sealed",
        why="loads and descends from the base",
        digest=DIGEST,
        files=tuple(files[:10]),
        faults=(),
        tensors=300,
        parameters=10**9,
        left=tuple(files[10:]),
    )


def measurement(test: Benchmark, chance: Random) -> Measurement:
    """One mark for each item."""
    marks = [float(chance.random() < 0.4) for _ in range(test.data.count)]
    items = tuple(
        ItemMark(item=f"item-{n}", official=mark, robust=mark, answer=str(n), target="7", stop="stop", tokens=90)
        for n, mark in enumerate(marks)
    )
    value = sum(marks) / len(marks)
    return Measurement(
        benchmark=test.name,
        seed=None,
        state="measured",
        why="all items were put and marked",
        value=value,
        official=value,
        robust=value,
        n=len(marks),
        stderr=0.02,
        stops={"stop": len(marks)},
        items=items,
        submission=DIGEST,
        settings={"engine": "canned", "temperature": 0.0},
        log=None,
        wall_seconds=60.0,
        isolated=True,
    )
