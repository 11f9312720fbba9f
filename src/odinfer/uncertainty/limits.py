"""Confidence limits by a bracketing root finder on the profile likelihood.

The profile log-likelihood of a quantity ψ is ℓp(ψ) = max ℓ(v) over all unknowns v with ψ(v) held at its value. A limit
of its confidence interval solves r(ψ) = 1, where r² = 2·(ℓmax − ℓp(ψ))/c is the likelihood-ratio statistic in units of
its threshold c (Venzon and Moolgavkar 1988). r grows linearly with the distance from the estimate where the
log-likelihood is quadratic, so that secants in r converge within a few steps.

Every point of a profile starts from the neighbouring point, moved along the ridge of the likelihood to first order, and
is re-optimised by Levenberg–Marquardt. All limits are computed in one batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.collocation_batch import Batch, HeldQuantity, Trajectories, WorkLimit
from odinfer.likelihood.forward_batch import ForwardTrajectories
from odinfer.search import trust_region
from odinfer.search.trust_region import minimise_held
from odinfer.uncertainty.quantities import HeldUnknown

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

TOLERANCE = 0.01  # relative error of r² at a limit
_ROUNDS, FAILURES = 60, 12  # points of one profile, and failed points in a row after which a search stops
_SHORTER = 0.4  # the next step over one that failed
_GROWTH, _FLAT_GROWTH = 3.0, 10.0  # the next distance over the last one, at most; and where the profile is flat
_FLAT = 0.05  # growth of r between two points below which the profile is flat
_JUMP = 1e-3  # bracket width relative to the distance, at which a profile that still jumps is discontinuous
_UNEXPLAINED = 2.0  # growth of r² over what the slopes at both points allow: beyond it the ridge was left
_GAIN = 0.02  # of the threshold, that a re-optimised point may still gain
_HELD = 0.01  # of the distance, by which a held quantity may miss its value
_DAMPING = (1e-6, 1e-8)  # of the first-order step along the ridge, and of the step that estimates what is left to gain
_SHORTER_STEPS = (1e-3, 1e-1)  # dampings of steps along the ridge, where longer ones end far above the threshold
_ACCURACY = 1e-5  # nats of a re-optimised point on a mesh
_PROMISED = 1e-4  # nats that a step must promise in a re-optimisation forward in time
_RESTARTS = 2  # re-optimisations of one point, each of a limited number of steps
# Rounds of trust regions, or tries of Levenberg–Marquardt, for all limits of a fit; and of one whose model the data
# contradict. Limits that are well determined take 20 to 150; ridges that lead nowhere would take 10,000.
MOST_ROUNDS, FEW_ROUNDS = 800, 120


class Searches(NamedTuple):
    """Limits to compute, each (B,).

    Attributes:
        side: −1 for lower and 1 for upper limits.
        threshold: 2·(ℓmax − ℓp) at the limit.
        first: distance of the first point from the estimate.
        stop: value of the quantity at which the search stops: a bound, or the end of the search range.
    """

    side: Array
    threshold: Array
    first: Array
    stop: Array

    def take(self, index: Index) -> Searches:
        return Searches(*(part[index] for part in self))


class Points(NamedTuple):
    """Points of profiles, one of each search.

    Attributes:
        distance: of the quantity from its estimate (B,).
        root: r (B,).
        slope: derivative of the objective by the quantity (B,).
        batch: the trajectories.
        good: whether each is an optimum with the quantity at its value (B,).
    """

    distance: Array
    root: Array
    slope: Array
    batch: Batch
    good: Mask

    def take(self, index: Index) -> Points:
        return Points(
            self.distance[index], self.root[index], self.slope[index], self.batch.take(index), self.good[index]
        )

    def put(self, index: Index, other: Points) -> Points:
        distance, root, slope, good = self.distance.copy(), self.root.copy(), self.slope.copy(), self.good.copy()
        distance[index], root[index], slope[index] = other.distance, other.root, other.slope
        good[index] = other.good
        return Points(distance, root, slope, self.batch.put(index, other.batch), good)


@dataclass(frozen=True, eq=False)
class Limits:
    """Confidence limits.

    Attributes:
        values: (B,), at `stop` where the profile stays below the threshold, NaN where the search failed.
        points: the last points of the profiles.
        jumps: whether the profile is discontinuous at a limit (B,).
        visited, objectives: unknowns (n, P) at all points of all profiles, and the objective there (n,).
    """

    values: Array
    points: Points
    jumps: Mask
    visited: Array
    objectives: Array

    @property
    def failed(self) -> Mask:
        return np.isnan(self.values)

    def extrapolated(self, first: Array) -> Array:
        """Return distances (B,) of failed limits, as if r were linear from the last points on.

        Args:
            first: distances (B,) by the quadratic approximation, where no point was found.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.points.root > 0, self.points.distance / self.points.root, first)


def optimum_points(best: Batch) -> Points:
    """Return the optimum itself as the first point of each of B profiles."""
    zero = np.zeros(len(best.value))
    return Points(zero, zero, zero, best, np.ones(len(zero), bool))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # parameters may leave the finite numbers on the way
def profile_points(
    on: Trajectories, near: Batch, held: HeldQuantity, goal: Array, estimate: Array, threshold: Array, reference: float,
    work: WorkLimit,
) -> Points:  # fmt: skip
    """Re-optimise all unknowns with a quantity held at its value.

    Args:
        near: trajectories (B) to start from.
        held: the quantity of each.
        goal, estimate: its value, and its value at the optimum (B,).
        threshold: of 2·(ℓmax − ℓp) (B,).
        reference: the objective at the optimum.
        work: what is left to be spent on all limits.
    """
    B, distance = len(goal), np.abs(goal - estimate)
    H, g = on.normal(near)
    a, change = held.gradient(near), goal - held.value(near)
    move, _ = on.step(near, H, g, np.full(B, _DAMPING[0]), a, change)
    now = on.move(near, move)
    for damping in _SHORTER_STEPS:  # along directions that hardly matter a first-order step leads anywhere
        far = np.flatnonzero(~(now.value - near.value <= threshold))
        if not len(far):
            break
        part, begin = on.take(far), near.take(far)
        move, _ = part.step(begin, H.take(far), g[far], np.full(len(far), damping), a[far], change[far])
        trial = part.move(begin, move)
        better = np.flatnonzero(trial.value < now.value[far])
        now = now.put(far[better], trial.take(better))
    lost = np.flatnonzero(~np.isfinite(now.value))
    if len(lost):  # the ridge bends, or leaves the domain of the likelihood: the quantity alone
        alone = a * (change / np.maximum((a * a).sum(1), 1e-300))[:, None]
        now = now.put(lost, on.take(lost).move(near.take(lost), alone[lost]))
    root, slope, good, value = np.full(B, np.inf), np.zeros(B), np.zeros(B, bool), np.full(B, np.inf)
    left = np.flatnonzero(np.isfinite(now.value))
    for _ in range(_RESTARTS):
        if not len(left):
            break
        part, own = on.take(left), held.take(left)
        batch = _optimise(part, now.take(left), own, goal[left], work)
        now = now.put(left, batch)
        H, g = part.normal(batch)
        a = own.gradient(batch)
        _, gain = part.step(batch, H, g, np.full(len(left), _DAMPING[1]), a, np.zeros(len(left)))
        u = on.likelihood.unknowns
        v = u.join(batch.x0, batch.phi)
        free = np.where((v > u.low) & (v < u.high), a, 0.0)  # unknowns at a bound do not move with the quantity
        slope[left] = (g * free).sum(1) / np.maximum((free * free).sum(1), 1e-300)
        root[left] = np.sqrt(np.maximum(2.0 * (batch.value - reference) / threshold[left], 0.0))
        reached = np.abs(own.value(batch) - goal[left]) <= _HELD * distance[left]
        # Where the likelihood has kinks, a quadratic model promises gains that no step makes.
        gain = np.minimum(gain, value[left] - batch.value)
        value[left] = batch.value
        good[left] = reached & np.isfinite(root[left]) & (2.0 * gain <= _GAIN * threshold[left])
        left = left[~good[left] & np.isfinite(batch.value)]
    return Points(distance, np.where(np.isfinite(now.value), root, np.inf), slope, now, good)


def _optimise(on: Trajectories, start: Batch, held: HeldQuantity, goal: Array, work: WorkLimit) -> Batch:
    """Maximise the likelihood with a quantity held: by a trust region in e-folds; Levenberg–Marquardt on meshes."""
    if not (isinstance(on, ForwardTrajectories) and isinstance(held, HeldUnknown)):
        return on.maximise(start, held, goal, tolerance=_ACCURACY, work=work)
    u, rows = on.likelihood.unknowns, np.arange(len(goal))
    v = u.join(start.x0, start.phi)
    aim = np.clip(v, u.low, u.high)
    aim[rows, held.index] = goal
    aside = np.flatnonzero(~np.isclose(aim, v, rtol=1e-12, atol=0.0).all(1))
    if len(aside):
        start = start.put(aside, on.take(aside).at(aim[aside]))
    most = min(max(work.rounds, 1), trust_region.ROUNDS)
    begin, fixed = replace(on.expansion(start), v=aim), trust_region.HeldUnknown(held.index, goal)
    found, rounds = minimise_held(on.solver, begin, fixed, most, _PROMISED)
    work.rounds -= int(rounds.max(initial=1))
    return on.batch(found)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def find_limits(
    on: Trajectories,
    best: Batch,
    held: HeldQuantity,
    searches: Searches,
    begin: Points | None = None,
    failures: int = FAILURES,
    work: WorkLimit | None = None,
) -> Limits:
    """Find where profile likelihoods reach their thresholds.

    A search goes outward by steps that the slope of the profile suggests, until a point lies outside the threshold. It
    then shrinks the bracket by secants in r, safeguarded by bisection. A point whose r² exceeds what the slopes explain
    has left the ridge; the step is shortened.

    Args:
        on: how trajectories are computed and re-optimised.
        best: B copies of the optimum.
        held: the quantity of each search.
        begin: points inside the thresholds to start from instead of the optimum.
        failures: failed points in a row after which a search stops.
        work: once it is exhausted, searches stop without a limit.
    """
    work = work or WorkLimit(MOST_ROUNDS)
    B, reference, estimate = len(searches.side), float(best.value[0]) if len(best.value) else 0.0, held.value(best)
    u, room = on.likelihood.unknowns, np.abs(searches.stop - estimate)
    inner = optimum_points(best) if begin is None else begin
    outer, outer_root, longest = np.full((3, B), np.inf)
    with np.errstate(invalid="ignore"):
        reach = np.minimum(np.maximum(searches.first, 1.5 * inner.distance), room)
    values, jumps, failed, same = np.where(room > 0, np.nan, searches.stop), np.zeros(B, bool), *np.zeros((2, B), int)
    visited, objectives = [np.empty((0, u.size))], [np.empty(0)]
    active = np.flatnonzero(room > 0)
    for _ in range(_ROUNDS):
        if not len(active) or work.exhausted:
            break
        some, near, own = searches.take(active), inner.take(active), held.take(active)
        goal = estimate[active] + some.side * reach[active]
        new = profile_points(on.take(active), near.batch, own, goal, estimate[active], some.threshold, reference, work)
        good = new.good & _on_ridge(near, new, some)
        lost = np.flatnonzero(~good & (near.distance > 0))
        if len(lost):  # from the optimum instead of the neighbouring point
            again = profile_points(
                on.take(active[lost]), best.take(active[lost]), own.take(lost), goal[lost], estimate[active[lost]],
                some.threshold[lost], reference, work,
            )  # fmt: skip
            better = np.flatnonzero(again.good & (again.root < np.where(new.good, new.root, np.inf)[lost]))
            new = new.put(lost[better], again.take(better))
            good[lost[better]] = (again.root < 1.0)[better] | _on_ridge(near, new, some)[lost[better]]
        visited.append(u.join(new.batch.x0, new.batch.phi)[new.good])
        objectives.append(new.batch.value[new.good])
        width = new.distance - near.distance
        at_stop = good & (new.root**2 <= 1.0 + TOLERANCE) & (new.distance >= room[active])
        close = good & ~at_stop & (np.abs(new.root**2 - 1.0) <= TOLERANCE)
        inside, outside = good & ~at_stop & ~close & (new.root < 1.0), good & ~close & ~at_stop & (new.root >= 1.0)
        kept = np.flatnonzero(inside | close | at_stop)
        before = near.root
        inner = inner.put(active[kept], new.take(kept))
        outer[active[outside]], outer_root[active[outside]] = new.distance[outside], new.root[outside]
        failed[active] = np.where(good, 0, failed[active] + 1)
        longest[active] = np.where(good, 2.0 * longest[active], _SHORTER * width)
        same[active] = np.where(
            inside, np.maximum(same[active], 0) + 1, np.where(outside, np.minimum(same[active], 0) - 1, 0)
        )
        values[active[at_stop]] = some.stop[at_stop]
        values[active[close]] = (estimate[active] + some.side * _correct(new, some))[close]
        now = inner.take(active)
        further = _next_points(now, some, before, outer[active], outer_root[active], same[active])
        goal = np.where(good, further, np.inf)
        reach[active] = np.minimum(np.minimum(goal, now.distance + longest[active]), room[active])
        bracketed = np.isfinite(outer[active]) & ~close & ~at_stop
        jump = bracketed & (outer[active] - inner.distance[active] <= _JUMP * outer[active])
        jumps[active[jump]] = True
        values[active[jump]] = (estimate + searches.side * inner.distance)[active[jump]]
        active = active[~at_stop & ~close & ~jump & (failed[active] <= failures)]
    return Limits(values, inner, jumps, np.concatenate(visited), np.concatenate(objectives))


def _on_ridge(near: Points, new: Points, searches: Searches) -> Mask:
    """Return whether the slopes of the profile explain the growth of r² between two points (B,), if they are apart."""
    width = new.distance - near.distance
    slope = np.maximum(np.abs(near.slope), np.abs(new.slope))
    explained = new.root**2 - near.root**2 <= _UNEXPLAINED * slope * 2.0 * width / searches.threshold + _FLAT
    return np.asarray(explained | (width <= _JUMP * new.distance))


def _per_distance(points: Points, searches: Searches) -> Array:
    """Return dr/dψ (B,) outward, from the slope of the objective."""
    return np.asarray(searches.side * points.slope / (searches.threshold * points.root))


def _correct(points: Points, searches: Searches) -> Array:
    """Return distances (B,) at which r = 1, by one Newton step from points within the tolerance."""
    step = (1.0 - points.root) / _per_distance(points, searches)
    small = np.isfinite(step) & (np.abs(step) <= TOLERANCE * points.distance)
    return np.asarray(points.distance + np.where(small, step, 0.0))


def _next_points(
    inner: Points, searches: Searches, before: Array, outer: Array, outer_root: Array, same: Index
) -> Array:
    """Return the distances (B,) of the next points.

    Args:
        inner: the outermost points inside the thresholds.
        before: r (B,) of the points before these.
        outer, outer_root: distance and r of the innermost points outside (B,); infinite if there is none.
        same: how often the last points have replaced the same side of the bracket (B,).
    """
    d = inner.distance
    flat = inner.root - before < _FLAT
    most = np.where(flat, _FLAT_GROWTH, _GROWTH) * d
    newton = d + (1.0 - inner.root) / _per_distance(inner, searches)
    further = np.where(np.isfinite(newton) & (newton > d), np.clip(newton, 1.2 * d, most), most)
    width = outer - d
    secant = d + np.clip((1.0 - inner.root) / (outer_root - inner.root), 0.05, 0.95) * width
    middle = np.where((d > 0) & (outer > _FLAT_GROWTH * d), np.sqrt(d * outer), d + 0.5 * width)
    between = np.where((np.abs(same) > 2) | (outer_root > _GROWTH), middle, secant)
    return np.asarray(np.where(np.isfinite(outer), between, further))
