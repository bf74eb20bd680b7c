"""The lineage zoo: small families of models trained here, honest and not, and what the rule says of each.

`make zoo`; `--write` makes `docs/reference/zoo.md`. Of each seed a base and another seed's model are trained from
nothing on the smoke world's text; from the base its instruct sibling, honest runs of several recipes and control runs;
and then what cheats do with the sibling. The rule's thresholds were looked at with seed 0; all others are held out.
About five minutes a seed on two cores. Nothing is kept, unless `--at` says where.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported: many small matrices

from prill.checkpoint import fingerprint
from prill.checkpoint.lineage import Measured, compare, references
from prill.checkpoint.rule import Verdict, decide
from prill.checkpoint.table import figures
from prill.checkpoint.values import Plan
from prill.error_rates import interval
from zoo_cases import ACQUITTED, Case, cases, right
from zoo_family import CONTROLS, family, grow
from zoo_history import HELD_OUT, HISTORY

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "zoo.md"


@dataclass(frozen=True)
class Seen:
    """What was said of one case, beside controls and without."""

    case: Case
    measured: Measured
    beside: Verdict
    alone: Verdict

    @property
    def right(self) -> bool:
        """Whether the verdict beside controls is one that the case may get; of a blind spot always."""
        return self.case.truth == "blind" or right(self.case, self.beside.word)


def watch(top: Path, seed: int, say: Callable[[str], None]) -> list[Seen]:
    """Every case of a trained family compared with the base, the sibling and the controls' fingerprint."""
    file = top / "controls.safetensors"
    models = {name: ("control", top / f"control {name}") for name in CONTROLS}
    fingerprint.make(file, top / "base", models, Plan(seed=5))  # type: ignore[arg-type]
    siblings = {"instruct": top / "instruct"}
    alone = references(top / "base", siblings, seed=6)
    beside = references(top / "base", siblings, fingerprints=[file], seed=6)
    seen = []
    for case in cases(top, family(seed).strength):
        with tempfile.TemporaryDirectory(prefix="zoo-case-") as place:
            folder = case.make(Path(place))
            measured = compare(folder, beside, whole=True)
            lone = decide(compare(folder, alone, whole=True))
        seen.append(Seen(case, measured, decide(measured), lone))
        say(f"{seed}: {'ok   ' if seen[-1].right else 'WRONG'} {case.name}: {seen[-1].beside.word}")
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
    """One row of the first table."""
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
    return seen.case.name, truth(seen), lowest, alpha, residual, cosine, equal, partial, word(seen), seen.alone.word


def truth(seen: Seen) -> str:
    """What a case is, in words."""
    return {"blind": "instruct (blind spot)"}.get(seen.case.truth, seen.case.truth)


def word(seen: Seen) -> str:
    """The verdict beside controls, marked where it is wrong."""
    return seen.beside.word if seen.right else f"**{seen.beside.word}**"


def short(seen: Seen) -> str:
    """A verdict with alpha and partial alpha, for the second table."""
    about = figures(seen.measured)["siblings"]["instruct"]
    told = [f"{about[key]:.2f}" for key in ("alpha", "alpha_partial") if about.get(key) is not None]
    return f"{word(seen)} ({', '.join(told)})" if told else word(seen)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as Markdown; the first is the head."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (rows[0], ["---"] * len(rows[0]), *rows[1:]))


def sides(seen: Sequence[Seen]) -> str:
    """How often each kind of verdict fell on each side, with Wilson's 95 % interval where it matters."""
    lines = []
    for side, bad, what in (
        ("honest", lambda each: each.beside.word not in (*ACQUITTED, "review"), "accused"),
        ("instruct", lambda each: each.beside.word in ACQUITTED, "called honest"),
        ("stranger", lambda each: each.beside.word in ACQUITTED, "called honest"),
    ):
        mine = [each for each in seen if each.case.truth == side]
        wrong, review = sum(map(bad, mine)), sum(each.beside.word == "review" for each in mine)
        low, high = interval(wrong, len(mine))
        told = f"{wrong} of {len(mine)} {what} (95 %: {100 * low:.1f} to {100 * high:.1f} %)"
        lines.append(f"- {side}: {told}, {review} left for review")
    return "\n".join(lines)


def page(found: Mapping[int, Sequence[Seen]]) -> str:
    """The tables as a page: all figures of the first family, verdicts of the others beside each other."""
    (tuned, first), *others = found.items()
    return f"""# The lineage zoo

Written by `make zoo` (`python tests/zoo.py --write`): families of models of 0.84 M parameters, trained on a CPU, and
what the rule of [lineage](lineage.md) says of each. Figures are medians over matrices, after permutations, rotations
and scales were undone; the {len(CONTROLS)} control runs are known by their fingerprint only. Training is seeded, but
sums of another CPU differ in the last digits. *Not shown to descend* is right for what was made from the sibling: it
fails closed. An honest run by the sibling's own recipe, and one with hot adapters, may be left for review, and so may
what was mixed into a run that moved far by itself. A verdict in bold is wrong.

## Seed {tuned}: the family that thresholds were looked at with

{table([HEAD, *map(cells, first)])}

Wrong: {", ".join(each.case.name for each in first if not each.right) or "none"}.
{held_out(dict(others)) if others else ""}{HISTORY}"""


def held_out(others: Mapping[int, Sequence[Seen]]) -> str:
    """The families that no threshold was looked at with."""
    seen = [each for line in others.values() for each in line]
    head = ("submission", "truth", *(f"seed {seed}" for seed in others))
    rows = [(line[0].case.name, truth(line[0]), *map(short, line)) for line in zip(*others.values(), strict=True)]
    wrong = Counter(each.case.name for each in seen if not each.right)
    return f"""
## Held out: seed {", ".join(map(str, others))}

Another seed draws other text and orders, a quarter to half of the steps, half of the rows in a batch and rates up to √2
either way, of every model, controls and sibling included, and plants 1 to 1.5 times the share that a row names. In
brackets: alpha, partial alpha.

{table([head, *rows])}

{sides(seen)}

Wrong: {", ".join(f"{name} ({count})" for name, count in wrong.items()) or "none"}.
"""


def main(arguments: list[str] | None = None) -> int:
    """Train, compare, print; the exit code is 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    seeds = (0, *HELD_OUT)
    parser.add_argument(
        "--seed", type=int, nargs="+", default=seeds, metavar="S",
        help=f"families, the one with all figures first (default: {' '.join(map(str, seeds))})",
    )  # fmt: skip
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--at", type=Path, metavar="DIR", help="keep the models here, and use those that are there")
    chosen = parser.parse_args(arguments)
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {line}", file=sys.stderr, flush=True)

    found = {}
    for seed in chosen.seed:
        with tempfile.TemporaryDirectory(prefix="zoo-") as place:
            top = (chosen.at or Path(place)) / str(seed)
            grow(family(seed), top, say)
            found[seed] = watch(top, seed, say)
    print(page(found))
    if chosen.write:
        PAGE.write_text(page(found), encoding="utf-8")
    return 0 if all(each.right for seen in found.values() for each in seen) else 1


if __name__ == "__main__":
    sys.exit(main())
