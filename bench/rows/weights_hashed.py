"""Digest and comparison of every weight on one read, beside the digest alone."""

from pathlib import Path
from tempfile import TemporaryDirectory

from bench import weights_made
from bench.paired import paired
from bench.row import Row

GOAL = 2.2
SHAPES = {f"model.layers.{n}.mlp.up_proj.weight": (4096, 2048) for n in range(6)}


def measure() -> Row:
    """CPU seconds of the sweep with a base and a sibling, beside `hashlib` over the same file."""
    from prill.checkpoint.sweep import fused, sweep
    from prill.checkpoint.values import open_weights
    from prill.folder import file_digest

    kind = "numba" if fused() else "numpy, which alone cannot reach the goal"
    with TemporaryDirectory(prefix="prill-bench-") as place:
        folder, base, known = weights_made.family(Path(place), SHAPES)
        ours, theirs, sibling = (open_weights(each) for each in (folder, base, known))
        wanted = file_digest(folder / "model.safetensors")

        def both() -> None:
            found = sweep(folder, ours.shards, ours.places, theirs.places, {"i": sibling.places}, compiled=True)
            if found.digests != {"model.safetensors": wanted} or len(found.tensors) != len(SHAPES):
                raise RuntimeError("not the digest of the file; the figure means nothing")

        pair = paired(both, lambda: file_digest(folder / "model.safetensors"))
        size = (folder / "model.safetensors").stat().st_size
    return Row(
        name="hash and compare on one read",
        against=f"SHA-256 alone: {size / pair.theirs / 1e9:.2f} GB/CPU s",
        goal=GOAL,
        measured=pair.ratio,
        unit="x of the hash",
        note=f"{size / pair.ours / 1e9:.2f} GB/CPU s of the submission, beside two other models; kernel: {kind}",
    )
