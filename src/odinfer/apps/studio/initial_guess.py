"""Initial slider values of the studio, estimated from the data within a second.

Where every state is observed, slopes are matched (ODIN's first stage); where some are hidden, a few starts are
followed. Long series are thinned; of those that oscillate so often that too few times a period would be left, the
spectrum tells how long a beginning to look at. Of many experiments some are looked at: this is a guess, and no fit.
Runs in a process of its own (`worker_process.py`), so that nobody who types waits for it.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.apps.studio.interactive import GaussianNoise, Source, own_names, problems
from odinfer.data.data import Experiment
from odinfer.errors import InputError, none_if_singular
from odinfer.likelihood.refinement import TrajectoryOptimum, maximise_from_initial
from odinfer.methods.odin import Odin
from odinfer.ode.adaptive_mesh import Budget, BudgetExhausted
from odinfer.problem.problem import Problem
from odinfer.scaling.dimensional_analysis import implied_sizes, natural_sizes
from odinfer.search.growing_horizon import fit_growing_horizon
from odinfer.search.startpoints import difference_noise, starts

Array = NDArray[np.float64]

_PER_PERIOD = 12  # times in a period of an oscillation
_CHANCE = 0.001  # probability that noise alone has a peak in its spectrum that counts as an oscillation
_MOST_TIMES, _MOST_TOGETHER, _MOST_ALONE, _MOST_STATES = 60, 6, 12, 20
# Where states are hidden: how many starts are followed, steps of integration for all of them, shares of the
# observations in the first horizon in turn, and nats that a step must gain.
_STARTS, _STEPS, _FIRST, _ENOUGH = 4, 5000, (0.0, 0.99), 1.0
_REFINE_STEPS = 8  # steps of the optimiser from the end of another experiment
_DIGITS = 3


class Values(NamedTuple):
    """States (K,) at the start of every experiment, and the parameters (P,)."""

    x0: list[Array]
    theta: Array


def guess(text: str, name: str, source: Source) -> GaussianNoise:
    """Values of the sliders by their names, and what is large for each of them, which zero does not tell."""
    problem = problems(text, name, source, [])[-1]
    values: dict[str, float] = {}
    sizes: dict[str, float] = {}
    found: Values | None = None
    budget = Budget(_STEPS)
    for part in map(_smaller, _parts(problem)):
        natural = _default_values(part)
        if _searchable(part):
            found = (
                _match(part)
                if part.fully_observed_gaussian
                else _refine(part, problem, budget, found) or _simulate(part, budget)
            )
        values = _values_by_name(problem, part, found or natural) | values
        sizes = _values_by_name(problem, part, natural) | sizes
    return {"values": values, "sizes": {name: size for name, size in sizes.items() if size > 0}}


def _searchable(problem: Problem) -> bool:
    """Whether a few steps can come near the data: not with events that states trigger, nor unknown functions."""
    declarations = problem.model.declarations
    return len(problem.model.states) <= _MOST_STATES and not declarations.triggers and not declarations.unknown


def _parts(problem: Problem) -> list[Problem]:
    """What is looked at in turn: experiments alone, unless they are quicker together or say too little alone."""
    if problem.fully_observed_gaussian and not own_names(problem.model):
        return [problem]
    try:
        return [problem.alone(e.name) for e in problem.data.experiments[:_MOST_ALONE]]
    except InputError:
        return [problem]


def preload() -> None:
    """Load what every guess needs."""
    import scipy.integrate  # noqa: F401


def _smaller(problem: Problem) -> Problem:
    """The same with less to compute."""
    rows = []
    for i, e in enumerate(problem.data.experiments):
        kept = np.zeros(len(e.t), bool)
        kept[_looked_at(e)] = i < _MOST_TOGETHER
        rows.append(kept)
    if all(kept.all() for kept in rows):
        return problem
    try:
        return replace(problem, data=problem.data.with_rows(rows))
    except InputError:  # a column that is seen rarely would be lost
        return problem


def _looked_at(e: Experiment) -> slice:
    """Rows of the whole series or, where so few of them would miss its oscillations, of its first periods."""
    step = -(-len(e.t) // _MOST_TIMES)
    periods = [found for y in e.y.T if (found := _period(e.t, y)) is not None] if step > 1 else []
    if periods:
        rows = len(e.t) * min(periods) / (e.t[-1] - e.t[0])
        step = max(1, min(step, int(rows / _PER_PERIOD)))
    return slice(0, step * _MOST_TIMES, step)


def _period(t: Array, y: Array) -> float | None:
    """The period of the highest peak of the periodogram; None if noise may have made it (Fisher's test, 1929)."""
    seen = np.isfinite(y)
    if seen.sum() < _MOST_TIMES:
        return None
    even = np.linspace(t[seen][0], t[seen][-1], int(seen.sum()))
    values = np.interp(even, t[seen], y[seen])
    power = np.abs(np.fft.rfft(values - np.polyval(np.polyfit(even - even[0], values, 1), even - even[0])))[1:] ** 2
    peak, count = int(np.argmax(power)), len(power)
    chance = count * (1 - power[peak] / power.sum()) ** (count - 1) if power.sum() > 0 else 1.0
    return float((even[-1] - even[0]) / (peak + 1)) if chance < _CHANCE else None


def _match(problem: Problem) -> Values | None:
    """By ODIN's first stage."""
    minima = none_if_singular(lambda: Odin().search.run(problem, seed=0))
    if minima is None or not minima.solutions:
        return None
    best = minima.solutions[0]
    return Values([curve.x[0] for curve in minima.engine.curves(best)], minima.engine.problem.theta(best.phi))


def _refine(part: Problem, problem: Problem, budget: Budget, near: Values | None) -> Values | None:
    """From where another experiment has ended: what all have in common stays there."""
    if near is None:
        return None
    held = part
    for name, value in zip(part.parameters, near.theta.tolist(), strict=True):
        if name not in own_names(problem.model) and name not in part.fixed:
            held = held.holding(name, value)
    unknown = np.full(len(part.model.states), np.nan)
    found: TrajectoryOptimum | None = None
    with contextlib.suppress(BudgetExhausted):
        found = none_if_singular(
            lambda: maximise_from_initial(held, unknown, near.x0, held.phi(near.theta), _REFINE_STEPS, budget, _ENOUGH)
        )
    return near if found is None else Values([path.x0 for path in found.paths], held.theta(found.phi))


def _simulate(problem: Problem, budget: Budget) -> Values | None:
    """The best of a few trajectories, or the first that two starts lead to."""
    noise, unknown = difference_noise(problem), np.full(len(problem.model.states), np.nan)
    best: TrajectoryOptimum | None = None
    for i, (x0, phi) in enumerate(starts(problem, _STARTS, np.random.default_rng(0))):
        first = _FIRST[i % len(_FIRST)]
        found = none_if_singular(partial(fit_growing_horizon, problem, unknown, noise, x0, phi, budget, first, _ENOUGH))
        gain = np.inf if best is None or found is None else best.objective - found.objective
        if found is not None and gain > 0:
            best = found
        if abs(gain) < _ENOUGH or budget.steps < 0:
            break
    return None if best is None else Values([path.x0 for path in best.paths], problem.theta(best.phi))


def _default_values(problem: Problem) -> Values:
    """The values that are declared as starts; else the sizes that data and equations imply, within bounds."""
    if problem.fully_observed_gaussian:
        y = np.concatenate([e.y for e in problem.data.experiments])
        own, states = natural_sizes(problem), np.sqrt(np.nanmean(y**2, axis=0))
    else:
        found = implied_sizes(problem)
        own, states = 10.0**found.parameters, 10.0**found.states
    theta = np.empty(len(problem.parameters))
    for e in range(len(problem.data.experiments)):
        theta[problem.split.of(e)] = own
    low, high = np.reshape([problem.limits(p) for p in problem.parameters], (-1, 2)).T
    theta = np.array([problem.start.get(p, value) for p, value in zip(problem.parameters, theta, strict=True)])
    x0 = np.clip(states, *problem.state_bounds)
    return Values([x0] * len(problem.data.experiments), np.clip(theta, low, high))


def _values_by_name(problem: Problem, part: Problem, values: Values) -> dict[str, float]:
    """By the names of sliders: with [experiment] for those that were looked at, and bare for all others."""
    several = len(problem.data.experiments) > 1
    found = dict(zip(part.parameters, values.theta.tolist(), strict=True))
    for e, x0 in zip(part.data.experiments, values.x0, strict=True):
        own = {f"{state}(0)": value for state, value in zip(part.model.states, x0.tolist(), strict=True)}
        own |= {name: found[name] for name in own_names(problem.model) if name in found}
        found = own | found
        if several:
            found |= {f"{name}[{e.name}]": value for name, value in own.items()}
    return {name: float(f"{value:.{_DIGITS}g}") for name, value in found.items() if np.isfinite(value)}
