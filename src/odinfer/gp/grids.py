"""Time grids: for matching equations, and dense ones for storing curves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_DENSE = 200
KEPT = 2000  # times at which something is kept or drawn for each of many


def finer_grid(t: Array, points: int) -> tuple[Array, NDArray[np.int64]]:
    """`points` grid times per gap between observations, and where the observations stand among them."""
    if points <= 1 or len(t) < 2:
        return t, np.arange(len(t))
    fine = (t[:-1, None] + np.diff(t)[:, None] * np.arange(points) / points).ravel()
    return np.append(fine, t[-1]), np.arange(len(t)) * points


def dense_times(t: Array) -> Array:
    """The given times and evenly many between them, about 200 in all."""
    each = max(2, -(-_DENSE // max(len(t) - 1, 1)))
    return np.append(np.linspace(t[:-1], t[1:], each, endpoint=False, axis=1).ravel(), t[-1]) if len(t) > 1 else t


def thinned(count: int, most: int = KEPT) -> NDArray[np.int64]:
    """Places of evenly many among so many, the first and the last of them included; all if these are not more."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).round().astype(np.int64)
