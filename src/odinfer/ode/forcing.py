"""Inputs that change in time, and infusions, as arrays for the compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.condition import Condition

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Drive(NamedTuple):
    """Of E experiments with U inputs.

    Attributes:
        changing, infused: whether any input does, and whether there are infusions.
        held: inputs (U,) that stay as given last; others are linear in between.
        first, length: where the values of an input begin, and how many there are (E, U).
        times, values: all of them, one after the other.
        infusions: the number of the first infusion of each experiment, and of all (E + 1,).
        into, begin, end, rate: the states that infusions go into, when, and how fast.
    """

    changing: bool
    infused: bool
    held: NDArray[np.bool_]
    first: Index
    length: Index
    times: Array
    values: Array
    infusions: Index
    into: Index
    begin: Array
    end: Array
    rate: Array

    @staticmethod
    def of(conditions: Sequence[Condition]) -> Drive:
        model = conditions[0].model
        tables = [[c.experiment.u[name] for name in model.inputs] for c in conditions]
        every = [table for own in tables for table in own]
        length = np.array([len(t) for t, _ in every], np.int64).reshape(len(conditions), len(model.inputs))
        flows = [i for c in conditions for i in c.infusions]
        return Drive(
            any(len(np.unique(u)) > 1 for _, u in every),
            bool(flows),
            np.array([name in model.declarations.steps for name in model.inputs], bool),
            (np.cumsum(length) - length.ravel()).reshape(length.shape),
            length,
            np.concatenate([np.empty(0), *(np.asarray(t, float) for t, _ in every)]),
            np.concatenate([np.empty(0), *(np.asarray(u, float) for _, u in every)]),
            np.cumsum([0, *(len(c.infusions) for c in conditions)]),
            np.array([i.k for i in flows], np.int64),
            *(np.array([getattr(i, name) for i in flows], float) for name in ("begin", "end", "rate")),
        )

    @property
    def still(self) -> bool:
        """Whether nothing changes."""
        return not self.changing and not self.infused
