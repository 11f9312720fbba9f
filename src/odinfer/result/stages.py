"""Plain data of a fit: experiments with their curves, and the stages of the estimation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve, Gradients
from odinfer.uncertainty.small_sample import CONFIDENCE, quantile

if TYPE_CHECKING:
    import pandas as pd

    from odinfer.problem.problem import Problem
    from odinfer.result.fit import FitResult

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExperimentFit:
    """One experiment: what was observed, and what is estimated.

    Attributes:
        t: observation times (N,).
        y: observed columns (N, M), NaN where nothing was observed.
        curve: the estimated states.
        gradients: ODIN's gradient match, if any.
        fitted: predicted values (N, M) of the columns, where these are not the states themselves.
        scores: standardised residuals (N, M), standard normal if the model is right; likewise.
        limit: −1, 1 or 0 (N, M): observations that lie below or above y, or are y; None if all are.
        expected, expected_sd: predicted values (D, M) of the columns along the curve and their standard deviations, as
            wide as the curve's; None where the columns are the states themselves.
        best: the model's own best trajectory, where the curve is not one: ODIN's compromise between it and the data.
    """

    t: Array
    y: Array
    curve: Curve
    gradients: Gradients | None = None
    fitted: Array | None = None
    scores: Array | None = None
    limit: NDArray[np.int8] | None = None
    expected: Array | None = None
    expected_sd: Array | None = None
    best: Curve | None = None

    @property
    def x(self) -> Array:
        """Estimated states (N, K) at the observation times."""
        return self.curve.at(self.t)[0]

    @property
    def predicted(self) -> Array:
        """Predicted values (N, M) of the observed columns."""
        return self.x if self.fitted is None else self.fitted

    @property
    def residuals(self) -> Array:
        """Observed minus predicted values (N, M); NaN where nothing was observed, or a limit only."""
        r = self.y - (self.estimate()[0] if self.fitted is None else self.fitted)
        return r if self.limit is None else np.where(self.limit == 0, r, np.nan)

    def predictions(self) -> tuple[Array, Array]:
        """Predicted values of the columns and their standard deviations (N, M) at the observation times."""
        if self.fitted is None or self.expected_sd is None:
            return self.estimate()
        return self.fitted, np.stack([np.interp(self.t, self.curve.t, sd) for sd in self.expected_sd.T], -1)

    def estimate(self) -> tuple[Array, Array]:
        """States and their standard deviations (N, K) at the observation times; NaN where a failed fit has none."""
        if len(self.curve.t) < 2 or not np.isfinite([self.curve.x, self.curve.slope]).all():
            nothing = np.full((len(self.t), self.curve.x.shape[-1]), np.nan)
            return nothing, nothing.copy()
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
        t: observation times of the first experiment.
    """

    theta: dict[str, float]
    gamma: dict[str, float]
    sigma: dict[str, float]
    x: tuple[Array, ...]
    objective: float
    loglik: float
    seconds: float
    note: str
    t: Array = field(repr=False)
    state_names: tuple[str, ...] = field(repr=False)

    @property
    def states(self) -> pd.DataFrame:
        """States of the first experiment as a table."""
        return frame(self.t, self.x[0], self.state_names)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)


def state_band(fit: FitResult, x: Array, sd: Array, level: float = CONFIDENCE) -> tuple[Array, Array]:
    """The ends of bands about states (..., K) with standard deviations (..., K), within the states' bounds."""
    bounds = fit.details.get("state_bounds", {})
    low, high = (
        np.array([end if (b := bounds.get(s, (None, None))[i]) is None else b for s in fit.state_names], float)
        for i, end in enumerate((-np.inf, np.inf))
    )
    half = quantile(np.inf, level) * sd
    # Estimates that are no solutions, and what rounding does, may lie beyond a bound themselves.
    return np.minimum(np.maximum(x - half, low), x), np.maximum(np.minimum(x + half, high), x)


def attached_problem(fit: FitResult) -> Problem | None:
    """Return the problem of a live fit; None if the result is plain data."""
    return getattr(fit, "problem", None)


def frame(t: Array, values: Array, names: Any) -> pd.DataFrame:
    """A table with index time and named columns."""
    import pandas as pd

    return pd.DataFrame(values, index=pd.Index(t, name="time"), columns=list(names))
