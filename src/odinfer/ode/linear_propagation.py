"""Solve linear equations with constant coefficients by matrix exponentials.

Compartment models are of this kind: x' = A x + b, with A and b from the parameters and from inputs that are constant
between stops, infusions as pieces of b, and doses as jumps. The exponential is that of the matrix [[A, b], [0, 0]], by
scaling and squaring of a Taylor polynomial (Moler and Van Loan 2003, method 3), accurate to about 1e-11.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.model.differentiation import TextField
from odinfer.model.program import needed
from odinfer.ode.bytecode import Tape
from odinfer.ode.compilation import compiled
from odinfer.ode.forcing import Drive
from odinfer.ode.interpreter import run, slopes
from odinfer.ode.right_hand_side import Field

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MOST_STATES = 12  # beyond, steps of a solver are cheaper than exponentials
_DEGREE, _SMALL = 10, 0.5  # of the polynomial, and the norm for which it is used
_MOST_SQUARINGS = 60


@dataclass(frozen=True, eq=False)
class LinearPropagation:
    """The field of a linear model along the courses of a timetable."""

    field: Field

    @staticmethod
    def of(field: Field) -> LinearPropagation | None:
        """None if the equations are not linear with constant coefficients, or something but doses makes jumps."""
        model = field.model
        text = model.derivatives
        if not isinstance(text, TextField) or len(model.states) > MOST_STATES:
            return None
        if field.drive.changing and not field.drive.held.all():
            return None
        derived = text.derived(model.states)
        by_states = [i for own in derived.derivatives for i in own.values()]
        names = {derived.code[i][1][0] for i in needed(derived.code, by_states) if derived.code[i][0] == "name"}
        every = {derived.code[i][1][0] for i in needed(derived.code, derived.values) if derived.code[i][0] == "name"}
        programs = any(jump.program is not None for c in field.table.courses for jump in c.jumps)
        if names & {*model.states, "t"} or "t" in every or programs or model.said.triggers:
            return None
        return LinearPropagation(field)

    @functools.cached_property
    def _amounts(self) -> Array:
        """What is added to the states at each stop (E, n, K)."""
        table = self.field.table
        found = np.zeros((*table.stops.shape, len(self.field.model.states)))
        for (e, i), jumps in table.jumps.items():
            for jump in jumps:
                found[e, i] += jump.amounts
        return found

    @functools.cached_property
    def _inputs(self) -> Array:
        """Inputs from each stop to the next (E, n, U); U is 0 if none of them changes."""
        table = self.field.table
        if not self.field.drive.changing:
            return np.zeros((*table.stops.shape, 0))
        return np.stack([c.inputs_at(own) for c, own in zip(table.courses, table.stops, strict=True)])

    def solve(self, e: Index, theta: Array, x0: Array) -> Array:
        """States (B, n, K) at the stops, before what jumps there; NaN where they are not finite."""
        table = self.field.table
        found = np.full((len(e), *self._amounts.shape[1:]), np.nan)
        numbers, work = self.field.numbers(e, theta), _Work.of(self.field, x0.shape[1])
        _propagate(
            self.field.by_states, self.field.drive, e, numbers, x0, table.stops, table.last, self._amounts,
            self._inputs, found, work,
        )  # fmt: skip
        return found


class _Work(NamedTuple):
    """Room to work in: registers, states, rates and those before (K,), ∂f/∂x (K, K), derivatives by nothing else
    (K, 0), and matrices of the exponential (K + 1, K + 1)."""

    r: Array
    x: Array
    rate: Array
    before: Array
    fx: Array
    nothing: Array
    M: Array
    P: Array
    T: Array
    W: Array

    @staticmethod
    def of(field: Field, K: int) -> _Work:
        registers, (x, rate, before) = field.by_states.registers.copy(), np.zeros((3, K))
        M, P, T, W = np.zeros((4, K + 1, K + 1))
        return _Work(registers, x, rate, before, np.empty((K, K)), np.empty((K, 0)), M, P, T, W)


@compiled
def _propagate(
    tape: Tape, drive: Drive, e: Index, numbers: Array, x0: Array, stops: Array, last: Index, amounts: Array,
    inputs: Array, found: Array, work: _Work,
) -> None:  # fmt: skip
    """Fill in the states at all stops of all trajectories."""
    B, K = x0.shape
    N = numbers.shape[1]
    r, x, rate, before, fx, nothing, M, P, T, W = work
    for i in range(B):
        own = e[i]
        r[0] = 0.0
        for k in range(K):
            r[1 + k] = 0.0
            x[k] = found[i, 0, k] = x0[i, k]
        for j in range(N):
            r[1 + K + j] = numbers[i, j]
        run(tape.code, r)
        slopes(tape, r, fx, nothing)
        length = -1.0
        for stop in range(last[own]):
            t, until = stops[own, stop], stops[own, stop + 1]
            same = length == until - t
            changed = False
            for j in range(inputs.shape[2]):
                changed = changed or r[1 + K + j] != inputs[own, stop, j]
                r[1 + K + j] = inputs[own, stop, j]
            if changed:
                run(tape.code, r)
                slopes(tape, r, fx, nothing)
                same = False
            for k in range(K):
                x[k] += amounts[own, stop, k]
                rate[k] = r[tape.values[k]]
            if drive.infused:
                middle = 0.5 * (t + until)
                for j in range(drive.infusions[own], drive.infusions[own + 1]):
                    if drive.begin[j] <= middle < drive.end[j]:
                        rate[drive.into[j]] += drive.rate[j]
            for k in range(K):
                same = same and rate[k] == before[k]
                before[k] = rate[k]
            if not same:
                length = until - t
                for a in range(K):
                    for b in range(K):
                        M[a, b] = fx[a, b] * length
                    M[a, K] = rate[a] * length
                _exponential(M, P, T, W)
            for a in range(K):
                total = P[a, K]
                for b in range(K):
                    total += P[a, b] * x[b]
                W[0, a] = total
            for a in range(K):
                x[a] = W[0, a]
                found[i, stop + 1, a] = x[a]


@compiled
def _exponential(M: Array, P: Array, T: Array, W: Array) -> None:
    """P = exp(M); M is scaled in its place, T and W are room to work in."""
    n = len(M)
    norm = 0.0
    for a in range(n - 1):
        total = 0.0
        for b in range(n - 1):
            total += abs(M[a, b])
        norm = max(norm, total)
    squarings = 0
    while norm > _SMALL and squarings < _MOST_SQUARINGS:
        norm *= 0.5
        squarings += 1
    scale = 0.5**squarings
    for a in range(n):
        for b in range(n):
            M[a, b] *= scale
            T[a, b] = 1.0 * (a == b)
            P[a, b] = T[a, b]
    for k in range(1, _DEGREE + 1):
        _multiply(T, M, W)
        for a in range(n):
            for b in range(n):
                T[a, b] = W[a, b] / k
                P[a, b] += T[a, b]
    for _ in range(squarings):
        _multiply(P, P, W)
        for a in range(n):
            for b in range(n):
                P[a, b] = W[a, b]


@compiled
def _multiply(A: Array, B: Array, C: Array) -> None:
    n = len(A)
    for a in range(n):
        for b in range(n):
            total = 0.0
            for c in range(n):
                total += A[a, c] * B[c, b]
            C[a, b] = total
