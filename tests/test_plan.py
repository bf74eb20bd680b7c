"""Planning and the prompt: each cell once, every decision in the spec, the agent's words filled in."""

import pytest
from msgspec.structs import replace

from prill.plan import plan
from prill.prompt import hours_in_words, render
from prill.spec import RunSpec, decisions, key
from samples import BENCHMARK, ENTRANT, MODEL, PROMPT, SPEC, SUITE

SECOND = replace(BENCHMARK, name="products", title="Products")


def planned(cell: tuple[str, ...], seeds: int = 2) -> list[RunSpec]:
    """Two entrants, one model, two benchmarks."""
    kinds = {"suites/trial", "prompts/words", "models/tiny"}
    kinds |= {"entrants/ada", "entrants/bob", "benchmarks/sums", "benchmarks/products"}
    return plan(
        replace(SUITE, cell=cell, benchmarks=("sums", "products")),
        entrants=[ENTRANT, replace(ENTRANT, name="bob")],
        models=[MODEL],
        benchmarks=[BENCHMARK, SECOND],
        prompt=PROMPT,
        seeds=range(seeds),
        digests={name: f"sha256:{name}" for name in kinds},
    )


def test_each_cell_once() -> None:
    """Every entrant, cell and seed is planned exactly once, in that order."""
    specs = planned(("model", "benchmark"))
    assert len(specs) == len({key(spec) for spec in specs}) == 8
    assert [spec.entrant.name for spec in specs] == ["ada"] * 4 + ["bob"] * 4


def test_cell_of_a_model() -> None:
    """A suite whose cell is the model alone plans one run for all benchmarks."""
    specs = planned(("model",), seeds=1)
    assert [tuple(test.name for test in spec.benchmarks) for spec in specs] == [("sums", "products")] * 2


def test_spec_names_what_it_uses() -> None:
    """A spec keeps the digests of the definitions that it uses, and of no others."""
    spec = planned(("model", "benchmark"))[0]
    assert set(spec.definitions) == {
        "suites/trial",
        "prompts/words",
        "models/tiny",
        "entrants/ada",
        "benchmarks/sums",
    }


def test_decisions() -> None:
    """Ids, file digests and titles do not change what was decided; a budget, a prompt or a seed does."""
    assert decisions(SPEC) == decisions(replace(SPEC, id="x", definitions={"a": "b"}))
    assert decisions(SPEC) == decisions(replace(SPEC, entrant=replace(ENTRANT, title="Countess")))
    for other in (
        replace(SPEC, budget=replace(SPEC.budget, hours=2)),
        replace(SPEC, prompt=replace(PROMPT, template="{rules}")),
        replace(SPEC, seed=1),
    ):
        assert decisions(SPEC) != decisions(other)


def test_prompt() -> None:
    """The prompt fills its blanks and numbers the suite's rules in the suite's order."""
    spec = replace(SPEC, rules=("b", "a"), budget=replace(SPEC.budget, usd=50))
    assert render(spec) == "1 hour and 50 US dollars: Tiny on Sums.\n1. Be brief.\n2. Be fair.\n"


@pytest.mark.parametrize(
    ("hours", "words"),
    [(10, "10 hours"), (1, "1 hour"), (0.05, "3 minutes"), (1 / 60, "1 minute"), (0.03, "108 seconds")],
)
def test_hours_in_words(hours: float, words: str) -> None:
    """A budget of time is said in its largest whole unit."""
    assert hours_in_words(hours) == words
