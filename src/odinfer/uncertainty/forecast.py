"""Forecast states and observables beyond the data, with bands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.extension import extended
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.ode.collocation import MANY
from odinfer.uncertainty.intervals import state_limits
from odinfer.uncertainty.maximum import Maximum
from odinfer.uncertainty.small_sample import quantile

Array = NDArray[np.float64]

_EXACT_TIMES = 16  # of a forecast
# Beyond the data, a value below the first share of its largest size within the data has decayed, if its standard
# deviation is no more than the second times the value: an oscillation that passes zero has not.
_DECAYED, _SAME_SIGN = 1e-4, 50.0


def forecast(
    maximum: Maximum, e: int, t: Array, level: float, columns: bool = False, observed: bool = False
) -> tuple[Array, Array, Array]:
    """States and the ends of their bands (N, K) at increasing times, also beyond the data; NaN after a blow-up.

    Beyond the data a trajectory can bend far from its linear picture, so the ends are those of likelihood intervals. Of
    many times some are computed, and between them the ends in units of the linear picture's standard deviation. The
    band of a value that has decayed is that of the linear picture of its logarithm.

    Args:
        columns: the predicted values of the observed columns (N, M) instead of states.
        observed: bands for new observations of the columns, noise included.
    """
    likelihood, refined, columns = maximum.likelihood, maximum.refined, columns or observed
    after = np.flatnonzero(t > refined.paths[e].mesh[-1])
    some = after[np.unique(np.linspace(0, len(after) - 1, _EXACT_TIMES).round().astype(int))] if len(after) else after
    passed = t if len(t) <= MANY else t[some]
    longer = extended(likelihood, refined, [passed if i == e else np.empty(0) for i in range(len(refined.paths))])
    if longer is None:
        nothing = np.full((len(t), len(likelihood.problem.columns) if columns else len(likelihood.scale)), np.nan)
        return nothing, nothing, nothing
    x, sd = columns_at(maximum, longer, e, t) if columns else (longer.paths[e].at(t)[0], maximum.band_sd(longer, e, t))
    relative = _relative_sd(maximum, longer, e, t, columns)
    some = some[np.isnan(relative[some]).any(1)]
    low, high = (x + side * quantile(np.inf, level) * sd for side in (-1.0, 1.0))
    if len(some):
        node = np.searchsorted(longer.paths[e].mesh, t[some])
        ends = state_limits(replace(maximum, refined=longer), level, e, node, columns)
        for band, exact in zip((low, high), ends, strict=True):
            for k in range(x.shape[1]):
                if np.isfinite(exact[:, k]).all() and (sd[some, k] > 0).all():
                    units = (exact[:, k] - x[some, k]) / sd[some, k]
                    band[after, k] = x[after, k] + np.interp(t[after], t[some], units) * sd[after, k]
            band[some] = exact  # to the last digit
    width = quantile(np.inf, level) * np.nan_to_num(relative)
    low, high = (
        np.where(np.isnan(relative), band, x * np.exp(side * np.sign(x) * width))
        for band, side in ((low, -1.0), (high, 1.0))
    )
    if not columns:
        low, high = (np.clip(band, *likelihood.problem.state_bounds) for band in (low, high))
    elif observed:
        # Estimated noise is widened so that the normal interval is Student's.
        wider = quantile(np.maximum(maximum.info.freedom, 1.0), level) / quantile(np.inf, level)
        states, noise = longer.paths[e].at(t)[0], ((wider * maximum.left) ** 2)[None]
        bands = low[None], high[None]
        ends = likelihood.observation.outer(e, states[None], noise, refined.phi[None], t, *bands, level)
        low, high = ends[0][0], ends[1][0]
    return x, low, high


def _relative_sd(maximum: Maximum, refined: TrajectoryOptimum, e: int, t: Array, columns: bool) -> Array:
    """Compute standard deviations (N, K) of the logarithms of values that have decayed; NaN elsewhere."""
    path, end = refined.paths[e], maximum.refined.paths[e].mesh[-1]
    if columns:
        x, sd = columns_at(maximum, refined, e, t)
        size = np.abs(columns_at(maximum, refined, e, path.mesh[path.mesh <= end])[0]).max(0)
    else:
        x, sd = path.at(t)[0], maximum.widened(e, path.sensitivity_at(refined.condensed[e], t))
        size = np.abs(path.nodes[path.mesh <= end]).max(0)
    decayed = (t > end)[:, None] & (np.abs(x) < _DECAYED * size) & (sd <= _SAME_SIGN * np.abs(x))
    return np.divide(sd, np.abs(x), out=np.full_like(x, np.nan), where=decayed & (x != 0.0))


def columns_at(maximum: Maximum, refined: TrajectoryOptimum, e: int, t: Array) -> tuple[Array, Array]:
    """Predicted values of the columns and their standard deviations (N, M), widened as those of states are."""
    likelihood, path = maximum.likelihood, refined.paths[e]
    S = path.sensitivity_at(refined.condensed[e], t)
    h, by = likelihood.observation.linearised(e, path.at(t)[0][None], S[None], refined.phi[None], t)
    return h[0], maximum.widened(e, by[0])
