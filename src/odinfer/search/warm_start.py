"""Maximise the likelihood from parameters and curves nearby, without a search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve
from odinfer.gp.standardisation import state_scales
from odinfer.likelihood.refinement import TrajectoryOptimum, maximise_from_initial, paths_through, refine
from odinfer.ode.adaptive_mesh import Budget, BudgetExhausted
from odinfer.problem.problem import Problem
from odinfer.scaling.dimensional_analysis import natural_sizes_of_free

Array = NDArray[np.float64]

_ITERATIONS = 25  # of one refit
_STEPS = 2000  # of integration in one refit
_LEAST = 1e-4  # of its natural size: where a positive parameter starts that would be zero or negative


def maximise(
    problem: Problem, theta: Array, curves: Sequence[Curve], iterations: int = _ITERATIONS
) -> TrajectoryOptimum | None:
    """Maximise the likelihood from parameters (P,) and curves near the trajectories; None without a trajectory."""
    theta = theta.copy()
    index, least = problem.free_index, _LEAST * natural_sizes_of_free(problem)
    theta[index] = np.where(problem.is_log, np.maximum(theta[index], least), theta[index])
    phi = np.clip(problem.phi(theta), *problem.phi_bounds)
    scale, budget = state_scales(problem), Budget(_STEPS)
    try:
        with np.errstate(all="ignore"):
            if problem.fully_observed_gaussian:
                paths = paths_through(problem, [(c.t, c.x, c.slope) for c in curves])
                found = refine(problem, scale, paths, phi, iterations, budget=budget)
                if found is not None:
                    return found
            return maximise_from_initial(problem, scale, [c.x[0] for c in curves], phi, iterations, budget)
    except (np.linalg.LinAlgError, BudgetExhausted, ArithmeticError):
        return None


def better(first: TrajectoryOptimum | None, second: TrajectoryOptimum | None) -> TrajectoryOptimum | None:
    """The one with the lower objective; None if there is none."""
    if first is None or second is None:
        return first or second
    return first if first.objective <= second.objective else second


def curves_of(found: TrajectoryOptimum) -> list[Curve]:
    """The trajectories of an optimum at the points of their meshes, from which to go on."""
    return [Curve(p.mesh, *p.at(p.mesh), np.zeros_like(p.at(p.mesh)[0])) for p in found.paths]
