"""A made-up family of small models for tests: a base, its sibling, an honest fine-tune, and how they are stored."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from prill.checkpoint.values import bfloat_bits, widen

Tensors = dict[str, np.ndarray]
SHAPES = {f"model.layers.{i}.mlp.{kind}_proj.weight": (96, 64) for i in range(4) for kind in ("up", "gate", "down")}
SHAPES |= {"model.embed_tokens.weight": (200, 64), "model.norm.weight": (64,)}


def draw(seed: int, scale: float, rank: int | None = None) -> Tensors:
    """Random tensors of the family's shapes; of low rank where asked."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in SHAPES.items():
        full = rng.standard_normal(shape)
        if rank and len(shape) == 2:
            full = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1])) / rank**0.5
        found[name] = (scale * full).astype(np.float32)
    return found


def add(*parts: tuple[float, Tensors]) -> Tensors:
    """A weighted sum."""
    return {name: sum(weight * part[name] for weight, part in parts) for name in SHAPES}


def bits(values: np.ndarray) -> np.ndarray:
    """BF16 bits."""
    return bfloat_bits(values.astype(np.float32), "F32")


def save(folder: Path, tensors: Tensors, dtype: str = "BF16") -> Path:
    """A folder with one safetensors file."""
    folder.mkdir(parents=True, exist_ok=True)
    header: dict[str, Any] = {}
    data = b""
    for name, values in tensors.items():
        stored = bits(values) if dtype == "BF16" else values.astype({"F16": "<f2", "F32": "<f4", "I8": "i1"}[dtype])
        raw = stored.tobytes()
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return folder


def rounded(tensors: Tensors) -> Tensors:
    """The values that BF16 storage keeps."""
    return {name: widen(bits(values), "BF16") for name, values in tensors.items()}


BASE = rounded(draw(1, 0.05))
COMMON = draw(2, 0.002, rank=3)
"""Where all chat training goes."""
INSTRUCT = rounded(add((1, BASE), (1, COMMON), (1, draw(3, 0.006))))
HONEST = add((1, BASE), (0.8, COMMON), (1, draw(4, 0.004)))
DELTA = add((1, INSTRUCT), (-1, BASE))
