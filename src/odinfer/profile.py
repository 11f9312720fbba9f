"""Profile likelihoods: how much the best likelihood falls when one quantity is held, and intervals from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.ensemble import Bundle, Ensemble, Held, Index
from odinfer.errors import InputError, nearest
from odinfer.information import Information
from odinfer.problem import Problem
from odinfer.refine import Likelihood, Refined
from odinfer.uncertainty import LEVEL, Profile, threshold

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
    """State `k` (B,) of an experiment at time `t` (B,), one of each trajectory."""

    bundle: Bundle
    experiment: int
    t: Array
    k: Index

    def take(self, index: Index) -> State:
        return State(self.bundle, self.experiment, self.t[index], self.k[index])

    def value(self, ensemble: Ensemble) -> Array:
        b = self.bundle
        paths = (ensemble.path(b.like, b.meshes, i, self.experiment) for i in range(len(self.t)))
        return np.array([p.at(t[None])[0][0, k] for p, t, k in zip(paths, self.t, self.k, strict=True)])

    def gradient(self, ensemble: Ensemble) -> Array:
        b, e = self.bundle, self.experiment
        B, F = ensemble.phi.shape
        K = len(b.like.scale)
        a = np.zeros((B, len(b.meshes) * K + F))
        for i, (t, k) in enumerate(zip(self.t, self.k, strict=True)):
            lin = type(ensemble.lins[e])(*(v[i] for v in ensemble.lins[e]))
            S = ensemble.path(b.like, b.meshes, i, e).sensitivity_at(lin, t[None])[0, k]
            a[i, e * K : (e + 1) * K], a[i, len(b.meshes) * K :] = S[:K], S[K:]
        return a


def ends(
    bundle: Bundle, best: Ensemble, held: Held, sd: Array, side: Array, wanted: Array, limit: Array,
    most: int = 25, tolerance: float = 0.05,
) -> tuple[Array, Ensemble]:  # fmt: skip
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
        trajectories there.
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
        good = np.isfinite(trial.objective)
        H, g = part.normal(trial)
        _, gain = part.step(trial, H, g, np.full(len(active), 1e-10), quantity.gradient(trial), np.zeros(len(active)))
        at = side[active] * (quantity.value(trial) - start[active])
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
    return found, now


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
    found, there = ends(bundle, best, held, sd, side, wanted, limit)
    found = np.where(
        ((found == limit) & (limit != bound)) | blind, np.where(np.isfinite(bound), bound, side * np.inf), found
    )
    return found[:F], found[F:], there.phi


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
    _, reached = ends(bundle, best, held, info.spread(a)[0], side, info.fall(a, LEVEL) * shares**2, limit)
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
