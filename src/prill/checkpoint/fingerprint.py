"""Fingerprints: samples of a base, its known siblings and control runs in one file, so that none need be at hand.

The file is safetensors, so nothing in it can run: the base's values and each model's (exact where they are BF16, else
the difference from the base as float16 with a scale for each tensor) at the places that the plan draws from its seed,
norms whole, and a JSON text that says what is what. It is read as hostile bytes: sizes are the file's own, everything
declared is bounded and checked.
Not covered: secrecy. Who knows the seed can spare the sampled places; keep a seed of your own where that matters.
"""

import json
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from prill.checkpoint.layout import PRODUCT, products
from prill.checkpoint.sources import Stored
from prill.checkpoint.tensors import Shard, Tensor, read_shard
from prill.checkpoint.values import VOCABULARY, Pick, Place, Plan, bfloat_bits, open_weights, pick, place, read, widen
from prill.errors import DefinitionError, InfraError
from prill.folder import list_files, tree_digest, write_whole
from prill.record import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["instruct", "control"]
MOST_MODELS = 64
LARGEST_WHOLE, LARGEST_SIDE, LARGEST_ROWS = 1 << 22, 1 << 12, 1 << 30
STORED = "prill"
"""Key of the JSON text in the file's metadata, whose values the format wants as text."""


class Member(Record, frozen=True, kw_only=True):
    """One model of a fingerprint."""

    name: str
    kind: Kind
    digest: str
    """`sha256:` over its folder's files, as a definition pins it."""
    scales: dict[str, float]
    """Tensor → what its stored difference is multiplied by; not there where the values themselves are stored."""


class Head(Record, frozen=True, kw_only=True, tag="prill/fingerprint/1", tag_field="schema"):
    """What a fingerprint says about itself."""

    plan: Plan
    base: str
    """Digest of the base's folder."""
    shapes: dict[str, tuple[int, int]]
    """Matrix of the base → rows, columns."""
    config: dict[str, Any]
    """The base's config.json."""
    members: tuple[Member, ...]


class Kept:
    """One model of a fingerprint, as a source: it knows its values at the plan's places, and no others."""

    def __init__(self, print: "Fingerprint", number: int | None) -> None:
        self.print, self.number = print, number
        prefix = "base/" if number is None else f"{number}/"
        self.prefix = prefix
        self.shapes: Mapping[str, tuple[int, int]] = {
            name: shape for name, shape in print.head.shapes.items() if prefix + name in print.places
        }

    def take(self, name: str, at: Pick) -> "NDArray[Any]":
        """The stored part: the plan's, of which rows may be left out at the end."""
        found = self.print.values(self.prefix + name)
        if self.number is not None and name in (scales := self.print.head.members[self.number].scales):
            found = self.print.values("base/" + name) + found * scales[name]
        return found[: len(at.rows)]

    def vector(self, name: str) -> "NDArray[Any] | None":
        """A norm's weights."""
        key = f"{self.prefix}vector/{name}"
        return self.print.values(key)[0] if key in self.print.places else None


class Fingerprint:
    """An opened file."""

    def __init__(self, head: Head, places: dict[str, Place], file: Path) -> None:
        self.head, self.places, self.file = head, places, file

    def values(self, key: str) -> "NDArray[Any]":
        """One stored tensor, as float32."""
        import numpy as np

        where = self.places[key]
        every = Pick(rows=np.arange(where.rows), columns=np.arange(where.columns))
        return widen(read(where, every), where.dtype)

    def base(self) -> Kept:
        """The base, at the sampled places."""
        return Kept(self, None)

    def models(self, kind: Kind) -> dict[str, Kept]:
        """The models of a kind, by name."""
        return {member.name: Kept(self, n) for n, member in enumerate(self.head.members) if member.kind == kind}

    def belongs(self, base: Stored) -> None:
        """Raise `DefinitionError` unless it was made from this base: the values at the sampled places tell."""
        import numpy as np

        own = self.base()
        for name, shape in own.shapes.items():
            if not name.endswith(PRODUCT):
                at = pick(name, *shape, self.head.plan)
                if base.shapes.get(name) != shape or not np.array_equal(own.take(name, at), base.take(name, at)):
                    raise DefinitionError(
                        f"{self.file}: made from another base ({name} differs); make it from this one"
                    )


def make(
    file: Path,
    base: Path,
    models: Mapping[str, tuple[Kind, Path]],
    plan: Plan,
    say: Callable[[str], None] = lambda line: None,
) -> Head:
    """Sample a base and models that were made from it into a file. Raises `InfraError` for what is unreadable."""
    origin = opened(base)
    shapes = dict(origin.shapes) | products(origin.shapes, origin.heads)
    picks = {name: pick(name, *shape, plan) for name, shape in sorted(shapes.items())}
    tensors: dict[str, tuple[str, NDArray[Any]]] = {}
    values = {name: origin.take(name, at) for name, at in picks.items()}
    for name, value in values.items():
        tensors["base/" + name] = exact(value)
    vectors = sorted(origin.weights.vectors)
    tensors |= {f"base/vector/{name}": ("F32", vector(origin, name)) for name in vectors}
    members = []
    for number, (name, (kind, folder)) in enumerate(models.items()):
        say(f"{name}: {folder}")
        model, scales = opened(folder), {}
        model.heads = model.heads or origin.heads
        every = dict(model.shapes) | products(model.shapes, model.heads)
        for tensor, at in picks.items():
            here, there = every.get(tensor, (0, 0)), shapes[tensor]
            if here == there or (tensor.endswith(VOCABULARY) and here[1] == there[1] and here[0] > there[0]):
                value = model.take(tensor, at)
                tensors[f"{number}/{tensor}"] = exact(value)
                if tensors[f"{number}/{tensor}"][0] != "BF16":
                    scales[tensor], stored = scaled(value - values[tensor])
                    tensors[f"{number}/{tensor}"] = ("F16", stored)
        for tensor in vectors:
            if tensor in model.weights.vectors:
                tensors[f"{number}/vector/{tensor}"] = ("F32", vector(model, tensor))
        members.append(Member(name=name, kind=kind, digest=tree_digest(list_files(folder)), scales=scales))
    head = Head(
        plan=plan,
        base=tree_digest(list_files(base)),
        shapes=shapes,
        config=origin.weights.config,
        members=tuple(members),
    )
    write_whole(file, packed(head, tensors))
    return head


def opened(folder: Path) -> Stored:
    """A model of ours, which must be readable. Raises `InfraError`."""
    weights = open_weights(folder)
    wrong = [fault.why for fault in weights.faults if fault.severity == "fatal"]
    if wrong or not weights.places:
        raise InfraError(f"{folder}: not readable as a model ({wrong[0] if wrong else 'no tensors'}); fetch it again")
    return Stored(weights)


def vector(model: Stored, name: str) -> "NDArray[Any]":
    """A norm as one row."""
    found = model.vector(name)
    assert found is not None
    return found[None, :]


def exact(values: "NDArray[Any]") -> "tuple[str, NDArray[Any]]":
    """Values as BF16 bits where these hold them, else as float32."""
    bits = bfloat_bits(values, "F32")
    return ("BF16", bits) if bool((widen(bits, "BF16") == values).all()) else ("F32", values)


def scaled(delta: "NDArray[Any]") -> "tuple[float, NDArray[Any]]":
    """Differences as float16 of at most one, and their scale, so that small changes survive."""
    import numpy as np

    scale = float(np.abs(delta).max()) or 1.0
    return scale, (delta / scale).astype("<f2")


def packed(head: Head, tensors: "Mapping[str, tuple[str, NDArray[Any]]]") -> bytes:
    """The bytes of the file."""
    header: dict[str, Any] = {"__metadata__": {STORED: msgspec.json.encode(head).decode()}}
    at = 0
    for name, (dtype, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *(values.tobytes() for _, values in tensors.values())])


def load(file: Path) -> Fingerprint:
    """Open a fingerprint. Raises `DefinitionError` for whatever is none: such files are ours, and say who must act."""
    shard, faults = read_shard(file, file.name)
    if shard is None or faults:
        raise DefinitionError(f"{file}: no fingerprint ({faults[0].why}); make it with `prill fingerprint`")
    try:
        head = head_of(file, shard)
        wrong = unsound(head, {tensor.name: tensor for tensor in shard.tensors})
    except (msgspec.DecodeError, ValueError, TypeError, KeyError, OSError, RecursionError) as error:
        wrong = f"its description cannot be read: {str(error)[:200]}"
    if wrong:
        raise DefinitionError(f"{file}: no fingerprint ({wrong}); make it with `prill fingerprint`")
    places = {tensor.name: place(file.parent, shard, tensor) for tensor in shard.tensors if tensor.count}
    return Fingerprint(head, places, file)


def head_of(file: Path, shard: Shard) -> Head:
    """The description in a file's metadata."""
    with file.open("rb") as opened:
        opened.seek(8)
        header = json.loads(opened.read(shard.start - 8))
    return msgspec.json.decode(header["__metadata__"][STORED], type=Head)


def unsound(head: Head, tensors: Mapping[str, Tensor]) -> str:
    """What is wrong with a description, or nothing: every sample must have exactly the places that the plan draws."""
    plan, names = head.plan, [member.name for member in head.members]
    if not (0 <= plan.seed < 1 << 64 and 0 < plan.whole <= LARGEST_WHOLE and 0 < plan.side <= LARGEST_SIDE):
        return f"its plan is out of bounds: {plan}"
    if len(names) > MOST_MODELS or len(set(names)) < len(names):
        return f"more than {MOST_MODELS} models, or two of one name"
    sizes: dict[str, tuple[int, int]] = {}
    for name, (rows, columns) in head.shapes.items():
        if not (0 < rows <= LARGEST_ROWS and 0 < columns <= LARGEST_ROWS):
            return f"{name!r} is said to have the shape {rows}, {columns}"
        small = rows * columns <= plan.whole
        sizes[name] = (rows, columns) if small else (min(rows, plan.side), min(columns, plan.side))
    for key, tensor in tensors.items():
        owner, _, name = key.partition("/")
        if owner != "base" and not (owner.isascii() and owner.isdigit() and int(owner) < len(names)):
            return f"{key!r} belongs to no model"
        if name.startswith("vector/"):
            if len(tensor.shape) != 2 or tensor.shape[0] != 1 or tensor.dtype != "F32":
                return f"{key!r} is no vector"
        elif tensor.shape != sizes.get(name) or tensor.dtype not in ("F32", "BF16", "F16"):
            return f"{key!r} is no sample by its plan"
        elif "base/" + name not in tensors:
            return f"{key!r} has no counterpart in the base"
        elif owner != "base":
            scale = head.members[int(owner)].scales.get(name)
            if (scale is None) == (tensor.dtype == "F16") or (scale is not None and not 0 < scale < inf):
                return f"{key!r} has the scale {scale}"
    return ""
