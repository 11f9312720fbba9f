"""What a fit is made of, as plain data: an experiment with its curve, and the stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.smoothing.curves import Curve, Gradients

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


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
