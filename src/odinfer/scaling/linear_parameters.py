"""Find parameters in which the vector field is linear."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from odinfer.model.model import Model
from odinfer.scaling.dimensional_analysis import MOST_STATES

_POINTS, _CLOSE = 60, 1e-6


@functools.lru_cache(maxsize=64)
def linear_parameters(model: Model) -> NDArray[np.bool_]:
    """A set (P,) of parameters in which f is linear while the others are held; the first of any two that exclude each
    other, as a and b do in a·b."""
    P, K, U = len(model.parameters), len(model.states), len(model.inputs)
    chosen = np.zeros(P, bool)
    if K > MOST_STATES:
        return chosen
    rng = np.random.default_rng(0)
    t, (x, theta, u, other) = (
        rng.uniform(0.5, 2.0, _POINTS),
        (rng.uniform(0.5, 2.0, (_POINTS, n)) for n in (K, P, U, P)),
    )
    here = model.linearise(t, x, theta, u)[2]
    for j in range(P):
        among = chosen | (np.arange(P) == j)
        there = model.linearise(t, x, np.where(among, other, theta), u)[2]
        change = np.abs(there - here)[..., among]
        fine = np.isfinite(change).all((1, 2))
        size = np.abs(here[fine][..., among]).max(initial=0.0)
        if fine.any() and change[fine].max(initial=0.0) <= _CLOSE * size:
            chosen = among
    return chosen
