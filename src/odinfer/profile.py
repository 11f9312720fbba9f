"""Profile likelihoods: how much the best likelihood falls when one quantity is held, and intervals from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.ensemble import Bundle, Ensemble, Held, Index, nodes
from odinfer.errors import InputError, nearest
from odinfer.information import Information
from odinfer.problem import Problem
from odinfer.refine import Likelihood, Refined
from odinfer.uncertainty import LEVEL, Profile, quantile, threshold

if TYPE_CHECKING:
    from odinfer.fit import Fit

Array = NDArray[np.float64]

_FAR = 1e4  # so many times its estimate, a parameter is as good as infinite
_SHARES = 0.25 * np.arange(1, 7)  # of the root of the fall at the ends of a 95 % interval


@dataclass(frozen=True)
class Parameter:
    """The free parameters `index` (B,), one of each trajectory, on their own scales."""

    index: Index
    before: int

    def take(self, index: Index) -> Parameter:
        return Parameter(self.index[index], self.before)

    def value(self, ensemble: Ensemble) -> Array:
        return np.asarray(ensemble.phi[np.arange(len(self.index)), self.index])

    def gradient(self, ensemble: Ensemble) -> Array:
        B, F = ensemble.phi.shape
        a = np.zeros((B, self.before + F))
        a[np.arange(B), self.before + self.index] = 1.0
        return a


@dataclass(frozen=True)
class State:
    """State `k` (B,) of an experiment at the point `node` (B,) of its mesh, one of each trajectory.

    On a log scale (of its size) if `log`: the right one for what dies out and cannot change its sign.
    """

    experiment: int
    node: Index
    k: Index
    log: bool = False

    def take(self, index: Index) -> State:
        return State(self.experiment, self.node[index], self.k[index], self.log)

    def value(self, ensemble: Ensemble) -> Array:
        x = self._plain(ensemble)
        return np.log(np.maximum(np.abs(x), 1e-300)) if self.log else x

    def _plain(self, ensemble: Ensemble) -> Array:
        x = nodes(ensemble.x0[self.experiment], ensemble.Z[self.experiment])
        return np.asarray(x[np.arange(len(self.node)), self.node, self.k])

    def gradient(self, ensemble: Ensemble) -> Array:
        e, E = self.experiment, len(ensemble.lins)
        S = ensemble.lins[e].nodes[np.arange(len(self.node)), self.node, self.k, :-1]
        if self.log:
            x = self._plain(ensemble)
            S = S / np.where(x == 0, 1e-300, x)[:, None]
        (B, F), K = ensemble.phi.shape, ensemble.x0[e].shape[1]
        a = np.zeros((B, E * K + F))
        a[:, e * K : (e + 1) * K], a[:, E * K :] = S[:, :K], S[:, K:]
        return a


def ends(
    bundle: Bundle, best: Ensemble, held: Held, sd: Array, side: Array, wanted: Array, limit: Array,
    most: int = 25, tolerance: float = 0.05,
) -> tuple[Array, Ensemble, Index]:  # fmt: skip
    """Where the profile likelihood of a held quantity has fallen by `wanted`/2 (B,).

    The square root of the fall is nearly linear in the quantity, so a few steps along the ridge of the likelihood,
    each with one Gauss–Newton correction of everything else, get there.

    Args:
        best: B copies of the maximum.
        held: the quantity of each.
        sd: its standard deviation (B,), which gives the first step.
        side: −1 or 1 (B,).
        limit: where to stop (B,): a bound, or as far as makes no difference.
        tolerance: of the fall, relative to what is wanted.

    Returns:
        Values (B,), infinite where the likelihood does not fall so far on the way to an infinite limit; and the
        trajectories there; and those that did not settle.
    """
    B = len(side)
    start = held.value(best)
    top = best.objective
    found = side * np.inf
    room = np.abs(limit - start)
    with np.errstate(invalid="ignore"):
        first = np.where(np.isfinite(sd) & (sd > 0), sd * np.sqrt(wanted), 0.1 * (1.0 + np.abs(start)))
    reach = np.minimum(first, room)  # how far from the maximum the next trial is
    inner, inner_fall = np.zeros(B), np.zeros(B)  # the furthest that is known to be inside
    outer = np.full(B, np.inf)
    now, active, damping = best, np.flatnonzero(room > 0), np.full(B, 1e-6)
    found[room <= 0] = start[room <= 0]
    for _ in range(most):
        if not len(active):
            break
        part, mine, quantity = bundle.take(active), now.take(active), held.take(active)
        H, g = part.normal(mine)
        gap = start[active] + side[active] * reach[active] - quantity.value(mine)
        move, _ = part.step(mine, H, g, damping[active], quantity.gradient(mine), gap)
        trial = part.moved(mine, move)
        at = side[active] * (quantity.value(trial) - start[active])
        good = np.isfinite(trial.objective) & (at > 0)  # a step that is far too long can end on the other side
        H, g = part.normal(trial)
        _, gain = part.step(trial, H, g, np.full(len(active), 1e-10), quantity.gradient(trial), np.zeros(len(active)))
        fall = np.where(good, 2.0 * (trial.objective - gain - top[active]), np.inf)
        # A gain as large as the fall itself says that the quadratic picture does not hold yet: correct again first.
        rough = good & (2.0 * gain > 0.25 * np.maximum(fall, 0.1 * wanted[active]))
        now = now.put(active[good], trial.take(np.flatnonzero(good)))
        ratio = np.sqrt(np.maximum(fall, 1e-12) / wanted[active])
        close = good & ~rough & (np.abs(ratio**2 - 1.0) <= tolerance)
        inside = good & ~rough & (ratio < 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = at / ratio  # the distance at which a linear root would arrive
        found[active[close]] = (start[active] + side[active] * slope)[close]
        at_limit = inside & (at >= room[active] * (1.0 - 1e-9))
        found[active[at_limit]] = np.where(np.isfinite(limit), limit, side * np.inf)[active[at_limit]]
        inner[active[inside]], inner_fall[active[inside]] = at[inside], ratio[inside]
        over = good & ~rough & (ratio >= 1.0)
        outer[active[over]] = np.minimum(outer[active], at)[over]
        step = np.where(good, np.clip(slope, 0.3 * at, 3.0 * at + 1e-300), 0.5 * (reach[active] + inner[active]))
        step = np.where(rough, at, step)
        bracketed = (step >= outer[active]) | (step <= inner[active])
        middle = 0.5 * (inner[active] + outer[active])
        step = np.where(bracketed & np.isfinite(middle) & ~rough, middle, step)
        reach[active] = np.minimum(step, room[active])
        active = active[~close & ~at_limit]
    # Not settled: the last point inside, continued at its pace, or the first outside, whichever is nearer.
    with np.errstate(invalid="ignore", divide="ignore"):
        guess = np.where(inner_fall > 0, inner / inner_fall, np.inf)
    found[active] = (start + side * np.minimum(np.minimum(guess, outer), room))[active]
    return found, now, active


def _limit(problem: Problem, refined: Refined, index: Index, side: Array) -> tuple[Array, Array]:
    """How far to go in φ (B,), and the bound (B,) on that side."""
    low, high = problem.phi_bounds
    phi = refined.phi[index]
    far = np.where(problem.is_log[index], np.log(_FAR), _FAR * np.maximum(np.abs(phi), 1e-3))
    bound, away = np.where(side < 0, low[index], high[index]), phi + side * far
    return np.where(side < 0, np.maximum(bound, away), np.minimum(bound, away)), bound


def parameter_ends(
    like: Likelihood, refined: Refined, info: Information, level: float, index: Index
) -> tuple[Array, Array, Array]:
    """Lower and upper ends (F,) of the free parameters' likelihood intervals, and all of φ at each (2F, F)."""
    before = info.covariance.shape[0] - len(refined.phi)
    problem, F = like.problem, len(index)
    bundle = Bundle.of(like, refined)
    both = np.concatenate([index, index])
    side = np.repeat([-1.0, 1.0], F)
    best = bundle.start(refined, 2 * F)
    held = Parameter(both, before)
    a = held.gradient(best)
    sd, wanted = info.spread(a)[0], info.fall(a, level)
    limit, bound = _limit(problem, refined, both, side)
    # Where the likelihood does not change at all there is no way to follow: any value will do.
    blind = np.isinf(sd)
    limit = np.where(blind, refined.phi[both], limit)
    found, there, _ = ends(bundle, best, held, sd, side, wanted, limit)
    found = np.where(
        ((found == limit) & (limit != bound)) | blind, np.where(np.isfinite(bound), bound, side * np.inf), found
    )
    return found[:F], found[F:], there.phi


def state_ends(
    like: Likelihood, refined: Refined, info: Information, level: float, e: int, node: Index
) -> tuple[Array, Array]:
    """Lower and upper ends (N, K) of the likelihood intervals of an experiment's states at points of its mesh."""
    bundle, K = Bundle.of(like, refined), len(like.scale)
    B = 2 * len(node) * K
    side = np.repeat([-1.0, 1.0], B // 2)
    held = State(e, np.tile(np.repeat(node, K), 2), np.tile(np.arange(K), 2 * len(node)))
    best = bundle.start(refined, B)
    x, a = held.value(best), held.gradient(best)
    sd, wanted = info.spread(a)[0], info.fall(a, level)
    bounds = np.array([like.problem.limits(s) for s in like.problem.model.states])[held.k]
    bound = np.where(side < 0, bounds[:, 0], bounds[:, 1])
    blind = np.isinf(sd)
    limit = np.where(blind, x, bound)
    found, _, lost = ends(bundle, best, held, sd, side, wanted, limit, tolerance=0.01)
    if len(lost):
        log, up = replace(held.take(lost), log=True), side[lost] * np.sign(x[lost])
        far = np.log(np.maximum(np.abs(x[lost]), 1e-300)) + up * np.log(_FAR)
        value, _, _ = ends(bundle, best.take(lost), log, sd[lost] / np.abs(x[lost]), up, wanted[lost], far)
        gone = np.where(up < 0, 0.0, side[lost] * np.inf)
        found[lost] = np.where(value == far, gone, np.sign(x[lost]) * np.exp(np.minimum(value, 700.0)))
    found = np.where(blind, bound, np.where(side < 0, np.maximum(found, bound), np.minimum(found, bound)))
    # No narrower than trajectories are computed to.
    slack = info.accuracy[held.k] * quantile(np.inf, level)
    found = side * np.maximum(side * found, side * x + slack)
    low, high = found.reshape(2, -1, K)
    return low, high


def profile(fit: Fit, problem: Problem, name: str) -> Profile:
    """The profile likelihood of a parameter on both sides of a fit's estimate.

    Points lie where the root of the fall takes steps of a quarter of what a 95 % interval needs, to 1.5 times that.

    Raises:
        InputError: the parameter was not estimated, or the fit is not at a maximum of the likelihood.
    """
    from odinfer.trajectories import refined_again

    like, refined, info = refined_again(fit, problem)
    if name not in problem.free:
        fixed = f"'{name}' is fixed" if name in problem.model.parameters else f"the model has no parameter '{name}'"
        raise InputError(f"{fixed}: there is no profile of it{nearest(name, problem.free)}")
    j = problem.free.index(name)
    bundle, E = Bundle.of(like, refined), len(refined.paths)
    shares = np.concatenate([-_SHARES, _SHARES])
    side = np.sign(shares)
    best = bundle.start(refined, len(shares))
    held = Parameter(np.full(len(shares), j), E * len(like.scale))
    a = held.gradient(best)
    limit, _ = _limit(problem, refined, np.full(len(shares), j), side)
    _, reached, _ = ends(bundle, best, held, info.spread(a)[0], side, info.fall(a, LEVEL) * shares**2, limit)
    exact = bundle.maximise(reached, held, held.value(reached))
    values, fall = held.value(exact), exact.objective - refined.objective
    good = np.isfinite(exact.objective) & (side * (values - refined.phi[j]) > 0)
    values, fall = np.append(values[good], refined.phi[j]), np.append(fall[good], 0.0)
    order = np.argsort(values)
    estimate = float(refined.phi[j])
    if problem.is_log[j]:
        values, estimate = np.exp(values), float(np.exp(estimate))
    freedom = info.spread(a[:1])[1][0]
    grown = float(info.fall(a[:1], LEVEL)[0] / threshold(freedom, info.count, LEVEL))
    low, high = problem.limits(name)
    return Profile(
        name, estimate, values[order], -np.maximum(fall[order], 0.0), (low, high), float(freedom), info.count * grown
    )
