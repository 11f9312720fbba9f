"""`Curve`: states over time with slopes and standard deviations, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.grids import thinned
from odinfer.gp.standardisation import Units

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Hermite:
    """The piecewise cubic through values x (D, K) with slopes (D, K) at increasing times t (D,), continued at its ends.

    SciPy has it, too, and takes longer to import it than a fit takes.
    """

    t: Array
    x: Array
    slope: Array

    def _local_coefficients(self, t: Array) -> tuple[Array, tuple[Array, ...]]:
        """How long after the beginning of their piece times are (N, 1), and the coefficients of it, each (N, K)."""
        i = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2)
        h, x, d = (self.t[i + 1] - self.t[i])[:, None], self.x, self.slope
        rise = (x[i + 1] - x[i]) / h
        bend = (d[i] + d[i + 1] - 2.0 * rise) / h
        return (t - self.t[i])[:, None], (x[i], d[i], (rise - d[i]) / h - bend, bend / h)

    def __call__(self, t: Array) -> Array:
        """(N, K)"""
        s, (x, d, c, b) = self._local_coefficients(np.asarray(t, float))
        return np.asarray(x + s * (d + s * (c + s * b)))

    def derivative(self, t: Array) -> Array:
        """(N, K)"""
        s, (_, d, c, b) = self._local_coefficients(np.asarray(t, float))
        return np.asarray(d + s * (2.0 * c + s * 3.0 * b))


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
        if not np.isfinite([self.x, self.slope]).all():  # of a fit that failed
            nothing = np.full((len(t), self.x.shape[1]), np.nan)
            return nothing, nothing, nothing
        if len(self.t) == 1:
            x, slope, sd = (np.repeat(v, len(t), 0) for v in (self.x, self.slope, self.sd))
            return x, slope, sd
        spline = Hermite(self.t, self.x, self.slope)
        sd = np.stack([np.interp(t, self.t, column) for column in self.sd.T], -1)
        return spline(t), spline.derivative(t), sd


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
