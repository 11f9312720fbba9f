"""The best trajectory without a smoother: from many starts, where states are hidden or are not observed as they are.

Every start has sizes of its own for what is hidden, near those that data and equations imply (sizes.py), and is
carried to a maximum of the likelihood by way of growing horizons (shooting.py). The search ends when several starts
have led to the best maximum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.matching.natural.sizes import sizes
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, silent
from odinfer.smoothing.residual_signal import SUSPICIOUS
from odinfer.trajectory.finding.runaways import pulled_in
from odinfer.trajectory.finding.shooting import grown
from odinfer.trajectory.integrate import Budget, Exhausted
from odinfer.trajectory.likelihood import Likelihood
from odinfer.trajectory.refine import Refined, shoot

Array = NDArray[np.float64]

STARTS, ALL_STARTS = 60, 240  # at most; and where the best so far is poor
# So many starts at the best maximum, within this, end the search; so many if it leaves a signal in the residuals. None
# if the signal is so many nats, or the noise so many times what neighbouring values differ by: a steady state can
# attract nearly all starts where the data oscillate.
_AGREE, _AGREE_ANYWAY, _SAME, _POOR, _ROUGHLY = 3, 10, 0.05, 30.0, 2.0
# Hops around the best: how many in a row without a better one, how wide in logs, and the share of its natural size
# below which a parameter is put back to it.
_HOPS, _HOP_WIDTHS, _GONE = 6, (0.5, 1.0, 1.5), 1e-3
_FEWEST, _ENOUGH = 4, 1e-3  # starts in any case; nats that a step must gain on the way
_STEPS, _ALL_STEPS = 4000, 60_000  # of integration, for one start and for the first of them
_WIDTHS = (0.3, 1.0, 0.6, 1.5, 1.0, 2.0)  # decades by which starts scatter, in turn
# Shares of the observations in the first horizon, in turn: short ones lead past oscillations that are out of phase, the
# whole shows at once what only late data tell.
_FIRST = (0.0, 0.99, 0.0, 0.5)
_OFF = 0.01  # of their size: how far from their bounds states start at least
_ROUGH = 0.05  # of a column's spread: the least noise on the way


@dataclass(frozen=True)
class Ways:
    """What became of the starts: the objective each led to, best first; infinite where it led nowhere."""

    best: Refined | None
    ends: tuple[float, ...]

    @property
    def agreeing(self) -> int:
        return sum(end - self.ends[0] < _SAME for end in self.ends) if self.best is not None else 0


def multistart(problem: Problem, seed: int, say: Progress = silent) -> Ways:
    """The best trajectory from any start, or none."""
    sigma = rough_noise(problem)
    best: Refined | None = None
    ends: list[float] = []
    left, most = _ALL_STEPS, STARTS
    for i, (x0, phi) in enumerate(starts(problem, ALL_STARTS, np.random.default_rng([seed, 3]))):
        if i >= most or left <= 0:
            if most == ALL_STARTS or best is None or not _poor(problem, best, sigma):
                break
            left, most = left + _ALL_STEPS * (ALL_STARTS // STARTS - 1), ALL_STARTS
        say(f"following start {i + 1}", i / most)
        given = min(_STEPS, left)
        budget = Budget(given)
        first = _FIRST[i % len(_FIRST)]
        found = grown(problem, np.full(len(problem.model.states), np.nan), sigma, x0, phi, budget, first, _ENOUGH)
        left -= given - max(budget.steps, 0)
        ends.append(np.inf if found is None else found.objective)
        if found is not None and (best is None or found.objective < best.objective):
            best = found
        if best is not None and found is not None and found.objective - best.objective < _SAME:
            agree = sum(end - best.objective < _SAME for end in ends)
            if agree >= _AGREE and i + 1 >= _FEWEST:
                clear = signal_left(problem, best) <= SUSPICIOUS
                if clear or (agree >= _AGREE_ANYWAY and not _poor(problem, best, sigma)):
                    break
    if best is not None:
        say("looking around", 0.9)
        best, around = _hopped(problem, best, np.random.default_rng([seed, 4]), Budget(_HOPS * _STEPS // 4))
        ends += around
        unknown = np.full(len(problem.model.states), np.nan)
        best = shoot(problem, unknown, [p.x0 for p in best.paths], best.phi) or best
        better = pulled_in(problem, unknown, best, 10.0 ** free_decades(problem))
        if better.objective < best.objective:
            best = better
            ends.append(better.objective)
    return Ways(best, tuple(sorted(ends)))


def _hopped(problem: Problem, best: Refined, rng: np.random.Generator, budget: Budget) -> tuple[Refined, list[float]]:
    """The best of maxima around one, and where the hops led: a neighbouring one may be better, and rarely met."""
    natural, unknown = 10.0 ** free_decades(problem), np.full(len(problem.model.states), np.nan)
    index, free = problem.free_index, problem.model.free_initial
    ends: list[float] = []
    left = _HOPS
    while left > 0:
        left -= 1
        width = _HOP_WIDTHS[left % len(_HOP_WIDTHS)]
        theta = problem.theta(best.phi)
        own = theta[index]
        gone = np.abs(own) < _GONE * natural  # nothing leads back from there
        own = np.where(gone, np.where(own < 0, -natural, natural), own) * np.exp(width * rng.normal(size=len(own)))
        theta[index] = own
        phi = np.clip(problem.phi(theta), *problem.phi_bounds)
        x0 = []
        for e, path in enumerate(best.paths):
            first = path.x0[free] * np.exp(width * rng.normal(size=len(free)))
            x0.append(problem.course(e).initial(problem.theta_of(e, phi)[None], first[None])[0])
        try:
            found = shoot(problem, unknown, x0, phi, budget=budget, enough=_ENOUGH)
        except Exhausted:
            break
        ends.append(np.inf if found is None else found.objective)
        if found is not None and found.objective < best.objective - _SAME:
            best, left = found, _HOPS
    return best, ends


def free_decades(problem: Problem) -> Array:
    """Decades of the natural sizes of the free parameters (F,)."""
    own = sizes(problem).parameters
    every = np.empty(len(problem.parameters))
    for e in range(len(problem.data.experiments)):
        every[problem.split.of(e)] = own
    return np.asarray(every[problem.free_index])


def _poor(problem: Problem, found: Refined, rough: Array) -> bool:
    """Whether a trajectory leaves more than a model that is nearly right would, by a rough idea (M,) of the noise."""
    louder = (found.sigma > _ROUGHLY * rough)[list(problem.estimated_noise)]
    return bool(louder.any()) or signal_left(problem, found) > _POOR


def signal_left(problem: Problem, found: Refined) -> float:
    """The most nats of evidence, of any column, for a signal in what a trajectory leaves of the data."""
    like = Likelihood(problem, np.ones(len(problem.model.states)))
    return float(like.signal(found.states(like.t), found.sigma**2, found.phi[None]).max())


def starts(problem: Problem, count: int, rng: np.random.Generator) -> Iterator[tuple[list[Array], Array]]:
    """Random initial values (K,) of every experiment and φ (F,)."""
    m = problem.model
    K, P = len(m.states), len(m.parameters)
    low, high = np.reshape([problem.limits(name) for name in problem.parameters], (-1, 2)).T
    span = [problem.course(e).told for e in range(len(problem.data.experiments))]
    shortest = min((np.diff(t).min() / np.ptp(t) for t in span if len(t) > 1), default=1e-3)
    for i in range(count):
        width = _WIDTHS[i % len(_WIDTHS)]
        share = 10.0 ** (rng.uniform(np.log10(shortest), 0.0) if i % 2 else rng.uniform(-1.0, 0.0))
        natural = sizes(problem, share, rng.uniform(-width, width, K + P))
        decades = natural.parameters + rng.uniform(-width, width, P)
        signs = np.where(rng.uniform(size=P) < (0.5 if i % 3 == 2 else 0.0), -1.0, 1.0)
        theta = np.empty(len(problem.parameters))
        for e in range(len(problem.data.experiments)):
            theta[problem.split.of(e)] = signs * 10.0**decades
        theta = np.where(low >= 0, np.abs(theta), np.where(high <= 0, -np.abs(theta), theta))
        for name, value in problem.start.items():
            theta[problem.parameters.index(name)] = value * (10.0 ** rng.uniform(-0.3, 0.3) if i else 1.0)
        phi = np.clip(problem.phi(_within(theta, low, high, rng)), *problem.phi_bounds)
        x0 = []
        for e in range(len(problem.data.experiments)):
            first = 10.0 ** (natural.states + rng.uniform(-width, width, K))
            first *= np.where(rng.uniform(size=K) < (0.5 if i % 3 == 2 else 0.0), -1.0, 1.0)
            first = np.where(problem.state_bounds[0] >= 0, np.abs(first), first)
            seen = _first_seen(problem, e)
            first = np.where(np.isnan(seen), first, seen)
            first = _inside(first, 10.0**natural.states, *problem.state_bounds)
            x0.append(problem.course(e).initial(problem.theta_of(e, phi)[None], first[None, m.free_initial])[0])
        yield x0, phi


def _within(theta: Array, low: Array, high: Array, rng: np.random.Generator) -> Array:
    """θ with what lies outside its bounds drawn anew inside, on a log scale where both bounds are positive."""
    found = theta.copy()
    for j in np.flatnonzero((theta < low) | (theta > high)):
        a, b = low[j], high[j]
        if np.isfinite(a) and np.isfinite(b):
            found[j] = np.exp(rng.uniform(np.log(a), np.log(b))) if a > 0 else rng.uniform(a, b)
        else:
            found[j] = a + abs(a) + 1.0 if np.isfinite(a) else b - abs(b) - 1.0
    return found


def _inside(x: Array, size: Array, low: Array, high: Array) -> Array:
    """States (K,) moved off their bounds by a little of their sizes: at zero, powers have no derivatives."""
    return np.clip(x, low + _OFF * size, high - _OFF * size)


def _first_seen(problem: Problem, e: int) -> Array:
    """The first observation (K,) of states that are columns themselves and seen near the start; NaN of others."""
    course, found = problem.course(e), np.full(len(problem.model.states), np.nan)
    for m, column in enumerate(problem.observed):
        own = course.experiment.y[:, m]
        seen = np.flatnonzero(np.isfinite(own))
        for k, name in enumerate(problem.model.states):
            if len(seen) and column.arguments[0] == problem.model.instruction(name):
                found[k] = own[seen[0]]
    return found


def rough_noise(problem: Problem) -> Array:
    """Standard deviations (M,) of the columns' noise on its own scale, from neighbouring values: half of a guess."""
    found = []
    for m, column in enumerate(problem.observed):
        steps, spread = [np.empty(0)], [np.empty(0)]
        for e in problem.data.experiments:
            seen = np.isfinite(e.y[:, m])
            values = column.family.transformed(e.y[seen, m])
            steps.append(np.diff(values, 2) / np.sqrt(6.0))
            spread.append(values - values.mean() if len(values) else values)
        off, all_ = np.concatenate(steps), np.concatenate(spread)
        least = _ROUGH * float(np.sqrt(np.mean(all_**2))) if len(all_) else 1.0
        noise = 1.4826 * float(np.median(np.abs(off))) if len(off) else 0.0
        found.append(max(noise, least, 1e-300))
    return np.array(found)
