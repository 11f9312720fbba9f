"""Start points of θ: random draws, each moved to the best match of the smoothed derivatives."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.standardisation import Units
from odinfer.optimize.levenberg_marquardt import Mask, Rule, damped_step, levenberg_marquardt
from odinfer.problem.problem import Problem
from odinfer.scaling import frequencies
from odinfer.scaling.dimensional_analysis import natural_sizes, natural_sizes_of_free, natural_sizes_of_phi
from odinfer.scaling.linear_parameters import linear_parameters

Array = NDArray[np.float64]

_WIDTHS = (0.5, 1.0, 2.0, 3.0)  # decades to both sides, in turn


def draw(problem: Problem, count: int, rng: np.random.Generator) -> Array:
    """Random φ (count, F): |N(0, 1)| as in the paper, later ones over several magnitudes and both signs.

    All in units of the scales that data and equations imply. A start the user gave is the first for its parameter; the
    later draws scatter around it. Sines of time run at all speeds (scaling/frequencies.py).
    """
    F, natural = len(problem.free), natural_sizes_of_free(problem)
    theta = np.abs(rng.normal(size=(count, F))) * natural
    late = ~_is_positive_start(count)
    theta *= np.where(late[:, None], 10.0 ** rng.uniform(-2, 2, size=(count, F)), 1.0)
    for j, name in enumerate(problem.free):
        low, high = problem.limits(name)
        if name in problem.start:
            theta[:, j] = problem.start[name] * np.where(
                np.arange(count) > 0, np.exp(0.5 * rng.normal(size=count)), 1.0
            )
        elif low < 0:
            theta[late, j] *= rng.choice([-1.0, 1.0], size=int(late.sum()))
        outside = (theta[:, j] < low) | (theta[:, j] > high)
        far = 1e3 * natural[j]
        a, b = max(low, -far), min(high, far)
        if low >= far:  # the bounds lie far from zero
            a, b = low, min(high, 2.0 * low)
        elif high <= -far:
            a, b = max(low, 2.0 * high), high
        inside = np.exp(rng.uniform(np.log(a), np.log(b), count)) if a > 0 else rng.uniform(a, b, count)
        theta[:, j] = np.where(outside, inside, theta[:, j])
    full = np.tile(problem.theta(np.zeros(F)), (count, 1))
    full[:, problem.free_index] = theta
    for half in (~late, late):
        full[half] = frequencies.spread(problem, full[half], rng)
    return np.clip(problem.phi(full), *problem.phi_bounds)


def anywhere(problem: Problem, count: int, rng: np.random.Generator) -> Array:
    """Random φ (count, F) over many magnitudes, for things that happen in any time between two observations and all.

    The first half keeps to positive parameters, where the limits allow; every start has a width of its own, since few
    parameters may be far from where they are expected, but not many.
    """
    t = [e.t - e.t[0] for e in problem.data.experiments]
    longest = max(times[-1] for times in t)
    shortest = min(np.diff(times).min() for times in t if len(times) > 1)
    low, high = np.reshape([problem.limits(p) for p in problem.model.parameters], (-1, 2)).T
    found = []
    for i in range(count):
        share = 10.0 ** rng.uniform(np.log10(shortest / longest), 0.0)
        width = _WIDTHS[i % len(_WIDTHS)]
        theta = natural_sizes(problem, share) * 10.0 ** rng.uniform(-width, width, len(low))
        signs = rng.choice([-1.0, 1.0], len(low)) if i >= count // 2 else np.ones(len(low))
        theta *= np.where(low >= 0, 1.0, np.where(high <= 0, -1.0, signs))
        found.append(np.clip(theta, low, high))
    return np.clip(problem.phi(np.stack(found)), *problem.phi_bounds)


def _is_positive_start(count: int) -> NDArray[np.bool_]:
    """Which of `count` starts are of the paper's kind: positive."""
    return np.arange(count) < (count + 1) // 2


class Slopes(Protocol):
    """What matching needs of a risk."""

    @property
    def problem(self) -> Problem: ...
    @property
    def units(self) -> Units: ...
    @property
    def t(self) -> Array: ...
    @property
    def u(self) -> Array: ...
    @property
    def mean(self) -> Array: ...
    @property
    def z_bounds(self) -> tuple[Array, Array]: ...
    @property
    def mean_slopes(self) -> Array: ...
    def products(self, m: Array, gamma: float) -> Array: ...


class Matched(NamedTuple):
    """S searches side by side: φ (S, F), squared mismatch (S,), half its gradient (S, F) and Hessian (S, F, F)."""

    phi: Array
    value: Array
    g: Array
    H: Array

    def merged(self, other: Matched, better: Mask) -> Matched:
        """With those that are better taken from the other."""
        pairs = zip(self, other, strict=True)
        return Matched(*(np.where(better.reshape(-1, *[1] * (a.ndim - 1)), b, a) for a, b in pairs))


def match(risk: Slopes, phi: Array, gamma: float = 1.0, iterations: int = 10) -> tuple[Array, Array]:
    """Levenberg–Marquardt on φ alone at the GP mean, from all starts side by side.

    Each goes two ways where some parameters are linear in f and others are not: as it is, and with the linear ones at
    their best values for the others first; the better end counts. A K in k x/(K + x) cannot find its way while k is of
    the wrong size, but neither where a K far off has made k nothing.

    The first half of the starts keeps to positive parameters: through infinity a rate law such as k x/(K + x) has a
    way to negative ones that fits noise, while most models mean positive ones.

    Args:
        risk: gives the GP means, their slopes, and products weighted by (A + γI)⁻¹.
        phi: starts (S, F).

    Returns:
        φ (S, F) and the weighted squared mismatch (S,), inf where it is not finite.
    """
    p, z = risk.problem, risk.mean
    linear = linear_parameters(p.model)[p.free_index] & ~p.is_log
    ways = 2 if linear.any() and not linear.all() else 1
    phi = np.repeat(phi, ways, 0)
    S, F = phi.shape
    M, K = z.shape
    x = risk.units.user(np.clip(z, *risk.z_bounds))
    tiled = (np.tile(risk.t, S), np.tile(x, (S, 1)))
    u = np.tile(risk.u, (S, 1))

    def residual(phi: Array) -> tuple[Array, Array, Array]:
        theta = np.repeat(p.theta(phi), M, 0)
        f, fx, ft = p.model.linearise(*tiled, theta, u)
        f, _, ft = risk.units.standard_field(f, fx, ft[..., p.free_index])
        f = f.reshape(S, M, K).transpose(0, 2, 1) - risk.mean_slopes
        ft = ft.reshape(S, M, K, F) * p.slope(phi)[:, None, None, :]
        with np.errstate(over="ignore", invalid="ignore"):
            every = risk.products(np.concatenate([f[..., None], ft.transpose(0, 2, 1, 3)], -1), gamma)
        cost = every[:, 0, 0]
        return np.where(np.isfinite(cost), cost, np.inf), every[:, 1:, 0], every[:, 1:, 1:]

    low, high = (np.broadcast_to(b, (S, F)) for b in p.phi_bounds)
    low = np.where(_is_positive_start(S)[:, None] & ~p.is_log, np.maximum(low, np.minimum(0.0, high)), low)

    def propose(now: Matched, damping: Array, of: Mask | bool = True) -> tuple[Matched, Mask]:
        moving = np.isfinite(now.value)[:, None] & of
        H, g = np.where(moving[:, None] & moving[..., None], now.H, 0.0), np.where(moving, now.g, 0.0)
        trial = np.clip(now.phi + damped_step(H, g, damping), low, high)
        new = Matched(trial, *residual(trial))
        return new, new.value <= now.value

    def settles(better: Mask, gain: Array, now: Matched, damping: Array) -> Mask:
        return np.asarray(better & (gain <= 1e-3 * (1.0 + now.value)))

    rule = Rule(least=0.0, most=1e3, tries=iterations if F else 0, enough=0.8)
    with np.errstate(over="ignore", invalid="ignore"):
        start = Matched(phi, *residual(phi))
        if ways > 1:
            other = np.arange(S) % 2 == 1
            found, better = propose(start, np.zeros(S), linear)
            start = start.merged(found, better & other)
        ended = levenberg_marquardt(start, propose, settles, rule, Matched.merged).point
    best = np.arange(0, S, ways) + ended.value.reshape(-1, ways).argmin(1)
    return ended.phi[best], ended.value[best]


def distinct(problem: Problem, phi: Array, cost: Array, most: int) -> list[tuple[Array, int]]:
    """The best few different φ with the number of starts that ended at each; one is of the positive half."""
    found: list[tuple[int, int]] = []
    sizes = natural_sizes_of_phi(problem)
    own = np.where(problem.is_log, 1.0, np.abs(phi))
    for i in np.argsort(cost):
        # So much worse a match never led to a lower risk.
        if not np.isfinite(cost[i]) or cost[i] > 1.5 * cost.min() + 1.0:
            continue
        for n, (j, count) in enumerate(found):
            apart, gap = np.abs(phi[i] - phi[j]), abs(cost[i] - cost[j])
            same_place = (apart <= 1e-2 * (own[j] + 1e-3 * sizes)).all() or gap <= 1e-4 * (1e-3 + cost[j])
            same_basin = (apart <= 0.1 * (own[j] + sizes)).all() and gap <= 1e-2 * cost[j]
            if same_place or same_basin:
                found[n] = (j, count + 1)
                break
        else:
            found.append((int(i), 1))
    early = _is_positive_start(len(cost))
    first_positive = next((f for f in found if early[f[0]]), None)
    kept = found[:most]
    if first_positive is not None and first_positive not in kept:
        kept[-1] = first_positive
    return [(phi[i], count) for i, count in kept]


def scaled_back(problem: Problem, phi: Array) -> list[Array]:
    """Other places to go on from where parameters ran off together, as k and K of k x/(K + x) do when x ≪ K.

    Far out only their ratio matters, and nothing leads back; so they are scaled back together, to positive values
    where the limits allow.
    """
    theta = problem.theta(phi)
    free = theta[problem.free_index]
    natural = natural_sizes_of_free(problem)
    usual = np.array([abs(problem.start.get(p, s)) for p, s in zip(problem.free, natural, strict=True)])
    units = np.abs(free) / natural
    far = np.abs(free) > 30.0 * np.maximum(natural, usual)
    if far.sum() < 2:
        return []
    mean = np.exp(np.log(units[far]).mean())
    found = []
    for size in (1.0, 0.1):
        near = theta.copy()
        near[problem.free_index] = np.where(far, np.abs(free) * size / mean, free)
        found.append(np.clip(problem.phi(near), *problem.phi_bounds))
    return found
