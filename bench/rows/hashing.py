"""The digests of a checkpoint of two shards, taken on the read that compares every weight, on two cores against one."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench import weights_made
from bench.row import Row

GOAL = 1.7
ROUNDS = 7
SHAPES = {f"model.layers.{n}.mlp.up_proj.weight": (4096, 4096) for n in range(4)}


def measure() -> Row:
    """Wall seconds of two shards on two cores, as a share of those on one core; the best of the rounds."""
    name, cores = "hash two shards on two cores", sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return Row(name=name, against="one core", goal=1 / GOAL, measured=None, unit="x", note="needs two cores")
    with TemporaryDirectory(prefix="prill-bench-") as place:
        work, size = two_shards(Path(place))
        try:
            pairs = []
            for _ in range(ROUNDS):
                taken = []
                for some in (cores[:2], cores[:1]):
                    os.sched_setaffinity(0, some)
                    taken.append(wall(work))
                pairs.append((taken[0], taken[1]))
        finally:
            os.sched_setaffinity(0, cores)
    ratio, one = min(two / one for two, one in pairs), min(one for _, one in pairs)
    middle = median(two / one for two, one in pairs)
    return Row(
        name=name,
        against=f"one core: {size / one / 1e9:.2f} GB/s",
        goal=round(1 / GOAL, 3),
        measured=ratio,
        unit="x of one core's wall time",
        note=f"{1 / ratio:.2f} times as fast at best of {ROUNDS}, {1 / middle:.2f} in the middle; wants idle cores",
    )


def two_shards(place: Path) -> tuple[Callable[[], object], int]:
    """The sweep over two files that have no counterpart in the base, so that they are only hashed; and their bytes."""
    from prill.checkpoint.sweep import sweep
    from prill.checkpoint.tensors import read_shard

    folder, *_ = weights_made.family(place, SHAPES)
    file = folder / "model.safetensors"
    second = file.with_name("second.safetensors")
    second.write_bytes(file.read_bytes())
    shards = [shard for path in (file, second) if (shard := read_shard(path, path.name)[0])]
    return lambda: sweep(folder, shards, {}, {}, {}), sum(shard.bytes for shard in shards)


def wall(work: Callable[[], object]) -> float:
    """Wall seconds of one call; what two cores save shows in nothing else."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
