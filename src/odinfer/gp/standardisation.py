"""Standardised units of states and times, and all conversions to and from the user's units.

Standardised states have mean 0 and spread 1, standardised times are in units of `time`. Outside, arrays are (N, K) in
the user's units; whatever is called z, or belongs to a risk, is standardised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Units:
    """The affine maps between the user's units and standardised ones; states along the last axis."""

    mean: Array  # (K,)
    scale: Array  # (K,)
    time: float

    @staticmethod
    def of(problem: Problem, scale_time: bool = True) -> Units:
        """Mean and standard deviation per state over all observations, and the spread of the times."""
        pooled = np.concatenate([e.y for e in problem.data.experiments])
        mean, scale = np.nanmean(pooled, 0), np.nanstd(pooled, 0)
        spread = np.concatenate([e.t - e.t.mean() for e in problem.data.experiments])
        time = float(spread.std()) if scale_time and len(spread) > 1 else 1.0
        return Units(mean, np.where(scale > 1e-12 * (np.abs(mean) + 1e-300), scale, 1.0), time)

    @property
    def rate(self) -> Array:
        """The user's slope for a standardised slope of one (K,)."""
        return self.scale / self.time

    def standard(self, x: Array) -> Array:
        return (x - self.mean) / self.scale

    def user(self, z: Array) -> Array:
        return self.mean + self.scale * z

    def standard_slope(self, slope: Array) -> Array:
        return slope * (self.time / self.scale)

    def user_slope(self, slope: Array) -> Array:
        return slope * self.rate

    def standard_field(self, f: Array, fx: Array, ft: Array) -> tuple[Array, Array, Array]:
        """f (..., K) with its derivatives by x (..., K, K) and by parameters (..., K, F), these by z instead of x."""
        rate = self.time / self.scale
        return f * rate, fx * (rate[:, None] * self.scale), ft * rate[:, None]

    def standard_sparse_field(self, f: Array, fx: Any, ft: Any) -> tuple[Array, Any, Any]:
        """The same at M points with sparse derivatives (M·K, M·K) and (M·K, F), which are changed in place."""
        rate, scale = (np.tile(v, len(f)) for v in (self.time / self.scale, self.scale))
        for matrix in (fx, ft):
            matrix.data *= np.repeat(rate, np.diff(matrix.indptr))
        fx.data *= scale[fx.indices]
        return self.standard_slope(f), fx, ft

    def standard_time(self, t: Array, start: float = 0.0) -> Array:
        """Time since `start`."""
        return (t - start) / self.time

    def user_time(self, t: Array) -> Array:
        return t * self.time

    def standard_variance(self, sd: Array) -> Array:
        return (sd / self.scale) ** 2

    def user_sd(self, sd: Array) -> Array:
        """Standard deviations of states or of their noise."""
        return sd * self.scale

    def of_state(self, k: int) -> Units:
        """Of one state alone."""
        return Units(self.mean[k : k + 1], self.scale[k : k + 1], self.time)


def state_scales(problem: Problem) -> Array:
    """Scales (K,) in which the accuracy of trajectories is measured: the spreads of the data of observed states.

    NaN where states are hidden or observed otherwise; their scales are the sizes that each trajectory reaches.
    """
    return Units.of(problem).scale if problem.fully_observed_gaussian else np.full(len(problem.model.states), np.nan)
