"""Weights of a stranger beside ours: whatever their bytes, shapes and values are, there is a verdict and no crash."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import disguises
from disguises import Tensors
from families import BASE, HONEST, INSTRUCT, SHAPES, save
from prill.checkpoint.lineage import References, compare, references
from prill.checkpoint.ranks import ranks
from prill.checkpoint.rule import decide
from prill.checkpoint.table import figures, lines

SMOKE = Path(__file__).parents[1] / "src" / "prill" / "smoke"


@pytest.fixture(scope="module")
def against(tmp_path_factory: pytest.TempPathFactory) -> References:
    """The family's base and sibling."""
    top = tmp_path_factory.mktemp("ours")
    return references(save(top / "base", BASE), {"chat": save(top / "chat", INSTRUCT)}, seed=1)


def judged(folder: Path, against: References, *, whole: bool = True) -> str:
    """The word for a folder; its figures must be storable and printable."""
    measured = compare(folder, against, whole=whole)
    assert "NaN" not in json.dumps(figures(measured)) and list(lines(measured)) is not None
    return decide(measured).word


def sharded(folder: Path, tensors: Tensors, dtype: str = "BF16") -> Path:
    """The same in two files with an index."""
    names = sorted(tensors)
    places = {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        save(folder / "made", {name: tensors[name] for name in part}, dtype)
        file = f"model-0000{number}-of-00002.safetensors"
        (folder / "made" / "model.safetensors").rename(folder / file)
        places |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return folder


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_shards_of_every_dtype_are_read(tmp_path: Path, against: References, dtype: str) -> None:
    """Two shards of any floating-point type give the verdict of one file, and a digest for each."""
    folder = sharded(tmp_path, HONEST, dtype)
    measured = compare(folder, against, whole=True)
    assert decide(measured).word == "descends from base" and len(measured.digests) == 2
    assert decide(compare(sharded(tmp_path, INSTRUCT, dtype), against, whole=True)).word == "copy of instruct"


def emptied(folder: Path) -> None:
    """A shard of no bytes."""
    (folder / "model-00002-of-00002.safetensors").write_bytes(b"")


def removed(folder: Path) -> None:
    """An index that names what is not there."""
    (folder / "model-00002-of-00002.safetensors").unlink()


def giant(folder: Path) -> None:
    """A header that is said to take 2^60 bytes."""
    (folder / "model-00002-of-00002.safetensors").write_bytes((1 << 60).to_bytes(8, "little") + b"{")


def cut(folder: Path) -> None:
    """A file that ends too early."""
    file = folder / "model-00002-of-00002.safetensors"
    os.truncate(file, file.stat().st_size - 1)


def forty_gigabytes(folder: Path) -> None:
    """A sparse file of 40 GB behind a header that does not claim it."""
    os.truncate(folder / "model-00002-of-00002.safetensors", 40 << 30)


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (emptied, "HEADER_INCOMPLETE"),
        (removed, "SHARD_MISSING"),
        (giant, "HEADER_INCOMPLETE"),
        (cut, "FILE_TRUNCATED"),
        (forty_gigabytes, "FILE_TRAILING_BYTES"),
    ],
)
def test_a_damaged_shard_is_named_by_its_code(tmp_path: Path, against: References, harm: Any, code: str) -> None:
    """A shard that cannot be read leaves the lineage for review, with the audit's code, and costs nothing."""
    folder = sharded(tmp_path, HONEST)
    harm(folder)
    verdict = decide(compare(folder, against, whole=True))
    assert verdict.word == "review" and code in verdict.why
    assert ranks(folder, save(tmp_path / "base", BASE)).unread.startswith(code)


def test_a_sparse_matrix_of_forty_gigabytes_is_sampled(tmp_path: Path, against: References) -> None:
    """A matrix of 40 GB of holes under a name of the base's is another shape, and is not read to say so."""
    folder = save(tmp_path, HONEST)
    header = {
        "model.embed_tokens.weight": {"dtype": "BF16", "shape": [312_500_000, 64], "data_offsets": [0, 40 * 10**9]}
    }
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    os.truncate(folder / "model.safetensors", 8 + len(text) + 40 * 10**9)
    assert judged(folder, against, whole=False) == "not shown to descend"


VALUES = st.sampled_from([0.0, np.nan, np.inf, -np.inf, 3e38, 1e-40, 1.0])


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_no_values_or_shapes_raise(against: References, data: st.DataObject) -> None:
    """Matrices of any shape and dtype, with values that are no numbers, give a verdict and storable figures."""
    tensors = dict(data.draw(st.sampled_from([HONEST, INSTRUCT, BASE])))
    for name in data.draw(st.lists(st.sampled_from(sorted(SHAPES)), max_size=4)):
        shape = data.draw(st.sampled_from([SHAPES[name], (3, 5), (64,), (1, 64), (300, 64), (2, 3, 4)]))
        tensors[name] = np.full(shape, data.draw(VALUES), np.float32)
    with tempfile.TemporaryDirectory() as place, np.errstate(all="ignore"):
        folder = save(Path(place), tensors, data.draw(st.sampled_from(["BF16", "F16", "F32"])))
        assert judged(folder, against)


@settings(max_examples=4, deadline=None)
@given(st.data())
def test_no_values_raise_where_a_disguise_is_looked_for(data: st.DataObject) -> None:
    """A model of known layout with undefined, endless or equal numbers is looked at for disguises without a crash."""
    tensors = dict(disguises.load(SMOKE / "base"))
    for name in data.draw(st.lists(st.sampled_from(sorted(tensors)), min_size=1, max_size=5)):
        tensors[name] = np.full_like(tensors[name], data.draw(VALUES))
    with tempfile.TemporaryDirectory() as place, np.errstate(all="ignore"):
        folder = disguises.save_config(save(Path(place), tensors), 448)
        assert judged(folder, references(SMOKE / "base", {}, seed=1), whole=False)
