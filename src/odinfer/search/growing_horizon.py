"""Fit trajectories over growing horizons: the first observations, then more and more.

Over a short time all trajectories from the right initial values are close to the data, so that the likelihood has one
maximum; over a long one, oscillations that are out of phase, bursts and chaos give it many. Each horizon starts from
the estimate of the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.refinement import TrajectoryOptimum, maximise_from_initial
from odinfer.model.priors import near, normal
from odinfer.ode.adaptive_mesh import Budget, BudgetExhausted
from odinfer.problem.problem import Problem
from odinfer.scaling.dimensional_analysis import implied_sizes, natural_sizes

Array = NDArray[np.float64]

_FIRST, _GROWTH = 5, 1.7  # observations of the first horizon, and how much longer each is than the one before
_STEPS, _ENOUGH = 15, 0.1  # on the way: at most, and what one must gain, in nats, for another
_SLOWER = 4  # tries with ever slower changes
_NOTHING = 1e-6  # a parameter of less, in its natural units, starts there
_ASTRAY = 100.0  # residuals, in variances of the noise, at which a start is given up
_PULL = 2.0  # natural logarithms by which a parameter may change for half a nat


def fit_growing_horizon(
    problem: Problem, scale: Array, sigma: Array, x0: Sequence[Array], phi: Array, budget: Budget, first: float = 0.0,
    enough: float = 0.0,
) -> TrajectoryOptimum | None:  # fmt: skip
    """The maximum of the likelihood by way of growing horizons; None if no trajectory follows the data for long.

    Args:
        scale: of the states (K,), NaN where it is not known.
        sigma: noise (M,) that the data are weighed with on the way: a short horizon may leave none.
        x0: initial values (K,) of every experiment to start from.
        phi: free parameters (F,) to start from.
        budget: of integration; where it is spent, the search is over.
        first: share of the observations in the first horizon, at least.
        enough: nats that a step must gain in the end for the search to go on.
    """
    weights = {c: s for c, s, own in zip(problem.columns, sigma.tolist(), problem.estimated_noise, strict=True) if own}
    weights |= problem.sigma
    longest = max(len(e.t) for e in problem.data.experiments)
    rows, slower, natural = max(float(_FIRST), first * longest), *_pace(problem)
    theta = problem.theta(phi)
    free = [p not in problem.fixed for p in problem.parameters]
    theta = np.where(free & (np.abs(theta) < _NOTHING * natural), _NOTHING * natural, theta)  # zero has no magnitude
    try:
        while rows < longest:
            for _ in range(_SLOWER):  # a trajectory that ends before the next data do may be too fast
                part = replace(_hold_near(problem, theta), sigma=weights, data=problem.data.first(rows / longest))
                found = maximise_from_initial(part, scale, x0, part.phi(theta), _STEPS, budget, _ENOUGH)
                if found is not None:
                    break
                theta = theta * slower
            if found is None or _leaves_data(part, found):
                return None
            x0, theta = [p.x0 for p in found.paths], part.theta(found.phi)
            rows *= _GROWTH
        phi = np.clip(problem.phi(theta), *problem.phi_bounds)
        return maximise_from_initial(problem, scale, x0, phi, budget=budget, enough=enough)
    except BudgetExhausted:
        return None


def _pace(problem: Problem) -> tuple[Array, Array]:
    """Factors (P,) of the parameters that make everything happen in twice the time, one for those that are given; and
    the parameters' natural sizes (P,)."""
    if problem.fully_observed_gaussian:
        natural, slow = natural_sizes(problem), natural_sizes(problem, 2.0)
    else:
        natural, slow = (10.0 ** implied_sizes(problem, share).parameters for share in (1.0, 2.0))
    factors = slow / natural
    place = np.empty(len(problem.parameters), np.int64)
    for e in range(len(problem.data.experiments)):
        place[problem.split.of(e)] = np.arange(len(problem.model.parameters))
    factors, natural = factors[place], natural[place]
    factors[[p in problem.fixed for p in problem.parameters]] = 1.0
    return factors, natural


def _leaves_data(problem: Problem, found: TrajectoryOptimum) -> bool:
    """Whether a trajectory leaves the data so far that a longer one has no chance."""
    likelihood = Likelihood(problem, np.ones(len(problem.model.states)))
    pairs = enumerate(found.states(likelihood.t))
    left = [
        likelihood.observation.residuals(e, x, likelihood.y[e], found.sigma[None] ** 2, found.phi[None])
        for e, x in pairs
    ]
    with np.errstate(over="ignore"):
        return bool(np.nansum([np.nansum(r**2) for r in left]) > _ASTRAY * problem.count.sum())


def _hold_near(problem: Problem, theta: Array) -> Problem:
    """The same, with parameters (P,) kept near where they are as far as the data do not say otherwise.

    Positive ones are searched for on a log scale, whatever the problem says: only so do steps fit any magnitude.
    """
    if callable(problem.prior):
        return problem
    scale, prior = dict(problem.scale), dict(problem.prior)
    for name in problem.free:
        value = float(theta[problem.parameters.index(name)])
        if value > 0:
            scale[name] = "log"
            prior.setdefault(name, near(value, _PULL))
        else:
            prior.setdefault(name, normal(value, _PULL * abs(value)))
    return replace(problem, scale=scale, prior=prior, start={})
