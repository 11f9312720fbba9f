"""Profile likelihoods of single quantities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odinfer.errors import InputError, nearest
from odinfer.problem.problem import Problem
from odinfer.uncertainty.intervals import search_range, unknown_limits
from odinfer.uncertainty.results import Profile
from odinfer.uncertainty.small_sample import CONFIDENCE, threshold

if TYPE_CHECKING:
    from odinfer.uncertainty.maximum import Maximum

_ROOTS = 0.25 * np.arange(1, 7)  # √(2·(ℓmax − ℓp)) at the points of a profile, in units of that at a 95 % limit


def profile(maximum: Maximum, name: str) -> Profile:
    """Compute the profile likelihood of a parameter or of a free initial value, such as "prey(0)".

    Points lie where √(2·(ℓmax − ℓp)) is 0.25, 0.5, …, 1.5 times its value at the 95 % limits, on both sides.

    Raises:
        InputError: it was not estimated.
    """
    problem, info, u = maximum.problem, maximum.info, maximum.likelihood.unknowns
    if name not in u.names:
        raise InputError(f"{_reason(problem, name)}: there is no profile of it{nearest(name, u.names)}")
    place = u.names.index(name)
    estimate, origin = float(maximum.v[place]), float(maximum.profile_origin[place])
    roots = np.concatenate([-_ROOTS, _ROOTS])
    side, index, gradient = np.sign(roots), np.full(len(roots), place), u.unit(np.array([place]))
    freedom, needed = float(info.spread(gradient)[1][0]), float(info.fall(gradient, CONFIDENCE)[0])
    known = maximum.limits.found if problem.free else None
    found = unknown_limits(maximum, index, side, needed * roots**2, known)
    values = side * found.points.distance + origin
    fall = np.maximum(found.points.batch.value - maximum.objective, 0.0)
    good = (found.points.distance > 0) & np.isfinite(fall)
    stop, bound = search_range(maximum, index, side)
    for s in (-1.0, 1.0) if place in u.phi_index else ():
        i = place - u.of_phi.start + (u.free if s > 0 else 0)
        end, same, at = float(maximum.limits.found.values[i]), side == s, roots == s
        if np.isnan(end):
            continue
        # The limit of the interval is a point of the profile, and no point contradicts it.
        open_ = end == stop[at][0]
        if not open_ or end == bound[at][0]:
            values[at], good[at] = end, True
            fall[at] = 0.5 * needed if not open_ else min(float(fall[at][0]), 0.5 * needed)
        further = s * (values - end)
        good &= ~same | np.where(np.abs(roots) > 1.0, (further > 0) & ~open_, (further <= 0) & (2.0 * fall <= needed))
    values, fall = np.append(values[good], estimate), np.append(fall[good], 0.0)
    first = np.lexsort((-fall, values))  # of several points at one value, the lowest
    values, order = np.unique(values[first], return_index=True)
    fall = fall[first][order]
    if place in u.phi_index and problem.is_log[place - u.of_phi.start]:
        values, estimate = np.exp(values), float(np.exp(estimate))
    # The threshold of a profile is that of its own noise, times the growth of the covariance.
    growth = float(needed / threshold(freedom, info.count, CONFIDENCE))
    limits = problem.limits(name) if name in problem.free else (float(u.low[place]), float(u.high[place]))
    return Profile(name, estimate, values, -fall, limits, freedom, info.count * growth)


def _reason(problem: Problem, name: str) -> str:
    """Say why something has no profile."""
    state = name.partition("(0)")[0]
    if name in problem.split.local and name not in problem.parameters:
        return f"'{name}' has one value per experiment"
    if name in problem.parameters:
        return f"'{name}' is fixed"
    if name != state and state in problem.model.states:
        if problem.model.states.index(state) in problem.model.free_initial:
            return f"'{state}(0)' has one value per experiment"
        return f"'{state}(0)' is not estimated"
    return f"the model has no parameter '{name}'"
