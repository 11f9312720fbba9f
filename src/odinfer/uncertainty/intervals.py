"""Profile-likelihood confidence intervals of parameters, initial values, states and predicted columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import listed
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.collocation_batch import CollocationTrajectories, WorkLimit
from odinfer.likelihood.forward_batch import ForwardTrajectories
from odinfer.optimize.arrow_matrix import among
from odinfer.problem.parameter_vector import named_parameters
from odinfer.scaling.dimensional_analysis import natural_sizes_of_free, natural_sizes_of_phi
from odinfer.style.text import abbreviate
from odinfer.uncertainty.identifiability import notes
from odinfer.uncertainty.limit_verification import local_optima, verified_limits
from odinfer.uncertainty.limits import FEW_ROUNDS, MOST_ROUNDS, Limits, Searches, find_limits
from odinfer.uncertainty.quantities import HeldColumn, HeldState, HeldUnknown
from odinfer.uncertainty.results import Uncertainty
from odinfer.uncertainty.small_sample import CONFIDENCE, quantile

if TYPE_CHECKING:
    from odinfer.uncertainty.maximum import Maximum

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

SEARCH_RANGE = 1e4  # factor from its estimate, over which a parameter is profiled before its limit counts as open
BETTER = 0.05  # nats by which another optimum must exceed the estimate's log-likelihood to be reported
_NEGLIGIBLE, _EFOLDS = (
    0.01,
    40.0,
)  # nats that an extreme parameter may cost, and how far from its natural size it may be
_SMALL = 1e-3  # of its natural size: a smaller estimate is profiled on the scale of this
_LONGEST = 2.0  # e-folds, of the first step on a log scale
_QUADRATIC = 1.5  # ratio of a limit's distance to that of the quadratic approximation, up to which it needs no checks
_STATE_FAILURES = 3  # failed points after which the limit of a state is extrapolated
_TOO_NOISY = 8.0  # nats for more noise than is known, which a right model leaves once in 10,000 fits
_TRAJECTORIES = 1600  # experiments times limits, up to which limits are verified from other start points
_BEYOND, _INSIDE = (
    1.1,
    0.8,
)  # a region beyond a limit: its distance over the limit's, and its statistic over the threshold


@dataclass(frozen=True, eq=False)
class ParameterLimits:
    """Limits of the free parameters at one level, on each parameter's own scale (φ).

    Coefficients of unknown functions have none: F is the number of the others, `named_parameters`.

    Attributes:
        low, high: (F,); infinite where the profile stays below the threshold over the search range.
        found: of lower, then upper limits (2F).
        points: unknowns (2F, P) at the limits.
        separate: unknowns (n, P) inside the threshold, but separated from the estimate by values that are not.
    """

    low: Array
    high: Array
    found: Limits
    points: Array
    separate: Array


def likelihood_intervals(maximum: Maximum, level: float) -> Uncertainty:
    """Compute confidence intervals of the free parameters, their covariance, and warnings."""
    problem, info, phi = maximum.problem, maximum.info, maximum.phi
    u, named = maximum.likelihood.unknowns, named_parameters(problem)
    F, free, own_log = len(named), [problem.free[j] for j in named], problem.is_log[named]
    if not F:  # every parameter is fixed
        return Uncertainty((), (), np.empty((0, 0)), np.empty(0), level, np.empty(0), np.empty(0))
    limits = maximum.limits if level == CONFIDENCE else parameter_limits(maximum, level, maximum.limits.found)
    index = u.phi_index[named]
    sd, freedom = info.spread(u.unit(index))
    C = among(info.covariance, index)
    C[np.isinf(sd), np.isinf(sd)] = np.inf
    bounds = np.array([problem.limits(name) for name in free]).reshape(-1, 2)
    with np.errstate(over="ignore"):
        ends = [np.where(own_log, np.exp(np.where(own_log, v, 0.0)), v) for v in (limits.low, limits.high)]
    # A limit at a bound is the bound exactly, whatever the scale rounds.
    low, high = (
        np.where(own == at, bound, np.clip(v, *bounds.T))
        for own, v, at, bound in zip(
            (limits.low, limits.high), ends, (b[named] for b in problem.phi_bounds), bounds.T, strict=True
        )
    )
    log = tuple(n for n, is_log in zip(free, own_log, strict=True) if is_log)
    # A limit that was not found says nothing about what fits beyond it.
    failed, own = limits.found.failed, problem.theta(phi)[problem.free_index][named]
    sure = np.where(failed[:F], own, low), np.where(failed[F:], own, high)
    # Unknown functions take up much of what parameters do: which combinations are determined is not said then.
    told = notes(u, maximum.v, info, *sure, u.phi(limits.points)) if len(problem.free) == F else ()
    warnings = (*told, *_warnings(maximum, limits))
    return Uncertainty(tuple(free), log, C, freedom, level, low, high, warnings)


def _warnings(maximum: Maximum, limits: ParameterLimits) -> Iterator[str]:
    """Say which limits are not verified, where the profile is multimodal, and where a better optimum lies."""
    problem, found = maximum.problem, limits.found
    named, sides = named_parameters(problem), ("lower", "upper")
    F, free = len(named), [problem.free[j] for j in named]
    lost = []
    for i in np.flatnonzero(found.failed).tolist():
        value = problem.theta(maximum.likelihood.unknowns.phi(limits.points[i]))[problem.free_index][named][i % F]
        lost.append(f"{sides[i // F]} confidence limit of {free[i % F]} beyond {value:.3g}")
    if lost:
        yield (
            f"the {listed(abbreviate(lost))} could not be computed, since the profile likelihood could not be followed "
            f"further; {'it is' if len(lost) == 1 else 'they are'} given as open"
        )
    jumps = [f"{sides[i // F]} limit of {free[i % F]}" for i in np.flatnonzero(found.jumps).tolist()]
    if jumps:
        yield f"the profile likelihood is discontinuous at the {listed(jumps)}; another optimum may lie beyond it"
    value = found.objectives.min(initial=np.inf)
    if value < maximum.objective - BETTER:
        best = found.visited[int(np.argmin(found.objectives))]
        yield (
            f"the estimate is not the global optimum: the log-likelihood is higher by {maximum.objective - value:.2g} "
            f"at {_format_point(maximum, best)}; "
            "fit again from there, or bound the parameters if such values make no sense"
        )
    if len(limits.separate):
        yield (
            "the profile likelihood is multimodal: values outside the intervals fit nearly as well, "
            f"such as {_format_point(maximum, limits.separate[0])}; bound the parameters if these make no sense"
        )
    refined, likelihood = maximum.refined, maximum.likelihood
    excess = likelihood.excess(refined.states(likelihood.t), refined.sigma**2, refined.phi[None])[0]
    if noisy := [problem.columns[m] for m in np.flatnonzero(excess > _TOO_NOISY)]:
        yield f"the residuals of {listed(noisy)} contradict the given noise, which is smaller: it or the model is wrong"
    if not maximum.confirmed:
        yield (
            f"integrated once more from its initial values, this trajectory has a log-likelihood of "
            f"{maximum.reintegrated_loglik:.4g} instead of {maximum.loglik:.4g}: it depends on the last digits of the "
            "estimates, so trust neither it nor its intervals"
        )


def _format_point(maximum: Maximum, v: Array) -> str:
    """Format the free parameters at unknowns (P,)."""
    problem = maximum.problem
    theta = problem.theta(maximum.likelihood.unknowns.phi(v))[problem.free_index]
    return ", ".join(f"{name} = {value:.3g}" for name, value in zip(problem.free, theta, strict=True))


def search_range(maximum: Maximum, index: Index, side: Array) -> tuple[Array, Array]:
    """Return the values (B,) at which profiles of the unknowns at `index` (B,) stop, and their bounds (B,)."""
    u, v = maximum.likelihood.unknowns, maximum.profile_origin[index]
    bound = np.where(side < 0, u.low[index], u.high[index])
    far = np.where(_is_log(maximum)[index], np.log(SEARCH_RANGE), SEARCH_RANGE * _sizes(maximum)[index])
    return np.where(np.isfinite(bound), bound, v + side * far), bound


@np.errstate(all="ignore")
def profile_origin(maximum: Maximum) -> Array:
    """Return the unknowns (P,) from which profiles start: the optimum, or a point that is as good.

    A log-scale parameter that tends to 0 or ∞ has no influence at its estimate, and no gradient leads back from there.
    It is moved towards its natural size until the log-likelihood falls by `_NEGLIGIBLE`.
    """
    u, v = maximum.likelihood.unknowns, maximum.v.copy()
    natural = np.log(np.maximum(natural_sizes_of_free(maximum.problem), 1e-300))
    away = maximum.phi - natural
    extreme = np.flatnonzero(maximum.problem.is_log & (np.abs(away) > np.log(SEARCH_RANGE)))
    if not len(extreme) or not BatchLikelihood.can(maximum.problem):
        return v
    solver = BatchLikelihood.of(maximum.problem).finer()
    lowest = float(solver.solve(v[None]).worth.value[0])
    for j in extreme.tolist():
        shifts = np.arange(0.0, min(abs(float(away[j])), _EFOLDS), 1.0) * np.sign(away[j])
        trial = np.tile(v, (len(shifts), 1))
        trial[:, u.phi_index[j]] = np.clip(natural[j] + shifts, u.low[u.phi_index[j]], u.high[u.phi_index[j]])
        good = np.flatnonzero(solver.solve(trial).worth.value <= lowest + _NEGLIGIBLE)
        if len(good):
            v = trial[good[0]]
    return v


def _is_log(maximum: Maximum) -> Mask:
    u = maximum.likelihood.unknowns
    log = np.zeros(u.size, bool)
    log[u.of_phi] = maximum.problem.is_log
    return log


def _sizes(maximum: Maximum) -> Array:
    """Return the size (P,) of each unknown: its estimate's, or a share of its natural size."""
    u = maximum.likelihood.unknowns
    natural = u.join([maximum.likelihood.scale] * u.experiments, natural_sizes_of_phi(maximum.problem))
    return np.maximum(np.abs(maximum.profile_origin), _SMALL * natural)


def parameter_limits(maximum: Maximum, level: float, known: Limits | None = None) -> ParameterLimits:
    """Compute lower and upper limits of the free parameters.

    Args:
        known: limits at another level, whose points are start points.
    """
    u = maximum.likelihood.unknowns
    index = u.phi_index[named_parameters(maximum.problem)]
    F = len(index)
    both, side = np.tile(index, 2), np.repeat([-1.0, 1.0], F)
    threshold = maximum.info.fall(u.unit(both), level)
    found = unknown_limits(maximum, both, side, threshold, known)
    stop, bound = search_range(maximum, both, side)
    open_ = ((found.values == stop) & (stop != bound)) | found.failed
    ends = np.where(open_, np.where(np.isfinite(bound), bound, side * np.inf), found.values)
    points = u.join(found.points.batch.x0, found.points.batch.phi)
    return ParameterLimits(ends[:F], ends[F:], found, points, _separate(maximum, found, ends, both, side, threshold))


def unknown_limits(
    maximum: Maximum, index: Index, side: Array, threshold: Array, known: Limits | None = None
) -> Limits:
    """Compute limits of the unknowns at `index` (B,), where 2·(ℓmax − ℓp) reaches its threshold (B,).

    The profile is followed from the estimate. Where a limit is not about where the quadratic approximation at the
    optimum puts it, the log-likelihood may have several ridges. Limits are then computed with error-controlled steps
    forward in time, if the model is text, and verified from other start points.

    Args:
        known: limits of this fit at another level, whose points are start points.
    """
    likelihood, refined, u = maximum.likelihood, maximum.refined, maximum.likelihood.unknowns
    origin, held = maximum.profile_origin, HeldUnknown(u, index)
    moved = not np.array_equal(origin, maximum.v)
    stop, bound = search_range(maximum, index, side)
    quadratic = maximum.info.spread(u.unit(index))[0] * np.sqrt(threshold)
    log, sizes = _is_log(maximum)[index], _sizes(maximum)[index]
    usable = np.isfinite(quadratic) & (quadratic > 0)
    first = np.where(usable, np.where(log, np.minimum(quadratic, _LONGEST), quadratic), np.where(log, 0.5, 0.1 * sizes))
    searches = Searches(side, threshold, first, stop)
    work = WorkLimit(int((MOST_ROUNDS if maximum.verify else FEW_ROUNDS) / refined.effort))
    some = len(index) > 0  # batches of no trajectories are for collocation only
    on = maximum.nearby if some else CollocationTrajectories.of(likelihood, refined)
    begin = on.start(refined, len(index))
    if moved and isinstance(on, ForwardTrajectories):
        begin = on.at(np.tile(origin, (len(index), 1)))
    found = find_limits(on, begin, held, searches, work=work)
    if not some:
        return found
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.abs(found.values - origin[index]) / quadratic
    usual = ((ratio > 1.0 / _QUADRATIC) & (ratio < _QUADRATIC) & ~found.jumps) | (found.values == bound)
    many = len(index) * u.experiments > _TRAJECTORIES
    plain = not moved and (usual.all() or not maximum.verify)
    if plain or many or not BatchLikelihood.can(maximum.problem):
        return found
    forward = on if isinstance(on, ForwardTrajectories) else ForwardTrajectories.of(likelihood, refined)
    if forward is None:
        return found
    best = begin
    if forward is not on:
        best = forward.at(np.tile(origin, (len(index), 1)))
        found = find_limits(forward, best, held, searches, work=work)
    if not maximum.verify:
        return found
    visited = np.empty((0, u.size)) if known is None else known.visited
    starts = np.concatenate([visited, local_optima(forward, maximum.known)])
    return verified_limits(forward, best, held, searches, found, starts, work)


def _separate(maximum: Maximum, found: Limits, ends: Array, index: Index, side: Array, threshold: Array) -> Array:
    """Return the visited unknowns (n, P) inside the threshold of a parameter but beyond its limit, best first.

    Args:
        ends, index, side, threshold: of the limits (B,).
    """
    with np.errstate(invalid="ignore"):
        distance = side * (found.visited[:, index] - maximum.profile_origin[index])
        beyond = np.isfinite(ends) & (distance > _BEYOND * np.abs(ends - maximum.profile_origin[index]))
    inside = found.objectives[:, None] - maximum.objective < 0.5 * _INSIDE * threshold
    rows = np.flatnonzero((beyond & inside).any(1))
    return np.asarray(found.visited[rows[np.argsort(found.objectives[rows])]])


def state_limits(
    maximum: Maximum, level: float, e: int, node: Index, columns: bool = False
) -> tuple[Array, Array]:  # fmt: skip
    """Compute lower and upper limits (N, K) of an experiment's states at points of its mesh.

    Args:
        columns: of the predicted values of the observed columns (N, M) instead.
    """
    likelihood, refined, info = maximum.likelihood, maximum.refined, maximum.info
    on, K = (
        CollocationTrajectories.of(likelihood, refined),
        len(likelihood.problem.columns) if columns else len(likelihood.scale),
    )
    B = 2 * len(node) * K
    side = np.repeat([-1.0, 1.0], B // 2)
    what = likelihood.unknowns, e, np.tile(np.repeat(node, K), 2), np.tile(np.arange(K), 2 * len(node))
    held = HeldColumn(*what, on=on) if columns else HeldState(*what)
    best = on.start(refined, B)
    x, a = held.value(best), held.gradient(best)
    sd, threshold = info.spread(a)[0], info.fall(a, level)
    low, high = (np.full(K, end) for end in (-np.inf, np.inf)) if columns else likelihood.problem.state_bounds
    bound = np.where(side < 0, low[held.k], high[held.k])
    flat = np.isinf(sd)
    searches = Searches(side, threshold, sd * np.sqrt(threshold), np.where(flat, x, bound))
    found = find_limits(on, best, held, searches, failures=_STATE_FAILURES)
    # Next to 0 a limit is where a trajectory is, which keeps its sign.
    keep = found.failed | (found.values == searches.stop) | (found.values * x > 0)
    values, failed = np.where(keep, found.values, held.value(found.points.batch)), np.flatnonzero(found.failed)
    if len(failed):  # on the scale of log |x|, on which a state that decays to 0 keeps its sign
        size, outward = np.abs(x[failed]), side[failed] * np.sign(x[failed])
        begin = np.log(np.maximum(size, 1e-300))
        first = np.minimum(searches.first[failed] / size, _LONGEST)
        stop = begin + outward * np.log(SEARCH_RANGE)
        again = find_limits(on, best.take(failed), replace(held.take(failed), log=True),
                            Searches(outward, threshold[failed], first, stop), failures=_STATE_FAILURES)  # fmt: skip
        log = np.where(again.failed, begin + outward * again.extrapolated(first), again.values)
        open_ = np.where(outward < 0, 0.0, side[failed] * np.inf)
        values[failed] = np.where(again.values == stop, open_, np.sign(x[failed]) * np.exp(np.minimum(log, 700.0)))
    values = np.where(flat, bound, np.where(side < 0, np.maximum(values, bound), np.minimum(values, bound)))
    # No interval is narrower than the accuracy of trajectories.
    slack = 0.0 if columns else info.accuracy[held.k] * quantile(np.inf, level)
    values = side * np.maximum(side * values, side * x + slack)
    ends = values.reshape(2, -1, K)
    return ends[0], ends[1]
