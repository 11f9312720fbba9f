"""Likelihood intervals of parameters and states at a maximum of the likelihood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.batch_likelihood import SideBySide
from odinfer.likelihood.collocation_batch import OnMeshes
from odinfer.likelihood.forward_batch import around
from odinfer.ode.adaptive_mesh import Budget
from odinfer.optimize.arrow_matrix import among
from odinfer.problem.problem import Problem
from odinfer.scaling.dimensional_analysis import phi_sizes
from odinfer.search.trust_region import follow
from odinfer.uncertainty.identifiability import notes
from odinfer.uncertainty.profile_limits.bracket import Way
from odinfer.uncertainty.profile_limits.constraints import HeldColumn, HeldState, HeldUnknown
from odinfer.uncertainty.profile_limits.limit_refit import shot_end
from odinfer.uncertainty.profile_limits.limit_root import Wanted, find_ends
from odinfer.uncertainty.profile_limits.profile_multistart import Answers, Claims, asked_elsewhere, asked_further
from odinfer.uncertainty.profile_limits.start_archive import Pool
from odinfer.uncertainty.results import Uncertainty
from odinfer.uncertainty.small_sample import CONFIDENCE, quantile

if TYPE_CHECKING:
    from odinfer.uncertainty.maximum import Maximum

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STEPS, _ROUNDS = 30_000, 40  # of integration, for all ends that cannot be followed otherwise; of searches side by side
_LEVEL = 0.1  # share of what is wanted, below which the likelihood has not fallen
_FAR = 1e4  # so many times its estimate, a parameter is as good as infinite
_SMALL = 1e-3  # of its natural size, an estimate is as good as nothing
_USUAL = 1.5  # times as far as the curvature at the maximum says, an end is no surprise
_TOLERANCE = 0.02  # of the fall at an end
_BEYOND, _INSIDE = 0.1, 0.8  # of the distance of an end, and of the fall there: what is further out, and more likely
_PLACES, _SAME = 8, 0.02  # places from which other maxima are looked for; nats by which these differ
_MOST = 1600  # trajectories at the least to ask for ends from elsewhere


def likelihood_intervals(maximum: Maximum, level: float) -> tuple[Uncertainty, Array | None]:
    """Of the free parameters, with their covariance and what the data cannot determine.

    Also unknowns (P,) at which the likelihood is higher than at the maximum, if any were met.
    """
    problem, info, phi = maximum.problem, maximum.info, maximum.phi
    u = maximum.like.unknowns
    low, high, found = maximum.ends if level == CONFIDENCE else parameter_ends(maximum, level, maximum.ends[2])
    there, lost, rivals = u.phi(found.v), found.lost, _as_likely(maximum, found, low, high)
    v = maximum.v
    sd, freedom = info.spread(u.unit(u.phi_index))
    C = among(info.covariance, u.phi_index)
    C[np.isinf(sd), np.isinf(sd)] = np.inf
    with np.errstate(over="ignore"):
        ends = [np.where(problem.is_log, np.exp(np.where(problem.is_log, v, 0.0)), v) for v in (low, high)]
    limits = np.array([problem.limits(name) for name in problem.free]).reshape(-1, 2)
    # What ends at a bound ends there exactly, whatever scales round.
    bounds = problem.phi_bounds
    low, high = (
        np.where(own == bound, limit, np.clip(v, limits[:, 0], limits[:, 1]))
        for own, v, bound, limit in zip((low, high), ends, bounds, limits.T, strict=True)
    )
    log = tuple(n for n, is_log in zip(problem.free, problem.is_log, strict=True) if is_log)
    # An end that was not reached says nothing about what fits beyond it.
    F, own = len(phi), problem.theta(phi)[problem.free_index]
    sure_low, sure_high = (np.where(np.isin(np.arange(F) + i, lost), own, v) for v, i in ((low, 0), (high, F)))
    said = (*notes(u, v, info, sure_low, sure_high, there), *_given_up(problem, there, lost))
    said += (*_higher(maximum), *rivals, *_doubted(maximum))
    return Uncertainty(problem.free, log, C, freedom, level, low, high, said), found.higher


def _given_up(problem: Problem, there: Array, lost: Index) -> Iterator[str]:
    """Sentences on ends that were not reached, places in (lower ends, upper ends) of all parameters."""
    F = len(problem.free)
    for i in lost.tolist():
        value = problem.theta(there[i])[problem.free_index][i % F]
        where = "below" if i < F else "above"
        name = problem.free[i % F]
        yield f"the likelihood could not be followed to values of {name} {where} {value:.3g}; it may go on"


def _higher(maximum: Maximum) -> Iterator[str]:
    """A sentence on where the likelihood is higher, if no maximum could be reached there."""
    if maximum.unreached is None:
        return
    solver = SideBySide.of(maximum.problem).finer()
    more = maximum.objective - float(solver.solve(maximum.unreached[None]).worth.value[0])
    yield (
        f"the log-likelihood is higher by {more:.2g} at {_named(maximum, maximum.unreached)}, from where no maximum "
        "could be reached; bound the parameters if such values make no sense"
    )


def _as_likely(maximum: Maximum, found: Found, low: Array, high: Array) -> Iterator[str]:
    """A sentence on another maximum that is nearly as high, but beyond an end (F,), φ: an interval has one piece.

    What has the same likelihood is the same with other signs.
    """
    if found.pool is None:
        return
    u, pool = maximum.like.unknowns, found.pool
    most = 0.5 * _INSIDE * maximum.info.fall(u.unit(u.phi_index), CONFIDENCE)
    beyond = _beyond(maximum, pool.v, low, high) & (pool.value[:, None] - maximum.objective < most)
    starts = pool.best(_PLACES, np.asarray(beyond.any(1)))
    if not len(starts):
        return
    with np.errstate(all="ignore"):
        solver = SideBySide.of(maximum.problem)
        ends = follow(solver, starts, rounds=_ROUNDS)
        rise = ends.value - float(solver.solve(maximum.v[None]).worth.value[0])
    beyond = _beyond(maximum, ends.v, low, high) & (rise[:, None] < most) & (rise[:, None] > _SAME)
    rows = np.flatnonzero(beyond.any(1))
    if len(rows):
        best = rows[int(np.argmin(rise[rows]))]
        yield (
            f"other values fit nearly as well, which the intervals do not reach: the log-likelihood is lower by only "
            f"{rise[best]:.2g} at {_named(maximum, ends.v[best])}; bound the parameters if these make no sense"
        )


def _beyond(maximum: Maximum, v: Array, low: Array, high: Array) -> NDArray[np.bool_]:
    """Which parameters (n, F) of unknowns (n, P) are clearly beyond their ends (F,).

    Not those that have gone through infinity, where an interval is open.
    """
    own, phi = maximum.phi, v[:, maximum.like.unknowns.phi_index]
    through = (np.isinf(low) | np.isinf(high)) & ~maximum.problem.is_log & (own * phi < 0)
    with np.errstate(invalid="ignore"):
        out = (phi < low - _BEYOND * (own - low)) | (phi > high + _BEYOND * (high - own))
    return np.asarray(out & ~through)


def _named(maximum: Maximum, v: Array) -> str:
    """The free parameters at unknowns (P,), for a sentence."""
    problem = maximum.problem
    theta = problem.theta(maximum.like.unknowns.phi(v))[problem.free_index]
    return ", ".join(f"{name} = {value:.3g}" for name, value in zip(problem.free, theta, strict=True))


def _doubted(maximum: Maximum) -> Iterator[str]:
    """A sentence on a trajectory that is not found again from its numbers."""
    if not maximum.confirmed:
        yield (
            f"integrated once more from its beginning, this trajectory has a log-likelihood of {maximum.again:.4g} "
            f"instead of {maximum.loglik:.4g}: it depends on the last digits of the estimates, so trust neither it nor "
            "its intervals"
        )


def far_from(maximum: Maximum, index: Index, side: Array) -> tuple[Array, Array]:
    """How far to go from the estimates of unknowns at places (B,), and the bound (B,) on that side."""
    u = maximum.like.unknowns
    v = maximum.v[index]
    log = np.zeros(u.size, bool)
    log[u.of_phi] = maximum.problem.is_log
    sizes = u.join([maximum.like.scale] * u.experiments, phi_sizes(maximum.problem))[index]
    far = np.where(log[index], np.log(_FAR), _FAR * np.maximum(np.abs(v), _SMALL * sizes))
    bound = np.where(side < 0, u.low[index], u.high[index])
    return np.where(np.isfinite(bound), bound, v + side * far), bound


class Found(NamedTuple):
    """Ends of unknowns.

    Attributes:
        values, v: the ends (B,), at the limit where the likelihood does not fall so far, and all unknowns there (B, P);
            where the way to an end was given up, the last that is known of it.
        rise: of the objective at v (B,).
        lost: the places of those that were given up.
        higher: unknowns (P,) at which the likelihood is higher than at the maximum, if any were met.
        ways, pool: what is known of the ways there and of the likelihood, if they were asked for from elsewhere.
        alone: whether steps forward in time do not lead to the likelihood of the maximum.
    """

    values: Array
    v: Array
    rise: Array
    lost: Index
    higher: Array | None = None
    ways: tuple[Way, ...] = ()
    pool: Pool | None = None
    alone: bool = False

    @staticmethod
    def of(answers: Answers) -> Found:
        value, v, rise, lost, higher, ways, pool = answers
        return Found(value, v, rise, np.flatnonzero(lost), higher, ways, pool)

    def with_answers(self, asked: Index, answers: Answers) -> Found:
        """With what became of those that were asked for from elsewhere, and of all that had been given up."""
        new = Found.of(answers)
        values, v, rise = self.values.copy(), self.v.copy(), self.rise.copy()
        values[asked], v[asked], rise[asked] = new.values, new.v, new.rise
        return new._replace(values=values, v=v, rise=rise, lost=asked[new.lost])

    def way(self, place: int, side: float) -> Way | None:
        return next((way for way in self.ways if (way.place, way.side) == (place, side)), None)


def reached(
    maximum: Maximum, index: Index, side: Array, fall: Array, accuracy: float = 1e-3, known: Found | None = None
) -> Found:
    """The ends of unknowns at places (B,), where twice the log-likelihood has fallen by so much (B,).

    From the maximum outwards first. If that does not lead to ends about where the curvature at the maximum says, all
    are asked again from elsewhere or, where trajectories cannot go side by side, by integration.

    Args:
        accuracy: of the root of the fall on the way outwards.
        known: what was found at another level: where that was asked for from elsewhere, these are, too, so that both
            speak of one likelihood.
    """
    like, refined = maximum.like, maximum.refined
    u, problem = like.unknowns, like.problem
    v = maximum.v
    ways = [known.way(*pair) for pair in zip(index.tolist(), side.tolist(), strict=True)] if known else []
    if known and known.pool and (there := [way for way in ways if way is not None]) == ways:
        answers = asked_further(problem, v, refined.objective, there, known.pool, fall)
        if answers is not None:
            return Found.of(answers)
    side_by_side = SideBySide.can(problem) and 2 * len(index) * u.experiments <= _MOST
    on, held = around(like, refined), HeldUnknown(u, index)
    best = on.start(refined, len(index))
    sd, (limit, bound) = maximum.info.spread(held.gradient(best))[0], far_from(maximum, index, side)
    wanted = Wanted(side, fall, sd, limit)
    # ODIN's problems are small: their ridges are followed first, so that there are better places to ask from.
    patient = problem.plain or not side_by_side
    ends = find_ends(on, best, held, wanted, accuracy=accuracy, patient=patient)
    begin, rise = held.value(best), ends.batch.value - refined.objective
    found = Found(ends.values, u.join(ends.batch.x0, ends.batch.phi), rise, ends.lost)
    with np.errstate(divide="ignore", invalid="ignore"):
        stretched = np.abs(ends.values - begin) / (sd * np.sqrt(fall))
    usual = (stretched > 1.0 / _USUAL) & (stretched < _USUAL) | (ends.values == bound)
    usual[ends.lost] = False
    if usual.all() and not (side_by_side and _rivals(maximum, found, index, side, fall)):
        return found
    if side_by_side:
        given_up = np.isin(np.arange(len(index)), ends.lost)
        supposed = np.where(given_up, np.nan, ends.values)
        # A ridge that was followed from maximum to maximum, and then lost, is inside as far as that went.
        followed = given_up & (rise < 0.5 * fall) & patient
        inside = np.where(followed, np.abs(held.value(ends.batch) - begin), 0.0)
        claims = Claims(index, side, fall, limit, limit == bound, supposed, found.v, inside, rise)
        # A maximum that many starts have led to from anywhere has no ridges nearby that are not known of.
        asked = np.arange(len(index)) if problem.plain else np.flatnonzero(~usual)
        answers = asked_elsewhere(
            problem, v, refined.objective, claims.take(asked), _TOLERANCE, maximum.known, maximum.unreached is None
        )
        if answers is not None:
            return found.with_answers(asked, answers)
        found = found._replace(alone=True)
    return _by_integration(maximum, found, wanted, index)


def _rivals(maximum: Maximum, found: Found, index: Index, side: Array, fall: Array) -> bool:
    """Whether what ODIN's other minima lead to is inside the likelihood of the ends, but beyond one of them."""
    if maximum.known is None or not maximum.problem.plain:
        return False
    with np.errstate(all="ignore"):
        ends = follow(SideBySide.of(maximum.problem), maximum.known, rounds=_ROUNDS)
        beyond = (side * (ends.v[:, index] - found.values) > 0) & np.isfinite(found.values)
        inside = ends.value[:, None] - maximum.objective < 0.5 * fall
    return bool((beyond & inside).any())


def _by_integration(maximum: Maximum, found: Found, wanted: Wanted, index: Index) -> Found:
    """The ends of parameters that were given up, each followed by integration."""
    like, budget, left = maximum.like, Budget(_STEPS), []
    parameter = index - like.unknowns.of_phi.start  # initial values, before these, cannot be held there
    # Where the likelihood does not change in first order, and has not fallen as far as it was followed, it goes on.
    level = np.isinf(wanted.sd) & (found.rise < 0.5 * _LEVEL * wanted.fall)
    values, rise, v = found.values.copy(), found.rise.copy(), found.v.copy()
    for i in found.lost.tolist():
        side, fall, sd, limit = (float(v[i]) for v in wanted)
        end, j = limit if level[i] else None, int(parameter[i])
        if end is None and j >= 0:
            end = shot_end(like.problem, like.scale, maximum.refined, j, side, fall, sd, limit, budget)
            if end is not None and end != limit:
                v[i, index[i]], rise[i] = end, 0.5 * fall
        if end is None:
            left.append(i)
        else:
            values[i] = end
    return found._replace(values=values, v=v, rise=rise, lost=np.array(left, np.int64))


def parameter_ends(maximum: Maximum, level: float, known: Found | None = None) -> tuple[Array, Array, Found]:
    """Lower and upper ends (F,) of the free parameters' likelihood intervals, and what was found (2F) on the way.

    Those that could not be reached count as open.

    Args:
        known: what was found at another level.
    """
    u = maximum.like.unknowns
    F = u.free
    both, side = np.tile(u.phi_index, 2), np.repeat([-1.0, 1.0], F)
    limit, bound = far_from(maximum, both, side)
    found = reached(maximum, both, side, maximum.info.fall(u.unit(both), level), known=known)
    open_ = ((found.values == limit) & (limit != bound)) | np.isin(np.arange(2 * F), found.lost)
    ends = np.where(open_, np.where(np.isfinite(bound), bound, side * np.inf), found.values)
    return ends[:F], ends[F:], found


def state_ends(
    maximum: Maximum, level: float, e: int, node: Index, columns: bool = False
) -> tuple[Array, Array]:  # fmt: skip
    """Lower and upper ends (N, K) of the likelihood intervals of an experiment's states at points of its mesh.

    Args:
        columns: of the predicted values of the observed columns (N, M) instead.
    """
    like, refined, info = maximum.like, maximum.refined, maximum.info
    on, K = OnMeshes.of(like, refined), len(like.problem.columns) if columns else len(like.scale)
    B = 2 * len(node) * K
    side = np.repeat([-1.0, 1.0], B // 2)
    what = like.unknowns, e, np.tile(np.repeat(node, K), 2), np.tile(np.arange(K), 2 * len(node))
    held = HeldColumn(*what, on=on) if columns else HeldState(*what)
    best = on.start(refined, B)
    x, a = held.value(best), held.gradient(best)
    sd, fall = info.spread(a)[0], info.fall(a, level)
    low, high = (np.full(K, end) for end in (-np.inf, np.inf)) if columns else like.problem.state_bounds
    bound = np.where(side < 0, low[held.k], high[held.k])
    blind = np.isinf(sd)
    found, _, lost = find_ends(on, best, held, Wanted(side, fall, sd, np.where(blind, x, bound)))
    if len(lost):  # once more on the log scale
        log, up = replace(held.take(lost), log=True), side[lost] * np.sign(x[lost])
        far = np.log(np.maximum(np.abs(x[lost]), 1e-300)) + up * np.log(_FAR)
        wanted = Wanted(up, fall[lost], sd[lost] / np.abs(x[lost]), far)
        value = find_ends(on, best.take(lost), log, wanted).values
        gone = np.where(up < 0, 0.0, side[lost] * np.inf)
        found[lost] = np.where(value == far, gone, np.sign(x[lost]) * np.exp(np.minimum(value, 700.0)))
    found = np.where(blind, bound, np.where(side < 0, np.maximum(found, bound), np.minimum(found, bound)))
    # No narrower than trajectories are computed to.
    slack = 0.0 if columns else info.accuracy[held.k] * quantile(np.inf, level)
    found = side * np.maximum(side * found, side * x + slack)
    ends = found.reshape(2, -1, K)
    return ends[0], ends[1]
