"""Forecasts: states beyond the data, with bands that hold there too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.trajectory.extension import extended
from odinfer.uncertainty.intervals import state_ends
from odinfer.uncertainty.maximum import Maximum
from odinfer.uncertainty.small_sample import quantile

Array = NDArray[np.float64]

_EXACT_TIMES = 16  # of a forecast


def forecast(maximum: Maximum, e: int, t: Array, level: float) -> tuple[Array, Array, Array]:
    """States and the ends of their bands (N, K) at increasing times, also beyond the data; NaN after a blow-up.

    Beyond the data a trajectory can bend far from its linear picture, so the ends are those of likelihood intervals. Of
    many times some are computed, and between them the ends in units of the linear picture's standard deviation.
    """
    like, refined = maximum.like, maximum.refined
    longer = extended(like, refined, [t if i == e else np.empty(0) for i in range(len(refined.paths))])
    if longer is None:
        nothing = np.full((len(t), len(refined.sigma)), np.nan)
        return nothing, nothing, nothing
    path = longer.paths[e]
    x, sd = path.at(t)[0], maximum.band_sd(longer, e, t)
    after = np.flatnonzero(t > refined.paths[e].mesh[-1])
    some = after[np.unique(np.linspace(0, len(after) - 1, _EXACT_TIMES).round().astype(int))] if len(after) else after
    low, high = (x + side * quantile(np.inf, level) * sd for side in (-1.0, 1.0))
    if len(some):
        ends = state_ends(replace(maximum, refined=longer), level, e, np.searchsorted(path.mesh, t[some]))
        for band, exact in zip((low, high), ends, strict=True):
            for k in range(x.shape[1]):
                units = (exact[:, k] - x[some, k]) / sd[some, k]
                band[after, k] = x[after, k] + np.interp(t[after], t[some], units) * sd[after, k]
            band[some] = exact  # to the last digit
    return x, low, high
