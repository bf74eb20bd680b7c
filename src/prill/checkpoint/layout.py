"""What each matrix of a decoder-only transformer reads and writes, by its name: needed to undo permutations.

Names are those of Llama, Qwen, SmolLM and Gemma in transformers, folded. A matrix maps its columns to its rows; an
axis is the residual stream, the neurons of an MLP, the query or key heads, or the tokens.
Not covered: mixtures of experts, and attention whose query, key and value are stored in one matrix.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from prill.checkpoint.documents import whole
from prill.checkpoint.weights import field
from prill.record import Record

Axis = Literal["residual", "mlp", "query", "key", "token"]
EMBEDDING, HEAD, LAST_NORM = "embed_tokens.weight", "lm_head.weight", "norm.weight"
PRODUCT = "self_attn.vo"
"""A made-up matrix of each layer: the product W_o W_v of each query head, one below the other, (heads · width, width).
Rotations and scales that cancel between W_v and W_o leave it as it is."""
AXES: dict[str, tuple[Axis, Axis]] = {
    "self_attn.q_proj.weight": ("query", "residual"),
    "self_attn.k_proj.weight": ("key", "residual"),
    "self_attn.v_proj.weight": ("key", "residual"),
    "self_attn.o_proj.weight": ("residual", "query"),
    "mlp.gate_proj.weight": ("mlp", "residual"),
    "mlp.up_proj.weight": ("mlp", "residual"),
    "mlp.down_proj.weight": ("residual", "mlp"),
    PRODUCT: ("residual", "residual"),
}
"""Name inside a layer → axes of rows and columns."""
LAYER = re.compile(r"(layers\.\d+\.)(.+)")
MOST_HEADS = 1024


class Heads(Record, frozen=True, kw_only=True):
    """How attention is divided."""

    query: int
    key: int
    width: int
    """Rows of one head."""


class Role(Record, frozen=True, kw_only=True):
    """What one matrix does."""

    layer: str
    """Such as `layers.3.`; empty outside the layers."""
    rows: Axis
    columns: Axis
    norms: tuple[str, ...] = ()
    """Names that the norm in front of it may have; the first that a model has is meant."""


def role(name: str) -> Role | None:
    """The role of a tensor of that folded name, or `None` where it is not known."""
    if name == EMBEDDING:
        return Role(layer="", rows="token", columns="residual")
    if name == HEAD:
        return Role(layer="", rows="token", columns="residual", norms=(LAST_NORM,))
    found = LAYER.fullmatch(name)
    axes = AXES.get(found[2]) if found else None
    if found is None or axes is None:
        return None
    inner = {"self_attn": ("input_layernorm",), "mlp": ("pre_feedforward_layernorm", "post_attention_layernorm")}
    kinds = inner[found[2].split(".")[0]] if axes[1] == "residual" else ()
    norms = tuple(f"{found[1]}{kind}.weight" for kind in kinds)
    return Role(layer=found[1], rows=axes[0], columns=axes[1], norms=norms)


def heads(config: Mapping[str, Any]) -> Heads | None:
    """The attention heads that a config states, or `None` where it states none that can be."""
    stated = dict(config)
    query, key = field(stated, "num_attention_heads"), field(stated, "num_key_value_heads")
    width, hidden = field(stated, "head_dim"), field(stated, "hidden_size")
    key = query if key is None else key
    if not whole(query) or not whole(key) or not 0 < key <= query <= MOST_HEADS or query % key:
        return None
    if width is None and whole(hidden):
        width = hidden // query
    return Heads(query=query, key=key, width=width) if whole(width) and 0 < width <= 1 << 16 else None


def added_to_one(config: Mapping[str, Any]) -> bool:
    """Whether norms multiply by one plus their weight, as Gemma's do."""
    return str(field(dict(config), "model_type") or config.get("model_type") or "").startswith("gemma")


def layers(names: Iterable[str]) -> list[str]:
    """The layers that these tensors belong to, such as `layers.3.`, in order."""
    found = {match[1] for name in names if (match := LAYER.fullmatch(name))}
    return sorted(found, key=lambda layer: int(layer.split(".")[1]))


def products(shapes: Mapping[str, tuple[int, int]], divided: Heads | None) -> dict[str, tuple[int, int]]:
    """The made-up matrices of a model with these tensors, by name, with their shapes."""
    if divided is None:
        return {}
    made = {}
    for layer in layers(shapes):
        v, o = shapes.get(f"{layer}self_attn.v_proj.weight"), shapes.get(f"{layer}self_attn.o_proj.weight")
        fits = v and o and v[0] == divided.key * divided.width and o[1] == divided.query * divided.width
        if v and o and fits and v[1] == o[0]:
            made[layer + PRODUCT] = (divided.query * o[0], o[0])
    return made


def regular(shapes: Mapping[str, tuple[int, int]], divided: Heads | None) -> bool:
    """Whether every layer's matrices have the shapes that the embedding's width and the heads ask for."""
    width = shapes.get(EMBEDDING, (0, 0))[1]
    query, key = (divided.query * divided.width, divided.key * divided.width) if divided else (0, 0)
    for layer in layers(shapes):
        rows = shapes.get(f"{layer}mlp.gate_proj.weight", (0, 0))[0]
        sizes: dict[Axis, int] = {"residual": width, "mlp": rows, "query": query, "key": key}
        for block in ("self_attn.", "mlp."):
            names = [name for name in AXES if name.startswith(block) and name != PRODUCT]
            there = [name for name in names if layer + name in shapes]
            fits = all(shapes[layer + name] == tuple(sizes[axis] for axis in AXES[name]) for name in there)
            if len(there) not in (0, len(names)) or not fits:
                return False
    return width > 0
