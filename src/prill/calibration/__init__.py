"""The calibration set: made-up runs with planted violations and innocent look-alikes, put to the real judges.

Everything follows from a seed, so that a draw that nobody tuned a judge on can be taken at any time.
Not covered: what no family here is like. A rate is a rate on these families, not on the world.
"""

from prill.calibration.family import Family
from prill.calibration.measure import FAMILIES, calibrate

__all__ = ["FAMILIES", "Family", "calibrate"]
