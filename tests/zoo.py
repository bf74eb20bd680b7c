"""The lineage zoo: a small family of models trained here, honest and not, and what the rule says of each.

`make zoo`, minutes on two cores; `--write` makes `docs/reference/zoo.md`. A base and another seed's model are trained
from nothing on the smoke world's text; from the base its instruct sibling, honest runs of several recipes and control
runs; and then what cheats do with the sibling. Nothing is kept.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported: many small matrices

import disguises
from disguises import Tensors, dropped, four_bits, load, merged, noised
from families import save
from prill.checkpoint import fingerprint
from prill.checkpoint.lineage import Measured, compare, references
from prill.checkpoint.rule import Verdict, decide
from prill.checkpoint.table import figures
from prill.checkpoint.values import Plan
from prill.smoke.controls import Recipe, train_all

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "zoo.md"
CAUGHT = ("copy of instruct", "from instruct", "contains instruct")
ACQUITTED = ("descends from base", "copy of base")


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
MAY_BE_REVIEWED = (
    "hot adapters of rank 16",
    "the sibling's recipe, other data",
    "the sibling's recipe and data, other order",
)


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


def cases(top: Path) -> Iterator[Case]:
    """All submissions, once the family has been trained below `top`."""
    base, instruct = load(top / "base"), load(top / "instruct")

    def made(change: Callable[[], Tensors]) -> Callable[[Path], Path]:
        return lambda to: disguises.save_config(save(to, change()), len(base["model.embed_tokens.weight"]))

    def there(name: str) -> Callable[[Path], Path]:
        return lambda to: top / name

    yield Case("copy of the base", "honest", made(lambda: base))
    yield Case("base, 4-bit round trip", "honest", made(lambda: four_bits(base)))
    for name in HONEST:
        yield Case(name, "honest", there(name), name in MAY_BE_REVIEWED)
    yield Case("same domain, permuted", "honest", made(lambda: disguises.permuted(load(top / "same domain"))))
    yield Case("another seed's model", "stranger", there("stranger"))
    yield Case("copy of instruct", "instruct", made(lambda: instruct))
    for name in FROM_INSTRUCT:
        yield Case(name, "instruct", there(name))
    for share in (0.05, 0.1, 0.3, 0.5, 0.9):
        yield Case(
            f"merge, {share:.0%} of instruct", "instruct", made(lambda share=share: merged(base, instruct, share))
        )
    on_top = {"same domain": (0.05, 0.1), "other data": (0.05,), "hot adapters of rank 16": (0.3,)}
    for name, shares in on_top.items():
        for share in shares:
            yield Case(
                f"{name}, and {share:.0%} of instruct",
                "instruct",
                made(lambda name=name, share=share: added(load(top / name), base, instruct, share)),
                name in MAY_BE_REVIEWED,
            )
    name = "the sibling's recipe, other data"
    yield Case(
        f"{name}, and 10% of instruct", "blind", made(lambda: added(load(top / name), base, instruct, 0.1)), True
    )
    yield Case("DARE, 10% of the differences kept", "instruct", made(lambda: dropped(base, instruct, 0.1)), True)
    yield Case(
        "DARE, at a share of 0.3", "instruct", made(lambda: merged(base, dropped(base, instruct, 0.1), 0.3)), True
    )
    yield Case("instruct, 1% noise", "instruct", made(lambda: noised(instruct, 0.01)))
    yield Case("instruct, 5% noise", "instruct", made(lambda: noised(instruct, 0.05)))
    yield Case("instruct, 4-bit round trip", "instruct", made(lambda: four_bits(instruct)))
    for name, change in disguises.DISGUISES.items():
        yield Case(f"instruct, {name}", "instruct", made(lambda change=change: change(instruct)))
    trained = "instruct, trained on"
    for name in ("permuted and rescaled", "stream rotated"):
        change = disguises.DISGUISES[name]
        yield Case(f"{trained}, {name}", "instruct", made(lambda change=change: change(load(top / trained))))


def added(run: Tensors, base: Tensors, instruct: Tensors, share: float) -> Tensors:
    """A run with part of the sibling's difference on top."""
    return {name: values + share * (instruct[name] - base[name]) for name, values in run.items()}


def right(case: Case, verdict: Verdict) -> bool:
    """Whether a verdict is one that the case may get."""
    allowed = {"honest": ACQUITTED, "instruct": CAUGHT, "stranger": ("not shown to descend",), "blind": ()}[case.truth]
    closed = ("not shown to descend",) if case.truth == "instruct" else ()
    return verdict.word in (*allowed, *closed) or (case.reviewed and verdict.word == "review")


def family(top: Path, say: Callable[[str], None]) -> None:
    """Train all models that the cases need, two at a time."""
    first = {"base": Recipe("documents", 500, 3e-3, seed=1), "stranger": Recipe("documents", 300, 3e-3, seed=2)}
    controls = {f"control {name}": recipe for name, recipe in CONTROLS.items()}
    second = {"instruct": LIKE_INSTRUCT, **HONEST, **controls}
    for start, recipes in ((None, first), (top / "base", second), (top / "instruct", FROM_INSTRUCT)):
        train_all(start, {name: recipe for name, recipe in recipes.items() if not (top / name).exists()}, top, say)


@dataclass(frozen=True)
class Seen:
    """What was said of one case, beside controls and without."""

    case: Case
    measured: Measured
    beside: Verdict
    alone: Verdict


def watch(top: Path, say: Callable[[str], None]) -> list[Seen]:
    """Every case compared with the base, the sibling and the controls' fingerprint."""
    file = top / "controls.safetensors"
    models = {name: ("control", top / f"control {name}") for name in CONTROLS}
    fingerprint.make(file, top / "base", models, Plan(seed=5))  # type: ignore[arg-type]
    siblings = {"instruct": top / "instruct"}
    alone = references(top / "base", siblings, seed=6)
    beside = references(top / "base", siblings, fingerprints=[file], seed=6)
    seen = []
    for number, case in enumerate(cases(top)):
        folder = case.make(top / f"case-{number}")
        measured = compare(folder, beside, whole=True)
        seen.append(Seen(case, measured, decide(measured), decide(compare(folder, alone, whole=True))))
        say(f"{'ok   ' if right(case, seen[-1].beside) else 'WRONG'} {case.name}: {seen[-1].beside.word}")
    return seen


HEAD = (
    "submission",
    "truth",
    "lowest cosine",
    "alpha (MAD)",
    "residual alpha",
    "residual cosine",
    "equal bits base, instruct",
    "partial alpha (MAD)",
    "verdict beside controls",
    "verdict without",
)


def cells(seen: Seen) -> tuple[str, ...]:
    """One row of the table."""
    found = figures(seen.measured)
    about = found["siblings"]["instruct"]
    alpha = partial = residual = cosine = "none"
    if about["alpha"] is not None:
        alpha, residual = f"{about['alpha']:.3f} ({about['alpha_mad']:.3f})", f"{about['alpha_residual']:.3f}"
        cosine = f"{about['cosine_residual']:.2f}"
        if about["alpha_partial"] is not None:
            partial = f"{about['alpha_partial']:.3f} ({about['alpha_partial_mad']:.3f})"
    equal = f"{found['equal_base']:.2f}, {about.get('equal_sibling') or 0:.2f}"
    lowest = f"{found['cosine_base_lowest']:.3f}"
    truth = {"blind": "instruct (blind spot)"}.get(seen.case.truth, seen.case.truth)
    return seen.case.name, truth, lowest, alpha, residual, cosine, equal, partial, seen.beside.word, seen.alone.word


def page(seen: list[Seen]) -> str:
    """The table as a page."""
    rows = "\n".join("| " + " | ".join(line) + " |" for line in (HEAD, ("---",) * len(HEAD), *map(cells, seen)))
    wrong = [each.case.name for each in seen if each.case.truth != "blind" and not right(each.case, each.beside)]
    return f"""# The lineage zoo

Written by `make zoo` (`python tests/zoo.py --write`): models of 0.84 M parameters, trained on a CPU, and what the
rule of [lineage](lineage.md) says of them. Figures are medians over matrices, after permutations, rotations and scales
were undone; the {len(CONTROLS)} control runs are known by their fingerprint only. Training is seeded, but sums of
another CPU differ in the last digits.

{rows}

Wrong: {", ".join(wrong) or "none"}. *not shown to descend* is right for what was made from the sibling: it fails
closed. An honest run by the sibling's own recipe, and one with hot adapters, may be left for review.
"""


def main(arguments: list[str] | None = None) -> int:
    """Train, compare, print; the exit code is 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--at", type=Path, metavar="DIR", help="keep the models here, and use those that are there")
    chosen = parser.parse_args(arguments)
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {line}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="zoo-") as place:
        top = chosen.at or Path(place)
        family(top, say)
        seen = watch(top, say)
    print(page(seen))
    if chosen.write:
        PAGE.write_text(page(seen), encoding="utf-8")
    return 1 if any(each.case.truth != "blind" and not right(each.case, each.beside) for each in seen) else 0


if __name__ == "__main__":
    sys.exit(main())
