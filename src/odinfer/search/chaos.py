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
    for e, (experiment, start) in enumerate(zip(problem.data.experiments, x0, strict=True)):
        if len(experiment.t) < 2 or not np.isfinite([*theta, *start]).all():
            continue
        apart = np.maximum(np.abs(start), 1e-3 * np.abs(start).max())
        own = Experiment("perturbed", experiment.t, np.empty((len(experiment.t), 0)), dict(experiment.u))
        condition = Condition.of(problem.model, own)
        of_experiment = theta[problem.split.of(e)] if problem.split.any else theta
        compiled = isinstance(problem.model.derivatives, TextField) and condition.start == own.t[0]
        end = _linearised(condition, of_experiment, start, apart) if compiled else None
        if end is None:
            end = _difference(condition, of_experiment, start, apart)
        with np.errstate(invalid="ignore"):
            if (np.abs(end) / size > _CHAOS * np.max(apart / size)).any():
                return True
    return False


def _linearised(condition: Condition, theta: Array, x0: Array, apart: Array) -> Array | None:
    """The end (K,) of a perturbation by the variational equations; None if the trajectory ends early."""
    f, one = Field(Timetable.of([condition]), np.empty(0, np.int64)), np.zeros(1, np.int64)
    found = integrate_batch(f, one, theta[None], x0[None], _TOLERANCE, _MOST_STEPS)
    if not np.isfinite(found.x[0]).all():
        return None
    return np.asarray(sensitivities(f, found, one, theta[None], apart[None, :, None], one)[0, -1, :, 0])


def _difference(condition: Condition, theta: Array, x0: Array, apart: Array) -> Array:
    """The end (K,) of a small perturbation, by the difference of two trajectories."""
    t, u = condition.experiment.t, dict(condition.experiment.u)
    pair = [simulate(condition.model, theta, own, t, u)[-1] for own in (x0, x0 + _SMALL * apart)]
    return np.asarray(pair[1] - pair[0]) / _SMALL
