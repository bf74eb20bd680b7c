"""The lineage test on a made-up family: a base, its sibling, honest fine-tunes, and what cheats do with the sibling."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import samples
from families import BASE, COMMON, DELTA, HONEST, INSTRUCT, SHAPES, Tensors, add, draw, save
from prill.checkpoint import lineage, rule
from prill.checkpoint.distances import directions
from prill.checkpoint.lineage import Likeness, Measured, compare, references
from prill.checkpoint.rule import decide
from prill.checkpoint.table import figures
from prill.checkpoint.values import WHOLE, Plan, bfloat_bits, fold, pick, widen
from prill.errors import InfraError
from prill.folder import file_digest, list_files
from prill.judges.lineage import plugin
from prill.record import File
from prill.sockets import Evidence
from prill.spec import Sibling


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Measured]:
    """Compares tensors with the base and the sibling."""
    top = tmp_path_factory.mktemp("family")
    base, instruct = save(top / "base", BASE), save(top / "instruct", INSTRUCT)
    count = iter(range(1000))

    def measured(tensors: Tensors, dtype: str = "BF16", absent: tuple[str, ...] = (), **options: Any) -> Measured:
        submission = save(top / str(next(count)), tensors, dtype)
        return compare(submission, references(base, {"chat": instruct}, seed=7, **options), absent=absent)

    return measured


Family = Callable[..., Measured]


def noised(share: float) -> Tensors:
    """The sibling with noise of that share of its weights' size."""
    return add((1, INSTRUCT), (share, draw(9, 0.05)))


def test_an_honest_fine_tune_descends_from_the_base(family: Family) -> None:
    """A run that shares the common directions of training with the sibling is said to descend from the base."""
    verdict = decide(family(HONEST))
    assert verdict.word == "descends from base" and verdict.of is None
    assert 0.02 < figures(family(HONEST))["siblings"]["chat"]["alpha"] < rule.ORDINARY


@pytest.mark.parametrize("dtype", ["BF16", "F32"])
def test_a_copy_of_the_base_is_named(family: Family, dtype: str) -> None:
    """The base's weights are a copy of the base in any dtype that holds them."""
    assert decide(family(BASE, dtype)).word == "copy of base"


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_a_copy_of_the_sibling_is_found(family: Family, dtype: str) -> None:
    """The sibling's weights are from the sibling in any dtype that holds them."""
    verdict = decide(family(INSTRUCT, dtype))
    assert (verdict.word, verdict.of, verdict.share) == ("copy of instruct", "chat", 1.0)


@pytest.mark.parametrize("share", [0.001, 0.01, 0.05])
def test_noise_does_not_hide_the_sibling(family: Family, share: float) -> None:
    """The sibling with noise on every weight is from the sibling."""
    assert decide(family(noised(share))).word == "from instruct"


def test_further_training_does_not_hide_the_sibling(family: Family) -> None:
    """The sibling trained on is from the sibling."""
    assert decide(family(add((1, INSTRUCT), (0.3, COMMON), (1, draw(5, 0.001))))).word == "from instruct"


def test_rounding_to_four_bits_does_not_hide_the_sibling(family: Family) -> None:
    """The sibling after a round trip through four-bit numbers is from the sibling, and the base is not."""

    def rough(tensors: Tensors) -> Tensors:
        found = {}
        for name, values in tensors.items():
            step = np.abs(values).max(axis=-1, keepdims=True) / 7
            found[name] = (np.round(values / step) * step).astype(np.float32)
        return found

    assert decide(family(rough(INSTRUCT))).word == "from instruct"
    assert decide(family(rough(BASE))).word == "descends from base"


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.5, 0.9, -0.3])
def test_a_merge_is_found_with_its_share(family: Family, share: float) -> None:
    """A weighted sum of base and sibling contains the sibling, with the weight as the share."""
    verdict = decide(family(add((1, BASE), (share, DELTA))))
    assert verdict.word == "contains instruct" and verdict.share == pytest.approx(share, abs=0.01)


def test_single_tensors_of_the_sibling_are_found(family: Family) -> None:
    """A base with a few of the sibling's tensors contains the sibling, although the median tensor is the base's."""
    mixed = {name: (INSTRUCT if "layers.1." in name else BASE)[name] for name in SHAPES}
    verdict = decide(family(mixed))
    assert verdict.word == "contains instruct"
    assert verdict.share == pytest.approx(3 * 96 * 64 / (12 * 96 * 64 + 200 * 64))


def test_another_model_fails_closed(family: Family) -> None:
    """A model from another seed is not shown to descend from the base."""
    assert decide(family(draw(77, 0.05))).word == "not shown to descend"


def test_one_foreign_tensor_fails_closed(family: Family) -> None:
    """A base with one matrix of another model is not shown to descend from the base."""
    name = "model.layers.2.mlp.up_proj.weight"
    assert decide(family(BASE | {name: draw(77, 0.05)[name]})).word == "not shown to descend"


def test_missing_extra_and_reshaped_tensors_fail_closed(family: Family) -> None:
    """A submission whose matrices are not the base's, by name or shape, is not shown to descend."""
    name = "model.layers.2.mlp.up_proj.weight"
    without = {key: values for key, values in BASE.items() if key != name}
    for tensors in (without, BASE | {"model.layers.9.x.weight": BASE[name]}, BASE | {name: BASE[name].T.copy()}):
        assert decide(family(tensors)).word == "not shown to descend"


def test_names_of_other_versions_and_new_tokens_are_let_through(family: Family) -> None:
    """A longer embedding, a written-out tied head and another prefix of the names are no other model."""
    longer = np.concatenate([HONEST["model.embed_tokens.weight"], np.zeros((8, 64), np.float32)])
    renamed = {name.replace("model.", "language_model.model.", 1): values for name, values in HONEST.items()}
    for tensors in (HONEST | {"model.embed_tokens.weight": longer, "lm_head.weight": longer}, renamed):
        assert decide(family(tensors)).word == "descends from base"
    assert fold("model.language_model.layers.0.x") == fold("language_model.model.layers.0.x") == "layers.0.x"


def test_values_that_are_no_numbers_fail_closed(family: Family) -> None:
    """A submission with undefined weights is not shown to descend, and its figures stay finite or absent."""
    broken = {name: np.full_like(values, np.nan) for name, values in BASE.items()}
    measured = family(broken)
    assert decide(measured).word == "not shown to descend"
    assert "NaN" not in json.dumps(figures(measured), allow_nan=True)


def test_what_cannot_be_read_is_left_to_a_person(family: Family) -> None:
    """Packed weights are for review, and no weights at all are for review with the reason."""
    packed = {name: np.ones(shape, np.int8) for name, shape in SHAPES.items()}
    verdict = decide(family(packed, "I8"))
    assert verdict.word == "review" and "floating-point" in verdict.why


def test_an_absent_sibling_is_never_innocence(family: Family) -> None:
    """Where a known sibling is not at hand, an honest run is for review and a copy of the base is not."""
    assert decide(family(HONEST, absent=("other",))).word == "review"
    assert decide(family(BASE, absent=("other",))).word == "copy of base"


def test_a_reference_that_cannot_be_read_is_ours(tmp_path: Path) -> None:
    """A base or sibling that is damaged raises `InfraError`, whatever was submitted."""
    good = save(tmp_path / "good", BASE)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InfraError, match="not readable as a model"):
        references(tmp_path / "empty", {})
    with pytest.raises(InfraError):
        references(good, {"chat": tmp_path / "empty"})


def like(alphas: list[float], **changes: Any) -> Measured:
    """Measured values as one sibling's tensors gave them, close to the base."""
    settings = {"cosine": 0.5, "alpha_residual": 0.0, "cosine_residual": 0.0, "signs": 0.5, "equal": 0.0, "kin": 0.0}
    settings |= changes
    partial = settings.pop("partial", None)
    rows = tuple(lineage.ToSibling(tensor=str(i), count=10, alpha=a, **settings) for i, a in enumerate(alphas))
    near = {"count": 10, "seen": 10, "cosine": 0.95, "move": 0.1, "size": 1.0, "equal": 0.01}
    based = tuple(lineage.ToBase(tensor=str(i), **near) for i in range(len(alphas)))
    parts = None if partial is None else {str(i): part for i, part in enumerate(partial)}
    return Measured(rows=based, likenesses=(Likeness(name="chat", rows=rows, partial=parts),), missing=(), extra=())


@pytest.mark.parametrize(
    ("measured", "word"),
    [
        (like([0.08, 0.09, 0.07, 0.1]), "descends from base"),
        (like([0.3, 0.4, 0.35, 0.5]), "review"),
        (like([-0.3, -0.4, -0.35, -0.5]), "review"),
        (like([0.9, 0.93, 0.92, 0.95], cosine_residual=0.88, equal=0.03), "review"),
        (like([1.1, 1.16, 1.2, 1.3], cosine_residual=0.78), "review"),
        (like([1.0, 1.02, 1.03, 1.05], cosine_residual=0.96), "from instruct"),
        (like([1.0, 1.02, 1.05, 1.05], equal=0.2), "from instruct"),
        (like([1.0, 1.02, 1.05, 1.05]), "review"),
        (like([0.9, 0.93, 0.92, 0.95], partial=[0.05, 0.09, 0.05, 0.1]), "descends from base"),
        (like([0.9, 0.93, 0.92, 0.95], partial=[0.3, 0.2, 0.25, 0.3]), "review"),
        (like([0.9, 0.93, 0.92, 0.95], partial=[0.9, 1.0, 0.9, 1.0]), "from instruct"),
        (like([0.1, 0.12, 0.09, 0.1], partial=[0.05, 0.051, 0.05, 0.052]), "contains instruct"),
        (like([0.1, 0.12, 0.09, 0.1], partial=[0.05, 0.01, 0.09, 0.2]), "descends from base"),
        (like([0.1, 0.12, 0.09, 0.1], partial=[0.01, 0.01, 0.01, 0.01]), "descends from base"),
    ],
)
def test_the_rule_follows_its_table(measured: Measured, word: str) -> None:
    """Each region of the decision rule, without controls and beside them, gives its word."""
    assert decide(measured).word == word


def test_large_tensors_are_sampled_by_the_seed() -> None:
    """A large tensor is read at places that the seed and its name decide, and a small one whole."""
    rows, columns = 4096, 1024
    first, same, other = (pick("a", rows, columns, Plan(seed=seed)) for seed in (1, 1, 2))
    assert len(first.rows) * len(first.columns) < WHOLE
    assert (first.rows == same.rows).all() and not (first.rows == other.rows).all()
    assert first.rows.max() < rows and first.columns.max() < columns
    assert len(pick("a", 512, 512, Plan(seed=1)).rows) == 512


def test_leading_directions_are_those_of_the_whole_decomposition() -> None:
    """The randomised decomposition finds the singular values of a full one."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((90, 12)) @ rng.standard_normal((12, 70)) + 0.01 * rng.standard_normal((90, 70))
    values = directions(matrix.astype(np.float32))[1]
    assert values == pytest.approx(np.linalg.svd(matrix)[1][:8], rel=1e-3)


def test_bits_round_to_even_as_hardware_does() -> None:
    """Rounding to BF16 and widening agree with the definition on ties and neighbours."""
    values = np.array([[1.0, 1.00390625, 1.01171875, -3.140625]], np.float32)
    assert bfloat_bits(values, "F32").tolist() == [[0x3F80, 0x3F80, 0x3F82, 0xC049]]
    assert widen(bfloat_bits(values, "F32"), "BF16").tolist() == [[1.0, 1.0, 1.015625, -3.140625]]


def evidence(tmp_path: Path, submitted: Tensors | None) -> Evidence:
    """A run folder's evidence with that submission."""
    save(tmp_path / "base", BASE)
    save(tmp_path / "chat", INSTRUCT)
    submission = samples.submission("absent", "final_model is not there")
    if submitted is not None:
        save(tmp_path / "run/submission", submitted)
        files = (File(path="config.json", bytes=2, sha256="cd"), *list_files(tmp_path / "run/submission"))
        submission = replace(samples.submission(), files=files)
    model = replace(samples.MODEL, siblings=(Sibling(name="chat", digest="x", path="chat"),))
    run = samples.run(spec=replace(samples.SPEC, model=model), submission=submission)
    siblings = {"chat": tmp_path / "chat"}
    return Evidence(run=run, folder=tmp_path / "run", items={}, base=tmp_path / "base", siblings=siblings)


@pytest.mark.parametrize(
    ("submitted", "verdict", "lineage_word"),
    [
        (HONEST, "kept", "descends from base"),
        (BASE, "kept", "copy of base"),
        (INSTRUCT, "broken", "copy of instruct"),
        (add((1, BASE), (0.5, DELTA)), "broken", "contains instruct"),
        (draw(77, 0.05), "broken", "not shown to descend"),
    ],
)
def test_the_judge_speaks_once_with_figures_and_files(
    tmp_path: Path, submitted: Tensors, verdict: str, lineage_word: str
) -> None:
    """The judge gives one finding, with the verdict for its word, the figures, and the shard that it is about."""
    (finding,) = plugin(evidence(tmp_path, submitted))
    assert (finding.rule, finding.verdict, finding.numbers["lineage"]) == ("lineage", verdict, lineage_word)
    assert finding.why.startswith(lineage_word) and len(finding.numbers["rows"]) == 13
    sealed = file_digest(tmp_path / "run/submission/model.safetensors")
    assert [(cited.file, cited.sha256) for cited in finding.citations] == [("submission/model.safetensors", sealed)]


def test_another_file_than_the_sealed_one_is_not_judged(tmp_path: Path) -> None:
    """Weights that changed after they were sealed raise `InfraError`."""
    given = evidence(tmp_path, HONEST)
    save(tmp_path / "run/submission", BASE)
    with pytest.raises(InfraError, match="sealed"):
        plugin(given)


def test_without_a_submission_nothing_is_known(tmp_path: Path) -> None:
    """The judge says unknown and why where nothing was submitted."""
    (finding,) = plugin(evidence(tmp_path, None))
    assert (finding.verdict, finding.why) == ("unknown", "no submission: final_model is not there")
