"""Lineage of models that hold their sibling in some matrices only: layers, the embedding, a head of its own."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from families import BASE, DELTA, HONEST, INSTRUCT, SHAPES, Tensors, add, draw, save
from prill.checkpoint.distances import to_sibling
from prill.checkpoint.lineage import Measured, compare, references
from prill.checkpoint.rule import decide

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
HALF = ("layers.1.", "layers.2.")
Family = Callable[[Tensors], Measured]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Base, sibling, and eight honest runs as controls."""
    top = tmp_path_factory.mktemp("parts")
    save(top / "base", BASE)
    save(top / "instruct", INSTRUCT)
    for number in range(8):
        save(top / f"control{number}", add((1, HONEST), (1, draw(100 + number, 0.004))))
    return top


@pytest.fixture(scope="module")
def family(folders: Path) -> Family:
    """Compares tensors with base and sibling, without controls."""
    return measuring(folders, 0)


@pytest.fixture(scope="module")
def beside(folders: Path) -> Family:
    """The same beside controls."""
    return measuring(folders, 8)


def measuring(folders: Path, controls: int) -> Family:
    """A function that saves tensors and measures them."""
    beside = {str(number): folders / f"control{number}" for number in range(controls)}
    against = references(folders / "base", {"chat": folders / "instruct"}, controls=beside)

    def measured(tensors: Tensors) -> Measured:
        return compare(save(folders / "submission", tensors), against, whole=True)

    return measured


def inside(one: Tensors, other: Tensors, parts: tuple[str, ...]) -> Tensors:
    """One model with some tensors of another."""
    return {name: (other if any(part in name for part in parts) else one)[name] for name in SHAPES}


@pytest.mark.parametrize("parts", [HALF, ("layers.3.mlp.up",), ("embed",)], ids=["half", "a matrix", "embedding"])
@pytest.mark.parametrize("share", [0.1, 0.3, -0.3])
def test_a_merge_of_some_matrices_is_found(family: Family, parts: tuple[str, ...], share: float) -> None:
    """The sibling merged into some matrices of the base is contained, with its share, without any controls."""
    verdict = decide(family(inside(BASE, add((1, BASE), (share, DELTA)), parts)))
    assert verdict.word == "contains instruct" and verdict.share == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_a_merge_into_layers_of_a_run_is_found_beside_controls(beside: Family, share: float) -> None:
    """A tenth of the sibling in half of an honest run's layers stands out of the other layers; the run itself not."""
    run = add((1, HONEST), (1, draw(50, 0.004)))
    verdict = decide(beside(inside(run, add((1, run), (share, DELTA)), HALF)))
    assert verdict.word == "contains instruct" and verdict.share == pytest.approx(share, abs=0.03)
    assert decide(beside(run)).word == "descends from base"


def test_a_stranger_holds_no_part_of_the_sibling(beside: Family) -> None:
    """Matrices of another model are alike to the sibling's by chance, and more so where they are large."""
    verdicts = {decide(beside(draw(seed, 0.2))).word for seed in range(70, 76)}
    assert verdicts == {"not shown to descend"}


def test_less_of_the_sibling_is_found_beside_controls(beside: Family) -> None:
    """A run from which part of the sibling's difference was taken away was made with the sibling."""
    run = add((1, HONEST), (1, draw(50, 0.004)))
    verdict = decide(beside(add((1, run), (-0.2, DELTA))))
    assert verdict.word == "contains instruct" and verdict.share == pytest.approx(-0.2, abs=0.03)


def test_weight_decay_alike_is_no_merge() -> None:
    """Where sibling and run shrank a matrix and hardly trained it, the rest of their ways has nothing in common."""
    base = BASE[EMBEDDING]
    run, sibling = (-decay * base + draw(seed, 0.0002)[EMBEDDING] for decay, seed in ((0.01, 8), (0.05, 9)))
    row = to_sibling("x", base.size, base, run, sibling, 0.0, 0.0)
    assert row is not None and row.cosine > 0.9 and abs(row.cosine_residual) < 0.1


@pytest.mark.parametrize(
    ("head", "word"),
    [
        (INSTRUCT[EMBEDDING], "contains instruct"),
        (draw(77, 0.05)[EMBEDDING], "not shown to descend"),
        (HONEST[EMBEDDING], "descends from base"),
        (np.concatenate([BASE[EMBEDDING], np.zeros((8, 64), np.float32)]), "descends from base"),
    ],
    ids=["the sibling's", "nobody's", "a trained one", "more tokens"],
)
def test_a_head_that_is_written_out_is_compared_with_the_embedding(family: Family, head: np.ndarray, word: str) -> None:
    """A base that ties head and embedding knows what a head of a submission's own should be like."""
    assert decide(family(HONEST | {HEAD: head})).word == word
