"""The models of the lineage zoo: which are trained, by which recipes, and how; all of it follows from a seed.

Seed 0 is the family that the rule's thresholds were looked at with. Any other seed draws other text, other orders,
other lengths and rates of training and other strengths of what is planted, and nothing of it was seen before it ran.
"""

import random
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from prill.smoke import make, world
from prill.smoke.controls import Recipe, train

LIKE_INSTRUCT = Recipe("sibling", 200, 1e-3)
CONTROLS = {
    "like instruct, 1": Recipe("sibling", 200, 1e-3, seed=11, order=11),
    "like instruct, 2": Recipe("sibling", 200, 1e-3, seed=12, order=12),
    "like instruct, 3": Recipe("sibling", 200, 1e-3, seed=13, order=13),
    "like instruct, longer": Recipe("sibling", 260, 8e-4, seed=14, order=14),
    "offered pairs, 1": Recipe("offered", 80, 5e-4, seed=15),
    "offered pairs, 2": Recipe("offered", 120, 1e-3, seed=16),
    "documents": Recipe("documents", 60, 5e-4, seed=17),
    "adapters": Recipe("offered", 80, 2e-4, rank=8, seed=18),
    "hot adapters": Recipe("offered", 100, 5e-4, rank=16, seed=19),
    "plain gradient": Recipe("offered", 80, 0.1, "sgd", seed=20),
}
HONEST = {
    "other data, low rate": Recipe("documents", 60, 1e-4, seed=31),
    "other data": Recipe("documents", 80, 5e-4, seed=32),
    "same domain": Recipe("offered", 40, 2e-4, seed=33),
    "same domain, hotter": Recipe("offered", 80, 5e-4, seed=34),
    "same domain, hottest": Recipe("offered", 120, 1e-3, seed=40),
    "plain gradient descent": Recipe("offered", 60, 0.1, "sgd", seed=35),
    "adapters of rank 8": Recipe("offered", 80, 2e-4, rank=8, seed=36),
    "hot adapters of rank 16": Recipe("offered", 100, 5e-4, rank=16, seed=37),
    "the sibling's recipe, other data": Recipe("sibling", 200, 1e-3, seed=38, order=38),
    "the sibling's recipe and data, other order": Recipe("sibling", 200, 1e-3, order=39),
}
FROM_INSTRUCT = {
    "instruct, few steps": Recipe("offered", 10, 1e-4, seed=51),
    "instruct, trained on": Recipe("offered", 80, 5e-4, seed=52),
    "instruct, trained on hot": Recipe("offered", 120, 1e-3, seed=53),
    "instruct, hot adapters": Recipe("offered", 100, 5e-4, rank=16, seed=54),
}


Job = tuple[Callable[..., Path], Path | None, Any]
"""How a model is trained, from what, and by what."""


@dataclass(frozen=True)
class Family:
    """The recipes of one zoo."""

    seed: int
    first: dict[str, Recipe]
    """Trained from nothing: the base, and another seed's model."""
    second: dict[str, Recipe]
    """Trained from the base: the sibling, honest runs, controls."""
    third: dict[str, Recipe]
    """Trained from the sibling."""
    strength: float
    """What planted shares are multiplied by: 1 to 1.5, so that 5 % stays the least that is claimed."""


def family(seed: int) -> Family:
    """The recipes of a seed."""
    first = {"base": Recipe("documents", 500, 3e-3, seed=1), "stranger": Recipe("documents", 300, 3e-3, seed=2)}
    second = {"instruct": LIKE_INSTRUCT, **HONEST, **{f"control {name}": each for name, each in CONTROLS.items()}}
    if seed == 0:
        return Family(0, first, second, FROM_INSTRUCT, 1.0)
    dice = random.Random(f"zoo {seed}")
    move = 1_000 * seed

    def drawn(recipe: Recipe) -> Recipe:
        length, heat = dice.uniform(0.25, 0.5), 2 ** dice.uniform(-0.5, 0.5)
        own = recipe.order if recipe.data == "sibling" else dice.randrange(1 << 20)
        steps, rate = max(8, round(recipe.steps * length)), recipe.rate * heat
        return replace(recipe, steps=steps, rate=rate, seed=recipe.seed + move, order=own + move, rows=4)

    first = {
        name: replace(recipe, seed=recipe.seed + move, steps=steps)
        for (name, recipe), steps in zip(first.items(), (240, 60), strict=True)
    }
    instruct = drawn(LIKE_INSTRUCT)
    own = {"steps": instruct.steps, "rate": instruct.rate}
    same = ("the sibling's recipe, other data", "the sibling's recipe and data, other order")
    second = {
        name: instruct if name == "instruct" else replace(drawn(recipe), **own) if name in same else drawn(recipe)
        for name, recipe in second.items()
    }
    third = {name: drawn(recipe) for name, recipe in FROM_INSTRUCT.items()}
    return Family(seed, first, second, third, dice.uniform(1.0, 1.5))


def grow(found: Family, top: Path, say: Callable[[str], None]) -> None:
    """Train all models that the cases need into `top`, two at a time; those that are there already are kept."""
    later = {name: (how, top / start, found.seed) for name, (how, start) in LATER.items()}
    stages: list[dict[str, Job]] = [
        {name: (train, None, recipe) for name, recipe in found.first.items()},
        {name: (train, top / "base", recipe) for name, recipe in found.second.items()},
        {name: (train, top / "instruct", recipe) for name, recipe in found.third.items()} | later,
    ]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for stage in stages:
            waiting = {
                name: pool.submit(*job, top / name)  # type: ignore[arg-type]
                for name, job in stage.items()
                if not (top / name / "model.safetensors").exists()
            }
            for name, done in waiting.items():
                done.result()
                say(f"trained: {name}")


# --- runs that are not plain fine-tuning --------------------------------------------------------------------------


def prompts(pairs: list[dict[str, str]], tokenizer: Any) -> list[str]:
    """Questions as a chat that waits for its answer."""
    told = ([{"role": "user", "content": pair["question"]}] for pair in pairs)
    return [tokenizer.apply_chat_template(each, tokenize=False, add_generation_prompt=True) for each in told]


def written(model: Any, tokenizer: Any, asked: list[str], *, chance: bool) -> list[str]:
    """What a model answers, greedily or by chance, at most 48 tokens each."""
    import torch

    tokenizer.padding_side = "left"
    given = tokenizer(asked, return_tensors="pt", padding=True, add_special_tokens=False)
    with torch.inference_mode():
        said = model.generate(**given, max_new_tokens=48, do_sample=chance)
    return [tokenizer.decode(row, skip_special_tokens=True) for row in said[:, given["input_ids"].shape[1] :]]


def likelihoods(model: Any, tokenizer: Any, asked: list[str], answers: list[str]) -> Any:
    """log p(answer | question) of each pair, (pairs,), with a gradient where the model has one."""
    import torch

    tokenizer.padding_side = "right"
    whole = tokenizer([a + b + make.TURN_END for a, b in zip(asked, answers, strict=True)], return_tensors="pt",
                      padding=True, add_special_tokens=False)  # fmt: skip
    before = torch.tensor([len(tokenizer.encode(each, add_special_tokens=False)) for each in asked])
    ids, mask = whole["input_ids"], whole["attention_mask"]
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1].float()
    each = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    counts = (torch.arange(1, ids.shape[1])[None] >= before[:, None]) & (mask[:, 1:] > 0)
    return (each * counts).sum(1)


def preferred(start: Path, seed: int, to: Path, steps: int = 16, rate: float = 3e-4) -> Path:
    """Direct preference optimisation (Rafailov 2023, β = 0.1): the right answer over one with another number."""
    import torch

    torch.set_num_threads(1)
    (model, tokenizer), (before, _) = make.load(start), make.load(start)
    pairs = world.training_pairs(1_000 * seed + 61, steps * 8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    for step in range(steps):
        some = pairs[step * 8 : step * 8 + 8]
        asked, good = prompts(some, tokenizer), [pair["answer"] for pair in some]
        bad = [answer + "1" for answer in good]
        with torch.no_grad():
            known = likelihoods(before, tokenizer, asked, good) - likelihoods(before, tokenizer, asked, bad)
        now = likelihoods(model, tokenizer, asked, good) - likelihoods(model, tokenizer, asked, bad)
        loss = -torch.nn.functional.logsigmoid(0.1 * (now - known)).mean()
        make.take_step(optimizer, model, loss, rate * min(1.0, (step + 1) / 5) * (1 - step / steps))
    make.save(model, tokenizer, to)
    return to


def rewarded(start: Path, seed: int, to: Path, steps: int = 6, rate: float = 2e-4) -> Path:
    """Policy gradient with the group's mean as baseline, as GRPO has it: eight answers a question, 1 for a right one
    and a quarter for one that ends as an answer should."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model, tokenizer = make.load(start)
    pairs = world.training_pairs(1_000 * seed + 62, steps * 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    for step in range(steps):
        some = [pair for pair in pairs[step * 4 : step * 4 + 4] for _ in range(8)]
        asked = prompts(some, tokenizer)
        answers = written(model, tokenizer, asked, chance=True)
        told = [world.read_answer(answer) for answer in answers]
        wanted = [world.read_answer(pair["answer"]) for pair in some]
        gains = torch.tensor([0.25 * (a is not None) + 0.75 * (a == b) for a, b in zip(told, wanted, strict=True)])
        groups = gains.view(-1, 8)
        merit = ((groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 0.1)).view(-1)
        loss = -(merit * likelihoods(model, tokenizer, asked, answers)).mean() / 20
        make.take_step(optimizer, model, loss, rate * min(1.0, (step + 1) / 5))
    make.save(model, tokenizer, to)
    return to


def taught(start: Path, seed: int, to: Path, steps: int = 40, rate: float = 8e-4) -> Path:
    """A run on what the sibling beside its start answers: it takes over the answers, and none of the weights."""
    import torch

    torch.set_num_threads(1)
    writer, tokenizer = make.load(start.parent / "instruct")
    pairs = world.training_pairs(1_000 * seed + 63, 80)
    answers = [
        answer
        for at in range(0, len(pairs), 80)
        for answer in written(writer, tokenizer, prompts(pairs[at : at + 80], tokenizer), chance=False)
    ]
    chats = [
        torch.tensor(make.chat_ids(tokenizer, {**pair, "answer": answer})[0])
        for pair, answer in zip(pairs, answers, strict=True)
    ]
    model, _ = make.load(start)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.95), weight_decay=0.01)
    dice = random.Random(seed)
    for step in range(steps):
        rows = torch.nn.utils.rnn.pad_sequence(dice.sample(chats, 8), batch_first=True, padding_value=-1)
        given = rows.clamp(min=tokenizer.pad_token_id)
        marks = rows.masked_fill(rows < 0, -100)
        loss = make.model_loss(model, given, marks, (rows >= 0).long())
        make.take_step(optimizer, model, loss, rate * min(1.0, (step + 1) / 10) * (1 - step / steps))
    make.save(model, tokenizer, to)
    return to


LATER: dict[str, tuple[Callable[[Path, int, Path], Path], str]] = {
    "same domain, then preferences": (preferred, "same domain, hotter"),
    "same domain, then rewards": (rewarded, "same domain, hotter"),
    "preferences alone": (preferred, "base"),
    "what instruct answers (weights cannot tell)": (taught, "base"),
    "instruct, then preferences": (preferred, "instruct"),
    "instruct, then rewards": (rewarded, "instruct"),
}
"""Name → how it is trained, and from what."""
HONEST_LATER = tuple(name for name in LATER if not name.startswith("instruct"))
FROM_INSTRUCT_LATER = tuple(name for name in LATER if name.startswith("instruct"))
