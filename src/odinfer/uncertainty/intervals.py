"""Likelihood intervals of parameters and states at a maximum of the likelihood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.problem import Problem
from odinfer.trajectory.batch import Batch, OnMeshes
from odinfer.trajectory.bordered import among
from odinfer.trajectory.finding.shot_ends import shot_end
from odinfer.trajectory.integrate import Budget
from odinfer.uncertainty.ends.find import Ends, Wanted, find_ends
from odinfer.uncertainty.ends.held import HeldColumn, HeldState, HeldUnknown
from odinfer.uncertainty.identifiability import notes
from odinfer.uncertainty.results import Uncertainty
from odinfer.uncertainty.small_sample import quantile

if TYPE_CHECKING:
    from odinfer.uncertainty.maximum import Maximum

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STEPS = 30_000  # of integration, for all ends that cannot be followed otherwise
_LEVEL = 0.1  # share of what is wanted, below which the likelihood has not fallen
_FAR = 1e4  # so many times its estimate, a parameter is as good as infinite


def likelihood_intervals(maximum: Maximum, level: float) -> Uncertainty:
    """Of the free parameters, with their covariance and what the data cannot determine."""
    problem, info, phi = maximum.problem, maximum.info, maximum.phi
    u = maximum.like.unknowns
    low, high, there, lost = parameter_ends(maximum, level)
    v = u.join([p.x0 for p in maximum.refined.paths], phi)
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
    return Uncertainty(problem.free, log, C, freedom, level, low, high, said)


def _given_up(problem: Problem, there: Array, lost: Index) -> Iterator[str]:
    """Sentences on ends that were not reached, places in (lower ends, upper ends) of all parameters."""
    F = len(problem.free)
    for i in lost.tolist():
        value = problem.theta(there[i])[problem.free_index][i % F]
        where = "below" if i < F else "above"
        name = problem.free[i % F]
        yield f"the likelihood could not be followed to values of {name} {where} {value:.3g}; it may go on"


def far_from(maximum: Maximum, index: Index, side: Array) -> tuple[Array, Array]:
    """How far to go from the estimates of unknowns at places (B,), and the bound (B,) on that side."""
    u = maximum.like.unknowns
    v = u.join([p.x0 for p in maximum.refined.paths], maximum.phi)[index]
    log = np.zeros(u.size, bool)
    log[u.of_phi] = maximum.problem.is_log
    far = np.where(log[index], np.log(_FAR), _FAR * np.maximum(np.abs(v), 1e-3))
    bound = np.where(side < 0, u.low[index], u.high[index])
    return np.where(np.isfinite(bound), bound, v + side * far), bound


def reached(
    maximum: Maximum, on: OnMeshes, best: Batch, held: HeldUnknown, wanted: Wanted, accuracy: float = 1e-3
) -> Ends:
    """The ends of parameters on the meshes of the maximum or, where none are found there, by integration."""
    like, refined, budget, left = maximum.like, maximum.refined, Budget(_STEPS), []
    parameter = held.index - like.unknowns.of_phi.start  # initial values, before these, cannot be held there
    ends = find_ends(on, best, held, wanted, accuracy=accuracy)
    # Where the likelihood does not change in first order, and has not fallen as far as it was followed, it goes on.
    level = np.isinf(wanted.sd) & (ends.batch.value - best.value < 0.5 * _LEVEL * wanted.fall)
    for i in ends.lost.tolist():
        side, fall, sd, limit = (float(v[i]) for v in wanted)
        end, j = limit if level[i] else None, int(parameter[i])
        if end is None and j >= 0:
            end = shot_end(like.problem, like.scale, refined, j, side, fall, sd, limit, budget)
        if end is None:
            left.append(i)
        else:
            ends.values[i] = end
    return ends._replace(lost=np.array(left, np.int64))


def parameter_ends(maximum: Maximum, level: float) -> tuple[Array, Array, Array, Index]:
    """Lower and upper ends (F,) of the free parameters' likelihood intervals, and all of φ at each (2F, F).

    Also the places among the 2F ends that could not be reached: they count as open.
    """
    like, refined, info = maximum.like, maximum.refined, maximum.info
    F = len(refined.phi)
    both, side = np.tile(like.unknowns.phi_index, 2), np.repeat([-1.0, 1.0], F)
    on, held = OnMeshes.of(like, refined), HeldUnknown(like.unknowns, both)
    best = on.start(refined, 2 * F)
    a = held.gradient(best)
    sd = info.spread(a)[0]
    limit, bound = far_from(maximum, both, side)
    fall = info.fall(a, level)
    found, there, lost = reached(maximum, on, best, held, Wanted(side, fall, sd, limit))
    open_ = ((found == limit) & (limit != bound)) | np.isin(np.arange(2 * F), lost)
    found = np.where(open_, np.where(np.isfinite(bound), bound, side * np.inf), found)
    return found[:F], found[F:], there.phi, lost


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
