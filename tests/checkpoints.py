"""Checkpoint folders for tests, written out of a short description: the acceptance cases' own form."""

import json
from pathlib import Path
from typing import Any

from prill.checkpoint.audit import Report
from prill.checkpoint.context import Context
from prill.checkpoint.tensors import BITS

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 8,
    "vocab_size": 32,
    "max_position_embeddings": 512,
    "rope_theta": 1000000,
    "tie_word_embeddings": True,
    "dtype": "bfloat16",
}
NAMES = {"1": "<|im_start|>", "2": "<|endoftext|>", "3": "<|im_end|>"}
GOOD: dict[str, Any] = {
    "config.json": CONFIG,
    "generation_config.json": {"eos_token_id": [3, 2], "do_sample": True, "temperature": 0.6},
    "tokenizer_config.json": {
        "eos_token": "<|im_end|>",
        "chat_template": CHATML,
        "added_tokens_decoder": {number: {"content": token} for number, token in NAMES.items()},
    },
    "tokenizer.json": {"$tokenizer_len": 30},
    "model.safetensors": {"$safetensors": {"model.embed_tokens.weight": ["BF16", [32, 8]]}},
}
KNOWN = Context(need_tokens=64)


def put(folder: Path, files: dict[str, Any]) -> Path:
    """The files of a case, written out."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        target = folder / name
        match value:
            case {"$raw": text}:
                target.write_text(text)
            case {"$bytes": size}:
                target.write_bytes(bytes(size))
            case {"$symlink": to}:
                target.symlink_to(to)
            case {"$dir": inner}:
                put(target, inner)
            case {"$safetensors": shapes}:
                target.write_bytes(packed(shapes))
            case {"$tokenizer_len": count}:
                vocab = {f"t{number}": number for number in range(count)}
                target.write_text(json.dumps({"model": {"type": "BPE", "vocab": vocab}}))
            case _:
                target.write_text(json.dumps(value))
    return folder


def packed(shapes: dict[str, list[Any]], data: bytes | None = None) -> bytes:
    """A safetensors file of these tensors: zeros, or the given bytes."""
    header, at = {}, 0
    for name, (dtype, shape) in shapes.items():
        size = BITS[dtype] // 8
        for side in shape:
            size *= side
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + (bytes(at) if data is None else data)


def codes(report: Report) -> set[str]:
    """The codes of a report."""
    return {fault.code for fault in report.faults}
