"""Absolute tolerances of integration, relative to the size from which each state starts.

Growth multiplies an early error as it multiplies the state, so the tolerance of a state that starts from 1e-20 is
relative to 1e-20.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.problem.condition import Condition

Array = NDArray[np.float64]

# Share of the time span: a state that starts at zero has the size that its first slope reaches within it.
_FIRST = 1e-3
_ABSOLUTE = 1e-2  # absolute tolerance of a state, in units of the relative tolerance times its size at the start
_SMALLEST = 1e-290  # no tolerance is smaller: solvers divide by it


def absolute_tolerance(x: Array, slope: ArrayLike, span: float, rtol: float) -> Array:
    """Compute an absolute tolerance (K,) for every state from its size at the start of an interval.

    A state that starts at zero has the size that its first slope reaches within a small share of the interval; without
    a slope, the size of the smallest other state.

    Args:
        x, slope: states (K,) and their derivatives (K,) at the start.
        span: length of the interval.
        rtol: relative tolerance.
    """
    size = np.where(x != 0.0, np.abs(x), _FIRST * span * np.abs(np.nan_to_num(slope)))
    smallest = size[size > 0.0].min(initial=np.inf)
    size = np.where(size > 0.0, size, smallest if np.isfinite(smallest) else 1.0)
    return np.asarray(np.maximum(_ABSOLUTE * rtol * size, _SMALLEST))


def start_tolerance(condition: Condition, theta: Array, x: Array, a: float, b: float, rtol: float) -> Array:
    """Compute the same for states x (K,) of an experiment at time a, of an interval from a to b.

    Args:
        theta: parameters of the model (P,).
    """
    with np.errstate(all="ignore"):
        slope = condition.evaluate(condition.inside(a, b, np.array([a])), x[None], theta[None])[0]
    return absolute_tolerance(x, slope, b - a, rtol)
