"""Profile likelihoods: how much the best likelihood falls while one parameter is held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odinfer.errors import InputError, nearest
from odinfer.problem.problem import Problem
from odinfer.uncertainty.intervals import far_from, reached
from odinfer.uncertainty.results import Profile
from odinfer.uncertainty.small_sample import CONFIDENCE, threshold

if TYPE_CHECKING:
    from odinfer.uncertainty.maximum import Maximum

_NEARLY = 0.05  # of the fall at an end
_SHARES = 0.25 * np.arange(1, 7)  # of the root of the fall at the ends of a 95 % interval


def profile(maximum: Maximum, name: str) -> Profile:
    """The profile likelihood of a parameter or of a free initial value, such as "prey(0)", on both sides of it.

    Points lie where the root of the fall takes steps of a quarter of what a 95 % interval needs, to 1.5 times that.

    Raises:
        InputError: it was not estimated.
    """
    problem, like, info = maximum.problem, maximum.like, maximum.info
    u = like.unknowns
    if name not in u.names:
        raise InputError(f"{_why_not(problem, name)}: there is no profile of it{nearest(name, u.names)}")
    place = u.names.index(name)
    estimate = float(maximum.v[place])
    shares = np.concatenate([-_SHARES, _SHARES])
    index, a = np.full(len(shares), place), u.unit(np.array([place]))
    freedom, fall, ends = info.spread(a)[1][0], float(info.fall(a, CONFIDENCE)[0]), maximum.ends[2]
    found = reached(maximum, index, np.sign(shares), fall * shares**2, accuracy=1e-6, known=ends)
    values, lost = found.v[:, place], found.rise
    good = np.isfinite(lost) & (np.sign(shares) * (values - estimate) > 0)
    # What is as good as infinite, and inside as nearly as can be told, would be taken for an end.
    limit, bound = far_from(maximum, index, np.sign(shares))
    good &= ~((found.values == limit) & (limit != bound) & (np.abs(2.0 * lost - fall) < _NEARLY * fall))
    for side in (-1.0, 1.0) if place in u.phi_index else ():
        i = place - u.of_phi.start + (u.free if side > 0 else 0)
        if i in ends.lost:
            continue
        # The interval's own end is a point of the profile, and all others are on the side where they belong.
        end, one, here = float(ends.values[i]), shares == side, np.sign(shares) == side
        open_ = end == limit[one][0]
        values[one], lost[one] = end, float(ends.rise[i]) if open_ else 0.5 * fall
        good[one] = not open_ or lost[one][0] < 0.5 * (1.0 - _NEARLY) * fall
        further = side * (values - end)
        good[here] &= np.where(np.abs(shares) > 1.0, (further > 0) & ~open_, further <= 0)[here]
    values, lost = np.append(values[good], estimate), np.append(lost[good], 0.0)
    # Where the likelihood jumps, several falls are at one value: the largest counts.
    first = np.lexsort((-lost, values))
    values, order = np.unique(values[first], return_index=True)
    order = first[order]
    if place in u.phi_index and problem.is_log[place - u.of_phi.start]:
        values, estimate = np.exp(values), float(np.exp(estimate))
    # The threshold of a profile is that of its own noise, times what the covariance grew by.
    grown = float(fall / threshold(freedom, info.count, CONFIDENCE))
    limits = problem.limits(name) if name in problem.free else (float(u.low[place]), float(u.high[place]))
    return Profile(name, estimate, values, -np.maximum(lost[order], 0.0), limits, float(freedom), info.count * grown)


def _why_not(problem: Problem, name: str) -> str:
    """Why something has no profile."""
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
