"""The Fisher information of every candidate sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Data, Experiment
from odinfer.data.dose import Dose
from odinfer.errors import InputError
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.likelihood import Likelihood
from odinfer.optimal_design.basis import MOST_STEPS, TOLERANCE, Basis, need_text, placeholders, with_times
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """A measurement that can be made.

    Attributes:
        experiment: in which experiment.
        time: when.
        columns: what is observed then.
        cost: in units of the user's choice.
    """

    experiment: str
    time: float
    columns: tuple[str, ...]
    cost: float = 1.0


@dataclass(frozen=True, eq=False)
class Candidates:
    """Samples that can be taken and what each would say.

    Attributes:
        samples: C of them.
        rows: derivatives (S, C, R, P) of standardised residuals by the unknowns at S points; the Fisher information of
            sample c is the sum of the products of its rows. Rows of columns that it does not observe are zero.
        residuals: standardised differences (S, C, R) between given observations and predictions; zero if none are.
        predicted: values (S, C, M) of all columns.
    """

    samples: tuple[Sample, ...]
    rows: Array
    residuals: Array
    predicted: Array

    @property
    def information(self) -> Array:
        """Fisher information (S, C, P, P)."""
        return np.swapaxes(self.rows, -1, -2) @ self.rows


def samples_at(
    problem: Problem,
    times: Array,
    experiments: Sequence[str],
    columns: Sequence[str],
    separately: bool = False,
    cost: float = 1.0,
    costs: dict[str, float] | None = None,
) -> tuple[Sample, ...]:
    """All samples at times (n,) of some experiments.

    Args:
        separately: whether each column can be measured alone; otherwise a sample measures all.
        cost: of a sample, to which costs of its columns are added.
    """
    groups = [(c,) for c in columns] if separately else [tuple(columns)]
    each = costs or {}
    return tuple(
        Sample(e, float(t), group, cost + sum(each.get(c, 0.0) for c in group))
        for e in experiments
        for t in times
        for group in groups
    )


def candidate_problem(basis: Basis, times: Array, doses: Sequence[Dose] | None = None) -> Problem:
    """The basis' experiments as they would be observed at other times, or given other doses."""
    columns = len(basis.problem.columns)
    experiments: list[Experiment] = []
    for i, e in enumerate(basis.problem.data.experiments):
        if times.min() < (start := basis.problem.condition(i).start):
            raise InputError(f"experiment '{e.name}' begins at {start:g}; samples cannot be taken at {times.min():g}")
        own = with_times(e, columns, times)
        experiments.append(own if doses is None else replace(own, doses=tuple(doses)))
    with placeholders():
        return replace(basis.problem, data=Data.from_experiments(basis.problem.columns, experiments))


def candidates(
    basis: Basis,
    samples: Sequence[Sample],
    points: Array | None = None,
    doses: Sequence[Dose] | None = None,
    observed: Array | None = None,
) -> Candidates:
    """What samples would say at the basis' unknowns, or at S others.

    Args:
        points: unknowns (S, P).
        doses: in place of those of every experiment.
        observed: values (C, M) with which predictions are compared, all columns; the predictions themselves if not
            given.

    Raises:
        InputError: no trajectory reaches the times.
    """
    v = basis.v[None] if points is None else points
    times = np.unique([s.time for s in samples])
    problem = candidate_problem(basis, times, doses)
    need_text(problem)
    batch = BatchLikelihood.of(problem, TOLERANCE, MOST_STEPS)
    solved = batch.solve(v)
    states, maps = batch.linearised(solved, np.arange(len(v)))
    if not all(np.isfinite(x).all() for x in states):
        raise InputError(f"the trajectory does not reach time {times[-1]:g}; give earlier times or other values")
    likelihood = batch.likelihood
    phi, noise = likelihood.unknowns.phi(v), np.tile(basis.noise, (len(v), 1))
    place = {e.name: i for i, e in enumerate(problem.data.experiments)}
    owner, R, C = likelihood.observation.owners, len(likelihood.observation.owners), len(samples)
    rows, residuals = np.zeros((len(v), C, R, likelihood.unknowns.size)), np.zeros((len(v), C, R))
    predicted = np.zeros((len(v), C, len(problem.columns)))
    for e, experiment in enumerate(problem.data.experiments):
        own = np.array([c for c, s in enumerate(samples) if place[s.experiment] == e], np.int64)
        if not len(own):
            continue
        at = np.searchsorted(experiment.t, [samples[c].time for c in own])
        values = _predicted(likelihood, e, states[e], phi)
        y = values.copy()
        if observed is not None:
            y[:, at] = observed[own]
        r, J = likelihood.observation.rows(e, states[e], maps[e], y, noise, phi)
        seen = _observed_rows(problem, owner, [samples[c] for c in own])
        rows[:, own] = likelihood.unknowns.lift(e, J[:, at]) * seen[..., None]
        residuals[:, own] = np.where(seen, r[:, at], 0.0) if observed is not None else 0.0
        predicted[:, own] = values[:, at]
    if not np.isfinite(rows).all():
        raise InputError("the derivatives of the trajectory are not finite at these values; give other values")
    return Candidates(tuple(samples), rows, residuals, predicted)


def _predicted(likelihood: Likelihood, e: int, x: Array, phi: Array) -> Array:
    """Predicted values (S, N, M) of an experiment's columns."""
    return np.array(likelihood.observation.predicted(e, x, phi))


def _observed_rows(problem: Problem, owner: Index, samples: Sequence[Sample]) -> NDArray[np.bool_]:
    """Which rows (C, R) belong to columns that each sample observes."""
    names = np.array(problem.columns)[owner]
    return np.array([np.isin(names, s.columns) for s in samples]).reshape(len(samples), len(owner))
