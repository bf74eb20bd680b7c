"""Where the numbers of a model come from when it is compared: its folder, a fingerprint, or a folder seen in the
base's order. All of them give the picked part of a matrix as float32.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from prill.checkpoint.layout import EMBEDDING, PRODUCT, Axis, Heads, heads, role
from prill.checkpoint.values import Pick, Weights, read, widen
from prill.record import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

Take = Callable[[str, Pick], "NDArray[Any]"]


class Source(Protocol):
    """A model's numbers."""

    shapes: Mapping[str, tuple[int, int]]
    """Matrix → (rows, columns)."""

    def take(self, name: str, pick: Pick) -> "NDArray[Any]":
        """The picked part of a matrix, float32 (rows, columns)."""

    def vector(self, name: str) -> "NDArray[Any] | None":
        """A tensor of one dimension, or `None` where there is none."""


class Stored:
    """A model's folder."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.shapes: Mapping[str, tuple[int, int]] = {n: (p.rows, p.columns) for n, p in weights.places.items()}
        self.heads = heads(weights.config)

    def take(self, name: str, pick: Pick) -> "NDArray[Any]":
        """The picked part, widened; of a made-up matrix, computed."""
        if name.endswith(PRODUCT) and name not in self.shapes and self.heads is not None:
            stream = self.shapes[name.replace(PRODUCT, "self_attn.o_proj.weight")][0]
            return product(self.take, name.removesuffix(PRODUCT), self.heads, stream, pick)
        place = self.weights.places[name]
        return widen(read(place, pick), place.dtype)

    def vector(self, name: str) -> "NDArray[Any] | None":
        """A norm's weights."""
        import numpy as np

        place = self.weights.vectors.get(name)
        if place is None:
            return None
        every = Pick(rows=np.arange(1), columns=np.arange(place.columns))
        found: NDArray[Any] = widen(read(place, every), place.dtype)[0]
        return found


def product(take: Take, layer: str, divided: Heads, stream: int, pick: Pick) -> "NDArray[Any]":
    """The picked part of W_o W_v of each query head, out of the picked rows of W_o and columns of W_v.

    `stream` is the width of the residual stream: the rows of one head's product.
    """
    import numpy as np

    width, keys = divided.width, divided.key * divided.width
    v = take(f"{layer}self_attn.v_proj.weight", Pick(rows=np.arange(keys), columns=pick.columns))
    found = np.empty((len(pick.rows), len(pick.columns)), np.float32)
    head, row = pick.rows // stream, pick.rows % stream
    for each in np.unique(head):
        mine, key = head == each, int(each) // (divided.query // divided.key)
        columns = np.arange(each * width, (each + 1) * width)
        o = take(f"{layer}self_attn.o_proj.weight", Pick(rows=row[mine], columns=columns))
        found[mine] = o @ v[key * width : (key + 1) * width]
    return found


class Turn(Record, frozen=True, kw_only=True):
    """How one axis of a model lies to the base's: reordered, or rotated. Nothing given: as it is."""

    order: Any = None
    """Base's position → the model's."""
    signs: Any = None
    """By the base's position: 1 or -1."""
    rotation: Any = None
    """(model's positions, base's positions), orthogonal."""

    def needs(self, wanted: "NDArray[Any]") -> "NDArray[Any]":
        """The model's positions that these of the base are made of."""
        import numpy as np

        if self.rotation is not None:
            return np.arange(len(self.rotation))
        found: NDArray[Any] = wanted if self.order is None else self.order[wanted]
        return found

    def onto(self, values: "NDArray[Any]", wanted: "NDArray[Any]") -> "NDArray[Any]":
        """Rows at the model's needed positions → rows at the base's wanted ones."""
        if self.rotation is not None:
            found: NDArray[Any] = self.rotation[:, wanted].T @ values
            return found
        return values if self.signs is None else values * self.signs[wanted][:, None]


class Frame(Record, frozen=True, kw_only=True):
    """How a whole model lies to the base."""

    residual: Turn = Turn()
    size: float = 1.0
    """The residual stream's scale: of the embedding and of all that writes to the stream."""
    inner: Mapping[str, Mapping[str, Turn]] = {}
    """Layer → axis → how it lies."""
    scales: Mapping[str, Any] = {}
    """Layer → by the base's neuron: factor of the row of `up`, whose inverse is in the column of `down`."""
    said: tuple[str, ...] = ()
    """What was found, in words."""
    fit: float = 1.0
    """Cosine of the embedding, seen in the other's order, with the other's."""


class Turned:
    """A model seen in the base's order, with the norms' weights folded into the matrices behind them.

    What rescales or rotates a model without a change of its function mostly goes through the norms, so both sides of a
    comparison are folded. `frame` of the base itself, of siblings and of controls is empty.
    """

    def __init__(
        self,
        model: Source,
        frame: Frame,
        divided: Heads | None,
        *,
        one_more: bool,
        made: Mapping[str, tuple[int, int]] = {},
    ) -> None:
        """`one_more`: norms multiply by one plus their weight. `made`: products that are to be had, with shapes."""
        self.model, self.frame, self.heads, self.one_more = model, frame, divided, one_more
        computes = all(name.replace(PRODUCT, "self_attn.v_proj.weight") in model.shapes for name in made)
        self.shapes: Mapping[str, tuple[int, int]] = {**(made if computes else {}), **model.shapes}

    def take(self, name: str, pick: Pick) -> "NDArray[Any]":
        """The picked part, in the base's positions."""
        does = role(name)
        if does is None:
            return self.model.take(name, pick)
        if name.endswith(PRODUCT) and name not in self.model.shapes and self.heads is not None:
            stream = self.shapes[name.replace(PRODUCT, "self_attn.o_proj.weight")][0]
            return product(self.take, does.layer, self.heads, stream, pick)
        rows, columns = (self.turn(does.layer, axis) for axis in (does.rows, does.columns))
        at = Pick(rows=rows.needs(pick.rows), columns=columns.needs(pick.columns))
        values = self.model.take(name, at)
        gamma = next((found for norm in does.norms if (found := self.model.vector(norm)) is not None), None)
        if gamma is not None:
            values = values * (gamma + 1 if self.one_more else gamma)[at.columns]
        if self.frame.size != 1.0 and (does.rows == "residual" or name == EMBEDDING):
            values = values / self.frame.size
        values = columns.onto(rows.onto(values, pick.rows).T, pick.columns).T
        scales = self.frame.scales.get(does.layer)
        if scales is not None and name.endswith("up_proj.weight"):
            values = values / scales[pick.rows][:, None]
        elif scales is not None and name.endswith("down_proj.weight"):
            values = values * scales[pick.columns]
        return values

    def turn(self, layer: str, axis: Axis) -> Turn:
        """How one axis lies."""
        return self.frame.residual if axis == "residual" else self.frame.inner.get(layer, {}).get(axis, Turn())

    def vector(self, name: str) -> "NDArray[Any] | None":
        """None is left: they are in the matrices."""
        return None
