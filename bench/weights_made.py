"""Seeded checkpoints for the rows about weights, and the plain expressions that they are held against."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Shapes = Mapping[str, tuple[int, int]]
QWEN = {"layers": 28, "width": 2048, "inner": 6144, "query": 2048, "key": 1024, "tokens": 151_936}
"""Qwen3-1.7B."""


def qwen_shapes() -> dict[str, tuple[int, int]]:
    """Matrices of Qwen3-1.7B, by name."""
    width, inner = QWEN["width"], QWEN["inner"]
    layer = {
        "self_attn.q_proj": (QWEN["query"], width),
        "self_attn.k_proj": (QWEN["key"], width),
        "self_attn.v_proj": (QWEN["key"], width),
        "self_attn.o_proj": (width, QWEN["query"]),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    found = {"model.embed_tokens.weight": (QWEN["tokens"], width)}
    for number in range(QWEN["layers"]):
        found |= {f"model.layers.{number}.{name}.weight": shape for name, shape in layer.items()}
    return found


def header(shapes: Shapes) -> tuple[bytes, dict[str, int]]:
    """The first bytes of a safetensors file of BF16 matrices, and where each begins in the file."""
    entries: dict[str, Any] = {}
    at = 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * shape[1]
        entries[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    starts = {name: 8 + len(text) + entry["data_offsets"][0] for name, entry in entries.items()}
    return len(text).to_bytes(8, "little") + text, starts


def bits(values: Any) -> Any:
    """BF16 by cutting; good enough for made-up numbers."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def drawn(seed: int, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """One matrix of submission, base and sibling: the submission is half of the sibling, and noise of its own."""
    rng = np.random.default_rng(seed)
    b, d, own = (rng.standard_normal(shape, dtype=np.float32) for _ in range(3))
    return bits(b + 0.05 * d + 0.02 * own), bits(b), bits(b + 0.1 * d)


def family(place: Path, shapes: Shapes) -> list[Path]:
    """Folders of a submission, a base and a sibling, every number drawn."""
    head, _ = header(shapes)
    folders = [place / name for name in ("submission", "base", "sibling")]
    files = []
    for folder in folders:
        folder.mkdir()
        files.append((folder / "model.safetensors").open("wb"))
        files[-1].write(head)
    for number, shape in enumerate(shapes.values()):
        for file, stored in zip(files, drawn(number, shape), strict=True):
            file.write(stored.tobytes())
    for file in files:
        file.close()
    return folders


def sparse(place: Path, shapes: Shapes, seed: int) -> list[Path]:
    """The same as files of full size in which only the places that a sample with this seed looks at are written."""
    from prill.checkpoint.values import Plan, fold, pick

    head, starts = header(shapes)
    folders = [place / name for name in ("submission", "base", "sibling")]
    files = []
    for folder in folders:
        folder.mkdir()
        files.append((folder / "model.safetensors").open("wb"))
        files[-1].write(head)
        files[-1].truncate(len(head) + sum(2 * rows * columns for rows, columns in shapes.values()))
    for number, (name, shape) in enumerate(shapes.items()):
        at = pick(fold(name), *shape, Plan(seed=seed))
        for file, stored in zip(files, drawn(number, (len(at.rows), len(at.columns))), strict=True):
            for row, values in zip(at.rows, stored, strict=True):
                file.seek(starts[name] + 2 * (int(row) * shape[1] + int(at.columns[0])))
                file.write(values.tobytes())
    for file in files:
        file.close()
    return folders


def plain(s: Any, b: Any, i: Any) -> list[float]:
    """The sums of three stored matrices as one would write them in numpy."""
    stored = [np.fromfile(w.path, np.uint16, offset=w.start, count=w.rows * w.columns) for w in (s, b, i)]
    sub, base, known = ((bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for bits in stored)
    moved, delta = sub - base, known - base
    return [
        float((base * base).sum()),
        float((base * moved).sum()),
        float((moved * moved).sum()),
        float((moved * delta).sum()),
        float((delta * delta).sum()),
        float((stored[0] == stored[1]).sum()),
        float((stored[0] == stored[2]).sum()),
    ]
