"""What a submission's weights descend from: the base model, a known sibling of it, or neither.

`compare` reads three checkpoints and measures; `decide` turns the figures into a verdict and does no reading. The
test and its thresholds come from a zoo of trained models (docs: lineage); without control fine-tunes the rule is
careful: what could be an honest run with the sibling's own recipe is left for review.
Not covered: distillation (it leaves no trace in weights), a merge of a few percent on top of ordinary training
where no controls are at hand, and copies that were permuted, rescaled or rotated: those fail closed.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from prill.checkpoint.controls import Deltas, deltas, partials
from prill.checkpoint.distances import ToBase, ToSibling, to_base, to_sibling
from prill.checkpoint.sweep import Whole, sweep
from prill.checkpoint.values import Place, Weights, bfloat_bits, open_weights, pick, read, shared_rows, widen
from prill.errors import InfraError
from prill.record import Record

Word = Literal[
    "copy of base", "descends from base", "from instruct sibling", "contains", "not shown to descend", "review"
]

COPY = 0.999
"""Share of equal elements from which two tensors are copies."""
SAME_COSINE = 0.9
"""Every tensor of a fine-tune keeps at least this cos(S, B); another seed's model has about 0."""
FROM_ALPHA, FROM_SPREAD, FROM_COSINE, FROM_EQUAL = 0.97, 0.03, 0.95, 5.0
"""From the sibling without controls: alpha, its MAD, cosine of the residual, times as many equal bits as with the base.
An honest run with the sibling's own recipe reached 0.93, 0.023, 0.88 and 3."""
TIGHT = 0.01
"""MAD / alpha below which alpha is one number for all tensors, as arithmetic on weights makes it; training spreads it
by 0.025 or more."""
LEAST_SHARE = 0.02
"""Of a merge, or of tensors taken over, that is called out without controls."""
TAKEN_COSINE = 0.97
ORDINARY = 0.2
"""Of |alpha|: ordinary honest training stayed below 0.09, hot adapters and the sibling's recipe did not."""
PARTIAL_FROM, PARTIAL_CONTAINS, PARTIAL_PASS, PARTIAL_MADS = 0.6, 0.04, 0.1, 5.0
FEWEST = 4
"""Tensors without which a median says nothing."""
UNSEEN = ("vision", "multi_modal", "audio", "mtp.", "lm_head")
"""Parts of a base that a submission may leave out: towers that text does not use, and a head tied to the embedding."""


class Likeness(Record, frozen=True, kw_only=True):
    """S - B against one sibling's I - B, over all tensors in which the sibling differs from the base."""

    name: str
    rows: tuple[ToSibling, ...]
    partial: dict[str, float] | None = None
    """tensor → coefficient beside the controls; `None` where there are none."""


class Measured(Record, frozen=True, kw_only=True):
    """All that `decide` needs to know."""

    rows: tuple[ToBase, ...]
    likenesses: tuple[Likeness, ...]
    missing: tuple[str, ...]
    """Tensors of the base that the submission lacks, or has in another shape."""
    extra: tuple[str, ...]
    """Tensors that the base lacks."""
    unread: str = ""
    """Why the submission's weights could not be compared at all."""
    absent: tuple[str, ...] = ()
    """Known siblings that were not at hand."""
    digests: dict[str, str] = msgspec.field(default_factory=dict)
    """File of the submission → SHA-256 of the bytes that were compared, where all were."""


class Verdict(Record, frozen=True, kw_only=True):
    """What the weights descend from, in words."""

    word: Word
    why: str
    sibling: str | None = None
    share: float | None = None


def compare(
    submission: Path,
    base: Path,
    siblings: Mapping[str, Path],
    *,
    absent: Sequence[str] = (),
    controls: Sequence[Deltas] = (),
    seed: int = 0,
    whole: bool = False,
) -> Measured:
    """Measure every matrix of a submission against its base and each sibling.

    Large tensors are sampled at places drawn by `seed`; give one that the submission's author could not know. With
    `whole`, all but directions and signs are taken over every element, at the price of reading all models once.
    Raises `InfraError` where the base or a sibling cannot be read: those are ours.
    """
    ours, theirs = open_weights(submission), reference(base)
    known = {name: reference(folder) for name, folder in sorted(siblings.items())}
    broken = [fault for fault in ours.faults if fault.severity == "fatal"]
    if broken or ours.unread > sum(place.rows * place.columns for place in ours.places.values()):
        packed = "most of its weights are not plain floating-point numbers"
        unread = f"{broken[0].code}: {broken[0].why}" if broken else packed
        return Measured(rows=(), likenesses=(), missing=(), extra=(), unread=unread, absent=tuple(absent))
    names = [name for name in sorted(ours.places) if shared_rows(name, ours.places, theirs.places)]
    rows: list[ToBase] = []
    like: dict[str, list[ToSibling]] = {name: [] for name in known}
    for name in names:
        measure(name, ours.places, theirs.places, known, seed, rows, like)
    digests: dict[str, str] = {}
    if whole:
        found = sweep(submission, ours.shards, ours.places, theirs.places, {n: w.places for n, w in known.items()})
        digests = found.digests
        rows = [over_all(row, found.tensors[row.tensor]) for row in rows]
        like = {name: [along_all(row, name, found.tensors[row.tensor]) for row in like[name]] for name in known}
    own = deltas("submission", submission, base) if controls else None
    partial = {
        name: dict(partials(own, deltas(name, siblings[name], base), controls)) for name in known if own is not None
    }
    return Measured(
        rows=tuple(rows),
        likenesses=tuple(Likeness(name=n, rows=tuple(like[n]), partial=partial.get(n)) for n in known),
        missing=tuple(n for n in sorted(theirs.places) if n not in names and not any(part in n for part in UNSEEN)),
        extra=tuple(n for n in sorted(ours.places) if n not in names and not tied(n, ours.places, theirs.places)),
        absent=tuple(absent),
        digests=digests,
    )


def over_all(row: ToBase, whole: Whole) -> ToBase:
    """A tensor's row with the figures of all its elements."""
    return replace(row, seen=whole.count, cosine=whole.cosine, move=whole.move, equal=whole.equal)


def along_all(row: ToSibling, name: str, whole: Whole) -> ToSibling:
    """The same beside a sibling."""
    if name not in whole.siblings:
        return row
    alpha, cosine, equal = whole.siblings[name]
    return replace(row, alpha=alpha, cosine=cosine, equal=equal)


def reference(folder: Path) -> Weights:
    """A model of ours, which must be readable."""
    weights = open_weights(folder)
    wrong = [fault.why for fault in weights.faults if fault.severity == "fatal"]
    if wrong or not weights.places:
        raise InfraError(f"{folder}: not readable as a model ({wrong[0] if wrong else 'no tensors'}); fetch it again")
    return weights


def tied(name: str, ours: Mapping[str, Place], theirs: Mapping[str, Place]) -> bool:
    """Whether this is a head written out although the base ties it to the embedding: no part of the base's own."""
    return name == "lm_head.weight" and name not in theirs and "embed_tokens.weight" in ours


def measure(
    name: str,
    ours: Mapping[str, Place],
    theirs: Mapping[str, Place],
    known: Mapping[str, Weights],
    seed: int,
    rows: list[ToBase],
    like: dict[str, list[ToSibling]],
) -> None:
    """One tensor against the base and every sibling that has it; results are appended."""
    here, there = ours[name], theirs[name]
    shared = shared_rows(name, ours, theirs) or 0
    chosen = pick(name, shared, here.columns, seed)
    stored, origin = read(here, chosen), read(there, chosen)
    bits, origin_bits = bfloat_bits(stored, here.dtype), bfloat_bits(origin, there.dtype)
    s, b = widen(stored, here.dtype), widen(origin, there.dtype)
    rows.append(to_base(name, here.rows * here.columns, s, b, float((bits == origin_bits).mean())))
    for sibling, weights in known.items():
        place = weights.places.get(name)
        if place is None or place.columns != here.columns or place.rows < shared:
            continue
        other = read(place, chosen)
        other_bits = bfloat_bits(other, place.dtype)
        row = to_sibling(
            name,
            here.rows * here.columns,
            s - b,
            widen(other, place.dtype) - b,
            float((bits == other_bits).mean()),
            float((origin_bits == other_bits).mean()),
        )
        like[sibling] += [row] if row else []


def decide(measured: Measured) -> Verdict:
    """The verdict; see the thresholds above for where they come from."""
    if measured.unread:
        return Verdict(word="review", why=f"the weights cannot be compared: {measured.unread}")
    whole = measured.rows and not measured.missing and not measured.extra
    if whole and all(row.equal > COPY for row in measured.rows):
        return Verdict(word="copy of base", why="every matrix equals the base model's, bit for bit")
    verdicts = [verdict for like in measured.likenesses if (verdict := from_sibling(like, measured.rows))]
    verdicts = sorted(verdicts, key=lambda verdict: ("from instruct sibling", "contains", "review").index(verdict.word))
    if verdicts and verdicts[0].word != "review":
        return verdicts[0]
    if measured.missing or measured.extra:
        which = [f"it lacks {name}" for name in measured.missing] + [f"{name} is its own" for name in measured.extra]
        return Verdict(word="not shown to descend", why=f"its tensors are not the base model's: {which[0]}")
    far = sorted((row for row in measured.rows if not row.cosine >= SAME_COSINE), key=lambda row: row.cosine)
    if far or not measured.rows:
        where = f"cos(S, B) is {far[0].cosine:.2f} in {far[0].tensor}" if far else "it has no matrices"
        return Verdict(word="not shown to descend", why=f"{where}; a fine-tune keeps at least {SAME_COSINE}")
    if verdicts:
        return verdicts[0]
    if measured.absent:
        why = f"close to the base, but not compared with {', '.join(measured.absent)}: not at hand"
        return Verdict(word="review", why=why)
    moved = median(row.move for row in measured.rows)
    alphas = [
        f"alpha {alpha:.3f} on {name}" for name, alpha, _ in map(summary, measured.likenesses) if alpha is not None
    ]
    why = f"moved {moved:.3f} of the base's length from it; {', '.join(alphas) or 'no sibling is known'}"
    return Verdict(word="descends from base", why=why)


def summary(like: Likeness) -> tuple[str, float | None, float]:
    """Name, median of alpha over tensors (`None` with too few), its MAD."""
    alphas = [row.alpha for row in like.rows]
    if len(alphas) < FEWEST:
        return like.name, None, 0.0
    return like.name, median(alphas), spread(alphas)


def spread(values: Sequence[float]) -> float:
    """Median absolute deviation from the median."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def from_sibling(like: Likeness, rows: Sequence[ToBase]) -> Verdict | None:
    """What speaks for descent from one sibling, or `None`."""
    name, alpha, mad = summary(like)
    if alpha is None:
        return None
    told = f"alpha {alpha:.3f} (MAD {mad:.3f})"
    equal, kept = median(row.equal for row in like.rows), median(row.equal for row in rows)
    if all(row.equal > COPY for row in like.rows):
        return came(name, "every matrix equals the sibling's, bit for bit")
    residual = median(row.cosine_residual for row in like.rows)
    if alpha >= FROM_ALPHA and mad <= FROM_SPREAD and (residual >= FROM_COSINE or equal >= FROM_EQUAL * kept):
        return came(name, f"{told}, residual cosine {residual:.2f}, equal bits {equal:.2f} against {kept:.2f}")
    tight = mad <= TIGHT * abs(alpha)
    if tight and alpha >= FROM_ALPHA:
        return came(name, f"{told}: the same in every tensor, as only weights that were copied give")
    share = taken(like, rows)
    if share >= 1 - LEAST_SHARE:
        return came(name, f"{share:.0%} of its elements lie in tensors taken from the sibling")
    if share >= LEAST_SHARE:
        return holds(name, share, f"{share:.0%} of its elements lie in tensors taken from the sibling; {told}")
    if tight and abs(alpha) >= LEAST_SHARE:
        return holds(name, alpha, f"{told}: one share in every tensor, as only a merge gives")
    if like.partial is not None and len(like.partial) >= FEWEST:
        return beside_controls(like, alpha)
    if abs(alpha) >= ORDINARY:
        why = f"{told} on {name}: more than ordinary training gives, less than proof, and no controls are at hand"
        return Verdict(word="review", why=why, sibling=name)
    return None


def beside_controls(like: Likeness, alpha: float) -> Verdict | None:
    """The same question where control fine-tunes take what all training shares."""
    own = list((like.partial or {}).values())
    part, mad = median(own), spread(own)
    told = f"partial alpha {part:.3f} (MAD {mad:.3f}) beside the controls, alpha {alpha:.3f}"
    if part >= PARTIAL_FROM:
        return came(like.name, told)
    if abs(alpha) < ORDINARY:
        merged = part >= PARTIAL_CONTAINS and part >= PARTIAL_MADS * mad
        return holds(like.name, part, told) if merged else None
    return None if part < PARTIAL_PASS else Verdict(word="review", why=f"{told} on {like.name}", sibling=like.name)


def taken(like: Likeness, rows: Sequence[ToBase]) -> float:
    """Share of the submission's elements in tensors that are the sibling's, almost as they are, and not the base's."""
    kept = {row.tensor: row.equal for row in rows}
    copied = sum(
        row.count
        for row in like.rows
        if (row.equal >= 0.5 and row.equal >= FROM_EQUAL * max(kept[row.tensor], row.kin))
        or (FROM_ALPHA <= row.alpha <= 2 - FROM_ALPHA and row.cosine_residual >= TAKEN_COSINE)
    )
    return copied / sum(row.count for row in rows)


def came(name: str, why: str) -> Verdict:
    """The submission is the sibling or a descendant of it."""
    return Verdict(word="from instruct sibling", why=f"from instruct sibling {name}: {why}", sibling=name, share=1.0)


def holds(name: str, share: float, why: str) -> Verdict:
    """Part of the sibling is in the submission."""
    return Verdict(word="contains", why=f"contains {name} (share {share:.2f}): {why}", sibling=name, share=share)


def figures(measured: Measured, most: int = 40) -> dict[str, Any]:
    """The numbers behind a verdict, for a record: totals, one entry a sibling, the rows of at most `most` tensors.

    Those farthest from the base are kept. A row's `siblings` gives alpha, residual alpha, residual cosine, equal bits.
    """
    found: dict[str, Any] = {
        "tensors": len(measured.rows),
        "elements_compared": sum(row.seen for row in measured.rows),
        "missing": list(measured.missing[:10]),
        "extra": list(measured.extra[:10]),
        "siblings_absent": list(measured.absent),
    }
    if measured.rows:
        found |= {
            "cosine_base_lowest": min(row.cosine for row in measured.rows),
            "move_median": median(row.move for row in measured.rows),
            "equal_base": median(row.equal for row in measured.rows),
        }
    found["siblings"] = {like.name: of_sibling(like) for like in measured.likenesses}
    table: dict[str, dict[str, Any]] = {
        row.tensor: {"tensor": row.tensor, "count": row.count, "cosine_base": row.cosine, "move": row.move}
        | {"equal_base": row.equal}
        for row in measured.rows
    }
    for like in measured.likenesses:
        for row in like.rows:
            table[row.tensor].setdefault("siblings", {})[like.name] = [
                row.alpha,
                row.alpha_residual,
                row.cosine_residual,
                row.equal,
            ]
    chosen = sorted(table.values(), key=lambda entry: (entry["cosine_base"], entry["tensor"]))[:most]
    found["rows"] = [rounded(entry) for entry in sorted(chosen, key=lambda entry: str(entry["tensor"]))]
    return {key: rounded(value) for key, value in found.items()}


def of_sibling(like: Likeness) -> dict[str, Any]:
    """Medians over tensors for one sibling; `None` with the reason where there are too few."""
    _, alpha, mad = summary(like)
    if alpha is None:
        return {"alpha": None, "why": f"differs from the base in fewer than {FEWEST} matrices"}
    partial = list((like.partial or {}).values())
    return {
        "alpha": alpha,
        "alpha_mad": mad,
        "alpha_residual": median(row.alpha_residual for row in like.rows),
        "cosine_residual": median(row.cosine_residual for row in like.rows),
        "sign_agreement": median(row.signs for row in like.rows),
        "equal_sibling": median(row.equal for row in like.rows),
        "alpha_partial": median(partial) if partial else None,
        "alpha_partial_mad": spread(partial) if partial else None,
    }


def rounded(value: Any) -> Any:
    """Six significant digits, through lists and mappings; `None` for what is no number."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if isfinite(value) else None
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return {key: rounded(part) for key, part in value.items()} if isinstance(value, dict) else value
