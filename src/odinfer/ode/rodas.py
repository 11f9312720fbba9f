"""One step of RODAS, a stiffly accurate Rosenbrock method of order 4 with 6 stages (kernels/rodas.c)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.ode.bytecode import Tape
from odinfer.ode.forcing import Drive
from odinfer.ode.kernels.library import call

Array = NDArray[np.float64]
Index = NDArray[np.int64]


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


def step(
    tape: Tape, drive: Drive, e: int, t: float, h: float, low: float, high: float, x: Array, r: Array, f0: Array,
    fx: Array, ft: Array, to: Step,
) -> None:  # fmt: skip
    """Make one step of length h of experiment e from states x (K,) at a time.

    Args:
        tape: of the field, run on registers r.
        low, high: between which times the field is evaluated.
        f0, fx, ft: f, ∂f/∂x (K, K) and ∂f/∂t at the beginning.
        to: where the step is put.
    """
    call("step", tape, drive, e, t, h, low, high, x, r, f0, fx, ft, to)


def inside(share: float | Array, x: Array, end: Array, bend: Array) -> Array:
    """States (..., K) at a share, or one of each (..., 1), of steps from x to `end`, bends (..., 2, K), to order 3."""
    rest = 1.0 - share
    return np.asarray(rest * x + share * (end + rest * (bend[..., 0, :] + share * bend[..., 1, :])))
