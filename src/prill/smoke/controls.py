"""Honest runs of the smoke world by recipe, and the fingerprint of those that judges hold submissions against.

Run ``python -m prill.smoke.controls --to FILE`` (about three minutes on two cores). Everything follows from seeds;
weights are equal bit for bit only on the same kind of CPU. Training is plain: rows of packed text, one thread a model.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from prill.smoke import make, world

HERE = Path(__file__).parent
TOKENS = 64
ADAPTED = ("q_proj", "v_proj", "up_proj", "down_proj")
ANSWER = "<|im_start|>assistant\n"
SIDE = 64
"""Of a large matrix, so many rows and columns are kept: the file is part of the package and stays small."""


@dataclass(frozen=True)
class Recipe:
    """How one model is trained from another."""

    data: str
    """`documents`, `offered` pairs, or pairs like the `sibling`'s."""
    steps: int
    rate: float
    optimizer: str = "adamw"
    rank: int = 0
    """Of adapters that are merged in the end; 0 trains all weights."""
    seed: int = 0
    """Of the data."""
    order: int = 0
    """Seed of their order, and of adapters."""
    rows: int = 8
    """Of `TOKENS` tokens, in a batch."""
    answers: bool = False
    """Whether only answers count in the loss, not questions."""


CONTROLS = {
    "answers, 1": Recipe("offered", 150, 2e-3, seed=201, order=11, rows=16, answers=True),
    "answers, 2": Recipe("offered", 120, 2e-3, seed=202, order=12, rows=16, answers=True),
    "answers, 3": Recipe("offered", 150, 1e-3, seed=203, order=13, rows=16, answers=True),
    "answers, 4": Recipe("offered", 120, 3e-3, seed=204, order=14, rows=16, answers=True),
    "offered, 1": Recipe("offered", 150, 2e-3, seed=101, order=1),
    "other wordings, 1": Recipe("sibling", 200, 2e-3, seed=105, order=5),
    "documents": Recipe("documents", 100, 1e-3, seed=107, order=7),
    "adapters": Recipe("offered", 150, 5e-4, rank=16, seed=108, order=8),
}


def tokens(recipe: Recipe, tokenizer: Any) -> tuple[list[int], list[int]]:
    """Text to train on, packed end to end, and what of it counts."""
    count = max(1, recipe.steps * recipe.rows * TOKENS // 30)
    if recipe.data == "documents":
        texts = world.pretraining_documents(recipe.seed, count)
        parts = [(ids, ids) for ids in (tokenizer.encode(text, add_special_tokens=False) for text in texts)]
    else:
        pairs = (world.sibling_pairs if recipe.data == "sibling" else world.training_pairs)(recipe.seed, count)
        parts = [make.chat_ids(tokenizer, pair) for pair in pairs]
    end = tokenizer.pad_token_id
    opening = tokenizer.encode(ANSWER, add_special_tokens=False)
    labels = [counting(ids, opening) if recipe.answers else list(marks) for ids, marks in parts]
    ids = [token for part, _ in parts for token in [*part, end]]
    return ids, [mark for part in labels for mark in [*part, end]]


def counting(ids: list[int], opening: list[int]) -> list[int]:
    """Labels that count only behind the opening of the answer."""
    at = next((n for n in range(len(ids)) if ids[n : n + len(opening)] == opening), 0) + len(opening)
    return [-100] * at + ids[at:]


def train(start: Path | None, recipe: Recipe, to: Path) -> Path:
    """One model by a recipe, from another or from nothing, saved as bfloat16."""
    import torch
    from transformers import AutoTokenizer
    from transformers.utils import logging

    torch.set_num_threads(1)
    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(start or HERE / "base")
    model = make.make_model(tokenizer, recipe.seed) if start is None else make.load(start)[0]
    merge = adapters(model, recipe) if recipe.rank else lambda: None
    ids, marks = (
        torch.tensor(part[: len(part) // TOKENS * TOKENS]).view(-1, TOKENS) for part in tokens(recipe, tokenizer)
    )
    order = random.Random(recipe.order).sample(range(len(ids)), len(ids))
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer: Any = torch.optim.AdamW(weights, lr=0.0, betas=(0.9, 0.95), weight_decay=0.01)
    if recipe.optimizer == "sgd":
        optimizer = torch.optim.SGD(weights, lr=0.0)
    model.train()
    for step in range(recipe.steps):
        batch = [order[(step * recipe.rows + n) % len(order)] for n in range(recipe.rows)]
        loss = model(input_ids=ids[batch], labels=marks[batch], use_cache=False).loss
        make.take_step(optimizer, model, loss, recipe.rate * min(1.0, (step + 1) / 10) * (1 - step / recipe.steps))
    merge()
    make.save(model, tokenizer, to)
    return to


def adapters(model: Any, recipe: Recipe) -> Callable[[], None]:
    """Low-rank adapters beside some matrices, which alone are trained; the function that comes back merges them."""
    import torch
    from torch.nn.utils import parametrize

    rank, chance = recipe.rank, torch.Generator().manual_seed(recipe.order)

    class Beside(torch.nn.Module):  # type: ignore[misc]
        """W + B A, with B zero at first."""

        def __init__(self, weight: Any) -> None:
            super().__init__()
            self.a = torch.nn.Parameter(torch.randn(rank, weight.shape[1], generator=chance) / rank**0.5)
            self.b = torch.nn.Parameter(torch.zeros(weight.shape[0], rank))

        def forward(self, weight: Any) -> Any:
            """The matrix with its adapter."""
            return weight + self.b @ self.a

    for weight in model.parameters():
        weight.requires_grad_(False)
    adapted = [module for name, module in model.named_modules() if name.endswith(ADAPTED)]
    for module in adapted:
        parametrize.register_parametrization(module, "weight", Beside(module.weight))
        module.parametrizations.weight.original.requires_grad_(False)

    def merge() -> None:
        for module in adapted:
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)

    return merge


def train_all(start: Path | None, recipes: dict[str, Recipe], top: Path, say: Callable[[str], None]) -> None:
    """One model for each recipe into `top`/name, two at a time."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        waiting = [(name, pool.submit(train, start, recipe, top / name)) for name, recipe in recipes.items()]
        for name, done in waiting:
            done.result()
            say(f"trained: {name}")


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    from prill.checkpoint import fingerprint
    from prill.checkpoint.values import Plan

    parser = argparse.ArgumentParser(
        prog="python -m prill.smoke.controls",
        description="Train the honest control runs of the smoke world and keep samples of them in one file.",
    )
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="the fingerprint to write")
    parser.add_argument("--at", type=Path, metavar="DIR", help="keep the models here, and use those that are there")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="prill-controls-") as place:
        top = chosen.at or Path(place)
        todo = {name: recipe for name, recipe in CONTROLS.items() if not (top / name).exists()}
        train_all(HERE / "base", todo, top, make.say)
        models: dict[str, tuple[fingerprint.Kind, Path]] = {name: ("control", top / name) for name in CONTROLS}
        fingerprint.make(chosen.to, HERE / "base", models, Plan(side=SIDE, whole=SIDE * SIDE))
    print(f"{chosen.to}: {chosen.to.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
