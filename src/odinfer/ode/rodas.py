"""One step of RODAS, a stiffly accurate Rosenbrock method of order 4 with 6 stages.

Hairer and Wanner, Solving Ordinary Differential Equations II, section VI.4. Stages solve linear equations with one
matrix, so that no iteration can fail to converge:

    (I/(γh) − ∂f/∂x) U_i = f(t + α_i h, x + Σ_j a_ij U_j) + Σ_j (c_ij/h) U_j + γ_i h ∂f/∂t
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.ode.bytecode import Tape
from odinfer.ode.compilation import compiled
from odinfer.ode.forcing import Drive
from odinfer.ode.interpreter import ask, factor, solve, turned

Array = NDArray[np.float64]
Index = NDArray[np.int64]

GAMMA = 0.25
ORDER = 3  # of the solution that the error is measured by
_ALPHA = (0.0, 0.386, 0.21, 0.63, 1.0, 1.0)
_GAMMA = (0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0)
_LAST = (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950)
_A = np.array([
    (0.0, 0.0, 0.0, 0.0, 0.0),
    (1.544, 0.0, 0.0, 0.0, 0.0),
    (0.9466785280815826, 0.2557011698983284, 0.0, 0.0, 0.0),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817, 0.0, 0.0),
    (*_LAST, 0.0),
    (*_LAST, 1.0),
])  # fmt: skip
_C = np.array([
    (0.0, 0.0, 0.0, 0.0, 0.0),
    (-5.6688, 0.0, 0.0, 0.0, 0.0),
    (-2.430093356833875, -0.2063599157091915, 0.0, 0.0, 0.0),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616, 0.0, 0.0),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160, 0.0),
    (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
])  # fmt: skip
_DENSE = np.array([
    (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662),
    (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872),
])  # fmt: skip


class Step(NamedTuple):
    """Room for a step of K states, and what it gives.

    Attributes:
        end: states (K,) at its end.
        error: estimates (K,) of the local error.
        bend: (2, K), by which the states inside the step leave the line between its ends; see `inside`.
        W, T, order: the matrix (K, K), its transposed factors, and the order (K,) of its rows.
        U, f: stages (6, K), and the field (K,).
    """

    end: Array
    error: Array
    bend: Array
    W: Array
    T: Array
    order: Index
    U: Array
    f: Array

    @staticmethod
    def of(K: int) -> Step:
        (end, error, f), (W, T) = np.empty((3, K)), np.empty((2, K, K))
        return Step(end, error, np.empty((2, K)), W, T, np.empty(K, np.int64), np.empty((6, K)), f)


@compiled
def step(
    tape: Tape, drive: Drive, e: int, t: float, h: float, low: float, high: float, x: Array, r: Array, f0: Array,
    fx: Array, ft: Array, to: Step,
) -> None:  # fmt: skip
    """One step of length h of experiment e from states x (K,) at a time.

    Args:
        tape: of the field, run on registers r.
        low, high: between which times the field is asked.
        f0, fx, ft: f, ∂f/∂x (K, K) and ∂f/∂t at the beginning.
        to: where the step is put.
    """
    K = len(x)
    end, W, U, f, bend = to.end, to.W, to.U, to.f, to.bend
    for k in range(K):
        for j in range(K):
            W[k, j] = -fx[k, j]
        W[k, k] += 1.0 / (GAMMA * h)
    factor(W, to.order)
    turned(W, to.T)
    for i in range(6):
        own = U[i]
        for k in range(K):
            end[k] = x[k]
            own[k] = 0.0
        for j in range(i):
            a, c = _A[i, j], _C[i, j] / h
            for k in range(K):
                end[k] += a * U[j, k]
                own[k] += c * U[j, k]
        if i:
            ask(tape, drive, e, min(max(t + _ALPHA[i] * h, low), high), end, r, f)
        for k in range(K):
            own[k] += (f[k] if i else f0[k]) + _GAMMA[i] * h * ft[k]
        solve(to.T, to.order, own)
    for i in range(2):
        for k in range(K):
            bend[i, k] = 0.0
            for j in range(5):
                bend[i, k] += _DENSE[i, j] * U[j, k]
    for k in range(K):
        end[k] += U[5, k]
        to.error[k] = U[5, k]


def inside(share: float | Array, x: Array, end: Array, bend: Array) -> Array:
    """States (..., K) at a share, or one of each (..., 1), of steps from x to `end`, bends (..., 2, K), to order 3."""
    rest = 1.0 - share
    return np.asarray(rest * x + share * (end + rest * (bend[..., 0, :] + share * bend[..., 1, :])))
