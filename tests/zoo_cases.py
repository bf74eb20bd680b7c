"""The submissions of the lineage zoo: each a name, what is true of it, and how it is made from the family's models."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import disguises
from disguises import Tensors, dropped, eight_bits, four_bits, kind, load, merged, noised
from families import save
from zoo_family import FROM_INSTRUCT, FROM_INSTRUCT_LATER, HONEST, HONEST_LATER

CAUGHT = ("copy of instruct", "from instruct", "contains instruct")
ACQUITTED = ("descends from base", "copy of base")
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
SAME_RECIPE = ("the sibling's recipe, other data", "the sibling's recipe and data, other order")
MAY_BE_REVIEWED = ("hot adapters of rank 16", *SAME_RECIPE)
"""Runs that move as far along the sibling's way as the sibling did: a program must not decide these alone."""


@dataclass(frozen=True)
class Case:
    """One submission of the zoo."""

    name: str
    truth: str
    """`honest`, `instruct`, `stranger`, or `blind`: known to be missed or left for review."""
    make: Callable[[Path], Path]
    """Writes it into a folder."""
    reviewed: bool = False
    """Whether `review` is right as well."""


def right(case: Case, word: str) -> bool:
    """Whether a verdict is one that the case may get; what was made from the sibling may fail closed."""
    closed = "not shown to descend"
    allowed = {"honest": ACQUITTED, "instruct": (*CAUGHT, closed), "stranger": (closed,), "blind": ()}[case.truth]
    return word in allowed or (case.reviewed and word == "review")


@dataclass(frozen=True)
class Models:
    """The family, loaded."""

    top: Path
    base: Tensors
    instruct: Tensors
    strength: float

    def made(self, change: Callable[[], Tensors]) -> Callable[[Path], Path]:
        """A folder out of changed weights."""

        def write(to: Path) -> Path:
            found = change()
            return disguises.save_config(save(to, found), len(found[EMBEDDING]))

        return write

    def share(self, at_least: float) -> float:
        """A planted share: what is claimed, or more."""
        return min(0.95, at_least * self.strength)


def cases(top: Path, strength: float = 1.0) -> Iterator[Case]:
    """All submissions, once the family has been trained below `top`."""
    models = Models(top, load(top / "base"), load(top / "instruct"), strength)
    yield from honest(models)
    yield Case("another seed's model", "stranger", lambda to: top / "stranger")
    yield from descended(models)
    yield from mixed(models)
    yield from on_runs(models)
    yield from in_parts(models)
    yield from disguised(models)


def honest(models: Models) -> Iterator[Case]:
    """What nobody should be accused of."""
    top, base, made = models.top, models.base, models.made
    yield Case("copy of the base", "honest", made(lambda: base))
    for name, change in (("4-bit", four_bits), ("8-bit", eight_bits)):
        yield Case(f"base, {name} round trip", "honest", made(lambda change=change: change(base)))
    yield Case("base, 1% noise", "honest", made(lambda: noised(base, 0.01)))
    for name in (*HONEST, *HONEST_LATER):
        yield Case(name, "honest", lambda to, name=name: top / name, name in MAY_BE_REVIEWED)
    run = "same domain"
    yield Case(f"{run}, more tokens, head untied", "honest", made(lambda: longer(load(top / run))))
    for name in ("permuted", "stream rotated"):
        change = disguises.DISGUISES[name]
        yield Case(f"{run}, {name}", "honest", made(lambda change=change: change(load(top / run))))
    two = ("same domain, hotter", "other data")
    yield Case("two honest runs, merged", "honest", made(lambda: merged(load(top / two[0]), load(top / two[1]), 0.5)))
    some = "layers.1."
    yield Case("one layer trained", "honest", made(lambda: swapped(base, load(top / two[0]), lambda n: some in n)))
    yield Case("embedding trained", "honest", made(lambda: swapped(base, load(top / two[0]), lambda n: "embed" in n)))


def descended(models: Models) -> Iterator[Case]:
    """The sibling itself, and what was trained, rounded or noised from it."""
    top, instruct, made = models.top, models.instruct, models.made
    yield Case("copy of instruct", "instruct", made(lambda: instruct))
    for name in (*FROM_INSTRUCT, *FROM_INSTRUCT_LATER):
        yield Case(name, "instruct", lambda to, name=name: top / name)
    for share in (0.01, 0.05):
        yield Case(f"instruct, {share:.0%} noise", "instruct", made(lambda share=share: noised(instruct, share)))
    for name, change in (("4-bit", four_bits), ("8-bit", eight_bits)):
        yield Case(f"instruct, {name} round trip", "instruct", made(lambda change=change: change(instruct)))
    yield Case("instruct, more tokens, head untied", "instruct", made(lambda: longer(instruct)))


def mixed(models: Models) -> Iterator[Case]:
    """The base and the sibling, by arithmetic alone."""
    base, instruct, made = models.base, models.instruct, models.made
    for share in (0.02, 0.05, 0.1, 0.3, 0.5, 0.9):
        exact = models.share(share)
        yield Case(f"merge, {share:.0%}", "instruct", made(lambda exact=exact: merged(base, instruct, exact)))
    yield Case("slerp, 30%", "instruct", made(lambda: between(base, instruct, models.share(0.3))))
    yield Case("negated, 30%", "instruct", made(lambda: merged(base, instruct, -models.share(0.3))))
    yield Case("extrapolated, 130%", "instruct", made(lambda: merged(base, instruct, 1.3)))
    yield Case("DARE, a tenth kept", "instruct", made(lambda: dropped(base, instruct, 0.1)), True)
    yield Case(
        "DARE, a tenth kept, 30%", "instruct", made(lambda: merged(base, dropped(base, instruct, 0.1), 0.3)), True
    )
    yield Case("TIES, a fifth kept", "instruct", made(lambda: largest(base, instruct, 0.2)), True)
    yield Case(
        "TIES, a fifth kept, 50%", "instruct", made(lambda: merged(base, largest(base, instruct, 0.2), 0.5)), True
    )


def on_runs(models: Models) -> Iterator[Case]:
    """Part of the sibling's difference on top of an honest run, or in the place of as much of it."""
    top, base, instruct, made = models.top, models.base, models.instruct, models.made
    on_top = {"same domain": (0.05, 0.1, 0.3), "same domain, hotter": (0.1,), "other data": (0.05,),
              "plain gradient descent": (0.05,), "adapters of rank 8": (0.05,), "hot adapters of rank 16": (0.3,),
              "same domain, then preferences": (0.1,)}  # fmt: skip
    for name, shares in on_top.items():
        for share in shares:
            exact = models.share(share)
            plus = made(lambda name=name, exact=exact: added(load(top / name), base, instruct, exact))
            lenient = name in MAY_BE_REVIEWED or name.startswith("same domain, ") or share >= 0.2
            yield Case(f"{name}, and {share:.0%}", "instruct", plus, lenient)
    run = "same domain"
    for share in (0.1, 0.5):
        exact = models.share(share)
        both = made(lambda exact=exact: merged(load(top / run), instruct, exact))
        yield Case(f"{run}, merged with {share:.0%}", "instruct", both, share >= 0.2)
    minus = made(lambda: added(load(top / run), base, instruct, -models.share(0.1)))
    yield Case(f"{run}, less 10%", "instruct", minus, True)
    name = SAME_RECIPE[0]
    plus = made(lambda: added(load(top / name), base, instruct, models.share(0.1)))
    yield Case(f"{name}, and 10%", "blind", plus, True)


def in_parts(models: Models) -> Iterator[Case]:
    """The sibling in some matrices only."""
    top, base, instruct, made = models.top, models.base, models.instruct, models.made
    for name, inside in PARTS.items():
        yield Case(f"{name} of instruct", "instruct", made(lambda inside=inside: swapped(base, instruct, inside)))
    some = {key: PARTS[key] for key in ("two layers", "the MLPs", "the embedding")}
    for name, inside in some.items():
        exact = models.share(0.3)
        part = made(lambda inside=inside, exact=exact: swapped(base, merged(base, instruct, exact), inside))
        yield Case(f"30% in {name}", "instruct", part)
    for run in ("same domain", "other data"):
        for name, share in (("two layers", 0.3), ("two layers", 0.1), ("one layer", 0.3), ("the MLPs", 0.1)):
            exact = models.share(share)
            part = made(
                lambda run=run, inside=PARTS[name], exact=exact: swapped(
                    load(top / run), added(load(top / run), base, instruct, exact), inside
                )
            )
            yield Case(f"{run}, and {share:.0%} in {name}", "instruct", part)
    yield Case("head of instruct, untied", "instruct", made(lambda: base | {HEAD: instruct[EMBEDDING]}))
    yield Case(
        "same domain, head of instruct, untied", "instruct",
        made(lambda: load(top / "same domain") | {HEAD: instruct[EMBEDDING]}),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    noise = (base[EMBEDDING].std() * rng.standard_normal(base[EMBEDDING].shape)).astype(np.float32)
    yield Case("head of nowhere, untied", "stranger", made(lambda: base | {HEAD: noise}))


def disguised(models: Models) -> Iterator[Case]:
    """The same function in other weights."""
    top, instruct, made = models.top, models.instruct, models.made
    for name, change in disguises.DISGUISES.items():
        yield Case(f"instruct, {name}", "instruct", made(lambda change=change: change(instruct)))
    for run in ("instruct, trained on", "instruct, hot adapters"):
        for name in ("permuted and rescaled", "stream rotated"):
            change = disguises.DISGUISES[name]
            yield Case(f"{run}, {name}", "instruct", made(lambda change=change, run=run: change(load(top / run))))
    half = lambda: merged(models.base, instruct, 0.5)  # noqa: E731
    for name in ("permuted", "stream rotated"):
        change = disguises.DISGUISES[name]
        yield Case(f"merge, 50%, {name}", "instruct", made(lambda change=change: change(half())), True)


# --- what is done -------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[str], bool]] = {
    "one layer": lambda name: "layers.2." in name,
    "two layers": lambda name: "layers.1." in name or "layers.2." in name,
    "the attention": lambda name: "self_attn" in name,
    "the MLPs": lambda name: "mlp" in name,
    "one matrix": lambda name: name.endswith("layers.2.mlp.up_proj.weight"),
    "the embedding": lambda name: kind(name) in ("embed_tokens", "lm_head"),
}
"""Name → whether a tensor belongs to it."""


def added(run: Tensors, base: Tensors, instruct: Tensors, share: float) -> Tensors:
    """A run with part of the sibling's difference on top."""
    return {name: values + share * (instruct[name] - base[name]) for name, values in run.items()}


def swapped(one: Tensors, other: Tensors, inside: Callable[[str], bool]) -> Tensors:
    """One model, with the tensors that are inside from another."""
    return {name: other[name] if inside(name) else values for name, values in one.items()}


def between(base: Tensors, other: Tensors, share: float) -> Tensors:
    """Spherical interpolation of each tensor, as mergekit has it."""
    found = {}
    for name, b in base.items():
        o = other[name]
        turn = np.arccos(np.clip(np.vdot(b, o) / (np.linalg.norm(b) * np.linalg.norm(o)), -1, 1))
        one, two = ((1 - share), share) if turn < 1e-4 else np.sin(turn * np.array([1 - share, share])) / np.sin(turn)
        found[name] = (one * b + two * o).astype(np.float32)
    return found


def largest(base: Tensors, other: Tensors, kept: float) -> Tensors:
    """TIES for one model: of each difference the largest elements stay."""
    found = {}
    for name, b in base.items():
        delta = other[name] - b
        found[name] = b + delta * (np.abs(delta) >= np.quantile(np.abs(delta), 1 - kept))
    return found


def longer(tensors: Tensors, more: int = 16) -> Tensors:
    """More tokens, near the mean of those that are there, and a head of its own that begins as the embedding."""
    rows = tensors[EMBEDDING]
    whole = np.concatenate([rows, np.repeat(rows.mean(0, keepdims=True), more, axis=0)]).astype(np.float32)
    return tensors | {EMBEDDING: whole, HEAD: whole}
