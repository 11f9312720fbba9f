"""Instructions and forcing of the equations of several experiments.

Derivatives are by what is asked for and nothing else: by the states alone where steps are made, by free parameters,
too, where sensitivities follow.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.model.differentiation import TextField
from odinfer.model.model import Model
from odinfer.ode.breakpoints import Timetable
from odinfer.ode.bytecode import Tape, tape_of
from odinfer.ode.forcing import Drive
from odinfer.ode.kernels.library import Packed, pack

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def conditions_tape(model: Model) -> Tape:
    """The conditions (T,) of a model's triggers as instructions; empty if it has none."""
    names = (model.states, model.parameters, model.inputs)
    field = TextField(model.code, tuple(own.condition for own in model.declarations.triggers), names)
    return tape_of(field, ("t", *model.states, *model.inputs, *model.parameters))


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
        return self.table.conditions[0].model

    @functools.cached_property
    def drive(self) -> Drive:
        return Drive.of(self.table.conditions)

    @functools.cached_property
    def values(self) -> Tape:
        """f."""
        return self._tape()

    @functools.cached_property
    def by_states(self) -> Tape:
        """f and ∂f/∂x."""
        return self._tape(*self.model.states)

    @functools.cached_property
    def by_all(self) -> Tape:
        """f, ∂f/∂x and the derivatives by the wanted parameters."""
        return self._tape(*self.model.states, *(self.model.parameters[i] for i in self.wanted))

    @functools.cached_property
    def conditions(self) -> Tape:
        """The conditions of events that states trigger."""
        return conditions_tape(self.model)

    @functools.cached_property
    def drive_without_infusions(self) -> Drive:
        return self.drive._replace(infused=False)

    @functools.cached_property
    def packed(self) -> Packed:
        """What steps are made with, as kernels take it."""
        events = self.conditions, self.drive_without_infusions
        return pack(self.values, self.by_states, self.drive, self.varies, *events)

    @functools.cached_property
    def packed_by_all(self) -> Packed:
        """What sensitivities are made with."""
        return pack(self.by_all, self.drive)

    def _tape(self, *columns: str) -> Tape:
        m = self.model
        return tape_of(self._text, ("t", *m.states, *m.inputs, *m.parameters), columns)

    @property
    def _text(self) -> TextField:
        own = self.model.derivatives
        assert isinstance(own, TextField)
        return own

    @functools.cached_property
    def varies(self) -> bool:
        """Whether the field changes with time by itself."""
        return not self.drive.still or any(op == "name" and args[0] == "t" for op, args in self._text.code)

    @functools.cached_property
    def _still(self) -> Array:
        """Inputs (E, U), at the start if they change."""
        return np.concatenate([c.inputs_at(np.array([c.start])) for c in self.table.conditions])

    def numbers(self, e: Index, theta: Array) -> Array:
        """Inputs and parameters (M, U + P) of experiments e (M,) with θ (M, P)."""
        return np.ascontiguousarray(np.concatenate([self._still[e], theta], 1))
