"""Fingerprints: what they know of siblings and control runs without them, and that a stranger's file can do nothing."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import disguises
from families import BASE, COMMON, DELTA, HONEST, INSTRUCT, Tensors, add, draw, save
from prill.check import faults
from prill.checkpoint import fingerprint
from prill.checkpoint.controls import partial
from prill.checkpoint.lineage import References, compare, references
from prill.checkpoint.rule import decide
from prill.checkpoint.values import Plan
from prill.errors import DefinitionError, InfraError
from prill.folder import file_digest
from prill.judges.lineage import plugin
from prill.spec import Fingerprint
from test_lineage import evidence

PLAN = Plan(seed=3, side=64, whole=6144)
SMOKE = Path(__file__).parents[1] / "src" / "prill" / "smoke"


def control(number: int) -> Tensors:
    """An honest run, as controls are."""
    return add((1, BASE), (0.5 + 0.1 * number, COMMON), (1, draw(20 + number, 0.001)))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the family's models, and `known.safetensors`, which knows the sibling and four controls."""
    top = tmp_path_factory.mktemp("kept")
    save(top / "base", BASE)
    models: dict[str, Any] = {"chat": ("instruct", save(top / "chat", INSTRUCT))}
    models |= {f"run {n}": ("control", save(top / f"run-{n}", control(n))) for n in range(4)}
    fingerprint.make(top / "known.safetensors", top / "base", models, PLAN)
    return top


def word(kept: Path, tensors: Tensors, against: References) -> str:
    """The verdict on weights."""
    return decide(compare(save(kept / "submission", tensors), against)).word


def test_a_fingerprint_tells_what_the_models_would(kept: Path) -> None:
    """Without any model at hand a fingerprint gives the verdicts that base, sibling and controls give as folders."""
    file = kept / "known.safetensors"
    runs = {f"run {n}": kept / f"run-{n}" for n in range(4)}
    alone, beside = references(None, {}, fingerprints=[file]), references(kept / "base", {}, fingerprints=[file])
    folders = references(kept / "base", {"chat": kept / "chat"}, controls=runs)
    for tensors, wanted in (
        (HONEST, "descends from base"),
        (BASE, "copy of base"),
        (INSTRUCT, "copy of instruct"),
        (add((1, BASE), (0.3, DELTA)), "contains instruct"),
        (add((1, HONEST), (0.05, DELTA)), "contains instruct"),
        (add((1, INSTRUCT), (1, draw(5, 0.003))), "from instruct"),
        (draw(77, 0.05), "not shown to descend"),
    ):
        assert [word(kept, tensors, against) for against in (alone, beside, folders)] == [wanted] * 3


def test_controls_tell_a_small_merge_from_common_training(kept: Path) -> None:
    """A 5 % merge on top of training is found beside controls, with its share, and missed without them."""
    merged = save(kept / "merged", add((1, HONEST), (0.05, DELTA)))
    without = references(kept / "base", {"chat": kept / "chat"})
    beside = references(kept / "base", {"chat": kept / "chat"}, fingerprints=[kept / "known.safetensors"])
    assert decide(compare(merged, without)).word == "descends from base"
    measured = compare(merged, beside, whole=True)
    (like,) = measured.likenesses
    assert like.controls == 4 and len(like.rows) == 13  # of the folder, although the controls know only its places
    verdict = decide(measured)
    assert verdict.word == "contains instruct" and verdict.share == pytest.approx(0.05, abs=0.02)


def test_the_sibling_s_own_coefficient_is_one() -> None:
    """Least squares give a model's own difference the coefficient one, whatever the controls are, and nothing zero."""
    rng = np.random.default_rng(0)
    own, *others = rng.standard_normal((5, 40, 30)).astype(np.float32)
    assert partial(own, own, others) == pytest.approx(1.0)
    assert partial(0.3 * own + 2 * others[1], own, others) == pytest.approx(0.3)
    assert partial(others[0], own * 0, others) == 0.0


def test_a_disguised_copy_is_found_by_fingerprint(tmp_path: Path) -> None:
    """A sibling that was permuted, rescaled or rotated is found where the base is at hand and the sibling is not."""
    models: dict[str, Any] = {"chat": ("instruct", SMOKE / "instruct")}
    fingerprint.make(tmp_path / "f.safetensors", SMOKE / "base", models, Plan(side=64, whole=4096))
    against = references(SMOKE / "base", {}, fingerprints=[tmp_path / "f.safetensors"])
    instruct = disguises.load(SMOKE / "instruct")
    for change in (disguises.permuted, disguises.rescaled, disguises.turned_values):
        folder = disguises.save_config(save(tmp_path / "s", change(instruct)), 448)
        measured = compare(folder, against)
        assert measured.undone and decide(measured).word in ("from instruct", "copy of instruct")


def test_what_was_not_float_sixteen_is_kept_nearly(tmp_path: Path) -> None:
    """Of a float32 model the differences are kept to a thousandth of the largest, and a longer embedding is cut."""
    longer = np.concatenate([HONEST["model.embed_tokens.weight"], np.ones((9, 64), np.float32)])
    run = save(tmp_path / "run", HONEST | {"model.embed_tokens.weight": longer}, "F32")
    base = save(tmp_path / "base", BASE, "F32")
    fingerprint.make(tmp_path / "f.safetensors", base, {"run": ("control", run)}, PLAN)
    against = references(base, {"run": run}, fingerprints=[tmp_path / "f.safetensors"])
    (print,) = [each for each in against.known if each.plan]
    assert len(print.source.shapes) == 13
    (like,) = compare(run, references(base, {"run": run}, fingerprints=[tmp_path / "f.safetensors"])).likenesses
    assert like.partial is not None and min(like.partial.values()) > 0.49  # the run and its own sample share it


def test_a_fingerprint_of_another_base_is_refused(kept: Path, tmp_path: Path) -> None:
    """A file that was made from another base, or beside one that was, is a `DefinitionError`."""
    save(tmp_path / "other", draw(9, 0.05))
    fingerprint.make(tmp_path / "o.safetensors", tmp_path / "other", {"x": ("control", tmp_path / "other")}, PLAN)
    known = kept / "known.safetensors"
    with pytest.raises(DefinitionError, match="another base"):
        references(kept / "base", {}, fingerprints=[tmp_path / "o.safetensors"])
    with pytest.raises(DefinitionError, match="another base"):
        references(None, {}, fingerprints=[known, tmp_path / "o.safetensors"])
    with pytest.raises(DefinitionError, match="base is a folder too"):
        references(None, {"chat": kept / "chat"}, fingerprints=[known])
    with pytest.raises(DefinitionError, match="nothing to compare"):
        references(None, {})


def test_a_model_that_cannot_be_read_is_not_fingerprinted(kept: Path, tmp_path: Path) -> None:
    """A damaged model raises `InfraError`, and no file is left."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(InfraError, match="not readable"):
        fingerprint.make(tmp_path / "f", kept / "base", {"x": ("control", tmp_path / "empty")}, PLAN)
    assert not (tmp_path / "f").exists()


def described(file: Path, change: Callable[[dict[str, Any]], None]) -> bytes:
    """A file with another description."""
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    head = json.loads(header["__metadata__"]["prill"])
    change(head)
    header["__metadata__"]["prill"] = json.dumps(head)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head.update(schema="prill/fingerprint/9"),
        lambda head: head["plan"].update(side=1 << 40),
        lambda head: head["plan"].update(whole=1 << 60),
        lambda head: head["plan"].update(side=63),
        lambda head: head["shapes"].update({"embed_tokens.weight": [1 << 50, 64]}),
        lambda head: head["shapes"].update({"embed_tokens.weight": [-1, 64]}),
        lambda head: head["shapes"].pop("embed_tokens.weight"),
        lambda head: head.update(members=head["members"] * 30),
        lambda head: head["members"].pop(),
        lambda head: head["members"][0].update(scales={"embed_tokens.weight": 1.0}),
        lambda head: head["members"][1].update(kind="friend"),
        lambda head: head.update(extra=1),
    ],
)
def test_no_description_of_a_fingerprint_is_believed(kept: Path, tmp_path: Path, change: Any) -> None:
    """A description that does not fit the bytes, or asks for more than is allowed, is a `DefinitionError`."""
    (tmp_path / "f").write_bytes(described(kept / "known.safetensors", change))
    with pytest.raises(DefinitionError, match="make it with `prill fingerprint`"):
        fingerprint.load(tmp_path / "f")


def test_a_sparse_giant_is_no_fingerprint(tmp_path: Path) -> None:
    """A file of 40 GB of nothing, and a header that claims 2^60 bytes, are refused without being read."""
    for length in (1 << 60, 1 << 20):
        file = tmp_path / "f"
        file.write_bytes(length.to_bytes(8, "little"))
        os.truncate(file, 40 << 30)
        with pytest.raises(DefinitionError, match="no fingerprint"):
            fingerprint.load(file)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_bytes_that_were_changed_are_refused_or_read(kept: Path, data: st.DataObject) -> None:
    """A fingerprint with changed or cut bytes is refused with a reason or gives a verdict; nothing else happens."""
    whole = bytearray((kept / "known.safetensors").read_bytes())
    header = int.from_bytes(whole[:8], "little") + 8
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, header + 100))] = data.draw(st.integers(0, 255))
    sent = bytes(whole)[: data.draw(st.sampled_from([len(whole), len(whole) - 1, header, 9, 0]))]
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "f").write_bytes(sent)
        try:
            against = references(kept / "base", {}, fingerprints=[Path(place) / "f"])
        except DefinitionError:
            return
        assert decide(compare(kept / "chat", against)).word


def test_the_judge_holds_a_fingerprint_to_its_pin(tmp_path: Path, kept: Path) -> None:
    """The judge takes a sibling from a pinned fingerprint, and raises `InfraError` where the file is another."""
    given = evidence(tmp_path, INSTRUCT)
    file = kept / "known.safetensors"
    for digest, fails in (("sha256:" + file_sha(file), False), ("sha256:" + "0" * 64, True)):
        pinned = Fingerprint(path="f.safetensors", digest=digest)
        spec = replace(given.run.spec, model=replace(given.run.spec.model, fingerprints=(pinned,)))
        changed = replace(given, run=replace(given.run, spec=spec), siblings={}, fingerprints={"f.safetensors": file})
        if fails:
            with pytest.raises(InfraError, match="pinned"):
                plugin(changed)
            continue
        (finding,) = plugin(changed)
        assert (finding.verdict, finding.numbers["lineage"]) == ("broken", "copy of instruct")
        assert finding.numbers["siblings_absent"] == [] and finding.numbers["siblings"]["chat"]["controls"] == 4


def test_a_pin_that_does_not_hold_is_found_by_the_check(tmp_path: Path) -> None:
    """`prill check` tells a fingerprint whose digest is not the pinned one, and the package's own holds."""
    own = (SMOKE.parent / "definitions" / "models" / "smoke-base.toml").read_text()
    pin = "sha256:" + file_sha(SMOKE / "controls.safetensors")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "smoke-base.toml").write_text(own)
    assert pin in own and not [line for line in faults([tmp_path]) if "controls" in line]
    (tmp_path / "models" / "smoke-base.toml").write_text(own.replace(pin, "sha256:" + "0" * 64))
    assert any("smoke/controls.safetensors has digest" in line for line in faults([tmp_path]))


def file_sha(file: Path) -> str:
    """Its digest."""
    return file_digest(file)
