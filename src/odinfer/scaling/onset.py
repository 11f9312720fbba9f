"""The size from which a parameter influences the vector field."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_DECADES = np.arange(-15.0, 16.0)
_MATTERS = 0.1


def onset(problem: Problem, theta: Array, j: int, x: Array) -> float:
    """The decade from which on parameter j changes the field visibly in some state x (n, K) that was seen, the others
    being θ (P,); the lowest if it always does, or never."""
    t, u = (np.concatenate(own) for own in zip(
        *((e.t, problem.inputs_at(i, e.t)) for i, e in enumerate(problem.data.experiments)), strict=True))  # fmt: skip
    every = np.tile(theta, (len(_DECADES), 1))
    every[:, j] = 10.0**_DECADES
    f = np.stack([problem.model.evaluate(t, x, np.tile(own, (len(t), 1)), u) for own in every])
    with np.errstate(all="ignore"):
        change = np.abs(f - f[0]) / (np.abs(f) + np.abs(f[0]))
        matters = (np.nan_to_num(change) > _MATTERS).any((1, 2))
    return float(_DECADES[matters.argmax()])
