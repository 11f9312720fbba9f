"""Start points without a smoother: near the sizes implied by data and equations, or anywhere within bounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from odinfer.odin.startpoints import draw
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem
from odinfer.scaling.dimensional_analysis import implied_sizes

Array = NDArray[np.float64]

_WIDTHS = (0.3, 1.0, 0.6, 1.5, 1.0, 2.0)  # decades by which starts scatter, in turn
_OFF = 0.01  # of their size: how far from their bounds states start at least
_ROUGH = 0.05  # of a column's spread: the least noise on the way
_CONSTANT = 1e-9  # of its size: noise of a column that does not change
_ANYWHERE = 3  # every so many starts is anywhere between the bounds of what has two


def draw_starts(problem: Problem, rng: np.random.Generator, given: Array | None = None) -> Iterator[Array]:
    """Draw unknowns (P,) without end: most near natural sizes, some anywhere between bounds.

    Args:
        given: unknowns (P,) to begin with.
    """
    u = ParameterVector(problem)
    boxed = np.isfinite(u.low) & np.isfinite(u.high)
    low, high = np.where(boxed, u.low, 0.0), np.where(boxed, u.high, 1.0)
    if given is not None:
        yield given
    for i, (x0, phi) in enumerate(starts(problem, None, rng)):
        v = u.join(x0, phi)
        yield np.where(boxed, rng.uniform(low, high), v) if i % _ANYWHERE == _ANYWHERE - 1 else v


def draw_parameters(problem: Problem, near: Array, count: int, rng: np.random.Generator) -> Array:
    """Unknowns (count, P) like some (P,) of a problem whose states are all observed, with parameters from anywhere."""
    v = np.tile(near, (count, 1))
    v[:, ParameterVector(problem).of_phi] = draw(problem, count, rng)
    return v


def starts(problem: Problem, count: int | None, rng: np.random.Generator) -> Iterator[tuple[list[Array], Array]]:
    """Random initial values (K,) of every experiment and φ (F,): so many, or without end."""
    m = problem.model
    K, P = len(m.states), len(m.parameters)
    low, high = np.reshape([problem.limits(name) for name in problem.parameters], (-1, 2)).T
    span = [problem.condition(e).told for e in range(len(problem.data.experiments))]
    shortest = min((np.diff(t).min() / np.ptp(t) for t in span if len(t) > 1), default=1e-3)
    for i in itertools.count() if count is None else range(count):
        width = _WIDTHS[i % len(_WIDTHS)]
        share = 10.0 ** (rng.uniform(np.log10(shortest), 0.0) if i % 2 else rng.uniform(-1.0, 0.0))
        natural = implied_sizes(problem, share, rng.uniform(-width, width, K + P))
        decades = natural.parameters + rng.uniform(-width, width, P)
        signs = np.where(rng.uniform(size=P) < (0.5 if i % 3 == 2 else 0.0), -1.0, 1.0)
        theta = np.empty(len(problem.parameters))
        for e in range(len(problem.data.experiments)):
            theta[problem.split.of(e)] = signs * 10.0**decades
        theta = np.where(low >= 0, np.abs(theta), np.where(high <= 0, -np.abs(theta), theta))
        for name, value in problem.start.items():
            theta[problem.parameters.index(name)] = value * (10.0 ** rng.uniform(-0.3, 0.3) if i else 1.0)
        phi = np.clip(problem.phi(_redraw_outside(theta, low, high, rng)), *problem.phi_bounds)
        x0 = []
        for e in range(len(problem.data.experiments)):
            first = 10.0 ** (natural.states + rng.uniform(-width, width, K))
            first *= np.where(rng.uniform(size=K) < (0.5 if i % 3 == 2 else 0.0), -1.0, 1.0)
            first = np.where(problem.state_bounds[0] >= 0, np.abs(first), first)
            seen = _first_seen(problem, e)
            first = np.where(np.isnan(seen), first, seen)
            first = _move_inside(first, 10.0**natural.states, *problem.state_bounds)
            x0.append(problem.condition(e).initial(problem.theta_of(e, phi)[None], first[None, m.free_initial])[0])
        yield x0, phi


def _redraw_outside(theta: Array, low: Array, high: Array, rng: np.random.Generator) -> Array:
    """θ with what lies outside its bounds drawn anew inside, on a log scale where both bounds are positive."""
    found = theta.copy()
    for j in np.flatnonzero((theta < low) | (theta > high)):
        a, b = low[j], high[j]
        if np.isfinite(a) and np.isfinite(b):
            found[j] = np.exp(rng.uniform(np.log(a), np.log(b))) if a > 0 else rng.uniform(a, b)
        else:
            found[j] = a + abs(a) + 1.0 if np.isfinite(a) else b - abs(b) - 1.0
    return found


def _move_inside(x: Array, size: Array, low: Array, high: Array) -> Array:
    """States (K,) moved off their bounds by a little of their sizes: at zero, powers have no derivatives."""
    return np.clip(x, low + _OFF * size, high - _OFF * size)


def _first_seen(problem: Problem, e: int) -> Array:
    """The first observation (K,) of states that are columns themselves and seen near the start; NaN of others."""
    condition, found = problem.condition(e), np.full(len(problem.model.states), np.nan)
    for m, column in enumerate(problem.observed):
        own = condition.experiment.y[:, m]
        seen = np.flatnonzero(np.isfinite(own))
        for k, name in enumerate(problem.model.states):
            if len(seen) and column.arguments[0] == problem.model.instruction(name):
                found[k] = own[seen[0]]
    return found


def difference_noise(problem: Problem) -> Array:
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
        found.append(max(noise, least))
    sizes = np.array([np.abs(np.concatenate([e.y[:, m] for e in problem.data.experiments])) for m in range(len(found))])
    size = np.nan_to_num(sizes).max(1, initial=0.0)
    size = np.where(size > 0, size, size.max(initial=0.0) or 1.0)  # a column of zeros has the size of the others
    return np.maximum(found, _CONSTANT * size)
