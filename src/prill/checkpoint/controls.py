"""Control fine-tunes: honest runs from the same base, kept as sampled deltas, that show what all training shares.

Training on similar data moves every run in common directions. Least squares of S - B on I - B together with the
controls' deltas lets them take the common part; what then stays on I - B only descent from I explains.
Not covered: choosing the controls. Eight or more per base, of several recipes, keep honest runs below 0.2.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prill.checkpoint.tensors import read_shard
from prill.checkpoint.values import Place, open_weights, pick, place, read, shared_rows, widen
from prill.errors import DefinitionError
from prill.record import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 0
"""Of the sampled places: the same for every control and whatever is compared with them."""


class Deltas(Record, frozen=True, kw_only=True):
    """What one fine-tune changed: tensor → S - B at the sampled places, float32 (rows, columns)."""

    name: str
    tensors: dict[str, Any]


def deltas(name: str, folder: Path, base: Path) -> Deltas:
    """Sample a checkpoint's difference from its base. Tensors without a counterpart are left out."""
    ours, theirs = open_weights(folder).places, open_weights(base).places
    found = {}
    for tensor in sorted(ours):
        rows = shared_rows(tensor, ours, theirs)
        if rows is not None:
            chosen = pick(tensor, rows, ours[tensor].columns, SEED)
            found[tensor] = values(ours[tensor], chosen) - values(theirs[tensor], chosen)
    return Deltas(name=name, tensors=found)


def values(where: Place, chosen: Any) -> "NDArray[Any]":
    """The picked part as float32."""
    return widen(read(where, chosen), where.dtype)


def partial(moved: "NDArray[Any]", known: "NDArray[Any]", controls: "Sequence[NDArray[Any]]") -> float:
    """The coefficient of `known` (I - B) in the least-squares fit of `moved` (S - B) on it and all controls' deltas.

    All arrays have the same number of elements. 0 where I equals B.
    """
    import numpy as np

    columns = np.stack([known.ravel(), *(control.ravel() for control in controls)], axis=1).astype(np.float64)
    scale = np.sqrt((columns**2).sum(axis=0))
    if scale[0] == 0:
        return 0.0
    scale[scale == 0] = 1.0
    fitted = np.linalg.lstsq(columns / scale, moved.ravel().astype(np.float64), rcond=1e-9)[0]
    return float(fitted[0] / scale[0])


def partials(submission: Deltas, sibling: Deltas, controls: Sequence[Deltas]) -> Mapping[str, float]:
    """`partial` for each tensor that all of them have in one shape."""
    found = {}
    for name, known in sibling.tensors.items():
        moved, *others = (deltas.tensors.get(name) for deltas in (submission, *controls))
        same = [other for other in others if other is not None and other.shape == known.shape]
        if moved is not None and moved.shape == known.shape and len(same) == len(controls) and known.any():
            found[name] = partial(moved, known, same)
    return found


def write(file: Path, sampled: Deltas) -> None:
    """Store deltas as a safetensors file of float16, scaled per tensor so that small changes survive."""
    import numpy as np

    header: dict[str, Any] = {"__metadata__": {"name": sampled.name, "seed": str(SEED)}}
    parts, at = [], 0
    for name, delta in sampled.tensors.items():
        scale = float(np.abs(delta).max()) or 1.0
        data = (delta / scale).astype("<f2").tobytes()
        header["__metadata__"][f"scale:{name}"] = repr(scale)
        header[name] = {"dtype": "F16", "shape": list(delta.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def read_deltas(file: Path) -> Deltas:
    """What `write` stored. Raises `DefinitionError`: such files are ours."""
    shard, faults = read_shard(file, file.name)
    if shard is None or faults:
        raise DefinitionError(f"{file}: no deltas ({faults[0].why}); write them again")
    with file.open("rb") as opened:
        opened.seek(8)
        about = json.loads(opened.read(shard.start - 8))["__metadata__"]
    if about.get("seed") != str(SEED):
        raise DefinitionError(f"{file}: sampled at other places (seed {about.get('seed')}); write it again")
    found = {}
    for tensor in shard.tensors:
        where = place(file.parent, shard, tensor)
        whole = read(where, pick_all(where))
        found[tensor.name] = widen(whole, tensor.dtype) * float(about[f"scale:{tensor.name}"])
    return Deltas(name=about["name"], tensors=found)


def pick_all(where: Place) -> Any:
    """Every row and column of what is already a sample."""
    import numpy as np

    from prill.checkpoint.values import Pick

    return Pick(rows=np.arange(where.rows), columns=np.arange(where.columns))
