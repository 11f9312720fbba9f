"""The Fisher information of a population's parameters, to first order in the random effects.

With predictions that are linear in the effects, the observations of a subject are normal with mean f and covariance
V = AAᵀ + diag σ², and the information of parameters i and j is

    f_iᵀ V⁻¹ f_j + ½ tr(V⁻¹ V_i V⁻¹ V_j)

(Retout, Duffull and Mentré, Computer Methods and Programs in Biomedicine 65 (2001) 141). The reduced information, the
default of PopED and PFIM, leaves out how V changes with parameters of the mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Data, Experiment
from odinfer.errors import InputError, listed
from odinfer.model.model import Model
from odinfer.optimal_design.basis import placeholders
from odinfer.optimal_design.criteria import Criterion
from odinfer.population.marginal import first_order_moments
from odinfer.population.nodes import Engine
from odinfer.population.structure import Structure
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STEP = 1e-3  # of unconstrained parameters, for differences of fourth order
_STENCIL = ((-2, 1.0 / 12.0), (-1, -2.0 / 3.0), (1, 2.0 / 3.0), (2, -1.0 / 12.0))
_NO_CHANGE = 1e-9  # of the largest change of the means: what a parameter of the spread alone may seem to change them


@dataclass(frozen=True, eq=False)
class PopulationInformation:
    """A subject's observations at C candidate times, and how they depend on Q relative changes of the parameters.

    Attributes:
        names, values: of the parameters (Q).
        mean: predictions of a typical subject (C,).
        mean_slopes: their derivatives (C, Q).
        slopes: by the d effects, in their standard deviations (C, d).
        slopes_slopes: their derivatives (C, d, Q).
        variance, variance_slopes: of the noise (C,), and its derivatives (C, Q).
        subjects: number of subjects.
        full: whether the change of V with parameters of the mean counts.
    """

    names: tuple[str, ...]
    values: Array
    mean: Array
    mean_slopes: Array
    slopes: Array
    slopes_slopes: Array
    variance: Array
    variance_slopes: Array
    subjects: int
    full: bool = False

    def __call__(self, sets: Index) -> Array:
        """The information (n, Q, Q) of all subjects, each observed at a set of times; n sets (n, k)."""
        A, J, k = self.slopes[sets], self.mean_slopes[sets], sets.shape[1]
        W = np.linalg.inv(A @ np.swapaxes(A, 1, 2) + self.variance[sets][:, :, None] * np.eye(k))
        change = np.einsum("nadq,nbd->nqab", self.slopes_slopes[sets], A)
        change = change + np.swapaxes(change, 2, 3)
        change = change + np.swapaxes(self.variance_slopes[sets], 1, 2)[..., None] * np.eye(k)
        if not self.full:
            change[:, np.abs(self.mean_slopes).max(0) > _NO_CHANGE * np.abs(self.mean_slopes).max()] = 0.0
        solved = W[:, None] @ change
        found = np.swapaxes(J, 1, 2) @ W @ J + 0.5 * np.einsum("nqab,nrba->nqr", solved, solved)
        return np.asarray(self.subjects * found)

    @staticmethod
    def of(
        model: Model, values: Mapping[str, float], times: Array, subjects: int,
        covariates: Mapping[str, float | str] | None = None, full: bool = False,
    ) -> PopulationInformation:  # fmt: skip
        """At given values of the population's parameters.

        Raises:
            InputError: a value is missing, several columns are observed, or data are not normal or log-normal.
        """
        columns = tuple(c.name for c in model.declarations.columns) or model.states
        if len(columns) > 1:
            raise InputError(f"a population design is for one observed column, not for {listed(columns)}")
        t = np.union1d(times, [0.0]) if times.min() > 0 else np.unique(times)
        with placeholders():
            alike = [Experiment(name, t, np.ones((len(t), 1)), {}, covariates=dict(covariates or {})) for name in "12"]
            engine = Engine(Structure.of(Problem(model, Data.from_experiments(columns, alike))))
        structure, rows = engine.structure, np.searchsorted(t, times)
        v = structure.vector(dict(values))
        scale, natural = _relative_change(structure, v)
        mean, slopes, variance = _moments(engine, v, rows)
        changes = [_differences(engine, v, i, rows) for i in range(len(v))]
        mean_slopes, slopes_slopes, variance_slopes = (
            np.stack([own[part] for own in changes], -1) * scale for part in range(3)
        )
        return PopulationInformation(
            structure.names,
            natural,
            mean,
            mean_slopes,
            slopes,
            slopes_slopes,
            variance,
            variance_slopes,
            subjects,
            full,
        )


@dataclass(frozen=True, eq=False)
class PopulationObjective:
    """A criterion of the information of a population, for sets of times that are the same for all subjects."""

    information: PopulationInformation
    criterion: Criterion

    def __call__(self, chosen: tuple[int, ...], added: Index) -> Array:
        """Values (n,) of the chosen times and one of n others each, or of the chosen alone."""
        sets = np.tile(np.array(chosen, np.int64), (max(len(added), 1), 1))
        return self.criterion(self.information(np.column_stack([sets, added]) if len(added) else sets))


def _moments(engine: Engine, v: Array, rows: Index) -> tuple[Array, Array, Array]:
    """Means (C,), slopes by the effects (C, d) and variances of the noise (C,) of a subject at the rows (C,)."""
    own = first_order_moments(engine, v)[0]
    return own.mean[rows], own.slopes[rows], np.square(own.sd[rows])


def _differences(engine: Engine, v: Array, i: int, rows: Index) -> tuple[Array, ...]:
    """Derivatives of the moments by parameter i."""
    found: list[Array] = []
    for steps, weight in _STENCIL:
        moved = v.copy()
        moved[i] += steps * _STEP
        parts = [weight / _STEP * part for part in _moments(engine, moved, rows)]
        found = [a + b for a, b in zip(found, parts, strict=True)] if found else parts
    return tuple(found)


def _relative_change(structure: Structure, v: Array) -> tuple[Array, Array]:
    """How far each unconstrained parameter (Q,) changes in a relative change of its value of one, and the values."""
    natural = np.array([structure.values(v)[name] for name in structure.names])
    slopes = np.empty(len(v))
    for i, name in enumerate(structure.names):
        ends = []
        for side in (-1.0, 1.0):
            moved = v.copy()
            moved[i] += side * _STEP**2
            ends.append(structure.values(moved)[name])
        slopes[i] = (ends[1] - ends[0]) / (2.0 * _STEP**2)
    return np.where(natural == 0.0, 1.0, np.abs(natural)) / np.maximum(np.abs(slopes), 1e-300), natural
