"""The compiled loops that everything else here is made of: run instructions, ask a field, solve linear equations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.forward.compiled import compiled
from odinfer.forward.drive import Drive
from odinfer.forward.tape import OPERATIONS, Tape

Array = NDArray[np.float64]

(
    _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _NEGATE, _WHOLE, _POWER, _EXP, _LOG, _SQRT, _WHERE, _LESS, _LESS_EQUAL,
    _GREATER, _GREATER_EQUAL, _EQUAL, _NOT_EQUAL, _AND, _OR, _NOT, _MIN, _MAX, _ABS, _SIGN, _LOG10, _SIN, _COS, _TAN,
    _ASIN, _ACOS, _ATAN, _SINH, _COSH, _TANH,
) = range(len(OPERATIONS))  # fmt: skip


@compiled
def run(tape: Tape, r: Array) -> None:
    """Run instructions on registers r (R,)."""
    for i in range(len(tape.operation)):
        op, x = tape.operation[i], r[tape.a[i]]
        if op == _WHOLE:
            n, y = tape.b[i], 1.0
            while n > 0:
                if n & 1:
                    y *= x
                n >>= 1
                x *= x
            r[tape.to[i]] = y
            continue
        y = r[tape.b[i]]
        z = 0.0
        if op == _ADD:
            z = x + y
        elif op == _SUBTRACT:
            z = x - y
        elif op == _MULTIPLY:
            z = x * y
        elif op == _DIVIDE:
            z = x / y
        elif op == _NEGATE:
            z = -x
        elif op == _POWER:
            z = x**y
        elif op == _EXP:
            z = np.exp(x)
        elif op == _LOG:
            z = np.log(x)
        elif op == _SQRT:
            z = np.sqrt(x)
        elif op == _WHERE:
            z = y if x != 0.0 else r[tape.c[i]]
        elif op == _LESS:
            z = 1.0 if x < y else 0.0
        elif op == _LESS_EQUAL:
            z = 1.0 if x <= y else 0.0
        elif op == _GREATER:
            z = 1.0 if x > y else 0.0
        elif op == _GREATER_EQUAL:
            z = 1.0 if x >= y else 0.0
        elif op == _EQUAL:
            z = 1.0 if x == y else 0.0
        elif op == _NOT_EQUAL:
            z = 1.0 if x != y else 0.0
        elif op == _AND:
            z = 1.0 if x != 0.0 and y != 0.0 else 0.0
        elif op == _OR:
            z = 1.0 if x != 0.0 or y != 0.0 else 0.0
        elif op == _NOT:
            z = 1.0 if x == 0.0 else 0.0
        elif op == _MIN:
            z = x if x < y or x != x else y
        elif op == _MAX:
            z = x if x > y or x != x else y
        elif op == _ABS:
            z = abs(x)
        elif op == _SIGN:
            z = x if x != x else 1.0 * (x > 0.0) - 1.0 * (x < 0.0)
        elif op == _LOG10:
            z = np.log10(x)
        elif op == _SIN:
            z = np.sin(x)
        elif op == _COS:
            z = np.cos(x)
        elif op == _TAN:
            z = np.tan(x)
        elif op == _ASIN:
            z = np.arcsin(x)
        elif op == _ACOS:
            z = np.arccos(x)
        elif op == _ATAN:
            z = np.arctan(x)
        elif op == _SINH:
            z = np.sinh(x)
        elif op == _COSH:
            z = np.cosh(x)
        elif op == _TANH:
            z = np.tanh(x)
        r[tape.to[i]] = z


@compiled
def ask(tape: Tape, drive: Drive, e: int, t: float, x: Array, r: Array, f: Array) -> None:
    """The field f (K,) of experiment e at a time and states x (K,); registers (R,) have parameters and still inputs."""
    K = len(x)
    r[0] = t
    r[1 : 1 + K] = x
    for j in range(drive.first.shape[1] if drive.changing else 0):
        r[1 + K + j] = _input(drive, e, j, t)
    run(tape, r)
    for k in range(K):
        f[k] = r[tape.values[k]]
    for i in range(drive.infusions[e], drive.infusions[e + 1]):
        if drive.begin[i] <= t < drive.end[i]:
            f[drive.into[i]] += drive.rate[i]


@compiled
def _input(drive: Drive, e: int, j: int, t: float) -> float:
    """Input j: linear between given values, or constant after each; constant before the first and after the last."""
    first, count = drive.first[e, j], drive.length[e, j]
    times, values = drive.times[first : first + count], drive.values[first : first + count]
    i = np.searchsorted(times, t, side="right")
    if i == 0:
        return values[0]  # type: ignore[no-any-return]
    if i == count or drive.held[j]:
        return values[i - 1]  # type: ignore[no-any-return]
    share = (t - times[i - 1]) / (times[i] - times[i - 1])
    return values[i - 1] + share * (values[i] - values[i - 1])  # type: ignore[no-any-return]


@compiled
def slopes(tape: Tape, r: Array, fx: Array, ft: Array) -> None:
    """Derivatives by states (K, K) and by what comes after them (K, Q), off registers that are filled."""
    K = len(fx)
    fx[:] = 0.0
    ft[:] = 0.0
    for i in range(len(tape.row)):
        if tape.column[i] < K:
            fx[tape.row[i], tape.column[i]] = r[tape.slope[i]]
        else:
            ft[tape.row[i], tape.column[i] - K] = r[tape.slope[i]]


@compiled
def factor(A: Any, order: Any) -> None:
    """A (n, n) by its triangular factors, rows in an order (n,); not finite where it has no inverse."""
    n = len(A)
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if abs(A[i, j]) > abs(A[best, j]):
                best = i
        order[j] = best
        if best != j:
            for k in range(n):
                A[j, k], A[best, k] = A[best, k], A[j, k]
        over = 1.0 / A[j, j]
        for i in range(j + 1, n):
            if A[i, j] != 0.0:
                A[i, j] *= over
                share = A[i, j]
                for k in range(j + 1, n):
                    A[i, k] -= share * A[j, k]


@compiled
def solve(A: Any, order: Any, b: Any) -> None:
    """Put the solution of A x = b (n,), of which A has its factors, in the place of b."""
    n = len(A)
    for j in range(n):
        b[j], b[order[j]] = b[order[j]], b[j]
    for i in range(n):
        for k in range(i):
            b[i] -= A[i, k] * b[k]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= A[i, k] * b[k]
        b[i] /= A[i, i]


@compiled
def solve_all(A: Any, order: Any, B: Any) -> None:
    """The same for all columns of B (n, m)."""
    n, m = B.shape
    for j in range(n):
        if order[j] != j:
            for w in range(m):
                B[j, w], B[order[j], w] = B[order[j], w], B[j, w]
    for i in range(n):
        for k in range(i):
            share = A[i, k]
            if share != 0.0:
                for w in range(m):
                    B[i, w] -= share * B[k, w]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            share = A[i, k]
            if share != 0.0:
                for w in range(m):
                    B[i, w] -= share * B[k, w]
        over = 1.0 / A[i, i]
        for w in range(m):
            B[i, w] *= over
