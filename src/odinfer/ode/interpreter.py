"""Evaluate tapes one point at a time, by the loops that the solvers consist of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.ode.bytecode import Tape
from odinfer.ode.forcing import Drive
from odinfer.ode.kernels.library import call

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def values_of_tape(tape: Tape, drive: Drive, e: int, t: Array, x: Array, numbers: Array) -> Array:
    """Values (b, F) of a tape, with what drives experiment e, at times (b,) and states (b, K).

    Args:
        numbers: inputs and parameters (b, N).
    """
    found = np.empty((len(x), len(tape.values)))
    given = (np.ascontiguousarray(own, float) for own in (t, x, numbers))
    call("values_of_tape", tape, drive, e, *given, tape.registers.copy(), found)
    return found


def slopes_of_tape(tape: Tape, r: Array, Q: int) -> tuple[Array, Array]:
    """Derivatives of a field by its states (K, K) and by Q parameters (K, Q), whose values are in the registers r."""
    K = len(tape.values)
    fx, ft = np.empty((K, K)), np.empty((K, Q))
    call("slopes_of_tape", tape, r, fx, ft)
    return fx, ft


def solve_equations(A: Array, b: Array, B: Array) -> tuple[Array, Array]:
    """Solve A x = b (n,) by the transposed factors of A (n, n), and A X = B (n, m) by the factors as they are."""
    n, b, B = len(A), b.copy(), B.copy()
    call("solve_equations", A.copy(), np.empty(n, np.int64), np.empty((n, n)), b, B)
    return b, B
