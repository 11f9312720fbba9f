"""The scale of each parameter that data and equations imply, so that a search can start there.

Equations have units even if nobody writes them down. If states are measured in units s_k, inputs in units s_u and time
in units T, then parameters in suitable units leave the equations as they are: for x → s x, t → T t, θ → e^ε θ the field
f_i must go over into (s_i/T) f_i. For a small change d of the logs of all units this says

    Σ_j θ_j ∂f_i/∂θ_j ε_j = (d_i − d_T) f_i − Σ_k d_k x_k ∂f_i/∂x_k − Σ_u d_u u ∂f_i/∂u − d_T t ∂f_i/∂t

at every point: linear equations for ε, solved by least squares at random points. Terms that are products of powers
give whole exponents, so the solution holds for large d as well; where units cannot agree (an exponent of the user's own
number, say) it is a compromise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_POINTS = 300  # padded to 512, as are the points of most searches: nothing is compiled for them alone
_MOST_STATES = 30  # beyond, Jacobians at so many points are large; every scale is one
_MOST = 15.0  # decades


def natural_scales(problem: Problem) -> Array:
    """Sizes (P,) of the parameters if states, inputs and times have the sizes they have in the data."""
    model, experiments = problem.model, problem.data.experiments
    P, K = len(model.parameters), len(model.states)
    if not P or K > _MOST_STATES:
        return np.ones(P)
    d_x = np.log([_size(np.concatenate([e.y[:, k] for e in experiments])) for k in range(K)])
    d_u = np.log([_size(np.concatenate([e.u[name][1] for e in experiments])) for name in model.inputs])
    d_t = float(np.log(_size(np.concatenate([e.t - e.t[0] for e in experiments]))))
    rng = np.random.default_rng(0)
    t, (x, theta, u) = rng.uniform(0.5, 2.0, _POINTS), (rng.uniform(0.5, 2.0, (_POINTS, n)) for n in (K, P, len(d_u)))
    f, fx, ft = model.linearise(t, x, theta, u)
    h = 1e-6
    # Along the changes of inputs and time together; both are seldom there.
    later = [model.linearise(t * (1.0 + s * h * d_t), x, theta, u * (1.0 + s * h * d_u))[0] for s in (1.0, -1.0)]
    right = (d_x - d_t) * f - np.einsum("mik,mk->mi", fx, d_x * x) - (later[0] - later[1]) / (2.0 * h)
    A, b = (ft * theta[:, None]).reshape(-1, P), right.ravel()
    fine = np.isfinite(A).all(1) & np.isfinite(b)
    size = np.sqrt((A[fine] ** 2).sum(0))
    eps = np.linalg.lstsq(A[fine] / np.where(size > 0, size, 1.0), b[fine], rcond=1e-8)[0] / np.where(
        size > 0, size, 1.0
    )
    return np.asarray(10.0 ** np.clip(np.nan_to_num(eps) / np.log(10.0), -_MOST, _MOST))


def _size(values: Array) -> float:
    """A typical size: the root mean square; one where there is nothing but zeros."""
    seen = values[np.isfinite(values)]
    size = float(np.sqrt(np.mean(seen**2))) if len(seen) else 0.0
    return size if size > 0 else 1.0
