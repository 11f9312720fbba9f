"""Look for neighbouring optima along the least determined directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.forward_batch import trajectories_near
from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.refinement import TrajectoryOptimum, explains_nothing, maximise_from_initial
from odinfer.ode.adaptive_mesh import Budget, BudgetExhausted
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_DIRECTIONS, _REACH = (
    2,
    2.5,
)  # eigenvectors of the information, weakest first; standard deviations to start away from it
_FLATTEST = 1e-4  # scaled information of a direction, at least: no start is further away than that allows
_GAIN = 1e-3  # nats by which a neighbouring optimum is better, at least


def best_neighbour(problem: Problem, scale: Array, best: TrajectoryOptimum, budget: Budget) -> TrajectoryOptimum:
    """Maximise the likelihood from points around an optimum, side by side, and return the best optimum.

    Args:
        scale: of the states (K,).
    """
    likelihood = Likelihood(problem, scale)
    u, v = likelihood.unknowns, likelihood.unknowns.join([p.x0 for p in best.paths], best.phi)
    if explains_nothing(likelihood, best.sigma**2):
        return best
    d = np.sqrt(np.maximum(best.information.diagonal, 1e-300))
    w, V = best.information.times(1.0 / d).weakest(_DIRECTIONS)
    steps = _REACH * V.T / d / np.sqrt(np.maximum(w, _FLATTEST))[:, None]
    moves = np.clip(v + np.concatenate([steps, -steps]), u.low, u.high) - v
    around = trajectories_near(likelihood, best)
    with np.errstate(all="ignore"):
        batch = around.move(around.start(best, len(moves)), moves)
        lost = np.flatnonzero(~np.isfinite(batch.value))
        if len(lost):  # there is no trajectory so far away, or none that a mesh follows
            batch = batch.put(lost, around.move(around.start(best, len(lost)), 0.5 * moves[lost]))
        batch = around.maximise(batch, tolerance=_GAIN * u.experiments)
        i = int(batch.value.argmin())
        if not batch.value[i] < best.objective - _GAIN:
            return best
        try:
            found = maximise_from_initial(problem, scale, [x0[i] for x0 in batch.x0], batch.phi[i], budget=budget)
        except BudgetExhausted:
            return best
    return best if found is None or found.objective > best.objective else found
