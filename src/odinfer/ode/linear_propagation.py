"""Solve linear equations with constant coefficients by matrix exponentials.

Compartment models are of this kind: x' = A x + b, with A and b from the parameters and from inputs that are constant
between stops, infusions as pieces of b, and doses as jumps. The exponential is that of the matrix [[A, b], [0, 0]], by
scaling and squaring of a Taylor polynomial (Moler and Van Loan 2003, method 3), accurate to about 1e-11
(kernels/linear_propagation.c).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.model.differentiation import TextField
from odinfer.model.program import needed
from odinfer.ode.kernels.library import call
from odinfer.ode.right_hand_side import Field

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MOST_STATES = 12  # beyond, steps of a solver are cheaper than exponentials


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
        programs = any(jump.program is not None for c in field.table.conditions for jump in c.jumps)
        if names & {*model.states, "t"} or "t" in every or programs or model.declarations.triggers:
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
        return np.stack([c.inputs_at(own) for c, own in zip(table.conditions, table.stops, strict=True)])

    def solve(self, e: Index, theta: Array, x0: Array) -> Array:
        """States (B, n, K) at the stops, before what jumps there; NaN where they are not finite."""
        table = self.field.table
        found = np.full((len(e), *self._amounts.shape[1:]), np.nan)
        numbers, work = self.field.numbers(e, theta), _Work.of(self.field, x0.shape[1])
        call(
            "propagate", self.field.by_states, self.field.drive, e, numbers, x0, table.stops, table.last, self._amounts,
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
