"""From a refined fit to what users see: curves with bands, and noise levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer import refine as rf
from odinfer.assemble import observations
from odinfer.continuation import Followed
from odinfer.fit import Curve
from odinfer.gradient_matching import dense_times
from odinfer.problem import Problem

Array = NDArray[np.float64]


def unbiased_sigma(problem: Problem, refined: rf.Refined | Followed) -> Array:
    """Noise standard deviations with the fitted unknowns taken off the degrees of freedom, evenly over states."""
    n = observations(problem)
    unknowns = len(refined.paths) * len(n) + len(refined.phi)
    correction = np.sqrt(n / np.maximum(n - unknowns / len(n), 1.0))
    return np.where(np.isnan(problem.known_sigma), refined.sigma * correction, refined.sigma)


def trajectory_curve(problem: Problem, refined: rf.Refined | Followed, e: int) -> Curve:
    """One experiment's trajectory with standard deviations from the information matrix (none for many states)."""
    if isinstance(refined, Followed):
        t, x, slope = refined.paths[e]
        return Curve(t, x, slope, np.full(x.shape, np.nan))
    path, lin = refined.paths[e], refined.condensed[e]
    K, E, F = len(path.x0), len(refined.paths), len(refined.phi)
    dense = dense_times(problem.data.experiments[e].t)
    x, slope = path.at(dense)
    index = np.r_[e * K : (e + 1) * K, E * K : E * K + F]
    d = np.sqrt(np.maximum(np.diag(refined.information), 1e-300))
    cov = np.linalg.pinv(refined.information / np.outer(d, d), rcond=1e-12, hermitian=True) / np.outer(d, d)
    S = path.sensitivity_at(lin, dense)
    sd = np.sqrt(np.maximum(np.einsum("nkp,pq,nkq->nk", S, cov[np.ix_(index, index)], S), 0.0))
    return Curve(dense, x, slope, sd)
