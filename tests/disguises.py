"""What hides a copy without changing what it computes, and other things that are done to weights; on plain arrays.

Weights are a mapping of a Llama-style model's tensor names to float32 arrays, with tied embeddings.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from prill.checkpoint.values import Pick, open_weights, read, widen

Tensors = dict[str, np.ndarray]
HEADS, KEYS, WIDTH = 4, 2, 32
"""Query heads, key heads, and the width of one, of the models that are disguised."""
RESIDUAL_COLUMNS = ("embed_tokens", "q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "lm_head")
RESIDUAL_ROWS = ("o_proj", "down_proj")


def load(folder: Path) -> Tensors:
    """All tensors of a checkpoint, by their full names."""
    weights = open_weights(folder)
    found = {}
    for name, place in (weights.places | weights.vectors).items():
        every = Pick(rows=np.arange(place.rows), columns=np.arange(place.columns))
        values = widen(read(place, every), place.dtype)
        found["model." + name] = values if name in weights.places else values[0]
    return found


def kind(name: str) -> str:
    """`q_proj` of `model.layers.0.self_attn.q_proj.weight`."""
    return name.split(".")[-2]


def layers(tensors: Tensors) -> list[str]:
    """Prefixes such as `model.layers.0.`."""
    return sorted({name[: name.index(".", 13) + 1] for name in tensors if name.startswith("model.layers.")})


def permuted(tensors: Tensors, seed: int = 0) -> Tensors:
    """The residual stream, the neurons and the heads (keys with their queries) in another order."""
    rng = np.random.default_rng(seed)
    stream = rng.permutation(tensors["model.norm.weight"].size)
    found = {}
    for name, values in tensors.items():
        if kind(name) in RESIDUAL_COLUMNS:
            values = values[:, stream]
        elif kind(name) in RESIDUAL_ROWS or (values.ndim == 1 and values.size == stream.size):
            values = values[stream]
        found[name] = values
    for layer in layers(tensors):
        neurons = rng.permutation(len(found[f"{layer}mlp.gate_proj.weight"]))
        keys = rng.permutation(KEYS)
        group = HEADS // KEYS
        queries = np.concatenate([key * group + rng.permutation(group) for key in keys])
        for names, order in (
            ("gate_proj up_proj", neurons),
            ("q_proj", spread(queries)),
            ("k_proj v_proj", spread(keys)),
        ):
            for part in names.split():
                block = "mlp" if order is neurons else "self_attn"
                found[f"{layer}{block}.{part}.weight"] = found[f"{layer}{block}.{part}.weight"][order]
        found[f"{layer}mlp.down_proj.weight"] = found[f"{layer}mlp.down_proj.weight"][:, neurons]
        out = f"{layer}self_attn.o_proj.weight"
        found[out] = found[out][:, spread(queries)]
    return found


def spread(heads: np.ndarray) -> np.ndarray:
    """Rows of these heads."""
    return (heads[:, None] * WIDTH + np.arange(WIDTH)).ravel()


def rescaled(tensors: Tensors, seed: int = 0) -> Tensors:
    """Rows of `up` times a factor that the columns of `down` undo."""
    rng, found = np.random.default_rng(seed), dict(tensors)
    for layer in layers(tensors):
        up, down = f"{layer}mlp.up_proj.weight", f"{layer}mlp.down_proj.weight"
        scale = np.exp(rng.normal(0, 1, len(found[up]))) * rng.choice((-1, 1), len(found[up]))
        found[up], found[down] = found[up] * scale[:, None], found[down] / scale
    return found


def turned_values(tensors: Tensors, seed: int = 0) -> Tensors:
    """The value heads rotated, and the output matrix with them."""
    rng, found = np.random.default_rng(seed), dict(tensors)
    for layer in layers(tensors):
        v, o = f"{layer}self_attn.v_proj.weight", f"{layer}self_attn.o_proj.weight"
        found[v], found[o] = found[v].copy(), found[o].copy()
        for key in range(KEYS):
            turn = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
            rows = slice(key * WIDTH, (key + 1) * WIDTH)
            found[v][rows] = turn @ found[v][rows]
            for head in range(key * HEADS // KEYS, (key + 1) * HEADS // KEYS):
                columns = slice(head * WIDTH, (head + 1) * WIDTH)
                found[o][:, columns] = found[o][:, columns] @ turn.T
    return found


def rotated(tensors: Tensors, seed: int = 0) -> Tensors:
    """The whole residual stream rotated: norms are folded into what reads them, and the head is untied."""
    width = tensors["model.norm.weight"].size
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(width, width)))[0]
    found = dict(tensors)
    head = tensors.get("lm_head.weight", tensors["model.embed_tokens.weight"]) * tensors["model.norm.weight"]
    found["lm_head.weight"] = head @ turn
    found["model.embed_tokens.weight"] = tensors["model.embed_tokens.weight"] @ turn
    for layer in layers(tensors):
        for norm, block, parts in (
            ("input_layernorm", "self_attn", "q_proj k_proj v_proj"),
            ("post_attention_layernorm", "mlp", "gate_proj up_proj"),
        ):
            for part in parts.split():
                name = f"{layer}{block}.{part}.weight"
                found[name] = (tensors[name] * tensors[f"{layer}{norm}.weight"]) @ turn
            found[f"{layer}{norm}.weight"] = np.ones(width, np.float32)
        for name in (f"{layer}self_attn.o_proj.weight", f"{layer}mlp.down_proj.weight"):
            found[name] = turn.T @ tensors[name]
    found["model.norm.weight"] = np.ones(width, np.float32)
    return {name: values.astype(np.float32) for name, values in found.items()}


DISGUISES: dict[str, Callable[[Tensors], Tensors]] = {
    "permuted": permuted,
    "permuted and rescaled": lambda tensors: rescaled(permuted(tensors)),
    "value heads rotated": turned_values,
    "stream rotated": rotated,
    "stream rotated, permuted, rescaled, value heads rotated": lambda t: rotated(turned_values(rescaled(permuted(t)))),
}
"""Name → what is done to all weights."""


def merged(base: Tensors, other: Tensors, share: float) -> Tensors:
    """A weighted sum."""
    return {name: values + share * (other[name] - values) for name, values in base.items()}


def dropped(base: Tensors, other: Tensors, kept: float, seed: int = 0) -> Tensors:
    """DARE: a random part of the difference is kept and scaled up, the rest is the base's."""
    rng = np.random.default_rng(seed)
    return {
        name: values + (rng.random(values.shape) < kept) * (other[name] - values) / kept
        for name, values in base.items()
    }


def noised(tensors: Tensors, share: float, seed: int = 0) -> Tensors:
    """Noise on every matrix, of that share of its size."""
    rng = np.random.default_rng(seed)
    return {
        name: values + share * values.std() * rng.standard_normal(values.shape) if values.ndim > 1 else values
        for name, values in tensors.items()
    }


def four_bits(tensors: Tensors, most: int = 7) -> Tensors:
    """A round trip through four-bit numbers (-`most` to `most`) with a scale for every 32 neighbours."""

    def rough(values: np.ndarray) -> np.ndarray:
        blocks = values.reshape(-1, 32)
        step = np.maximum(np.abs(blocks).max(axis=1, keepdims=True) / most, 1e-12)
        return (np.round(blocks / step) * step).reshape(values.shape).astype(np.float32)

    return {name: rough(values) if values.ndim > 1 else values for name, values in tensors.items()}


def eight_bits(tensors: Tensors) -> Tensors:
    """The same with eight bits."""
    return four_bits(tensors, 127)


def config(vocabulary: int, width: int = HEADS * WIDTH) -> dict[str, Any]:
    """What a config says about such a model's shape."""
    return {
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "hidden_size": width,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEYS,
        "head_dim": WIDTH,
        "vocab_size": vocabulary,
    }


def save_config(folder: Path, vocabulary: int) -> Path:
    """The config beside a folder's weights."""
    (folder / "config.json").write_text(json.dumps(config(vocabulary)))
    return folder
