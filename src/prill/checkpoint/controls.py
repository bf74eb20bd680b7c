"""Control fine-tunes: honest runs from the same base that show what all training shares.

Training on similar data moves every run in common directions. Least squares of S - B on I - B together with the
controls' deltas lets them take the common part; what then stays on I - B only descent from I explains.
Not covered: choosing the controls. Eight or more per base, of several recipes, keep honest runs below 0.2; with K of
them an honest run by the sibling's own recipe still keeps about 1/(K+1).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def partial(moved: "NDArray[Any]", known: "NDArray[Any]", controls: "Sequence[NDArray[Any]]") -> float:
    """The coefficient of `known` (I - B) in the least-squares fit of `moved` (S - B) on it and all controls' deltas.

    All arrays have the same number of elements. 0 where I equals B.
    """
    import numpy as np

    columns = np.stack([known.ravel(), *(control.ravel() for control in controls)]).astype(np.float64)
    scale = np.sqrt((columns**2).sum(axis=1))
    if scale[0] == 0:
        return 0.0
    scale[scale == 0] = 1.0
    columns /= scale[:, None]
    # normal equations: the columns are few, of length one and far from parallel, and a hundred times as long as wide
    inner, along = columns @ columns.T, columns @ moved.ravel().astype(np.float64)
    return float(np.linalg.lstsq(inner, along, rcond=1e-9)[0][0] / scale[0])
