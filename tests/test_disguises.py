"""Copies in disguise: permuted, rescaled, rotated weights compute the same, and their lineage is found all the same."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import disguises
from disguises import DISGUISES, Tensors
from families import bits, save
from prill.checkpoint import align
from prill.checkpoint.fingerprint import opened
from prill.checkpoint.layout import heads, role
from prill.checkpoint.lineage import compare, references
from prill.checkpoint.rule import decide
from prill.checkpoint.values import widen

SMOKE = Path(__file__).parents[1] / "src" / "prill" / "smoke"
TOKENS = 448


@pytest.fixture(scope="module")
def base() -> Tensors:
    """The smoke world's base."""
    return disguises.load(SMOKE / "base")


@pytest.fixture(scope="module")
def instruct() -> Tensors:
    """Its instruct sibling."""
    return disguises.load(SMOKE / "instruct")


def verdict(folder: Path, tensors: Tensors, *, sibling: bool = True) -> tuple[str, tuple[str, ...]]:
    """The word for weights, and what was undone."""
    saved = disguises.save_config(save(folder, tensors), TOKENS)
    against = references(SMOKE / "base", {"chat": SMOKE / "instruct"} if sibling else {}, seed=4)
    measured = compare(saved, against)
    return decide(measured).word, measured.undone


def test_a_disguise_changes_nothing_that_a_model_says(tmp_path: Path, instruct: Tensors) -> None:
    """Each disguise gives the logits of the model under it: what is tested here is what cheats could do."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokens = torch.arange(3, 60)[None]

    def said(tensors: Tensors) -> np.ndarray:
        settings = transformers.AutoConfig.from_pretrained(SMOKE / "instruct")
        settings.tie_word_embeddings = "lm_head.weight" not in tensors
        model = transformers.AutoModelForCausalLM.from_config(settings, dtype=torch.float32)
        state = {name: torch.tensor(np.asarray(values, np.float32)) for name, values in tensors.items()}
        assert not model.load_state_dict(state, strict=False).unexpected_keys
        with torch.inference_mode():
            found: np.ndarray = model.eval()(tokens).logits.numpy()
        return found

    plain = said(instruct)
    for change in DISGUISES.values():
        assert np.abs(said(change(instruct)) - plain).max() < 1e-2


@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguised_sibling_is_found(tmp_path: Path, instruct: Tensors, name: str) -> None:
    """A disguised copy of the sibling is from the sibling, and it is said what was undone."""
    word, undone = verdict(tmp_path, DISGUISES[name](instruct))
    assert word in ("copy of instruct", "from instruct") and undone


@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguised_base_descends_from_the_base(tmp_path: Path, base: Tensors, name: str) -> None:
    """A disguised copy of the base is the base's, and is not held against its author."""
    word, undone = verdict(tmp_path, DISGUISES[name](base))
    assert word in ("copy of base", "descends from base") and undone


def test_a_merge_in_disguise_is_found(tmp_path: Path, base: Tensors, instruct: Tensors) -> None:
    """Half of the sibling, permuted, is contained in the submission; rescaled as well it is for review at the least."""
    half = disguises.merged(base, instruct, 0.5)
    assert verdict(tmp_path, disguises.permuted(half))[0] == "contains instruct"
    assert verdict(tmp_path, DISGUISES["permuted and rescaled"](half))[0] in ("contains instruct", "review")


def test_a_stranger_cannot_be_turned_into_the_base(tmp_path: Path, base: Tensors) -> None:
    """Another model of the same shape stays far from the base, whatever is undone."""
    rng = np.random.default_rng(0)
    stranger = {
        name: values if values.ndim == 1 else (values.std() * rng.standard_normal(values.shape)).astype(np.float32)
        for name, values in base.items()
    }
    assert verdict(tmp_path, stranger)[0] == "not shown to descend"
    swapped = base | {"model.layers.1.mlp.up_proj.weight": stranger["model.layers.1.mlp.up_proj.weight"]}
    assert verdict(tmp_path, swapped)[0] == "not shown to descend"


def test_a_longer_copy_of_a_matrix_is_no_fine_tune(tmp_path: Path, base: Tensors) -> None:
    """A matrix of twice its length, whose direction is the base's, is not shown to descend."""
    name = "model.layers.0.self_attn.q_proj.weight"
    assert verdict(tmp_path, base | {name: 2 * base[name]}, sibling=False)[0] == "not shown to descend"


@pytest.mark.parametrize("change", [lambda t: -t, lambda t: t * 3], ids=["signs", "scale"])
def test_signs_and_scale_of_the_stream_are_undone(
    tmp_path: Path, base: Tensors, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    """A residual stream with other signs, or at another scale, is seen as the base's."""
    found = dict(base)
    for name, values in base.items():
        if disguises.kind(name) in ("embed_tokens", *disguises.RESIDUAL_ROWS) or (
            values.ndim == 2 and change(np.ones(1))[0] < 0
        ):
            found[name] = change(values)
    word, undone = verdict(tmp_path, found, sibling=False)
    assert word in ("copy of base", "descends from base") and len(undone) == 1


def test_matching_takes_each_row_once() -> None:
    """Every row is given one partner of its own, also where two are alike, and rows that are no numbers do no harm."""
    rng = np.random.default_rng(0)
    theirs = rng.standard_normal((50, 20)).astype(np.float32)
    order = rng.permutation(50)
    ours = np.empty_like(theirs)
    ours[order] = theirs
    found, cosines = align.match(ours, theirs)
    assert (found == order).all() and cosines == pytest.approx(1.0)
    ours[3], ours[7] = np.nan, ours[8]
    assert sorted(align.match(ours, theirs)[0]) == list(range(50))


def test_a_layout_that_is_not_known_is_left_alone(tmp_path: Path, base: Tensors) -> None:
    """Without heads in the config, or with matrices of another kind, nothing is undone and nothing raises."""
    bare = save(tmp_path / "bare", base)
    assert align.find(opened(bare), opened(bare)) is None
    assert role("layers.0.experts.3.up_proj.weight") is None and role("visual.patch.weight") is None
    for wrong in ({}, {"num_attention_heads": True}, {"num_attention_heads": 4, "num_key_value_heads": 3}):
        assert heads(wrong) is None
    assert (widen(bits(base["model.norm.weight"]), "BF16") == base["model.norm.weight"]).all()
