"""One tensor of three checkpoints: how far the submission S lies from the base B, and how much of I - B is in S - B.

Pure arithmetic on float32 arrays (rows, columns) of equal shape; sums over a million elements keep five digits.
Not covered: tensors that are equal up to a permutation, scale or rotation.
"""

import math
from typing import TYPE_CHECKING, Any

from prill.record import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEADING = 8
"""Singular directions of I - B that are taken out for the residual: training on similar data shares the strongest."""
OVERSAMPLED = 8
STUDIED = 1 << 14
"""Elements, in whole rows, that directions are looked for in and the residual is taken over."""
ENOUGH = 8192
NOTHING = 1e-12
MOST = 1e6
"""Of a ratio that is told."""


class ToBase(Record, frozen=True, kw_only=True):
    """S against B in one tensor."""

    tensor: str
    count: int
    """Elements of the whole tensor."""
    seen: int
    """Elements that were compared."""
    cosine: float
    """cos(S, B), elementwise; 0 where either is all zeros and the other is not."""
    move: float
    """|S - B| / |B|."""
    size: float
    """|S| / |B|."""
    equal: float
    """Share of elements whose BF16 bits are equal."""


class ToSibling(Record, frozen=True, kw_only=True):
    """S - B against I - B in one tensor."""

    tensor: str
    count: int
    alpha: float
    """<S-B, I-B> / <I-B, I-B>: 0 for what knows nothing of I, 1 for I itself, w for a merge with weight w."""
    cosine: float
    """cos(S-B, I-B); 0 where S equals B."""
    alpha_residual: float
    """alpha after the leading singular directions of I - B are taken out."""
    cosine_residual: float
    signs: float
    """Share of equal signs among the coordinates where |I-B| is of middle size and S differs from B."""
    equal: float
    """Share of elements whose BF16 bits are equal in S and I."""
    kin: float
    """The same share for B and I: how much they have in common anyway."""


def to_base(tensor: str, count: int, s: "NDArray[Any]", b: "NDArray[Any]", equal: float) -> ToBase:
    """Measure S against B. Both must be finite."""
    norm = length(b)
    cosine = inner(s, b) / max(length(s) * norm, NOTHING)
    move, size = length(s - b) / max(norm, NOTHING), length(s) / max(norm, NOTHING)
    if norm <= NOTHING and length(s) <= NOTHING:
        cosine, size = 1.0, 1.0
    return ToBase(
        tensor=tensor,
        count=count,
        seen=s.size,
        cosine=cosine,
        move=min(move, MOST),
        size=min(size, MOST),
        equal=equal,
    )


def to_sibling(
    tensor: str, count: int, b: "NDArray[Any]", moved: "NDArray[Any]", known: "NDArray[Any]", equal: float, kin: float
) -> ToSibling | None:
    """Measure S - B (`moved`) against I - B (`known`); `None` where I equals B, so that there is nothing to find.

    For the residual both lose their part along B first: weight decay shrinks every run alike.
    """
    energy = inner(known, known)
    if energy <= NOTHING:
        return None
    step = max(1, known.size // STUDIED)
    some, ours = (beside(delta[::step], b[::step]) for delta in (known, moved))
    left, leading, right = directions(some)
    residual = some - (left * leading) @ right
    rest = ours - left @ (left.T @ ours)
    rest = rest - (rest @ right.T) @ right
    remaining = inner(residual, residual)
    along = inner(rest, residual)
    return ToSibling(
        tensor=tensor,
        count=count,
        alpha=inner(moved, known) / energy,
        cosine=inner(moved, known) / max(length(moved) * energy**0.5, NOTHING),
        alpha_residual=along / remaining if remaining > NOTHING * inner(some, some) else 0.0,
        cosine_residual=along / max(length(rest) * remaining**0.5, NOTHING),
        signs=signs(moved, known),
        equal=equal,
        kin=kin,
    )


def beside(delta: "NDArray[Any]", b: "NDArray[Any]") -> "NDArray[Any]":
    """What of a difference is not along B."""
    return delta - (inner(delta, b) / max(inner(b, b), NOTHING)) * b


def signs(moved: "NDArray[Any]", known: "NDArray[Any]") -> float:
    """Share of equal signs, over up to `ENOUGH` coordinates where |I-B| is of middle size; 0.5 where none moved."""
    import numpy as np

    stride = max(1, known.size // ENOUGH)
    ours, theirs = moved.ravel()[::stride], known.ravel()[::stride]
    size = np.abs(theirs)
    low, high = np.quantile(size, (0.25, 0.75))
    middle = (size >= low) & (size <= high) & (theirs != 0) & (ours != 0)
    return float(((ours > 0) == (theirs > 0))[middle].mean()) if middle.any() else 0.5


def directions(matrix: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
    """The leading singular directions: left (rows, k), values (k,), right (k, columns); k <= `LEADING`.

    A randomised range finder with two power steps (Halko, Martinsson, Tropp 2011, algorithm 4.4), fixed seed.
    """
    import numpy as np

    width = min(LEADING + OVERSAMPLED, *matrix.shape)
    start = np.random.default_rng(0).standard_normal((matrix.shape[1], width), dtype=np.float32)
    basis = np.linalg.qr(matrix @ start)[0]
    for _ in range(2):
        basis = np.linalg.qr(matrix @ (matrix.T @ basis))[0]
    left, values, right = np.linalg.svd(basis.T @ matrix, full_matrices=False)
    keep = min(LEADING, max(1, min(matrix.shape) // 4))  # of a thin matrix, something must be left over
    return (basis @ left)[:, :keep], values[:keep], right[:keep]


def inner(a: "NDArray[Any]", b: "NDArray[Any]") -> float:
    """Sum of products."""
    import numpy as np

    return float(np.vdot(a, b))


def length(a: "NDArray[Any]") -> float:
    """Euclidean norm."""
    return math.sqrt(inner(a, a))
