"""The sweep over every element: its kernels against plain arithmetic, and its figures against those of the sample."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import astuple

from families import BASE, HONEST, INSTRUCT, bits, draw, save
from prill.checkpoint import sweep
from prill.checkpoint.lineage import compare, references
from prill.checkpoint.rule import decide
from prill.checkpoint.values import widen
from prill.folder import file_digest


def kernels() -> list[Any]:
    """What adds up one block: numpy, and the compiled loop where numba is installed."""
    return [kernel for kernel in (sweep.blocked(), sweep.fused()) if kernel]


@pytest.mark.parametrize("kernel", kernels())
def test_each_kernel_adds_up_what_plain_arithmetic_does(kernel: Any) -> None:
    """The sums over a block are those of float64 arithmetic."""
    s, b, x = (bits(draw(seed, 0.05)["model.layers.0.mlp.up_proj.weight"].ravel()) for seed in (1, 2, 3))
    s[:100] = b[:100]
    total = np.zeros(sweep.SUMS)
    kernel(s, b, x, total)
    wide = [widen(each, "BF16").astype(np.float64) for each in (s, b, x)]
    d, e = wide[0] - wide[1], wide[2] - wide[1]
    dots = [wide[1] @ wide[1], wide[1] @ d, d @ d, d @ e, e @ e]
    assert total == pytest.approx([*dots, (s == b).sum(), (s == x).sum()], rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_the_sweep_and_the_sample_agree(tmp_path: Path, dtype: str) -> None:
    """Over every element the figures are those of the sample, which here is every element too."""
    base, chat = save(tmp_path / "base", BASE), save(tmp_path / "chat", INSTRUCT)
    for number, tensors in enumerate((HONEST, INSTRUCT, BASE, draw(77, 0.05))):
        folder = save(tmp_path / str(number), tensors, dtype)
        against = references(base, {"chat": chat})
        sampled, swept = (compare(folder, against, whole=whole) for whole in (False, True))
        assert swept.digests and [row.seen for row in swept.rows] == [row.count for row in swept.rows]
        for one, two in ((sampled.rows, swept.rows), (sampled.likenesses[0].rows, swept.likenesses[0].rows)):
            for row, other in zip(one, two, strict=True):
                assert astuple(other)[1:] == pytest.approx(astuple(row)[1:], abs=2e-5)
        assert decide(swept).word == decide(sampled).word


def test_files_are_swept_in_pieces_and_hashed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces that end inside elements, a longer embedding and tensors of no counterpart change nothing in the sums."""
    longer = np.concatenate([HONEST["model.embed_tokens.weight"], np.ones((9, 64), np.float32)])
    tensors = HONEST | {"model.embed_tokens.weight": longer, "extra.weight": np.ones((3, 5), np.float32)}
    folder, base = save(tmp_path / "s", tensors), save(tmp_path / "b", BASE)
    against = references(base, {"chat": save(tmp_path / "i", INSTRUCT)})
    whole = compare(folder, against, whole=True)
    monkeypatch.setattr(sweep, "CHUNK", 4097)
    again = compare(folder, against, whole=True)
    assert again.digests == whole.digests == {"model.safetensors": file_digest(folder / "model.safetensors")}
    for row, other in zip(again.rows, whole.rows, strict=True):
        assert (row.equal, row.seen) == (other.equal, other.seen)
        assert row.cosine == pytest.approx(other.cosine) and row.move == pytest.approx(other.move)
