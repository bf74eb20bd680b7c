"""Every element of three checkpoints compared, beside the plain numpy expression for the same figures.

Three seeded folders of 0.1 GB, BF16. The peer widens whole tensors and takes the same seven sums, over a part of them.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from bench import weights_made
from bench.paired import paired
from bench.row import Row

GOAL = 15.0
LEAST = 2.0
"""Gigabytes of all three for a CPU second."""
SHAPES = {f"model.layers.{n}.mlp.up_proj.weight": (4096, 2048) for n in range(6)}
PART = 2
"""Tensors that the peer is given."""


def measure() -> Row:
    """CPU seconds of the sweep for each gigabyte, without hashing, beside numpy's."""
    import numpy as np

    from prill.checkpoint import sweep
    from prill.checkpoint.values import open_weights

    with TemporaryDirectory(prefix="prill-bench-") as place:
        folders = weights_made.family(Path(place), SHAPES)
        ours, base, known = (open_weights(folder).places for folder in folders)
        kernel = sweep.fused()
        kind = "numba" if kernel else "numpy"
        kernel = kernel or sweep.blocked()
        raw = {name: np.fromfile(where.path, np.uint16, offset=where.start, count=where.rows * where.columns)
               for name, where in ours.items()}  # fmt: skip

        def sweep_all() -> None:
            for name, bits in raw.items():
                found = sweep.compare(iter([bits.data]), "BF16", len(bits), base[name], {"i": known[name]}, kernel)
                if not 0.4 < found.siblings["i"][0] < 0.6:
                    raise RuntimeError("alpha is not that of the generated merge; the figure means nothing")

        def plain() -> None:
            for name in list(raw)[:PART]:
                weights_made.plain(*(places[name] for places in (ours, base, known)))

        pair = paired(sweep_all, plain)
    size = 3 * sum(bits.nbytes for bits in raw.values())
    speed, ratio = size / pair.ours / 1e9, pair.theirs / pair.ours * len(SHAPES) / PART
    return Row(
        name="compare every weight of three models",
        against=f"plain numpy: {size * PART / len(SHAPES) / pair.theirs / 1e9:.2f} GB/CPU s",
        goal=1 / GOAL,
        measured=1 / ratio if speed >= LEAST else None,
        unit="x numpy's CPU s",
        note=f"{ratio:.1f} times as fast, {speed:.1f} GB/CPU s (at least {LEAST:g}), kernel: {kind}; page cache",
    )
