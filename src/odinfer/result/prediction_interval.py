"""Prediction intervals of new observations along a fitted curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.observation import observation_of
from odinfer.result.stages import attached_problem
from odinfer.uncertainty.small_sample import CONFIDENCE, quantile

if TYPE_CHECKING:
    from odinfer.result.fit import FitResult

Array = NDArray[np.float64]


def prediction_interval(
    fit: FitResult, experiment: str, times: Array, level: float = CONFIDENCE
) -> tuple[Array, Array, Array]:
    """Compute between which values new observations lie, noise included, along the curve of an experiment.

    A problem has to be attached where columns are not just the states.

    Returns:
        Predicted values of the columns, lower and upper limits, each (N, M).
    """
    own, problem = fit.experiments[experiment], attached_problem(fit)
    x, _, sd = own.curve.at(times)
    half = quantile(np.inf, level)
    if own.expected_sd is None or problem is None:
        wide = half * np.hypot(sd, [fit.sigma[name] for name in fit.state_names])
        return x, x - wide, x + wide
    e, observation = list(fit.experiments).index(experiment), observation_of(problem)
    phi = problem.phi(np.array([fit.theta[name] for name in fit.parameter_names]))[None]
    noise = np.array([[fit.sigma.get(name, 1.0) ** 2 for name in fit.columns]])
    mean = observation.predicted(e, x[None], phi, times)
    error = half * np.stack([np.interp(times, own.curve.t, column) for column in own.expected_sd.T], -1)
    # Like the predicted values themselves, ends of their bands are positive where values cannot be negative.
    positive = np.array([c.family.refuses(np.array([-1.0])) is not None for c in problem.observed])
    with np.errstate(all="ignore"):
        low, high = (np.where(positive, mean * np.exp(s * error / mean), mean + s * error) for s in (-1.0, 1.0))
    ends = observation.outer(e, x[None], noise, phi, times, low, high, level)
    return mean[0], ends[0][0], ends[1][0]
