"""Confirm a design by simulating and fitting data at the proposed samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Data, Experiment, make_experiment
from odinfer.errors import InputError
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.refinement import maximise_from_initial
from odinfer.optimal_design.basis import MOST_STEPS, TOLERANCE, Basis, placeholders
from odinfer.optimal_design.information import Sample, candidate_problem
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

FEWEST = 3  # fits that must succeed for a standard error


def confirmed(
    basis: Basis,
    samples: Sequence[Sample],
    expected: Array,
    draws: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Simulate existing and new data together, fit them, and compare the spread of the estimates with what is expected.

    Args:
        expected: relative standard errors (P,).
        draws: data sets.

    Returns:
        Rows for parameters, with the columns expected, simulated, and bias in units of the simulated standard error.

    Raises:
        InputError: fewer than three data sets could be fitted.
    """
    import pandas as pd

    progress = progress or no_progress
    problem = with_samples(basis, samples)
    batch = BatchLikelihood.of(problem, TOLERANCE, MOST_STEPS)
    likelihood, u = batch.likelihood, batch.likelihood.unknowns
    v, later = _move_start(basis, problem)
    solved = batch.solve(v[None])
    states, phi = batch.states(solved.trajectories), u.phi(v)
    x0 = batch.initial(v)
    drawn = [
        likelihood.observation.draw(rng, e, x, phi[None], np.sqrt(basis.noise), draws) for e, x in enumerate(states)
    ]
    found = []
    for i in range(draws):
        progress("simulating the design", i / draws)
        own = replace(problem, data=problem.data.with_observations([y[i] for y in drawn]))
        optimum = maximise_from_initial(own, np.full(len(own.model.states), np.nan), x0, phi)
        if optimum is not None and optimum.converged:
            found.append(u.join([p.x0 for p in optimum.paths], optimum.phi))
    if len(found) < FEWEST:
        raise InputError(f"only {len(found)} of {draws} simulated data sets could be fitted; give more samples")
    gaps = (np.array(found) - v) / basis.scale
    spread = gaps.std(0, ddof=1)
    rows = {"expected": expected, "simulated": spread, "bias": gaps.mean(0) / np.maximum(spread, 1e-300)}
    table = pd.DataFrame(rows, index=pd.Index(u.names, name="parameter"))
    return table.iloc[u.of_phi] if later else table


def _move_start(basis: Basis, problem: Problem) -> tuple[Array, bool]:
    """The unknowns (P,) of a problem whose experiments begin with their first samples, and whether that is later.

    Initial values that the model does not give belong to the first observation.
    """
    u, p = ParameterVector(problem), basis.problem
    begins = [[q.condition(e).start for e in range(len(q.data.experiments))] for q in (p, problem)]
    if begins[0] == begins[1] or not len(u.initial):
        return basis.v, False
    found = candidate_problem(basis, np.unique(begins[1]))
    batch = BatchLikelihood.of(found, TOLERANCE, MOST_STEPS)
    states = batch.states(batch.solve(basis.v[None]).trajectories)
    rows = [int(np.searchsorted(e.t, t)) for e, t in zip(found.data.experiments, begins[1], strict=True)]
    return u.join([x[0, row] for x, row in zip(states, rows, strict=True)], u.phi(basis.v)), True


def with_samples(basis: Basis, samples: Sequence[Sample]) -> Problem:
    """The basis' problem with samples that were added to its experiments; their observations are placeholders."""
    p = basis.problem
    experiments = []
    for e, experiment in enumerate(p.data.experiments):
        own = [s for s in samples if s.experiment == experiment.name]
        t = np.array([s.time for s in own])
        y = np.full((len(t), len(p.columns)), np.nan)
        for row, s in enumerate(own):
            y[row, [p.columns.index(c) for c in s.columns]] = 1.0
        exists = bool(basis.existing[e])
        if exists:
            if experiment.sd is not None or experiment.limit is not None:
                raise InputError("a design for data with errors by row or detection limits cannot be simulated")
            t, y = np.concatenate([experiment.moments, t]), np.concatenate([experiment.y, y])
        if exists or len(t):
            with placeholders():
                experiments.append(_select_rows(experiment, t, y, p.columns))
    if len(experiments) < len(p.data.experiments):
        raise InputError("the design takes no sample of some experiments, which cannot be simulated then")
    with placeholders():
        return replace(p, data=Data.from_experiments(p.columns, experiments))


def _select_rows(e: Experiment, t: Array, y: Array, columns: Sequence[str]) -> Experiment:
    """The experiment with these rows; several at one time are replicates."""
    made = make_experiment(e.name, t, y, tuple(columns), e.u, "keep")
    return replace(e, t=made.t, y=made.y, sd=None, limit=None)
