"""Profile likelihoods: how much the best likelihood falls while one parameter is held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odinfer.errors import InputError, nearest
from odinfer.trajectory.batch import OnMeshes
from odinfer.uncertainty.ends import HeldParameter, Wanted, find_ends
from odinfer.uncertainty.intervals import far_from
from odinfer.uncertainty.results import Profile
from odinfer.uncertainty.small_sample import CONFIDENCE, threshold

if TYPE_CHECKING:
    from odinfer.uncertainty.maximum import Maximum

_SHARES = 0.25 * np.arange(1, 7)  # of the root of the fall at the ends of a 95 % interval


def profile(maximum: Maximum, name: str) -> Profile:
    """The profile likelihood of a parameter on both sides of its estimate.

    Points lie where the root of the fall takes steps of a quarter of what a 95 % interval needs, to 1.5 times that.

    Raises:
        InputError: the parameter was not estimated.
    """
    problem, like, refined, info = maximum.problem, maximum.like, maximum.refined, maximum.info
    if name not in problem.free:
        fixed = f"'{name}' is fixed" if name in problem.parameters else f"the model has no parameter '{name}'"
        if name in problem.split.local and name not in problem.parameters:
            fixed = f"'{name}' has one value per experiment"
        raise InputError(f"{fixed}: there is no profile of it{nearest(name, problem.free)}")
    j = problem.free.index(name)
    shares = np.concatenate([-_SHARES, _SHARES])
    side, index = np.sign(shares), np.full(len(shares), j)
    on, held = OnMeshes.of(like, refined), HeldParameter(like.unknowns, index)
    best = on.start(refined, len(shares))
    a = held.gradient(best)
    freedom, fall = info.spread(a[:1])[1][0], info.fall(a, CONFIDENCE)
    limit, _ = far_from(maximum, index, side)
    wanted = Wanted(side, fall * shares**2, info.spread(a)[0], limit)
    exact = find_ends(on, best, held, wanted, accuracy=1e-6).batch
    values, lost = held.value(exact), exact.value - refined.objective
    good = np.isfinite(exact.value) & (side * (values - refined.phi[j]) > 0)
    values, lost = np.append(values[good], refined.phi[j]), np.append(lost[good], 0.0)
    values, order = np.unique(values, return_index=True)
    estimate = float(refined.phi[j])
    if problem.is_log[j]:
        values, estimate = np.exp(values), float(np.exp(estimate))
    # The threshold of a profile is that of its own noise, times what the covariance grew by.
    grown = float(fall[0] / threshold(freedom, info.count, CONFIDENCE))
    return Profile(
        name, estimate, values, -np.maximum(lost[order], 0.0), problem.limits(name), float(freedom),
        info.count * grown,
    )  # fmt: skip
