"""What the equations are asked at points of different experiments with different parameters at once.

Derivatives are by what is asked for and nothing else: by the states alone where steps are made, by free parameters,
too, where sensitivities follow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.forward.timetable import Timetable
from odinfer.problem.language.differentiate import TextField
from odinfer.problem.model import Model

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Field:
    """The field of a model from text along the courses of a timetable.

    Attributes:
        wanted: places (Q,) among the model's parameters by which derivatives are wanted.
    """

    table: Timetable
    wanted: Index

    @property
    def model(self) -> Model:
        return self.table.courses[0].model

    @functools.cached_property
    def _text(self) -> TextField:
        own = self.model.derivatives
        assert isinstance(own, TextField)
        return own

    @functools.cached_property
    def _by_states(self) -> TextField:
        """With all parameters among the inputs, so that nothing is differentiated by them."""
        states, parameters, inputs = self._text.names
        return TextField(self._text.code, self._text.outputs, (states, (), (*inputs, *parameters)))

    @functools.cached_property
    def _by_all(self) -> TextField:
        states, parameters, inputs = self._text.names
        every = (*inputs, *parameters)
        wanted, others = (tuple(every[i] for i in places) for places in self._order)
        return TextField(self._text.code, self._text.outputs, (states, wanted, others))

    @functools.cached_property
    def _order(self) -> tuple[Index, Index]:
        """The places of the wanted parameters and of all else among the numbers."""
        wanted = len(self.model.inputs) + self.wanted
        return wanted, np.setdiff1d(np.arange(len(self.model.inputs) + len(self.model.parameters)), wanted)

    @functools.cached_property
    def varies(self) -> bool:
        """Whether the field changes with time by itself."""
        return self._driven or any(op == "name" and args[0] == "t" for op, args in self._text.code)

    @functools.cached_property
    def _driven(self) -> bool:
        """Whether inputs or infusions change."""
        return any(
            c.infusions or any(len(np.unique(c.experiment.u[name][1])) > 1 for name in self.model.inputs)
            for c in self.table.courses
        )

    @functools.cached_property
    def _still(self) -> Array:
        """Inputs (E, U) that do not change."""
        return np.concatenate([c.inputs_at(np.array([c.start])) for c in self.table.courses])

    def numbers(self, e: Index, theta: Array) -> Array:
        """Inputs and parameters (M, U + P) of experiments e (M,) with θ (M, P), number by number in memory."""
        u = self._still[e]
        found = np.empty((u.shape[1] + theta.shape[1], len(theta))).T
        found[:, : u.shape[1]], found[:, u.shape[1] :] = u, theta
        return found

    def _now(self, e: Index, t: Array, numbers: Array) -> Array:
        """The same with the inputs at times t (M,)."""
        if not self._driven or not self.model.inputs:
            return numbers
        numbers = numbers.copy(order="K")
        for own in np.unique(e):
            here = e == own
            numbers[here, : len(self.model.inputs)] = self.table.courses[own].inputs_at(t[here])
        return numbers

    def _with_infusions(self, e: Index, t: Array, f: Array) -> Array:
        for own, course in enumerate(self.table.courses):
            if course.infusions and (here := e == own).any():
                f[here] += course.infused(t[here])
        return f

    def evaluate(self, e: Index, t: Array, x: Array, numbers: Array) -> Array:
        """f (M, K) in experiments e (M,) at times t (M,) and states x (M, K)."""
        f = self._by_states.evaluate(t, x, np.empty((len(t), 0)), self._now(e, t, numbers))
        return self._with_infusions(e, t, f)

    def between(self, e: Index, low: Array, high: Array, numbers: Array) -> Callable[[Array, Array], Array]:
        """f as a function of t (M,) and x (M, K), where times are moved to between low and high (M,)."""
        return lambda t, x: self.evaluate(e, np.clip(t, low, high), x, numbers)

    def by_states(self, e: Index, t: Array, x: Array, numbers: Array) -> tuple[Array, Array]:
        """f (M, K) and ∂f/∂x (M, K, K)."""
        f, fx, _ = self._by_states.linearise(t, x, np.empty((len(t), 0)), self._now(e, t, numbers))
        return self._with_infusions(e, t, f), fx

    def by_all(self, e: Index, t: Array, x: Array, numbers: Array) -> tuple[Array, Array]:
        """∂f/∂x (M, K, K) and the derivatives (M, K, Q) by the wanted parameters."""
        numbers = self._now(e, t, numbers)
        wanted, others = self._order
        _, fx, ft = self._by_all.linearise(t, x, numbers.T[wanted].T, numbers.T[others].T)
        return fx, ft
