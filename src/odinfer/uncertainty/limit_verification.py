"""Verification of confidence limits from other start points.

A likelihood can have several ridges, and a profile that is followed from the estimate stays on one of them. At every
limit the nuisance parameters are re-optimised from other optima and from points of the other profiles. Where that gives
a higher likelihood, the limit lies further out, and the root finder resumes from there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.collocation_batch import Batch, WorkLimit
from odinfer.likelihood.forward_batch import ForwardTrajectories
from odinfer.search.trust_region import minimise_batch
from odinfer.uncertainty.limits import MOST_ROUNDS, TOLERANCE, Limits, Points, Searches, find_limits, profile_points
from odinfer.uncertainty.quantities import HeldUnknown

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STARTS, _CYCLES = 5, 4  # start points per limit, and verifications of a limit that moves
_ALIKE = 0.3  # largest difference of two points that count as one start, in units of `BatchLikelihood.unit`
_NEARBY = 2.25  # of the threshold: points with a larger likelihood-ratio statistic are no start points
_OPTIMA = 12  # end points of the search that are optimised


def local_optima(on: ForwardTrajectories, ends: Array | None) -> Array:
    """Return the optima (n, P) that the best end points (m, P) of a search lead to."""
    if ends is None or not len(ends):
        return np.empty((0, on.likelihood.unknowns.size))
    with np.errstate(all="ignore"):
        found = minimise_batch(on.solver, ends[:_OPTIMA], group=np.arange(len(ends[:_OPTIMA])))
    return np.asarray(found.v[np.isfinite(found.value)])


@np.errstate(all="ignore")  # start points may be anywhere
def verified_limits(
    on: ForwardTrajectories, best: Batch, held: HeldUnknown, searches: Searches, found: Limits, starts: Array,
    work: WorkLimit | None = None,
) -> Limits:  # fmt: skip
    """Re-optimise at every limit from other start points, and search on where that lowers the profile.

    Args:
        best: B copies of the optimum.
        starts: optima, and points of other profiles (n, P).
        work: verification ends once it is exhausted.
    """
    work = work or WorkLimit(MOST_ROUNDS)
    u, reference, estimate = on.likelihood.unknowns, float(best.value[0]), held.value(best)
    starts = np.concatenate([u.join(best.x0, best.phi)[:1], starts])
    found = _add_visited(found, starts, on.at(starts).value)
    pending = np.arange(len(searches.side))
    for _ in range(_CYCLES):
        distance = np.where(found.failed, 1.2 * found.points.distance, np.abs(found.values - estimate))
        goal = estimate + searches.side * distance
        here, owner, v = u.join(found.points.batch.x0, found.points.batch.phi), [], []
        for k in pending[(found.values != searches.stop)[pending] & (distance[pending] > 0)].tolist():
            near = found.objectives - reference < 0.5 * _NEARBY * searches.threshold[k]
            some = _distinct(on, found.visited[near], here[k], int(held.index[k]), float(goal[k]))
            owner += [k] * len(some)
            v += [*some]
        if not owner or work.exhausted:
            break
        rows = np.array(owner)
        new = profile_points(
            on, on.at(np.array(v)), held.take(rows), goal[rows], estimate[rows], searches.threshold[rows], reference,
            work,
        )  # fmt: skip
        found = _add_visited(found, u.join(new.batch.x0, new.batch.phi)[new.good], new.batch.value[new.good])
        root = np.where(new.good, new.root, np.inf)
        first = [own[np.argmin(root[own])] for own in (np.flatnonzero(rows == k) for k in np.unique(rows))]
        moved = np.array([i for i in first if root[i] ** 2 < 1.0 - 3.0 * TOLERANCE], np.int64)
        if not len(moved):
            break
        pending = rows[moved]
        found = _resume(on, best, held, searches, found, pending, new.take(moved), work)
    return found


def _add_visited(found: Limits, v: Array, objective: Array) -> Limits:
    """Add visited unknowns (n, P) with objectives (n,)."""
    visited, objectives = np.concatenate([found.visited, v]), np.concatenate([found.objectives, objective])
    return replace(found, visited=visited, objectives=objectives)


def _resume(
    on: ForwardTrajectories,
    best: Batch,
    held: HeldUnknown,
    searches: Searches,
    found: Limits,
    which: Index,
    begin: Points,
    work: WorkLimit,
) -> Limits:
    """Resume the searches `which` (b,) from points inside their thresholds."""
    more = find_limits(on, best.take(which), held.take(which), searches.take(which), begin, work=work)
    values, jumps = found.values.copy(), found.jumps.copy()
    values[which], jumps[which] = more.values, more.jumps
    found = replace(found, values=values, jumps=jumps, points=found.points.put(which, more.points))
    return _add_visited(found, more.visited, more.objectives)


def _distinct(on: ForwardTrajectories, v: Array, here: Array, place: int, goal: float) -> Array:
    """Select unknowns (≤ n, P) of v (m, P) next to a value of an unknown, that differ in the others.

    Args:
        here: unknowns (P,) that are known already.
    """
    if not len(v):
        return v
    z = np.delete(v / on.solver.unit(here[None]), place, 1)
    taken = [np.delete(here / on.solver.unit(here[None])[0], place)]
    chosen: list[int] = []
    for i in np.argsort(np.abs(v[:, place] - goal), kind="stable").tolist():
        if len(chosen) == _STARTS:
            break
        if all(np.abs(z[i] - other).max(initial=0.0) > _ALIKE for other in taken):
            chosen.append(i)
            taken.append(z[i])
    return v[chosen]
