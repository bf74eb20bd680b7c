"""A small part of the lineage zoo: runs that are trained here, from the smoke world's base and from its sibling."""

from collections.abc import Callable
from pathlib import Path

import pytest

import zoo
import zoo_cases
import zoo_family
from disguises import Tensors, load, merged, permuted, save_config
from families import save
from prill.checkpoint.lineage import References, compare, references
from prill.checkpoint.rule import Verdict, decide
from prill.smoke.controls import CONTROLS, Recipe, train

SMOKE = Path(__file__).parents[1] / "src" / "prill" / "smoke"
RECIPE = Recipe("offered", 12, 1e-3, seed=3)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run from the base."""
    return train(SMOKE / "base", RECIPE, tmp_path_factory.mktemp("zoo") / "honest")


@pytest.fixture(scope="module")
def beside() -> References:
    """Base, sibling and the control runs of the package."""
    prints = [SMOKE / "controls.safetensors"]
    return references(SMOKE / "base", {"instruct": SMOKE / "instruct"}, fingerprints=prints, seed=2)


def verdict(folder: Path, tensors: Tensors, against: References) -> Verdict:
    """What is said of weights."""
    return decide(compare(save_config(save(folder, tensors), 448), against, whole=True))


def test_a_run_from_the_base_is_honest(honest: Path, beside: References) -> None:
    """A short honest run descends from the base, beside the package's control runs and without them."""
    alone = references(SMOKE / "base", {"instruct": SMOKE / "instruct"})
    for against in (beside, alone):
        assert decide(compare(honest, against, whole=True)).word == "descends from base"


@pytest.mark.parametrize("rank", [0, 4])
def test_a_run_from_the_sibling_is_found(tmp_path: Path, beside: References, rank: int) -> None:
    """A short run from the sibling, of all weights or of adapters that are merged, is from the sibling."""
    recipe = Recipe("offered", 6, 3e-4, rank=rank, seed=4)
    assert (
        decide(compare(train(SMOKE / "instruct", recipe, tmp_path / "s"), beside, whole=True)).word == "from instruct"
    )


@pytest.mark.parametrize("change", [lambda tensors: tensors, permuted], ids=["plain", "permuted"])
def test_five_percent_on_a_run_is_found(
    tmp_path: Path, honest: Path, beside: References, change: Callable[[Tensors], Tensors]
) -> None:
    """A run with 5 % of the sibling on top contains it, also in another order; the share is told."""
    base, instruct = load(SMOKE / "base"), load(SMOKE / "instruct")
    found = verdict(tmp_path, change(zoo_cases.added(load(honest), base, instruct, 0.05)), beside)
    assert found.word == "contains instruct" and found.share == pytest.approx(0.05, abs=0.02)
    assert verdict(tmp_path, change(load(honest)), beside).word == "descends from base"


def test_the_page_names_what_is_wrong(tmp_path: Path, honest: Path, beside: References) -> None:
    """The zoo's page has a row for each case, and names those whose verdict is not one that they may get."""
    base, instruct = load(SMOKE / "base"), load(SMOKE / "instruct")
    folders = {"right": honest, "wrong": save(tmp_path / "x", merged(base, instruct, 0.3))}
    seen = []
    for name, folder in folders.items():
        measured = compare(folder, beside)
        case = zoo_cases.Case(name, "honest", lambda to: to)
        seen.append(zoo.Seen(case, measured, decide(measured), decide(measured)))
    text = zoo.page({0: seen, 5: seen})
    assert text.count("Wrong: wrong") == 2 and text.count("\n| ") == 2 * (2 + len(folders))
    assert "honest: 1 of 2 accused" in text and "**contains instruct**" in text


def test_another_seed_changes_every_recipe() -> None:
    """A held-out family shares no seed of data with the first, trains otherwise, and plants no less than is claimed."""
    first, other = zoo_family.family(0), zoo_family.family(7)
    for one, two in zip(
        (first.first, first.second, first.third), (other.first, other.second, other.third), strict=True
    ):
        assert one.keys() == two.keys()
        assert all(one[name].seed != two[name].seed and one[name] != two[name] for name in one)
    assert other == zoo_family.family(7) and 1.0 <= other.strength <= 1.5
    same = [other.second[name] for name in ("instruct", "the sibling's recipe and data, other order")]
    assert len({(each.seed, each.steps, each.rate, each.rows) for each in same}) == 1 and same[0].order != same[1].order


def test_the_controls_are_those_of_the_recipes(beside: References) -> None:
    """The package's fingerprint holds exactly the control runs that its program trains."""
    assert {each.name for each in beside.known if each.kind == "control"} == set(CONTROLS)
