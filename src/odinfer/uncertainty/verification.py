"""Verification of an optimum: by re-integration at a tight tolerance, and by what its profiles lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import none_if_singular
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.refinement import maximise_from_initial
from odinfer.search.startpoints import draw_parameters
from odinfer.search.trust_region import minimise_batch
from odinfer.uncertainty.maximum import CONFIRMED, Maximum
from odinfer.uncertainty.results import Uncertainty

_T = TypeVar("_T")
Array = NDArray[np.float64]

_STEP_TOLERANCE = 1e-4  # of trajectories during the search for another optimum
_AROUND, _WIDTH = 32, 0.5  # random start points around the optimum, and their standard deviation in e-folds
_TRIED = 10  # end points of the search that are verified, best first
_HIGHER = 1.0  # nats by which an optimum along the profiles must be higher to replace the estimate


def verified_optimum(maximum: Maximum) -> Maximum:
    """Replace an optimum if re-integration changes its log-likelihood by more than `CONFIRMED`.

    A collocation mesh can step over a pole of the model, so that its trajectory does not exist. The likelihood is then
    maximised by steps forward in time, from the optimum, from its reflections and from random points around it. The
    best end point that re-integration confirms is returned.

    Returns:
        The same optimum if it is confirmed, if the model is no text, or if no better one is confirmed.
    """
    return none_if_singular(lambda: _verify(maximum)) or maximum  # trajectories far from it may be singular


def judge_with_intervals(
    maximum: Maximum, judge: Callable[[Maximum], tuple[_T, bool]]
) -> tuple[Maximum, _T, Uncertainty | None]:
    """Test the model at an optimum and compute intervals; once more where the profiles lead to a higher optimum.

    Args:
        judge: test the model at an optimum; returns the result and whether the data contradict the model.

    Returns:
        The optimum that was kept, the result of the test, and the intervals; None where they could not be computed.
    """
    result, rejected = judge(maximum)
    maximum = replace(maximum, verify=not rejected)
    known = none_if_singular(maximum.intervals)
    higher = none_if_singular(lambda: _higher_optimum(maximum))
    if higher is None:
        return maximum, result, known
    result, rejected = judge(higher)
    higher = replace(higher, verify=not rejected)
    return higher, result, none_if_singular(higher.intervals)


def _higher_optimum(maximum: Maximum) -> Maximum | None:
    """Return the optimum that the best point of the profiles leads to; None if it is not clearly higher."""
    visited = maximum.limits.found
    if not visited.objectives.min(initial=np.inf) < maximum.objective - _HIGHER:
        return None
    if not BatchLikelihood.can(maximum.problem):
        return None
    solver = BatchLikelihood.of(maximum.problem).finer()
    with np.errstate(all="ignore"):
        end = minimise_batch(solver, visited.visited[[int(np.argmin(visited.objectives))]])
        found = _optimum_at(maximum, solver, end.v[0]) if np.isfinite(end.value[0]) else None
    higher = found is not None and found.confirmed and found.objective < maximum.objective - _HIGHER
    return found if higher else None


def _verify(maximum: Maximum) -> Maximum:
    """Return the optimum, or the best confirmed one nearby."""
    if maximum.confirmed or not BatchLikelihood.can(maximum.problem):
        return maximum
    rng, v, solver = np.random.default_rng(0), maximum.v, BatchLikelihood.of(maximum.problem, _STEP_TOLERANCE)
    reflected = np.where(np.eye(len(v), dtype=bool), -v, v)
    starts = [v[None], reflected, v * np.exp(_WIDTH * rng.normal(size=(_AROUND, len(v))))]
    starts += [draw_parameters(maximum.problem, v, _AROUND, rng)] if maximum.problem.fully_observed_gaussian else []
    with np.errstate(all="ignore"):  # start points may be anywhere
        ends = minimise_batch(solver, np.concatenate(starts))
        for i in np.argsort(ends.value)[:_TRIED].tolist():
            found = _optimum_at(maximum, solver.finer(), ends.v[i]) if np.isfinite(ends.value[i]) else None
            if found is not None and found.confirmed and found.loglik > maximum.reintegrated_loglik + CONFIRMED:
                return found
    return maximum


def _optimum_at(maximum: Maximum, solver: BatchLikelihood, v: Array) -> Maximum | None:
    """Return the optimum at unknowns (P,) on the mesh of its own steps; None if there is no trajectory.

    It is not re-optimised on the mesh, which might lead away from it.
    """
    paths, phi = solver.paths(v), maximum.likelihood.unknowns.phi(v)
    made = paths and maximise_from_initial(
        maximum.problem, maximum.likelihood.scale, solver.initial(v), phi, 0, along=paths
    )
    if not made:
        return None
    return replace(
        Maximum.of(maximum.problem, replace(made, converged=True), maximum.likelihood.scale), known=maximum.known
    )
