"""The verdict on a submission's lineage, from what was measured, with its distance to every threshold.

Where each threshold comes from is told in docs/reference/lineage.md; what it says of trained models in zoo.md. Without
control runs the rule is careful: what could be an honest run with the sibling's own recipe is left for review. What is
not shown to descend from the base fails closed.
Not covered: distillation, and a merge of up to a tenth on a run by the sibling's own recipe; the second is for review.
"""

from collections.abc import Sequence
from statistics import median
from typing import Literal

from prill.checkpoint.distances import ToBase
from prill.checkpoint.lineage import SAME_COSINE, SAME_SIZE, Likeness, Measured, far
from prill.record import Record

Word = Literal[
    "descends from base",
    "from instruct",
    "contains instruct",
    "copy of base",
    "copy of instruct",
    "copy of another submission",
    "not shown to descend",
    "review",
]

COPY = 0.999
"""Share of equal elements from which two tensors are copies."""
FROM_ALPHA, FROM_SPREAD, FROM_COSINE, FROM_EQUAL = 0.97, 0.03, 0.95, 5.0
"""From the sibling without controls: alpha, its MAD, cosine of the residual, times as many equal bits as with the base.
An honest run with the sibling's own recipe reached 0.93, 0.023, 0.88 and 3."""
TIGHT = 0.01
"""MAD / alpha below which alpha is one number for all tensors, as arithmetic on weights makes it; training spreads it
by 0.025 or more."""
LEAST_SHARE = 0.02
"""Of a merge, or of tensors taken over, that is called out without controls."""
LEAST_MERGE = 0.015
"""Of one share in every tensor, so that rounding does not hide 2 %."""
TAKEN_COSINE = 0.97
ORDINARY = 0.2
"""Of |alpha|: ordinary honest training stayed below 0.09, hot adapters and the sibling's recipe did not."""
PARTIAL_FROM, PARTIAL_CONTAINS, PARTIAL_PASS, PARTIAL_MADS = 0.6, 0.04, 0.1, 5.0
PART_CONTAINS, PART_REVIEW = 0.08, 0.2
"""Partial alpha of single matrices, four at least, where a sibling is mixed into some layers only. Of ordinary honest
runs the fourth largest stayed below 0.03, of the hottest (|alpha| >= `ORDINARY`) at 0.12. They must stand out from the
others too, by `PARTIAL_MADS` or a gap of `PARTIAL_CONTAINS`: of small models an honest run's own lie around 0.08."""
LEAST_MAD = 1e-6
FEWEST = 4
"""Tensors without which a median says nothing."""


class Verdict(Record, frozen=True, kw_only=True):
    """What the weights descend from, in words."""

    word: Word
    why: str
    of: str | None = None
    """The sibling or submission that it is about."""
    share: float | None = None


class Margin(Record, frozen=True, kw_only=True):
    """One figure beside its threshold."""

    what: str
    of: str | None
    """The sibling; `None` for the base."""
    value: float
    threshold: float
    against: Literal["below", "from"]
    """On which side of the threshold the figure speaks against the submission."""

    @property
    def margin(self) -> float:
        """How far the figure is on the innocent side; negative on the other."""
        return self.threshold - self.value if self.against == "from" else self.value - self.threshold


ORDER: tuple[Word, ...] = (
    "copy of instruct",
    "from instruct",
    "copy of another submission",
    "contains instruct",
    "review",
)


def decide(measured: Measured) -> Verdict:
    """The verdict. Rules in order: unreadable, copies and siblings, the base's tensors, ordinary descent."""
    if measured.unread:
        return Verdict(word="review", why=f"the weights cannot be compared: {measured.unread}")
    whole = measured.rows and not measured.missing and not measured.extra
    if whole and all(row.equal > COPY for row in measured.rows):
        return Verdict(word="copy of base", why="every matrix equals the base model's, bit for bit", of="base")
    found = [verdict for like in measured.likenesses if (verdict := of_one(like, measured.rows))]
    found.sort(key=lambda verdict: ORDER.index(verdict.word))
    if found and found[0].word != "review":
        return found[0]
    if measured.missing or measured.extra:
        which = [f"it lacks {name}" for name in measured.missing] + [f"{name} is its own" for name in measured.extra]
        return Verdict(word="not shown to descend", why=f"its tensors are not the base model's: {which[0]}")
    away = sorted((row for row in measured.rows if far(row)), key=lambda row: row.cosine)
    if away or not measured.rows:
        return Verdict(word="not shown to descend", why=distance(away))
    if found:
        return found[0]
    if measured.absent:
        why = f"close to the base, but not compared with {', '.join(measured.absent)}: not at hand"
        return Verdict(word="review", why=why)
    return Verdict(word="descends from base", why=ordinary(measured))


def distance(away: Sequence[ToBase]) -> str:
    """Why weights are too far from the base."""
    if not away:
        return "it has no matrices"
    row = away[0]
    if not row.cosine >= SAME_COSINE:
        return f"cos(S, B) is {row.cosine:.2f} in {row.tensor}; a fine-tune keeps at least {SAME_COSINE}"
    return f"{row.tensor} is {row.size:.2f} times as long as the base's; a fine-tune stays within {SAME_SIZE}"


def ordinary(measured: Measured) -> str:
    """The words for an honest run."""
    moved = median(row.move for row in measured.rows)
    known = [(like.name, summary(like)[0]) for like in measured.likenesses]
    alphas = [f"alpha {alpha:.3f} on {name}" for name, alpha in known if alpha is not None]
    undone = f"; {', '.join(measured.undone)}, which was undone" if measured.undone else ""
    return f"moved {moved:.3f} of the base's length from it; {', '.join(alphas) or 'no sibling is known'}{undone}"


def summary(like: Likeness) -> tuple[float | None, float]:
    """Median of alpha over tensors (`None` with too few), its MAD."""
    alphas = [row.alpha for row in like.rows]
    return (median(alphas), spread(alphas)) if len(alphas) >= FEWEST else (None, 0.0)


def spread(values: Sequence[float]) -> float:
    """Median absolute deviation from the median."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def of_one(like: Likeness, rows: Sequence[ToBase]) -> Verdict | None:
    """What speaks for descent from one other model, or `None`."""
    alpha, mad = summary(like)
    if alpha is None:
        return None
    told = f"alpha {alpha:.3f} (MAD {mad:.3f})"
    equal, kept = median(row.equal for row in like.rows), median(row.equal for row in rows)
    if all(row.equal > COPY for row in like.rows):
        return came(like, f"every matrix equals that of {like.name}, bit for bit", copy=True)
    residual = median(row.cosine_residual for row in like.rows)
    if alpha >= FROM_ALPHA and mad <= FROM_SPREAD and (residual >= FROM_COSINE or equal >= FROM_EQUAL * kept):
        return came(like, f"{told}, residual cosine {residual:.2f}, equal bits {equal:.2f} against {kept:.2f}")
    tight = mad <= TIGHT * abs(alpha)
    if tight and alpha >= FROM_ALPHA:
        return came(like, f"{told}: the same in every tensor, as only weights that were copied give")
    share = taken(like, rows)
    if share >= 1 - LEAST_SHARE:
        return came(like, f"{share:.0%} of its elements lie in tensors taken from {like.name}")
    if share >= LEAST_SHARE:
        return holds(like, share, f"{share:.0%} of its elements lie in tensors taken from {like.name}; {told}")
    share, weight = mixed(like, rows)
    if share >= LEAST_SHARE:
        why = f"in {share:.0%} of its elements S - B is {weight:.2f} times I - B and little else, as only a merge gives"
        return holds(like, weight, f"{why}; {told}")
    if tight and abs(alpha) >= LEAST_MERGE:
        return holds(like, alpha, f"{told}: one share in every tensor, as only a merge gives")
    if like.partial is not None and len(like.partial) >= FEWEST:
        return beside_controls(like, alpha, rows)
    if abs(alpha) >= ORDINARY:
        why = f"{told} on {like.name}: more than ordinary training gives, less than proof, and no controls are at hand"
        return Verdict(word="review", why=why, of=like.name)
    return None


def beside_controls(like: Likeness, alpha: float, rows: Sequence[ToBase]) -> Verdict | None:
    """The same question where control runs take what all training shares; of all matrices, then of some."""
    own = list((like.partial or {}).values())
    part, mad = median(own), spread(own)
    told = f"partial alpha {part:.3f} (MAD {mad:.3f}) beside {like.controls} controls, alpha {alpha:.3f}"
    if part >= PARTIAL_FROM:
        return came(like, told)
    ordinary = abs(alpha) < ORDINARY
    if ordinary and abs(part) >= PARTIAL_CONTAINS and abs(part) >= PARTIAL_MADS * mad:
        return holds(like, part, told)
    least = PART_CONTAINS if ordinary else PART_REVIEW
    if not apart(own, least):
        least = max(least, part + PARTIAL_MADS * mad)
    count, share, weight = stands_out(like, rows, least)
    if count >= FEWEST and share >= LEAST_SHARE:
        some = f"partial alpha {weight:.3f} in {count} matrices with {share:.0%} of its elements; in all, {told}"
        return holds(like, weight, some) if ordinary else Verdict(word="review", why=some, of=like.name)
    if ordinary or part < PARTIAL_PASS:
        return None
    return Verdict(word="review", why=f"{told} on {like.name}", of=like.name)


def apart(values: Sequence[float], least: float) -> bool:
    """Whether those of at least that are as far from all others as counts for a share at all."""
    high, low = [value for value in values if value >= least], [value for value in values if value < least]
    return bool(high and low) and min(high) - max(low) >= PARTIAL_CONTAINS


def stands_out(like: Likeness, rows: Sequence[ToBase], least: float) -> tuple[int, float, float]:
    """Matrices whose partial alpha is at least that: how many, their share of all elements, their median of it.

    Of one that is far from the base, chance alone gives more.
    """
    partial = like.partial or {}
    some = [row for row in rows if partial.get(row.tensor, 0.0) >= least and not far(row)]
    share = sum(row.count for row in some) / max(1, sum(row.count for row in rows))
    return len(some), share, median([partial[row.tensor] for row in some] or [0.0])


def mixed(like: Likeness, rows: Sequence[ToBase]) -> tuple[float, float]:
    """Share of the submission's elements in matrices where S - B is I - B times a number, and that number's median."""
    some = [row for row in like.rows if abs(row.alpha) >= LEAST_SHARE and row.cosine_residual >= FROM_COSINE]
    some += [row for row in like.rows if row.alpha <= -LEAST_SHARE and row.cosine_residual <= -FROM_COSINE]
    return sum(row.count for row in some) / sum(row.count for row in rows), median([row.alpha for row in some] or [0.0])


def taken(like: Likeness, rows: Sequence[ToBase]) -> float:
    """Share of the submission's elements in tensors that are the other's, almost as they are, and not the base's."""
    kept = {row.tensor: row.equal for row in rows}
    copied = sum(
        row.count
        for row in like.rows
        if (row.equal >= 0.5 and row.equal >= FROM_EQUAL * max(kept.get(row.tensor, 0.0), row.kin))
        or (FROM_ALPHA <= row.alpha <= 2 - FROM_ALPHA and row.cosine_residual >= TAKEN_COSINE)
    )
    return copied / sum(row.count for row in rows)


def came(like: Likeness, why: str, *, copy: bool = False) -> Verdict:
    """The submission is the other model, or a descendant of it."""
    if like.kind == "submission":
        return Verdict(word="copy of another submission", why=f"{like.name}: {why}", of=like.name, share=1.0)
    word: Word = "copy of instruct" if copy else "from instruct"
    return Verdict(word=word, why=f"{like.name}: {why}", of=like.name, share=1.0)


def holds(like: Likeness, share: float, why: str) -> Verdict:
    """Part of the other model is in the submission."""
    if like.kind == "submission":
        return Verdict(word="review", why=f"holds {share:.2f} of {like.name}: {why}", of=like.name, share=share)
    return Verdict(word="contains instruct", why=f"{like.name} (share {share:.2f}): {why}", of=like.name, share=share)


def margins(measured: Measured) -> list[Margin]:
    """Every figure that a rule looks at, beside its threshold."""
    found: list[Margin] = []

    def beside(what: str, of: str | None, value: float, threshold: float, against: Literal["below", "from"]) -> None:
        found.append(Margin(what=what, of=of, value=value, threshold=threshold, against=against))

    if measured.rows:
        beside("lowest cos(S, B)", None, min(row.cosine for row in measured.rows), SAME_COSINE, "below")
    for like in measured.likenesses:
        alpha, _ = summary(like)
        if alpha is None:
            continue
        beside("|alpha|", like.name, abs(alpha), ORDINARY, "from")
        beside("alpha", like.name, alpha, FROM_ALPHA, "from")
        beside("residual cosine", like.name, median(row.cosine_residual for row in like.rows), FROM_COSINE, "from")
        beside("share of tensors taken", like.name, taken(like, measured.rows), LEAST_SHARE, "from")
        if like.partial is not None and len(like.partial) >= FEWEST:
            part, mad = median(like.partial.values()), spread(list(like.partial.values()))
            beside("partial alpha in its MADs", like.name, part / max(mad, LEAST_MAD), PARTIAL_MADS, "from")
            for threshold in (PARTIAL_CONTAINS, PARTIAL_PASS, PARTIAL_FROM):
                beside("partial alpha", like.name, part, threshold, "from")
    return found
