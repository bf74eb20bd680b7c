"""Planning and the prompt: each cell once, every decision in the spec, the agent's words filled in."""

import pytest
from msgspec.structs import replace

from prill.catalog import Catalog
from prill.decisions import changed, decisions, key
from prill.plan import plan
from prill.prompt import checks, hours_in_words, render
from prill.run import expected
from prill.spec import Changes, RunSpec
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


def test_the_prompt_names_the_self_check_only_where_one_is_granted() -> None:
    """A suite without self-checks says nothing of them; one that grants them says how often."""
    assert checks(0) == ""
    assert "; once, then no more" in checks(1) and "; 3 times, then no more" in checks(3)


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


def test_a_suite_may_change_a_benchmark() -> None:
    """What a suite changes is merged into the benchmark, decides runs apart, and what it leaves out stays."""
    by = Changes(seeds=(1, 2), seeds_if_greedy=(1,), marking={"official": "x"})
    test = replace(BENCHMARK, marking={"reading": "integer"})
    made = changed(test, by)
    assert (made.seeds, made.seeds_if_greedy) == ((1, 2), (1,))
    assert made.marking == {"reading": "integer", "official": "x"}
    assert made.prompt == test.prompt
    assert changed(test, None) == test
    assert decisions(replace(SPEC, benchmarks=(made,))) != decisions(replace(SPEC, benchmarks=(test,)))


def test_posttrainbench_1_2_asks_as_published() -> None:
    """Version 1.2 asks with five seeds and marks numbers exactly; version 1 asks once, unseeded, as it did."""
    catalog = Catalog()
    new, old = (expected(catalog, catalog.suite(f"posttrainbench-{v}"), ["base-only"], [0]) for v in ("1.2", "1"))
    asked = {spec.benchmarks[0].name: spec.benchmarks[0] for spec in new}
    assert asked["gsm8k"].seeds == (72332, 87681, 38992, 92201, 13818)
    assert asked["gsm8k"].seeds_if_greedy == (72332,)
    assert asked["gsm8k"].marking["official"] == "posttrainbench-1.2-gsm8k"
    assert (len(asked["gpqamain"].seeds), asked["gpqamain"].seeds_if_greedy) == (5, None)
    assert asked["healthbench"].seeds == (72332,)
    before = {spec.benchmarks[0].name: spec.benchmarks[0] for spec in old}
    assert (before["gsm8k"].seeds, before["gsm8k"].marking["official"]) == ((None,), "inspect-0.3.150")
