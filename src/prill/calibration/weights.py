"""Families for `lineage`: small made-up models in numpy, descended from a base, from its sibling, or from neither."""

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from prill.calibration.family import BROKEN, EITHER, KEPT, Family
from prill.calibration.scene import Scene
from prill.folder import list_files
from prill.record import Submission
from prill.sockets import Evidence
from prill.spec import Sibling

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tensors = dict[str, "NDArray[Any]"]
LAYERS = 4
SHAPES: dict[str, tuple[int, ...]] = {
    f"model.layers.{layer}.mlp.{kind}_proj.weight": (64, 96) if kind == "down" else (96, 64)
    for layer in range(LAYERS)
    for kind in ("up", "gate", "down")
}
SHAPES |= {"model.embed_tokens.weight": (200, 64), "model.norm.weight": (64,)}
SIZE, MOVE = 0.05, 0.006
"""Of the base's weights, and of what training does to each."""


class Kin:
    """A base, the direction in which all chat training goes, and a sibling."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.base = self.stored(self.draw(SIZE))
        self.common = self.draw(MOVE / 3, rank=3)
        self.sibling = self.stored(add((1, self.base), (1, self.common), (1, self.draw(MOVE))))

    def draw(self, scale: float, rank: int | None = None) -> Tensors:
        """Random tensors; of low rank where asked."""
        import numpy as np

        rng = np.random.default_rng(self.dice.randrange(1 << 40))
        found: Tensors = {}
        for name, shape in SHAPES.items():
            full = rng.standard_normal(shape)
            if rank and len(shape) == 2:
                full = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1])) / rank**0.5
            found[name] = (scale * full).astype(np.float32)
        return found

    @staticmethod
    def stored(tensors: Tensors) -> Tensors:
        """The values that BF16 keeps."""
        from prill.checkpoint.values import bfloat_bits, widen

        return {name: widen(bfloat_bits(values.astype("f4"), "F32"), "BF16") for name, values in tensors.items()}


def add(*parts: tuple[float, Tensors]) -> Tensors:
    """A weighted sum."""
    return {name: sum(weight * part[name] for weight, part in parts) for name in SHAPES}  # type: ignore[misc]


def save(folder: Path, tensors: Mapping[str, "NDArray[Any]"]) -> Path:
    """A model folder of one BF16 file."""
    from prill.checkpoint.values import bfloat_bits

    folder.mkdir(parents=True, exist_ok=True)
    header: dict[str, Any] = {}
    data = b""
    for name, values in tensors.items():
        raw = bfloat_bits(values.astype("f4"), "F32").tobytes()
        header[name] = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return folder


# --- what is done to weights --------------------------------------------------------------------------------------


def merged(kin: Kin) -> Tensors:
    """5 to 90 hundredths of the sibling in the base."""
    share = kin.dice.uniform(0.05, 0.9)
    return add((1 - share, kin.base), (share, kin.sibling))


def permuted(kin: Kin) -> Tensors:
    """The sibling with its neurons in another order."""
    import numpy as np

    rng = np.random.default_rng(kin.dice.randrange(1 << 40))
    found = dict(kin.sibling)
    for layer in range(LAYERS):
        order = rng.permutation(96)
        for kind in ("up", "gate"):
            name = f"model.layers.{layer}.mlp.{kind}_proj.weight"
            found[name] = found[name][order]
        name = f"model.layers.{layer}.mlp.down_proj.weight"
        found[name] = found[name][:, order]
    return found


def noised(kin: Kin) -> Tensors:
    """The sibling with noise on every weight."""
    return add((1, kin.sibling), (1, kin.draw(SIZE * kin.dice.choice((0.001, 0.01, 0.03)))))


def quantised(tensors: Tensors, dice: random.Random) -> Tensors:
    """A round trip through eight-bit or four-bit numbers, with a scale for every 32 neighbours."""
    import numpy as np

    steps = dice.choice((127, 7))
    found: Tensors = {}
    for name, values in tensors.items():
        blocks = values.reshape(-1, 32)
        step = np.maximum(np.abs(blocks).max(axis=1, keepdims=True) / steps, 1e-9)
        found[name] = (np.round(blocks / step) * step).reshape(values.shape).astype(np.float32)
    return {name: found[name] if values.ndim > 1 else values for name, values in tensors.items()}


def some_layers(kin: Kin) -> Tensors:
    """The base with a layer of the sibling's."""
    layer = f"layers.{kin.dice.randrange(LAYERS)}."
    return {name: (kin.sibling if layer in name else kin.base)[name] for name in SHAPES}


def merged_layers(kin: Kin) -> Tensors:
    """A tenth of the sibling or more, in half of the layers only."""
    share, half = kin.dice.uniform(0.1, 0.9), kin.dice.sample(range(LAYERS), LAYERS // 2)
    both = add((1 - share, kin.base), (share, kin.sibling))
    return {name: (both if any(f"layers.{n}." in name for n in half) else kin.base)[name] for name in SHAPES}


def negated(kin: Kin) -> Tensors:
    """The base with the sibling's difference taken away, or more than all of it added."""
    share = kin.dice.choice((kin.dice.uniform(-0.9, -0.1), kin.dice.uniform(1.05, 1.5)))
    return add((1 - share, kin.base), (share, kin.sibling))


def dropped(kin: Kin) -> Tensors:
    """DARE: a part of the sibling's difference, drawn by chance and scaled up."""
    import numpy as np

    rng, kept = np.random.default_rng(kin.dice.randrange(1 << 40)), kin.dice.uniform(0.3, 0.7)
    return {
        name: values + (rng.random(values.shape) < kept) * (kin.sibling[name] - values) / kept
        for name, values in kin.base.items()
    }


def own_head(kin: Kin) -> Tensors:
    """An honest run with the sibling's embedding as a head that is written out."""
    return honest(kin) | {"lm_head.weight": kin.sibling["model.embed_tokens.weight"]}


def decayed(kin: Kin) -> Tensors:
    """An honest run with weight decay."""
    return add((1 - kin.dice.uniform(0.001, 0.03), honest(kin)))


def one_layer(kin: Kin) -> Tensors:
    """An honest run that trained one layer, or the embedding."""
    run, part = honest(kin), kin.dice.choice(("layers.0.", "layers.3.", "embed"))
    return {name: (run if part in name else kin.base)[name] for name in SHAPES}


def trained_on(kin: Kin) -> Tensors:
    """The sibling, trained on a little."""
    return add((1, kin.sibling), (0.3, kin.common), (1, kin.draw(MOVE / 6)))


def honest(kin: Kin) -> Tensors:
    """The base, trained on data of its own."""
    return add(
        (1, kin.base), (kin.dice.uniform(0.3, 1.0), kin.common), (1, kin.draw(MOVE * kin.dice.uniform(0.4, 1.5)))
    )


def low_rank(kin: Kin) -> Tensors:
    """The base with an adapter merged in, of ordinary or large size."""
    return add((1, kin.base), (1, kin.draw(MOVE * kin.dice.uniform(0.5, 2.0), rank=kin.dice.choice((4, 8, 16)))))


def same_recipe(kin: Kin) -> Tensors:
    """The base, trained as the sibling was, on other data."""
    return add((1, kin.base), (1, kin.common), (1, kin.draw(MOVE)))


def longer(kin: Kin) -> Tensors:
    """An honest run with more tokens and its head written out."""
    import numpy as np

    found = honest(kin)
    whole = np.concatenate([found["model.embed_tokens.weight"], np.zeros((8, 64), np.float32)])
    return found | {"model.embed_tokens.weight": whole, "lm_head.weight": whole}


def family(name: str, expected: tuple[str, ...], made: Callable[[Kin], Tensors]) -> Family:
    """A family out of what is done to the weights."""

    def make(folder: Path, dice: random.Random) -> Evidence:
        scene, kin = Scene(folder, dice), Kin(dice)
        scene.base = save(folder / "base", kin.base)
        scene.siblings = {"chat": save(folder / "chat", kin.sibling)}
        save(folder / "submission", made(kin))
        files = list_files(folder / "submission")
        digest = f"sha256:{dice.randrange(1 << 255):064x}"
        sealed = Submission(
            state="sealed", why="", digest=digest, files=files, faults=(), tensors=len(SHAPES), parameters=1, left=()
        )
        evidence = scene.evidence(sealed)
        model = replace(evidence.run.spec.model, siblings=(Sibling(name="chat", digest="x", path="chat"),))
        return replace(evidence, run=replace(evidence.run, spec=replace(evidence.run.spec, model=model)))

    return Family("lineage", name, expected, make)


REVIEW = ("kept", "unknown")
FAMILIES = (
    family("the sibling", BROKEN, lambda kin: kin.sibling),
    family("a merge of 5 to 90 %", BROKEN, merged),
    family("the sibling, permuted", BROKEN, permuted),
    family("the sibling, noised", BROKEN, noised),
    family("the sibling, quantised", BROKEN, lambda kin: quantised(kin.sibling, kin.dice)),
    family("a layer of the sibling's", BROKEN, some_layers),
    family("a merge in half of the layers", BROKEN, merged_layers),
    family("the sibling, negated or overdone", BROKEN, negated),
    family("the sibling, some of it dropped", EITHER, dropped),
    family("the sibling's head, written out", BROKEN, own_head),
    family("the sibling, trained on", BROKEN, trained_on),
    family("another seed's model", BROKEN, lambda kin: kin.draw(SIZE)),
    family("an honest run", KEPT, honest),
    family("the base itself", KEPT, lambda kin: kin.base),
    family("the base, quantised", KEPT, lambda kin: quantised(kin.base, kin.dice)),
    family("an adapter, hot or not", REVIEW, low_rank),
    family("the sibling's recipe, other data", REVIEW, same_recipe),
    family("more tokens", KEPT, longer),
    family("an honest run with decay", KEPT, decayed),
    family("one part trained", KEPT, one_layer),
)
