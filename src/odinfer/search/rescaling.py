"""Bring diverging parameters back to where the likelihood becomes flat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.refinement import TrajectoryOptimum, maximise_from_initial, refine
from odinfer.ode.adaptive_mesh import Budget, BudgetExhausted
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

# Parameters of so many times their natural size, or as little of it, have run away; what pulling them in may cost.
_RUNAWAY, _AS_GOOD = 1e5, 0.01
_STEPS = 5000  # of integration, for each try


def rescale_runaways(problem: Problem, scale: Array, best: TrajectoryOptimum, natural: Array) -> TrajectoryOptimum:
    """The same with parameters that ran off to nothing or beyond all bounds back at usual sizes, if that is as good.

    Far out the likelihood is flat and nothing leads back: where that begins is as good a place. At zero it may be flat
    by symmetry, as for k in k², or in a valley of its own.

    Args:
        natural: sizes of the free parameters (F,).
    """
    for j in range(len(problem.free)):
        value = problem.theta(best.phi)[problem.free_index[j]] / natural[j]
        if abs(value) < 1.0 / _RUNAWAY:
            for sign in (1.0, -1.0) if problem.limits(problem.free[j])[0] < 0 else (1.0,):
                found = _set(problem, scale, best, j, sign * natural[j])
                best = found if found is not None and found.objective < best.objective else best
        elif abs(value) > _RUNAWAY:
            for decade in range(int(np.log10(abs(value)))):
                found = _set(problem, scale, best, j, np.sign(value) * 10.0**decade * natural[j], held=True)
                if found is not None and found.objective < best.objective + _AS_GOOD:
                    best = found
                    break
    return best


def _set(
    problem: Problem, scale: Array, best: TrajectoryOptimum, j: int, value: float, held: bool = False
) -> TrajectoryOptimum | None:
    """The maximum from where the free parameter j has another value, or with it held there."""
    theta, name = problem.theta(best.phi), problem.free[j]
    theta[problem.free_index[j]] = value = float(np.clip(value, *problem.limits(name)))
    if not held:
        return _from(problem, scale, best, theta)
    fixed = problem.holding(name, value)
    found = _from(fixed, scale, best, theta)
    if found is None:
        return None
    there = _from(problem, scale, found, fixed.theta(found.phi), 0)
    return None if there is None else replace(there, converged=True)


def _from(
    problem: Problem, scale: Array, near: TrajectoryOptimum, theta: Array, most: int = 100
) -> TrajectoryOptimum | None:
    """The maximum from a trajectory nearby at θ (P,); None if it takes too many steps."""
    phi, budget = problem.phi(theta), Budget(_STEPS)
    if problem.fully_observed_gaussian:
        return refine(problem, scale, [replace(p, problem=problem) for p in near.paths], phi, most, budget=budget)
    free, x0 = problem.model.free_initial, []
    for e, path in enumerate(near.paths):
        x0.append(problem.condition(e).initial(problem.theta_of(e, phi)[None], path.x0[None, free])[0])
    try:
        return maximise_from_initial(problem, scale, x0, phi, most, budget)
    except BudgetExhausted:
        return None
