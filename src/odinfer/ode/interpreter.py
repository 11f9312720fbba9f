"""Compiled loops: the instruction interpreter, Jacobians and linear solvers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.ode.bytecode import OPERATIONS, Tape
from odinfer.ode.compilation import compiled
from odinfer.ode.forcing import Drive

Array = NDArray[np.float64]
Index = NDArray[np.int64]

(
    _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _NEGATE, _WHOLE, _POWER, _EXP, _LOG, _SQRT, _WHERE, _LESS, _LESS_EQUAL,
    _GREATER, _GREATER_EQUAL, _EQUAL, _NOT_EQUAL, _AND, _OR, _NOT, _MIN, _MAX, _ABS, _SIGN, _LOG10, _SIN, _COS, _TAN,
    _ASIN, _ACOS, _ATAN, _SINH, _COSH, _TANH, _ASINH, _ACOSH, _ATANH, _FLOOR, _CEIL,
) = range(len(OPERATIONS))  # fmt: skip


@compiled
def run(code: Index, r: Array) -> None:
    """Run instructions (n, 5) on registers r (R,)."""
    for i in range(len(code)):
        op, x = code[i, 0], r[code[i, 2]]
        if op == _WHOLE:
            n, y = code[i, 3], 1.0
            while n > 0:
                if n & 1:
                    y *= x
                n >>= 1
                x *= x
            r[code[i, 1]] = y
            continue
        y = r[code[i, 3]]
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
            z = y if x != 0.0 else r[code[i, 4]]
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
        elif op == _ASINH:
            z = np.arcsinh(x)
        elif op == _ACOSH:
            z = np.arccosh(x)
        elif op == _ATANH:
            z = np.arctanh(x)
        elif op == _FLOOR:
            z = np.floor(x)
        elif op == _CEIL:
            z = np.ceil(x)
        r[code[i, 1]] = z


@compiled
def ask(tape: Tape, drive: Drive, e: int, t: float, x: Array, r: Array, f: Array) -> None:
    """The field f (K,), or other values, of experiment e at states x (K,); registers have parameters."""
    K = len(x)
    r[0] = t
    for k in range(K):
        r[1 + k] = x[k]
    if drive.changing:
        for j in range(drive.first.shape[1]):
            r[1 + K + j] = _input(drive, e, j, t)
    run(tape.code, r)
    for i in range(len(f)):
        f[i] = r[tape.values[i]]
    if drive.infused:
        _infuse(drive, e, t, f)


@compiled
def _infuse(drive: Drive, e: int, t: float, f: Array) -> None:
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
    for i in range(K):
        for j in range(K):
            fx[i, j] = 0.0
        for j in range(ft.shape[1]):
            ft[i, j] = 0.0
    for row, column, place in tape.slopes:
        if column < K:
            fx[row, column] = r[place]
        else:
            ft[row, column - K] = r[place]


@compiled
def factor(A: Array, order: Index) -> None:
    """Replace A (n, n) by its triangular factors, rows in an order (n,); not finite where it has no inverse.

    Zeros are passed over, so that banded matrices take time linear in n, apart from looking.
    """
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
        over, end = 1.0 / A[j, j], n
        while end > j + 1 and A[j, end - 1] == 0.0:
            end -= 1
        for i in range(j + 1, n):
            if A[i, j] != 0.0:
                A[i, j] *= over
                share = A[i, j]
                for k in range(j + 1, end):
                    A[i, k] -= share * A[j, k]


@compiled
def turned(A: Array, T: Array) -> None:
    """Put the transposed factors, by which `solve` goes, into T (n, n), with the diagonal inverted."""
    n = len(A)
    for i in range(n):
        for j in range(n):
            T[j, i] = A[i, j]
        T[i, i] = 1.0 / A[i, i]


@compiled
def solve(T: Array, order: Index, b: Array) -> None:
    """Put the solution of A x = b (n,), of which T has the factors, in the place of b."""
    n = len(T)
    for j in range(n):
        b[j], b[order[j]] = b[order[j]], b[j]
    for k in range(n - 1):
        share = b[k]
        for i in range(k + 1, n):
            b[i] -= T[k, i] * share
    for k in range(n - 1, -1, -1):
        b[k] *= T[k, k]
        share = b[k]
        for i in range(k):
            b[i] -= T[k, i] * share


@compiled
def solve_all(A: Array, order: Index, B: Array) -> None:
    """The same for all columns of B (n, m), by the factors as they are."""
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
