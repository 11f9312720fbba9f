"""Separate optima of the likelihood that fit the data equally well.

Exchangeable labels (sums of exponentials) and exchanged rates ("flip-flop" of absorption and elimination) give several
parameter vectors the same likelihood. Start points that agree in their likelihood need not agree in their parameters.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.search.trust_region import HeldUnknown, minimise_batch

Array = NDArray[np.float64]

EQUALLY_GOOD = 2.0  # nats below the best within which an optimum fits as well
_EXCHANGEABLE = 0.05  # nats that an exchange of two parameters may cost
_MOST_PARAMETERS = 20  # of which every pair is exchanged
_APART = 0.1  # e-folds, or natural sizes, by which some unknown differs between two optima at least
_POINTS = 7  # on the straight line between two optima, on which the likelihood falls if they are separate
_MOST = 4  # other optima that are told apart
_TESTED = 12  # ends of searches, the best first, that are compared
_HALVINGS = 2  # of a path between two optima that may lie on one curved ridge
_ROUNDS = 30  # steps from a point between two optima back to the ridge


def separate_optima(solver: BatchLikelihood, v: Array, value: Array) -> Array:
    """Find the best optimum, and those that fit as well and are not connected with it by a ridge.

    Args:
        v: unknowns (n, P) where searches ended, the best first.
        value: their objectives (n,).

    Returns:
        Unknowns (m, P) at the optima, the best first.
    """
    if not len(v):
        return v
    v = _distinct(solver, v[value <= value[0] + EQUALLY_GOOD])
    found = [0]
    for i in range(1, len(v)):
        if not any(_are_connected(solver, v[j], v[i], value[0] + EQUALLY_GOOD) for j in found):
            found.append(i)
        if len(found) > _MOST:
            break
    return v[found]


def exchanged_optima(solver: BatchLikelihood, v: Array) -> Array:
    """Find the optima that exchange the values of two parameters of an optimum, such as those of a product.

    Args:
        v: unknowns (P,) at the optimum.

    Returns:
        Unknowns (m, P) that fit the data as well.
    """
    problem, u = solver.problem, solver.likelihood.unknowns
    copies: dict[str, list[int]] = {}
    for j, name in enumerate(problem.free):
        copies.setdefault(name.partition("[")[0], []).append(j)
    trials = []
    for pair in combinations(copies.values(), 2) if len(copies) <= _MOST_PARAMETERS else ():
        one, other = ([*u.phi_index[j]] for j in pair)
        if len(one) == len(other) and (problem.is_log[pair[0]] == problem.is_log[pair[1]]).all():
            trial = v.copy()
            trial[one + other] = v[other + one]
            trials.append(trial)
    if not trials:
        return np.empty((0, len(v)))
    ends = np.stack([v, *trials])
    value = solver.solve(ends).worth.value
    value[((ends < u.low) | (ends > u.high)).any(1)] = np.inf
    good = value <= value[0] + _EXCHANGEABLE
    return separate_optima(solver, ends[good], value[good])[1:]


def _distinct(solver: BatchLikelihood, v: Array) -> Array:
    """The first of every group of unknowns (n, P) that are no more than `_APART` from it, `_TESTED` groups at most."""
    found: list[int] = []
    left = np.ones(len(v), bool)
    unit = solver.unit(v)
    while left.any() and len(found) < _TESTED:
        i = int(left.argmax())
        found.append(i)
        left &= (np.abs(v - v[i]) > _APART * np.maximum(unit, unit[i])).any(1)
    return v[found]


def nearest_counts(solver: BatchLikelihood, v: Array, optima: Array) -> NDArray[np.int64]:
    """How many of some unknowns (n, P) are nearest to each optimum (m, P), as (m,)."""
    distance = np.abs(v[:, None] - optima) / solver.unit(optima)
    nearest = np.linalg.norm(distance, axis=-1).argmin(1) if len(optima) else np.empty(0, np.int64)
    return np.bincount(nearest, minlength=len(optima))


def _are_connected(solver: BatchLikelihood, a: Array, b: Array, limit: float, halvings: int = _HALVINGS) -> bool:
    """Whether a path on which the objective stays below a limit joins two sets of unknowns (P,).

    Two paths are tried first: the straight line, and one on which unknowns of one sign change in proportion, as on the
    ridge of two unknowns of which only the product is determined. If both leave a curved ridge, a search from the
    middle, with the unknown that differs most held, leads back to the ridge, and both halves are tried.
    """
    unit = np.maximum(*solver.unit(np.stack([a, b])))
    apart = np.abs(a - b) / unit
    if (apart <= _APART).all():
        return True
    share = np.linspace(0.0, 1.0, _POINTS + 2)[1:-1, None]
    paths = np.concatenate([path(solver, a, b, share) for path in (_straight, _proportional)])
    between = solver.solve(paths, projected=True).worth.value.reshape(2, -1)
    if between.max(1).min() <= limit:
        return True
    if not halvings:
        return False
    place = np.array([apart.argmax()])
    middle = np.concatenate([path(solver, a, b, np.full((1, 1), 0.5)) for path in (_straight, _proportional)])
    held, enough = HeldUnknown(place.repeat(2), middle[:, place[0]]), limit - 0.5 * EQUALLY_GOOD  # on the ridge will do
    ends = minimise_batch(solver, middle, enough, _ROUNDS, held=held, group=np.arange(2), enough=enough)
    return any(
        all(_are_connected(solver, end, on_ridge, limit, halvings - 1) for end in (a, b))
        for on_ridge in ends.v[ends.value <= limit]
    )


def _straight(solver: BatchLikelihood, a: Array, b: Array, share: Array) -> Array:
    """Unknowns (n, P) between two sets of them at shares (n, 1) of the way."""
    return a + share * (b - a)


def _proportional(solver: BatchLikelihood, a: Array, b: Array, share: Array) -> Array:
    """The same, with unknowns geometrically between the two that are not on a log scale and keep their sign."""
    with np.errstate(all="ignore"):
        geometric = a * np.abs(b / a) ** share
    return np.where((a * b > 0.0) & ~solver.is_log, geometric, a + share * (b - a))
