"""The figures behind a verdict on lineage: as plain values for a record, and as lines for a terminal."""

from collections.abc import Iterator
from math import isfinite
from statistics import median
from typing import Any

from prill.checkpoint.lineage import Likeness, Measured
from prill.checkpoint.rule import FEWEST, margins, spread, summary

MOST_ROWS = 40


def figures(measured: Measured, most: int = MOST_ROWS) -> dict[str, Any]:
    """The numbers behind a verdict, for a record: totals, one entry a sibling, margins, rows of at most `most` tensors.

    Those farthest from the base are kept. A row's `siblings` gives alpha, residual alpha, residual cosine, equal bits.
    """
    found: dict[str, Any] = {
        "tensors": len(measured.rows),
        "elements_compared": sum(row.seen for row in measured.rows),
        "missing": list(measured.missing[:10]),
        "extra": list(measured.extra[:10]),
        "siblings_absent": list(measured.absent),
        "undone": list(measured.undone),
    }
    if measured.rows:
        found |= {
            "cosine_base_lowest": min(row.cosine for row in measured.rows),
            "move_median": median(row.move for row in measured.rows),
            "equal_base": median(row.equal for row in measured.rows),
        }
    found["siblings"] = {like.name: of_sibling(like) for like in measured.likenesses}
    found["margins"] = [
        {"what": each.what, "of": each.of, "value": each.value, "threshold": each.threshold, "margin": each.margin}
        for each in margins(measured)
    ]
    table: dict[str, dict[str, Any]] = {
        row.tensor: {"tensor": row.tensor, "count": row.count, "cosine_base": row.cosine, "move": row.move}
        | {"equal_base": row.equal}
        for row in measured.rows
    }
    for like in measured.likenesses:
        for row in like.rows:
            if row.tensor in table:
                told = [row.alpha, row.alpha_residual, row.cosine_residual, row.equal]
                table[row.tensor].setdefault("siblings", {})[like.name] = told
    chosen = sorted(table.values(), key=lambda entry: (entry["cosine_base"], entry["tensor"]))[:most]
    found["rows"] = sorted(chosen, key=lambda entry: str(entry["tensor"]))
    return {key: rounded(value) for key, value in found.items()}


def of_sibling(like: Likeness) -> dict[str, Any]:
    """Medians over tensors for one other model; `None` with the reason where there are too few."""
    alpha, mad = summary(like)
    if alpha is None:
        return {"alpha": None, "why": f"differs from the base in fewer than {FEWEST} matrices"}
    partial = list((like.partial or {}).values())
    return {
        "alpha": alpha,
        "alpha_mad": mad,
        "alpha_residual": median(row.alpha_residual for row in like.rows),
        "cosine": median(row.cosine for row in like.rows),
        "cosine_residual": median(row.cosine_residual for row in like.rows),
        "sign_agreement": median(row.signs for row in like.rows),
        "equal_sibling": median(row.equal for row in like.rows),
        "alpha_partial": median(partial) if partial else None,
        "alpha_partial_mad": spread(partial) if partial else None,
        "controls": like.controls,
    }


def rounded(value: Any) -> Any:
    """Six significant digits, through lists and mappings; `None` for what is no number."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if isfinite(value) else None
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return {key: rounded(part) for key, part in value.items()} if isinstance(value, dict) else value


def lines(measured: Measured) -> Iterator[str]:
    """The same for a terminal: the base, each sibling, then every figure beside its threshold."""
    found = figures(measured)
    if measured.rows:
        yield f"  matrices {found['tensors']}, elements compared {found['elements_compared']:,}"
        yield (
            f"  base: lowest cosine {found['cosine_base_lowest']:.4f}, moved {found['move_median']:.4f} of its length, "
            f"equal bits {found['equal_base']:.1%}"
        )
    for name, about in found["siblings"].items():
        if about["alpha"] is None:
            yield f"  {name}: {about['why']}"
            continue
        yield (
            f"  {name}: alpha {about['alpha']:.4f} (MAD {about['alpha_mad']:.4f}), "
            f"residual {about['alpha_residual']:.4f}, cosine {about['cosine']:.3f}, residual "
            f"{about['cosine_residual']:.3f}, equal signs {about['sign_agreement']:.1%}, "
            f"equal bits {about['equal_sibling']:.1%}"
        )
        if about["alpha_partial"] is not None:
            beside = f"beside {about['controls']} controls"
            yield f"    {beside}: partial alpha {about['alpha_partial']:.4f} (MAD {about['alpha_partial_mad']:.4f})"
    for what in found["undone"]:
        yield f"  undone: {what}"
    for each in found["margins"]:
        what = f"{each['what']} ({each['of']})" if each["of"] else each["what"]
        yield f"  {what}: {each['value']:.4f}, threshold {each['threshold']:g}, margin {each['margin']:+.4f}"
