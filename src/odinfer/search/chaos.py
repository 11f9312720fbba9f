"""Test whether trajectories are chaotic over the time span of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from odinfer.ode.simulate import simulate
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_CHAOS = 1e5  # growth of a perturbation: what is measured to a percent says nothing of the end of such a trajectory


def chaotic(problem: Problem, theta: Array, x0: Sequence[Array]) -> bool:
    """Whether trajectories at θ (P,) depend so much on their initial values (K,) that no estimate can follow the data.

    A perturbation of the initial values by one part in 10⁹ grows by more than `_CHAOS` until the end of the data.
    """
    size = np.maximum(np.nanstd(np.concatenate([e.y for e in problem.data.experiments]), 0), 1e-300)
    for e, (experiment, start) in enumerate(zip(problem.data.experiments, x0, strict=True)):
        t, inputs = experiment.t, dict(experiment.u)
        if len(t) < 2 or not np.isfinite([*theta, *start]).all():
            continue
        apart = 1e-9 * np.maximum(np.abs(start), 1e-3 * np.abs(start).max())
        pair = [simulate(problem.model, _theta_of(problem, e, theta), own, t, inputs)[-1]
                for own in (start, start + apart)]  # fmt: skip
        with np.errstate(invalid="ignore"):
            if np.nanmax(np.abs(pair[1] - pair[0]) / size) > _CHAOS * np.max(apart / size):
                return True
    return False


def _theta_of(problem: Problem, e: int, theta: Array) -> Array:
    """The model's parameters in experiment e from all parameters of the problem."""
    return theta[problem.split.of(e)] if problem.split.any else theta
