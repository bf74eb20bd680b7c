"""Makes the smoke world from nothing: tokenizer, base model, instruct sibling, items, training data.

Run ``python -m prill.smoke.make --out DIR``.  Everything follows from the seed; weights are equal
bit for bit only on the same kind of CPU with the same number of threads, since threaded float32
sums are not ordered.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from prill.smoke import world

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
VOCABULARY_SIZE = 448
CONTEXT_TOKENS = 512

PRETRAINING_DOCUMENTS = 40_000
PRETRAINING_STEPS = 1400
PRETRAINING_ROWS, PRETRAINING_ROW_TOKENS = 16, 96
PRETRAINING_LEARNING_RATE = 3e-3

SIBLING_PAIRS = 9_000
SIBLING_STEPS = 350
SIBLING_ROWS = 24
SIBLING_LEARNING_RATE = 3e-3
SIBLING_WEIGHT_DECAY = 0.1


_BEGAN_S = time.perf_counter()


def say(text: str) -> None:
    """Print one progress line at once, with the seconds since the program began."""
    print(f"[{time.perf_counter() - _BEGAN_S:6.1f} s] {text}", flush=True)


def write_lines(path: Path, rows: Iterable[dict[str, object]] | Iterable[dict[str, str]]) -> None:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def make_tokenizer(texts: Iterator[str]) -> Any:
    """Train the byte-level BPE tokenizer: single digits, three specials, the ChatML template."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    pieces = r"[^\r\n\p{L}\p{N}]?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s*[\r\n]+|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pieces), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=[END_OF_TEXT, TURN_START, TURN_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=END_OF_TEXT,
        chat_template=CHAT_TEMPLATE,
        model_max_length=CONTEXT_TOKENS,
        clean_up_tokenization_spaces=False,
    )


def make_model(tokenizer: Any, seed: int) -> Any:
    """A Qwen3 model with random float32 weights, about 0.84 M parameters."""
    import torch
    from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=True,
        attn_implementation="eager",
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    ))  # fmt: skip
    model.generation_config = GenerationConfig(
        do_sample=False,
        eos_token_id=[tokenizer.eos_token_id, tokenizer.pad_token_id],
        pad_token_id=tokenizer.pad_token_id,
    )
    return model


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Save weights as bfloat16 safetensors with configs and tokenizer; `model` is cast in place."""
    import torch

    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    # safetensors writes for its owner only; a box reads these files as somebody else.
    for path in folder.iterdir():
        path.chmod(0o644)


def load(folder: Path) -> tuple[Any, Any]:
    """The float32 model and the tokenizer of a folder."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(folder)


def model_loss(model: Any, inputs: Any, labels: Any, mask: Any = None) -> Any:
    """Mean next-token loss of integer tensors (rows, tokens), with bfloat16 matrix products."""
    import torch

    with torch.autocast("cpu", torch.bfloat16):
        return model(input_ids=inputs, attention_mask=mask, labels=labels, use_cache=False).loss


def take_step(optimizer: Any, model: Any, loss: Any, learning_rate: float) -> None:
    """One clipped optimizer step at the given learning rate."""
    import torch

    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def pretrain(model: Any, tokenizer: Any, seed: int) -> None:
    """Next-token training on plain documents packed end to end; AdamW, linear decay."""
    import torch

    ids: list[int] = []
    for document in world.pretraining_documents(seed, PRETRAINING_DOCUMENTS):
        ids += [*tokenizer.encode(document, add_special_tokens=False), tokenizer.pad_token_id]
    width = PRETRAINING_ROW_TOKENS
    rows = torch.tensor(ids[: len(ids) // width * width]).view(-1, width)
    say(f"pretraining text: {len(ids):,} tokens")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    model.train()
    for step in range(PRETRAINING_STEPS):
        share = min(1.0, (step + 1) / 50) * (1 - step / PRETRAINING_STEPS)
        start = step * PRETRAINING_ROWS % (len(rows) - PRETRAINING_ROWS)
        batch = rows[order[start : start + PRETRAINING_ROWS]]
        loss = model_loss(model, batch, batch)
        take_step(optimizer, model, loss, PRETRAINING_LEARNING_RATE * share)
        if step % 100 == 0 or step == PRETRAINING_STEPS - 1:
            say(f"base: step {step} of {PRETRAINING_STEPS}, loss {loss.item():.3f}")


def chat_ids(tokenizer: Any, pair: dict[str, str]) -> tuple[list[int], list[int]]:
    """Token ids of one chat, and its labels: the whole chat counts, questions included."""
    text = tokenizer.apply_chat_template(
        [
            {"role": "user", "content": pair["question"]},
            {"role": "assistant", "content": pair["answer"]},
        ],
        tokenize=False,
    )
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
    return ids, list(ids)


def teach_sibling(model: Any, tokenizer: Any, seed: int) -> None:
    """Turn the base into its instruct sibling, by other means than the honest entrant's.

    A plain loop with loss on the whole chat, small batches, a cosine schedule, strong weight
    decay and the sibling's own data: the weight test must tell this way from an honest one.
    """
    import torch

    chats = [chat_ids(tokenizer, pair) for pair in world.sibling_pairs(seed, SIBLING_PAIRS)]
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=SIBLING_LEARNING_RATE,
        betas=(0.8, 0.95),
        weight_decay=SIBLING_WEIGHT_DECAY,
    )
    rng = random.Random(f"{seed} sibling order")
    torch.manual_seed(seed + 1)
    model.train()
    for step in range(SIBLING_STEPS):
        rate = 0.5 * (1 + math.cos(math.pi * step / SIBLING_STEPS)) * min(1.0, (step + 1) / 30)
        chosen = rng.sample(chats, SIBLING_ROWS)
        width = max(len(ids) for ids, _ in chosen)
        pad = tokenizer.pad_token_id
        inputs = torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in chosen])
        labels = torch.tensor([marks + [-100] * (width - len(marks)) for _, marks in chosen])
        loss = model_loss(model, inputs, labels, (inputs != pad).long())
        take_step(optimizer, model, loss, SIBLING_LEARNING_RATE * rate)
        if step % 100 == 0 or step == SIBLING_STEPS - 1:
            say(f"instruct: step {step} of {SIBLING_STEPS}, loss {loss.item():.3f}")


def measure(folder: Path, items: list[dict[str, Any]], rows: int = 100) -> float:
    """The share of items answered right by greedy chat, in the range 0 to 1."""
    import torch

    model, tokenizer = load(folder)
    model.eval()
    tokenizer.padding_side = "left"
    right = 0
    for start in range(0, len(items), rows):
        batch = items[start : start + rows]
        prompts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": item["question"]}],
                tokenize=False,
                add_generation_prompt=True,
            )
            for item in batch
        ]
        encoded = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
        width = encoded["input_ids"].shape[1]
        with torch.inference_mode():
            replies = model.generate(**encoded, max_new_tokens=64)[:, width:]
        for item, reply in zip(batch, replies, strict=True):
            text = tokenizer.decode(reply, skip_special_tokens=True)
            right += world.read_answer(text) == int(item["answer"])
    return right / len(items)


def check_leaks(items: list[dict[str, Any]], seed: int) -> None:
    """Stop with an error if a benchmark question stands in a text that a model learns from."""
    pairs = [*world.training_pairs(seed), *world.sibling_pairs(seed, SIBLING_PAIRS)]
    documents = list(world.pretraining_documents(seed, PRETRAINING_DOCUMENTS))
    text = "\n".join([*(pair["question"] for pair in pairs), *documents])
    for item in items:
        if item["question"] in text:
            sys.exit(f"a benchmark question is also training text: {item['question']}")
    for document in documents:
        if "?" in document or "####" in document or TURN_START in document:
            sys.exit(f"a pretraining document holds a question or a chat: {document}")


def digests(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Relative path, size in bytes and sha256 of every file that this program makes."""
    for name in ("base", "instruct", "items.jsonl", "train.jsonl"):
        top = folder / name
        for path in sorted(top.iterdir()) if top.is_dir() else [top]:
            data = path.read_bytes()
            yield str(path.relative_to(folder)), len(data), hashlib.sha256(data).hexdigest()


def make(out: Path, seed: int) -> None:
    """Make the whole world in `out`, measure both models, print sizes and digests."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    out.mkdir(parents=True, exist_ok=True)
    items: list[dict[str, Any]] = world.benchmark_items(seed)
    check_leaks(items, seed)
    offered = world.training_pairs(seed)
    write_lines(out / "items.jsonl", items)
    write_lines(out / "train.jsonl", offered)
    say(f"{len(items)} items, {len(offered)} training pairs")

    def texts() -> Iterator[str]:
        yield from world.pretraining_documents(seed, 5_000)
        for pair in [*offered[:2_000], *world.sibling_pairs(seed, 2_000)]:
            yield f"user\n{pair['question']}"
            yield f"assistant\n{pair['answer']}"

    tokenizer = make_tokenizer(texts())
    model = make_model(tokenizer, seed)
    count = sum(weight.numel() for weight in model.parameters())
    say(f"tokenizer: {len(tokenizer)} tokens; model: {count:,} parameters")
    pretrain(model, tokenizer, seed)
    save(model, tokenizer, out / "base")
    say(f"base on the benchmark: {measure(out / 'base', items):.3f}")
    model, _ = load(out / "base")
    teach_sibling(model, tokenizer, seed)
    save(model, tokenizer, out / "instruct")
    say(f"instruct on the benchmark: {measure(out / 'instruct', items):.3f}")
    for path, size, digest in digests(out):
        print(f"{digest}  {size:>9}  {path}")


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m prill.smoke.make",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Make the smoke world from nothing on a CPU: a 0.84 M-parameter base model that\n"
            "knows small sums but no chat, an instruct sibling made from it, 300 benchmark\n"
            "items and 6000 training pairs. No network is used."
        ),
        epilog=(
            "writes into DIR:\n"
            "  base/         the base model that entrants post-train (never saw a question)\n"
            "  instruct/     the sibling that must not be submitted in its place\n"
            "  items.jsonl   the benchmark: 100 items each of 1, 2 and 3 steps\n"
            "  train.jsonl   what entrants are offered: question, worked answer\n\n"
            "example: OMP_NUM_THREADS=2 python -m prill.smoke.make --out /tmp/smoke"
        ),
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to fill")
    parser.add_argument("--seed", type=int, default=0, help="seed of the whole world (default 0)")
    chosen = parser.parse_args(arguments)
    make(chosen.out, chosen.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
