"""One step of RODAS, a stiffly accurate Rosenbrock method of order 4 with 6 stages, of many trajectories at once.

Hairer and Wanner, Solving Ordinary Differential Equations II, section VI.4. Stages solve linear equations with one
matrix, so that no iteration can fail to converge:

    (I/(γh) − ∂f/∂x) U_i = f(t + α_i h, x + Σ_j a_ij U_j) + Σ_j (c_ij/h) U_j + γ_i h ∂f/∂t
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

GAMMA = 0.25
ORDER = 3  # of the solution that the error is measured by
_ALPHA = (0.0, 0.386, 0.21, 0.63, 1.0, 1.0)
_GAMMA = (0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0)
_LAST = (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950)
_A = (
    (),
    (1.544,),
    (0.9466785280815826, 0.2557011698983284),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    _LAST,
    (*_LAST, 1.0),
)
_C = (
    (),
    (-5.6688,),
    (-2.430093356833875, -0.2063599157091915),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
    (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
)
_DENSE = (
    (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662),
    (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872),
)
_A_ROWS, _C_ROWS = ([np.array(row) for row in rows] for rows in (_A, _C))


class Step(NamedTuple):
    """Steps of B trajectories.

    Attributes:
        x: states (B, K) at the end.
        error: estimates (B, K) of the local error.
        bend: (2, B, K), by which the states inside the step leave the line between its ends; see `inside`.
    """

    x: Array
    error: Array
    bend: Array


def step(
    f: Callable[[Array, Array], Array], t: Array, h: Array, x: Array, f0: Array, fx: Array, ft: Array | None
) -> Step:
    """One step of lengths h (B,) from x (B, K) at times t (B,).

    Args:
        f: (t (B,), x (B, K)) ↦ (B, K).
        f0, fx, ft: f, ∂f/∂x (B, K, K) and ∂f/∂t at the beginning; None where it is zero.
    """
    B, K = x.shape
    W = -fx
    W[:, np.arange(K), np.arange(K)] += (1.0 / (GAMMA * h))[:, None]
    inverse = _inverse(W)
    U = np.empty((6, B, K))
    flat = U.reshape(6, B * K)
    over = (1.0 / h)[:, None]
    at = x
    for i in range(6):
        if i:
            at = x + (_A_ROWS[i] @ flat[: len(_A[i])]).reshape(B, K)
        right = f(t + _ALPHA[i] * h, at) if i else f0
        if i:
            right = right + over * (_C_ROWS[i] @ flat[:i]).reshape(B, K)
        if ft is not None and _GAMMA[i]:
            right = right + (_GAMMA[i] * h)[:, None] * ft
        U[i] = (inverse @ right[..., None])[..., 0]
    bend = (np.array(_DENSE) @ flat[:5]).reshape(2, B, K)
    return Step(at + U[5], U[5], bend)


def inside(share: float | Array, x: Array, end: Array, bend: Array) -> Array:
    """States (B, K) at a share, or one of each (B, 1), of steps from x to `end`, to order 3."""
    rest = 1.0 - share
    return np.asarray(rest * x + share * (end + rest * (bend[0] + share * bend[1])))


def _inverse(W: Array) -> Array:
    """Inverses (B, K, K); NaN where there is none."""
    try:
        return np.asarray(np.linalg.inv(W))
    except np.linalg.LinAlgError:
        found = np.full_like(W, np.nan)
        for own, w in zip(found, W, strict=True):
            try:
                own[:] = np.linalg.inv(w)
            except np.linalg.LinAlgError:
                continue
        return found
