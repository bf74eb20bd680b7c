"""Undoes what hides a copy without changing what it computes: the order of the residual stream, of neurons and heads,
scales that cancel, and rotations of the residual stream.

The residual stream is matched by the columns of the embedding (a permutation with signs; else the best rotation, kept
only if it also fits tokens that it was not fitted to), neurons by the rows of the gate, heads by their keys, then
their queries. What was matched wrongly stays far from the base, so a wrong match cannot acquit.
Not covered: rotations inside query and key heads, a stream that was widened, layers in another order; those fail
closed. W_v and W_o are compared by their product (`layout.PRODUCT`), which rotations and scales of heads leave alone.
"""

from typing import TYPE_CHECKING, Any

from prill.checkpoint.layout import EMBEDDING, Heads, added_to_one, layers, regular
from prill.checkpoint.sources import Frame, Stored, Turn, Turned
from prill.checkpoint.values import Pick, tamed

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOKENS = 4096
"""Rows of the embedding that the residual stream is matched by."""
LOOKED_AT = 256
"""Columns by which neurons and heads are matched."""
BLOCK = 1024
"""Rows whose scores are held at a time."""
FITS = 0.9
"""Cosine of the embedding, seen in the base's order, with the base's; of a rotation, for tokens that it was not fitted
to."""
LARGEST_STREAM = 8192
SCALED = 0.05
"""Size of log(scale) from which scales are undone; training moves it less."""


def find(ours: Stored, base: Stored) -> Frame | None:
    """How `ours` lies to the base, or `None` where its residual stream is not the base's in any order or rotation.

    `base` may be another model of its family; both must have the same matrices in the same shapes. Needs a few hundred
    megabytes and, for four billion parameters, about a minute.
    """
    import numpy as np

    divided, shape = base.heads or ours.heads, base.shapes.get(EMBEDDING, (0, 0))
    if shape[1] > LARGEST_STREAM or not regular(base.shapes, divided):
        return None
    with np.errstate(all="ignore"):
        residual, size, fit, said = stream(ours, base, shape)
        if residual is None:
            return None
        one_more = added_to_one(base.weights.config)
        origin = Turned(base, Frame(), divided, one_more=one_more)
        inner: dict[str, dict[str, Turn]] = {}
        scales: dict[str, Any] = {}
        for layer in layers(base.shapes):
            known = Turned(ours, Frame(residual=residual, size=size), divided, one_more=one_more)
            found = inner.setdefault(layer, {})
            if f"{layer}mlp.gate_proj.weight" in base.shapes:
                found["mlp"] = neurons(known, origin, layer)
                known = Turned(ours, Frame(residual=residual, size=size, inner=inner), divided, one_more=one_more)
                scale = cancelled(known, origin, layer)
                scales |= {} if scale is None else {layer: scale}
            if divided is not None and f"{layer}self_attn.k_proj.weight" in base.shapes:
                found |= attention(known, origin, layer, divided)
    for axis, what in (("mlp", "neurons of MLPs"), ("key", "key heads"), ("query", "query heads")):
        if any(axis in turns and turns[axis].order is not None for turns in inner.values()):
            said.append(f"{what} in another order")
    said += ["neurons of MLPs rescaled"] if scales else []
    return Frame(residual=residual, size=size, inner=inner, scales=scales, said=tuple(said), fit=fit)


def stream(ours: Stored, base: Stored, shape: tuple[int, int]) -> tuple[Turn | None, float, float, list[str]]:
    """How the residual stream lies to the base's, its scale, how well that fits the embedding, and that in words."""
    import numpy as np

    rows = min(shape[0], ours.shapes[EMBEDDING][0])
    chosen = np.sort(np.random.default_rng(0).choice(rows, min(rows, 2 * TOKENS), replace=False))
    every = Pick(rows=chosen, columns=np.arange(shape[1]))
    s, b = tamed(ours.take(EMBEDDING, every)), base.take(EMBEDDING, every)
    turn, seen = permutation(s, b)
    said = []
    if cosine(seen, b) >= FITS:
        said += ["residual stream in another order"] if turn.order is not None else []
        said += ["residual stream with other signs"] if turn.signs is not None else []
    else:
        left, _, right = np.linalg.svd(s[::2].T @ b[::2])
        turn, seen = Turn(rotation=(left @ right).astype(np.float32)), s @ (left @ right)
        if not cosine(seen[1::2], b[1::2]) >= FITS:
            return None, 1.0, 0.0, []
        said.append("residual stream rotated")
    size = float((seen * b).sum() / max(float((b * b).sum()), 1e-12))
    if not abs(np.log(max(size, 1e-12))) > SCALED:
        return turn, 1.0, cosine(seen, b), said
    return turn, size, cosine(seen, b), [*said, "residual stream rescaled"]


def permutation(s: "NDArray[Any]", b: "NDArray[Any]") -> "tuple[Turn, NDArray[Any]]":
    """The order of columns in which `s` is most like `b`, with other signs only where it is not without, and `s` in it.

    What all columns share says nothing about their order, so it is taken out first.
    """
    import numpy as np

    ours, theirs = (s - s.mean(axis=1, keepdims=True)).T, (b - b.mean(axis=1, keepdims=True)).T
    ours, theirs = (rows - rows.mean(axis=1, keepdims=True) for rows in (ours, theirs))
    order, _ = match(ours, theirs)
    signs = np.ones(len(order), np.float32)
    if not cosine(s[:, order], b) >= FITS:
        order, cosines = match(ours, theirs, signed=True)
        signs = np.where(cosines < 0, -1.0, 1.0).astype(np.float32)
    straight, positive = bool((order == np.arange(len(order))).all()), bool((signs > 0).all())
    turn = Turn(order=None if straight else order, signs=None if positive else signs)
    return turn, s[:, order] * signs


def cosine(a: "NDArray[Any]", b: "NDArray[Any]") -> float:
    """Of all elements."""
    import numpy as np

    return float(np.vdot(a, b) / max(float(np.sqrt(np.vdot(a, a) * np.vdot(b, b))), 1e-12))


def match(ours: "NDArray[Any]", theirs: "NDArray[Any]", *, signed: bool = False) -> "tuple[NDArray[Any], NDArray[Any]]":
    """For each row of theirs a row of ours, each taken once: best pairs first; and its cosine.

    `signed`: alike up to the sign.
    """
    import numpy as np

    a, b = unit(ours), unit(theirs)
    order, cosines = np.full(len(b), -1, np.int64), np.zeros(len(b), np.float32)
    free, left = np.arange(len(a)), np.arange(len(b))
    while len(left):
        best = np.zeros(len(left), np.int64)
        score = np.zeros(len(left), np.float32)
        for begin in range(0, len(left), BLOCK):
            scores = b[left[begin : begin + BLOCK]] @ a[free].T
            which = np.abs(scores).argmax(axis=1) if signed else scores.argmax(axis=1)
            best[begin : begin + BLOCK] = which
            score[begin : begin + BLOCK] = scores[np.arange(len(which)), which]
        strongest = np.argsort(-(np.abs(score) if signed else score), kind="stable")
        _, first = np.unique(best[strongest], return_index=True)
        winners = strongest[first]
        order[left[winners]], cosines[left[winners]] = free[best[winners]], score[winners]
        free, left = np.delete(free, best[winners]), np.delete(left, winners)
    return order, cosines


def unit(rows: "NDArray[Any]") -> "NDArray[Any]":
    """Rows of length one, float32; what is no number is zero."""
    import numpy as np

    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.asarray(np.nan_to_num(rows / np.maximum(lengths, 1e-12)[:, None], posinf=0, neginf=0), np.float32)


def columns(width: int) -> "NDArray[Any]":
    """Some columns of a matrix, always the same."""
    import numpy as np

    return np.sort(np.random.default_rng(1).choice(width, min(width, LOOKED_AT), replace=False))


def neurons(ours: Turned, base: Turned, layer: str) -> Turn:
    """The order of one MLP's neurons, by the gate's rows: what they are put through admits no scale or sign."""
    import numpy as np

    name = f"{layer}mlp.gate_proj.weight"
    rows, width = base.shapes[name]
    pick = Pick(rows=np.arange(rows), columns=columns(width))
    order, _ = match(ours.take(name, pick), base.take(name, pick))
    return Turn() if (order == np.arange(rows)).all() else Turn(order=order)


def cancelled(ours: Turned, base: Turned, layer: str) -> "NDArray[Any] | None":
    """Factors of one MLP's neurons that `up` has and `down` undoes, or `None` where there are none."""
    import numpy as np

    up, down = f"{layer}mlp.up_proj.weight", f"{layer}mlp.down_proj.weight"
    count, width = base.shapes[up]
    across = Pick(rows=np.arange(count), columns=columns(width))
    along = Pick(rows=columns(width), columns=np.arange(count))
    ratios = []
    for name, pick, axis in ((up, across, 1), (down, along, 0)):
        s, b = ours.take(name, pick), base.take(name, pick)
        ratios.append((s * b).sum(axis=axis) / np.maximum((b * b).sum(axis=axis), 1e-12))
    scale = np.sqrt(np.abs(ratios[0]) / np.maximum(np.abs(ratios[1]), 1e-12)) * np.where(ratios[0] < 0, -1, 1)
    scale = np.where(np.isfinite(scale) & (np.abs(scale) > 1e-6), scale, 1.0).astype(np.float32)
    return scale if (np.abs(np.log(np.abs(scale))) > SCALED).any() or (scale < 0).any() else None


def attention(ours: Turned, base: Turned, layer: str, divided: Heads) -> dict[str, Turn]:
    """The order of one layer's key heads and, inside each group, of its query heads."""
    import numpy as np

    def taken(model: Turned, kind: str, count: int) -> "NDArray[Any]":
        name = f"{layer}self_attn.{kind}_proj.weight"
        pick = Pick(rows=np.arange(count * divided.width), columns=columns(model.shapes[name][1]))
        return model.take(name, pick).reshape(count, -1)

    def spread(heads: "NDArray[Any]") -> "NDArray[Any]":
        return np.asarray((heads[:, None] * divided.width + np.arange(divided.width)).ravel())

    keys, _ = match(taken(ours, "k", divided.key), taken(base, "k", divided.key))
    group = divided.query // divided.key
    mine, known = (taken(model, "q", divided.query).reshape(divided.key, group, -1) for model in (ours, base))
    queries = np.concatenate([match(mine[k], known[place])[0] + k * group for place, k in enumerate(keys)])
    return {
        axis: Turn() if (order == np.arange(len(order))).all() else Turn(order=spread(order))
        for axis, order in (("key", keys), ("query", queries))
    }
