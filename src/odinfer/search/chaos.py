"""Test whether trajectories are chaotic over the time span of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Experiment
from odinfer.model.differentiation import TextField
from odinfer.ode.breakpoints import Timetable
from odinfer.ode.integrate_batch import integrate_batch
from odinfer.ode.right_hand_side import Field
from odinfer.ode.sensitivities import sensitivities
from odinfer.ode.simulate import simulate
from odinfer.problem.condition import Condition
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_CHAOS = 1e5  # growth of a perturbation: what is measured to a percent says nothing of the end of such a trajectory
_SMALL = 1e-9  # relative size of a perturbation that is followed by a trajectory of its own
_TOLERANCE, _MOST_STEPS = 1e-6, 20_000  # of the trajectory whose perturbations are followed by linear equations


def chaotic(problem: Problem, theta: Array, x0: Sequence[Array]) -> bool:
    """Whether trajectories at θ (P,) depend so much on their initial values (K,) that no estimate can follow the data.

    A small perturbation, relative to each initial value, grows by more than `_CHAOS` until the end of the data.
    """
    size = np.maximum(np.nanstd(np.concatenate([e.y for e in problem.data.experiments]), 0), 1e-300)
    starts, thetas, conditions = [], [], []
    for e, (experiment, start) in enumerate(zip(problem.data.experiments, x0, strict=True)):
        if len(experiment.t) < 2 or not np.isfinite([*theta, *start]).all():
            continue
        own = Experiment("perturbed", experiment.t, np.empty((len(experiment.t), 0)), dict(experiment.u))
        conditions.append(Condition.of(problem.model, own))
        starts.append(start)
        thetas.append(theta[problem.split.of(e)] if problem.split.any else theta)
    if not starts:
        return False
    first, numbers = np.array(starts), np.array(thetas)
    apart = np.maximum(np.abs(first), 1e-3 * np.abs(first).max(1, keepdims=True))
    ends = np.full_like(first, np.nan)
    if isinstance(problem.model.derivatives, TextField) and all(c.start == c.experiment.t[0] for c in conditions):
        ends = _linearised(conditions, numbers, first, apart)
    for i in np.flatnonzero(~np.isfinite(ends).all(1)):
        ends[i] = _difference(conditions[i], numbers[i], first[i], apart[i])
    with np.errstate(invalid="ignore"):
        return bool((np.abs(ends) / size > _CHAOS * np.max(apart / size, axis=1)[:, None]).any())


def _linearised(conditions: list[Condition], theta: Array, x0: Array, apart: Array) -> Array:
    """The ends (E, K) of perturbations by the variational equations; NaN where a trajectory ends early."""
    f, every = Field(Timetable.of(conditions), np.empty(0, np.int64)), np.arange(len(conditions))
    found = integrate_batch(f, every, theta, x0, _TOLERANCE, _MOST_STEPS)
    S = sensitivities(f, found, every, theta, apart[..., None], every)
    last = every, f.table.last
    return np.where(np.isfinite(found.x[last]), S[last][..., 0], np.nan)


def _difference(condition: Condition, theta: Array, x0: Array, apart: Array) -> Array:
    """The end (K,) of a small perturbation, by the difference of two trajectories."""
    t, u = condition.experiment.t, dict(condition.experiment.u)
    pair = [simulate(condition.model, theta, own, t, u)[-1] for own in (x0, x0 + _SMALL * apart)]
    return np.asarray(pair[1] - pair[0]) / _SMALL
