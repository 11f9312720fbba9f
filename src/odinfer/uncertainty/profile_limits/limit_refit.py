"""Ends of intervals by integration: for where trajectories cannot be followed on one mesh, as when jumps move in time.

The same search as elsewhere here, one quantity at a time, with every trajectory on a mesh of its own: a
parameter is held by fixing it, and the likelihood is maximised over the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.refinement import Refined, shoot
from odinfer.ode.adaptive_mesh import Budget, Exhausted
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_TRIES = 10
_SURE = 0.05  # relative error of the fall at an end
_STEPS = 20  # of each maximisation


def shot_end(
    problem: Problem, scale: Array, best: Refined, j: int, side: float, fall: float, sd: float, limit: float,
    budget: Budget,
) -> float | None:  # fmt: skip
    """Where twice the log-likelihood has fallen by `fall` while the free parameter j moves to one side.

    Args:
        scale: of the states (K,).
        best: the maximum of the likelihood.
        sd: standard deviation of the parameter, which gives the first step.
        limit: where to stop.
        budget: of integration.

    Returns:
        The end on the parameter's own scale, the limit if the likelihood does not fall so far, None if it could not be
        followed.
    """
    start = float(best.phi[j])
    room = abs(limit - start)
    inner, root, near = 0.0, 0.0, best  # the furthest that is inside: its distance, the root of its fall, itself
    outer = np.inf
    reach = min(sd * np.sqrt(fall), room) if np.isfinite(sd) and sd > 0 else min(0.1 * (1e-3 + abs(start)), room)
    try:
        for _ in range(_TRIES):
            found = _held(problem, scale, best, j, start + side * reach, near, budget)
            if found is None or not np.isfinite(found.objective):
                reach = 0.5 * (inner + reach)
                continue
            ratio = np.sqrt(max(2.0 * (found.objective - best.objective), 0.0) / fall)
            if abs(ratio**2 - 1.0) <= _SURE:
                return float(start + side * reach / max(ratio, 1e-3))
            if ratio < 1.0 and reach >= room:
                return limit
            if ratio < 1.0:
                inner, root, near = reach, ratio, found
                reach = min(reach / max(ratio, 1.0 / 3.0), room)
            else:
                outer = reach
                reach = inner + (1.0 - root) / max(ratio - root, 1e-3) * (reach - inner)
            if reach >= outer or reach <= inner:
                reach = 0.5 * (inner + min(outer, 2.0 * inner + 1e-300))
    except Exhausted:
        return None
    return None


def _held(
    problem: Problem, scale: Array, best: Refined, j: int, value: float, near: Refined, budget: Budget
) -> Refined | None:
    """The maximum with parameter j held at a value on its own scale, from one with it held, or free, nearby."""
    phi = best.phi.copy()
    phi[j] = value
    name, at = problem.free[j], float(problem.theta(phi)[problem.free_index[j]])
    fixed = problem.holding(name, at)
    rest = near.phi if len(near.phi) == len(fixed.free) else np.delete(near.phi, j)
    return shoot(fixed, scale, [p.x0 for p in near.paths], rest, _STEPS, budget)
