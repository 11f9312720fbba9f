"""The scale of each parameter that data and equations imply, so that a search can start there.

Equations have units even if nobody writes them down. If states are measured in units s_k, inputs in units s_u and time
in units T, then parameters in suitable units leave the equations as they are: for x → s x, t → T t, θ → e^ε θ the field
f_i must go over into (s_i/T) f_i. For a small change d of the logs of all units this says

    Σ_j θ_j ∂f_i/∂θ_j ε_j = (d_i − d_T) f_i − Σ_k d_k x_k ∂f_i/∂x_k − Σ_u d_u u ∂f_i/∂u − d_T t ∂f_i/∂t

at every point: linear equations for ε = E d, solved by least squares at random points for every unit in turn. Terms
that are products of powers give whole exponents E, so that they hold for large d as well; where units cannot agree (in
x^9 with a plain number beside it, say) they are a compromise.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.model import Model
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_POINTS = 300  # padded to 512, as are the points of most searches: nothing is compiled for them alone
_MOST_STATES = 30  # beyond, Jacobians at so many points are large; every scale is one
_MOST = 15.0  # decades


def natural_scales(problem: Problem, share: float = 1.0) -> Array:
    """Sizes (P,) of the parameters if states, inputs and times have the sizes they have in the data.

    Args:
        share: of the typical time, the time in which things happen.
    """
    model, experiments = problem.model, problem.data.experiments
    series = [np.concatenate([e.y[:, k] for e in experiments]) for k in range(len(model.states))]
    series += [np.concatenate([e.u[name][1] for e in experiments]) for name in model.inputs]
    series += [np.concatenate([e.t - e.t[0] for e in experiments])]
    sizes = np.array([_size(values) for values in series])
    sizes[-1] *= share
    decades = exponents(model) @ np.log10(sizes)
    return np.asarray(10.0 ** np.clip(decades, -_MOST, _MOST))


@functools.lru_cache(maxsize=64)
def exponents(model: Model) -> Array:
    """Exponents (P, K+U+1) of the units of states, inputs and time in the units of the parameters."""
    P, K, U = len(model.parameters), len(model.states), len(model.inputs)
    if not P or K > _MOST_STATES:
        return np.zeros((P, K + U + 1))
    rng = np.random.default_rng(0)
    t, (x, theta, u) = rng.uniform(0.5, 2.0, _POINTS), (rng.uniform(0.5, 2.0, (_POINTS, n)) for n in (K, P, U))
    f, fx, ft = model.linearise(t, x, theta, u)
    h, unit = 1e-7, np.eye(U)
    right = np.empty((_POINTS, K, K + U + 1))
    right[..., :K] = f[..., None] * np.eye(K) - fx * x[:, None]
    for i in range(U):
        right[..., K + i] = -(model.linearise(t, x, theta, u * (1.0 + h * unit[i]))[0] - f) / h
    right[..., -1] = -f - (model.linearise(t * (1.0 + h), x, theta, u)[0] - f) / h
    A, b = (ft * theta[:, None]).reshape(-1, P), right.reshape(-1, K + U + 1)
    fine = np.isfinite(A).all(1) & np.isfinite(b).all(1)
    size = np.sqrt((A[fine] ** 2).sum(0))
    size = np.where(size > 0, size, 1.0)[:, None]
    return np.asarray(np.linalg.lstsq(A[fine] / size.T, b[fine], rcond=1e-8)[0] / size)


def _size(values: Array) -> float:
    """A typical size: the root mean square; one where there is nothing but zeros."""
    seen = values[np.isfinite(values)]
    size = float(np.sqrt(np.mean(seen**2))) if len(seen) else 0.0
    return size if size > 0 else 1.0
