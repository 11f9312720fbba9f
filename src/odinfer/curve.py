"""What a fit is made of, as plain data: curves over time, ODIN's gradient match, and stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

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

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """x, slope and sd (N, K) at times inside the curve, by cubic Hermite interpolation."""
        from scipy.interpolate import CubicHermiteSpline

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


@dataclass(frozen=True, eq=False)
class ExperimentFit:
    """Observations t (N,), y (N, K) of one experiment, its estimated curve, and ODIN's gradient match if any."""

    t: Array
    y: Array
    curve: Curve
    gradients: Gradients | None = None

    @property
    def x(self) -> Array:
        """Estimated states (N, K) at the observation times."""
        return self.curve.at(self.t)[0]

    def estimate(self) -> tuple[Array, Array]:
        """States and their standard deviations (N, K) at the observation times; NaN where a failed fit has none."""
        if len(self.curve.t) < 2 or not np.isfinite([self.curve.x, self.curve.slope]).all():
            return np.full(self.y.shape, np.nan), np.full(self.y.shape, np.nan)
        x, _, sd = self.curve.at(self.t)
        return x, sd


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of a fit: its estimates, what it minimised, and the seconds it took.

    Attributes:
        theta, gamma, sigma: by name; gamma is in standardised units and empty where the stage has none.
        x: states at the observation times, one (N, K) array per experiment.
        objective: the risk (ODIN) or the negative log-likelihood (refined), each plus −log p(θ) terms.
        loglik: log-likelihood of the states as estimated by this stage.
        note: a sentence on how it ended.
    """

    theta: dict[str, float]
    gamma: dict[str, float]
    sigma: dict[str, float]
    x: tuple[Array, ...]
    objective: float
    loglik: float
    seconds: float
    note: str
    states: pd.DataFrame = field(repr=False)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)


def frame(t: Array, values: Array, names: Any) -> pd.DataFrame:
    """A table with index time and named columns."""
    import pandas as pd

    return pd.DataFrame(values, index=pd.Index(t, name="time"), columns=list(names))
