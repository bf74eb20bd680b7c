"""Paired bootstrap over items: every row of a table is computed again on the same resampled items. Pure.

A resample of a benchmark's n items is a vector of counts; shared by all rows, so that differences between rows are
paired. All resamples of a benchmark times all rows is then one matrix product. Chance comes in as a numpy generator.
Not covered: dependence between items (several questions on one passage), which makes true intervals wider.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

CHUNK = 1 << 16
"""Draws at a time, so that they stay in a core's cache."""
LOW, HIGH = 0.025, 0.975
POWER = 1.959964 + 0.841621
"""Standard errors that a true difference must have to be found at 5 % (both ways) in 80 of 100 repetitions."""
Array = Any
"""A numpy array; numpy is imported where it is used."""


class Block(Struct, frozen=True, kw_only=True):
    """One benchmark: marks of its items (items × columns) and what each column adds to each row (columns × rows)."""

    marks: Array
    share: Array
    scale: tuple[float, float] | None = None
    """(floor, ceiling): column means are rescaled and clamped before they are shared out."""


class Noise(Struct, frozen=True, kw_only=True):
    """Independent chance added to rows: standard deviations, and degrees of freedom (`None`: they are known)."""

    sds: Sequence[float]
    df: float | None = None


def resample(
    blocks: Sequence[Block], constant: Sequence[float], noises: Sequence[Noise], draws: int, chance: Any
) -> Array:
    """`draws` × rows: each row's value on each resample. `constant` is what no item decides."""
    import numpy as np

    out = np.zeros((draws, len(constant)), dtype=np.float64)
    out += np.asarray(constant, dtype=np.float64)
    for block in blocks:
        linear = block.scale is None
        marks = np.asarray(block.marks, dtype=np.float32)
        share = np.asarray(block.share, dtype=np.float32)
        columns = marks @ share if linear else marks
        items = len(marks)
        size = max(1, min(draws, CHUNK // items))
        for start in range(0, draws, size):
            means = counts(items, min(size, draws - start), chance) @ columns
            means /= items
            if block.scale is not None:
                floor, ceiling = block.scale
                means = np.clip((means - floor) / (ceiling - floor), 0.0, 1.0) @ share
            out[start : start + size] += means
    for noise in noises:
        sds = np.asarray(noise.sds, dtype=np.float64)
        if sds.any():
            shape = (draws, len(constant))
            drawn = chance.standard_normal(shape) if noise.df is None else chance.standard_t(noise.df, shape)
            out += drawn * sds
    return out


def counts(items: int, draws: int, chance: Any) -> Array:
    """How often each item comes up in each of `draws` resamples of all items: draws × items, float32."""
    import numpy as np

    drawn = chance.integers(0, items, size=(draws, items), dtype=np.int32)
    drawn += (np.arange(draws, dtype=np.int32) * items)[:, None]
    return np.bincount(drawn.ravel(), minlength=draws * items).astype(np.float32).reshape(draws, items)


def bounds(values: Array) -> list[tuple[float, float]]:
    """The 95 % interval of each row (column of `values`)."""
    import numpy as np

    low, high = np.quantile(values, (LOW, HIGH), axis=0)
    return [(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def rank_bounds(values: Array) -> list[tuple[int, int]]:
    """The 95 % interval of each row's rank, 1 being the highest value; equal values share the better rank."""
    import numpy as np

    order = np.sort(-values, axis=1)
    ranks = np.empty(values.shape, dtype=np.int32)
    for draw, row in enumerate(order):
        ranks[draw] = np.searchsorted(row, -values[draw], side="left")
    low, high = np.quantile(ranks + 1, (LOW, HIGH), axis=0, method="inverted_cdf")
    return [(int(a), int(b)) for a, b in zip(low, high, strict=True)]


def detectable(first: Array, second: Array) -> float:
    """The smallest true difference between two rows that a comparison on these items would probably find.

    The standard error is read off the 95 % interval, not off the spread of all draws: with few runs those follow
    Student's t, whose variance may be infinite.
    """
    import numpy as np

    low, high = np.quantile(first - second, (LOW, HIGH))
    return POWER * float(high - low) / 2 / 1.959964


def naive(columns: Sequence[Array], draws: int, chance: Any) -> Array:
    """The oracle: each column's items drawn by index, one after the other, unpaired; draws × columns. Slow."""
    import numpy as np

    out = np.empty((draws, len(columns)))
    for place, column in enumerate(columns):
        marks = np.asarray(column)
        for draw in range(draws):
            out[draw, place] = marks[chance.integers(0, len(marks), len(marks))].mean()
    return out
