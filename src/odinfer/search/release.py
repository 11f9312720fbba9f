"""Release parameters that are assumed positive where their estimates tend to zero.

If the sign of a term in the equations is the other one, the likelihood on the positive side is highest at zero. There a
refit on a linear scale finds the negative estimate, if the data support it. Where all states are observed, ODIN's
minimum tells: its parameters are zero there, and it is found again without their bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.refinement import TrajectoryOptimum, maximise_from_initial, refine
from odinfer.ode.adaptive_mesh import Budget, BudgetExhausted
from odinfer.odin.multistart import Minima, Search
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

GAIN = 3.0  # nats that negative values must gain to be reported
_UNCERTAIN = 0.25  # variance of log θ from which on zero is within two standard errors
_FACTOR, _NO_MATTER = np.log(1e3), 0.5  # an estimate tends to zero if so much smaller a value costs so few nats
_STEPS = 4000  # of integration


def released(problem: Problem, scale: Array, best: TrajectoryOptimum) -> tuple[Problem, TrajectoryOptimum]:
    """Refit with either sign of the parameters that tend to zero.

    Args:
        scale: of the states (K,), NaN where those of the trajectory are taken.
        best: the optimum with positive parameters.

    Returns:
        The problem with those parameters on linear scales and its optimum, or both as they were if that gains too
        little.
    """
    names = _tending_to_zero(problem, scale, best, _uncertain(problem, best))
    if not names:
        return problem, best
    free = replace(problem, scale={**problem.scale, **dict.fromkeys(names, "linear")})
    found = _refit(free, scale, best, free.phi(problem.theta(best.phi)), 100)
    if found is None or not found.objective < best.objective - GAIN:
        return problem, best
    negative = [n for n in names if free.theta(found.phi)[free.parameters.index(n)] < 0]
    return (free, found) if negative else (problem, best)


def released_by_matching(problem: Problem, stage: Search, minima: Minima, seed: int) -> tuple[Problem, Minima]:
    """Repeat the ODIN stage with either sign of the parameters that are zero at its minimum.

    Returns:
        The problem with those parameters on linear scales and its minima, or both as they were if that gains little.
    """
    best = problem, minima
    while minima.solutions:
        own = zip(problem.parameters, minima.engine.problem.theta(minima.solutions[0].phi), strict=True)
        names = [n for n, value in own if value == 0.0 and n in problem.assumed_positive and n not in problem.bounds]
        if not names:
            break
        problem = replace(problem, scale={**problem.scale, **dict.fromkeys(names, "linear")})
        minima = stage.run(problem, seed)
    gained = minima.solutions and minima.solutions[0].risk < best[1].solutions[0].risk - GAIN
    return (problem, minima) if gained else best


def _uncertain(problem: Problem, best: TrajectoryOptimum) -> list[str]:
    """The parameters assumed positive, without a declared bound, that may be zero by the curvature."""
    H = best.information.dense()[0][-len(problem.free) :, -len(problem.free) :] if problem.free else np.empty((0, 0))
    d = np.sqrt(np.maximum(np.diag(H), 1e-300))
    scaled = np.nan_to_num(H / np.outer(d, d))
    # Without the initial values, whose uncertainty only adds to it.
    variance = np.diag(np.linalg.pinv(scaled, rcond=1e-10, hermitian=True)) / d**2 if len(d) else d
    weak = (variance > _UNCERTAIN) | (d**2 < 1.0 / _UNCERTAIN)
    return [n for n, w in zip(problem.free, weak, strict=True)
            if w and n in problem.assumed_positive and n not in problem.bounds]  # fmt: skip


def _tending_to_zero(problem: Problem, scale: Array, best: TrajectoryOptimum, names: Sequence[str]) -> list[str]:
    """Those of some parameters whose much smaller values cost next to nothing."""
    places = [problem.free.index(name) for name in names]
    phi = np.tile(best.phi, (len(names), 1))
    phi[np.arange(len(names)), places] -= _FACTOR
    if names and BatchLikelihood.can(problem) and not problem.model.declarations.triggers:
        solver = BatchLikelihood.of(problem).finer()
        x0 = [p.x0 for p in best.paths]
        objectives = solver.solve(np.stack([solver.likelihood.unknowns.join(x0, own) for own in phi])).worth.value
    else:
        found = [_refit(problem, scale, best, own, 0) for own in phi]
        objectives = np.array([np.inf if own is None else own.objective for own in found])
    return [name for name, value in zip(names, objectives, strict=True) if value < best.objective + _NO_MATTER]


def _refit(problem: Problem, scale: Array, near: TrajectoryOptimum, phi: Array, most: int) -> TrajectoryOptimum | None:
    """The optimum from a trajectory nearby and φ (F,), after so many iterations at most."""
    budget = Budget(_STEPS)
    if problem.fully_observed_gaussian and most:
        return refine(problem, scale, [replace(p, problem=problem) for p in near.paths], phi, most, budget=budget)
    free, x0 = problem.model.free_initial, []
    for e, path in enumerate(near.paths):
        x0.append(problem.condition(e).initial(problem.theta_of(e, phi)[None], path.x0[None, free])[0])
    try:
        return maximise_from_initial(problem, scale, x0, phi, most, budget)
    except BudgetExhausted:
        return None
