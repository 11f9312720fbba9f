"""Curves of states over time, as plain data: what every smoother and every trajectory ends in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.smoothing.grids import thinned
from odinfer.smoothing.units import Units

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """States of one experiment over time: t (D,), x, slope and standard deviation sd of x, each (D, K).

    sd is widened where there are few data, so that x ± 1.96 sd is the 95 % band.
    """

    t: Array
    x: Array
    slope: Array
    sd: Array

    @staticmethod
    def of_standard(units: Units, t: Array, z: Array, slope: Array, sd: Array) -> Curve:
        """From standardised states, slopes and standard deviations at the user's times."""
        return Curve(t, units.user(z), units.user_slope(slope), units.user_sd(sd))

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """x, slope and sd (N, K) at times inside the curve, by cubic Hermite interpolation; NaN if it is not finite."""
        from scipy.interpolate import CubicHermiteSpline

        if not np.isfinite([self.x, self.slope]).all():  # of a fit that failed
            nothing = np.full((len(t), self.x.shape[1]), np.nan)
            return nothing, nothing, nothing
        if len(self.t) == 1:
            x, slope, sd = (np.repeat(v, len(t), 0) for v in (self.x, self.slope, self.sd))
            return x, slope, sd
        spline = CubicHermiteSpline(self.t, self.x, self.slope)
        sd = np.stack([np.interp(t, self.t, column) for column in self.sd.T], -1)
        return spline(t), spline.derivative()(t), sd


@dataclass(frozen=True, eq=False)
class Gradients:
    """ODIN's gradient match at grid times t (N,): f(x, θ), the GP's derivative and its sd, each (N, K)."""

    t: Array
    f: Array
    gp: Array
    sd: Array

    def thinned(self) -> Gradients:
        """At no more times than are looked at."""
        some = thinned(len(self.t))
        return Gradients(self.t[some], self.f[some], self.gp[some], self.sd[some])
