"""Is what training changed of low rank, as a merged adapter leaves it? How S - B of a matrix spreads over directions.

The singular values of a sample of rows are found up to `MOST`; what rounding to BF16 adds is estimated from the size of
the numbers and taken out. A merge of rank r leaves nothing beyond r directions, in the matrices that it was put on.
Not covered: adapters with a magnitude of their own (DoRA), several merges one after the other whose ranks add up, and
whether a claimed rank was really used: a smaller one is consistent with a larger.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prill.checkpoint.fingerprint import opened
from prill.checkpoint.lineage import fits
from prill.checkpoint.sources import Stored
from prill.checkpoint.values import Pick, open_weights, tamed
from prill.record import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST = 128
"""Directions that are looked for; a merge of a higher rank is told from none only where a matrix is large."""
ROWS = 1024
"""Rows of a matrix that are looked at: a sample of rows has no higher rank."""
ENOUGH = 0.99
"""Share of the energy, without that of rounding, that the directions of a merge hold."""
SURE = 3.0
"""How many times the energy of rounding a change must have to be measured."""


class Spread(Record, frozen=True, kw_only=True):
    """How S - B of one matrix spreads over directions."""

    tensor: str
    move: float
    """|S - B| / |B|; 0 where nothing changed."""
    rank: int | None
    """Fewest directions with `ENOUGH` of the energy; `None` where `MOST` are not enough, or the matrix is too small to
    tell."""
    rounding: float
    """Share of the energy of S - B that rounding to BF16 explains."""
    energy: dict[int, float]
    """Directions → share of the energy, without rounding."""


class Ranks(Record, frozen=True, kw_only=True):
    """All matrices."""

    spreads: tuple[Spread, ...]
    unread: str = ""
    """Why there are none."""


def ranks(submission: Path, base: Path, say: Callable[[str], None] = lambda line: None) -> Ranks:
    """Look at every matrix that both have. Raises `InfraError` where the base cannot be read."""
    weights, origin = open_weights(submission), opened(base)
    wrong = [fault for fault in weights.faults if fault.severity == "fatal"]
    if wrong:
        return Ranks(spreads=(), unread=f"{wrong[0].code}: {wrong[0].why}")
    ours = Stored(weights)
    names = [name for name in sorted(ours.shapes) if fits(name, ours.shapes, origin.shapes)]
    found = []
    for number, name in enumerate(names):
        found.append(of_one(name, ours, origin))
        say(f"{number + 1} of {len(names)}: {name}")
    return Ranks(spreads=tuple(found))


def of_one(name: str, ours: Stored, base: Stored) -> Spread:
    """One matrix."""
    import numpy as np

    rows = min(ours.shapes[name][0], base.shapes[name][0])
    chosen = np.sort(np.random.default_rng(0).choice(rows, min(rows, ROWS), replace=False))
    pick = Pick(rows=chosen, columns=np.arange(base.shapes[name][1]))
    s, b = tamed(ours.take(name, pick)), base.take(name, pick)
    moved = s - b
    total, length = float(np.vdot(moved, moved)), float(np.vdot(b, b))
    noise = rounding(s[moved.any(axis=1)])
    move = (total / length) ** 0.5 if length else 0.0
    if total == 0:
        return Spread(tensor=name, move=0.0, rank=0, rounding=0.0, energy={})
    share = min(noise / total, 1.0)
    most = min(MOST, min(moved.shape) // 2)
    if total < SURE * noise or most < 1:
        return Spread(tensor=name, move=move, rank=None, rounding=share, energy={})
    held = np.cumsum(strongest(moved, most) ** 2 - noise / min(moved.shape)) / (total - noise)
    enough = np.flatnonzero(held >= ENOUGH)
    told = {rank: round(float(min(held[rank - 1], 1.0)), 4) for rank in (1, 4, 8, 16, 32, 64, 128) if rank <= most}
    rank = int(enough[0]) + 1 if len(enough) else None
    return Spread(tensor=name, move=move, rank=rank, rounding=share, energy=told)


def rounding(values: "NDArray[Any]") -> float:
    """Energy that rounding of these values to BF16 adds: a twelfth of the squared step between two numbers, each."""
    import numpy as np

    _, exponents = np.frexp(values)
    return float((np.ldexp(1.0, exponents.astype(np.int32) - 8) ** 2).sum() / 12)


def strongest(matrix: "NDArray[Any]", most: int) -> "NDArray[Any]":
    """The largest singular values, by a randomised range finder with power steps, fixed seed."""
    import numpy as np

    width = min(most + 8, *matrix.shape)
    start = np.random.default_rng(0).standard_normal((matrix.shape[1], width), dtype=np.float32)
    basis = np.linalg.qr(matrix @ start)[0]
    for _ in range(2):
        basis = np.linalg.qr(matrix @ np.linalg.qr(matrix.T @ basis)[0])[0]
    values: NDArray[Any] = np.linalg.svd(basis.T @ matrix, compute_uv=False)[:most]
    return values


def told(found: Ranks, claimed: int | None = None) -> Iterator[str]:
    """What that says, in words: which matrices changed, and by how many directions; then whether a claim holds."""
    if found.unread:
        yield f"cannot be looked at: {found.unread}"
        return
    changed = [spread for spread in found.spreads if spread.move > 0]
    kinds = sorted({kind(spread.tensor) for spread in changed})
    whole = [one.tensor for one in found.spreads if one.move == 0 and kind(one.tensor) in kinds]
    yield f"{len(changed)} of {len(found.spreads)} matrices changed: {', '.join(kinds) or 'none'}"
    if whole:
        yield f"of these kinds, {len(whole)} are the base's as they were"
    measured = [spread for spread in changed if spread.energy]
    if len(measured) < len(changed):
        yield f"{len(changed) - len(measured)} changed hardly more than rounding does: nothing can be said of them"
    low = [spread.rank for spread in measured if spread.rank is not None]
    if low:
        most = max(low)
        yield f"{len(low)} of {len(measured)} are of low rank: {min(low)} to {most} directions hold {ENOUGH:.0%} of it"
    if claimed is not None and measured:
        yield claim(measured, claimed)


def claim(measured: Sequence[Spread], claimed: int) -> str:
    """Whether a claimed rank is what these matrices show."""
    against = [spread for spread in measured if spread.rank is None or spread.rank > claimed]
    if not against:
        return f"consistent with a merge of rank {claimed} on these matrices"
    worst = against[0]
    shows = f"more than {MOST}" if worst.rank is None else str(worst.rank)
    return f"not a merge of rank {claimed}: {len(against)} matrices have more, {worst.tensor} has {shows}"


def kind(name: str) -> str:
    """`q_proj` of `layers.0.self_attn.q_proj.weight`."""
    return name.removesuffix(".weight").rpartition(".")[2]
