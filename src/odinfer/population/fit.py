"""Fit a population model: the entry point behind `od.fit` where parameters vary by subject."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from odinfer.errors import InputError
from odinfer.population.estimate import estimate
from odinfer.population.result import PopulationFit, made
from odinfer.population.structure import Structure
from odinfer.population.tasks import trajectories_on
from odinfer.problem.observables import need_times
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress


def fit_population(
    problem: Problem,
    seed: int = 0,
    progress: Progress | None = None,
    workers: int | None = None,
    cluster: str | None = None,
) -> PopulationFit:
    """Estimate a population by the maximum of its exact marginal likelihood.

    Args:
        workers: processes that solve the trajectories of subjects.
        cluster: address of a Dask scheduler whose workers do.

    Raises:
        InputError: what was given cannot be used.
    """
    progress = progress or no_progress
    need_times(problem)
    if problem.prior:
        raise InputError("priors cannot be used with random effects; fix the parameter, or leave the prior out")
    if problem.split.any:
        raise InputError("local parameters cannot be used with random effects; give them a distribution by subject")
    clock = time.process_time()
    # The matrices are small: threads inside BLAS cost more than they give.
    ignored = np.errstate(over="ignore", divide="ignore", invalid="ignore")
    with threadpool_limits(1, user_api="blas"), ignored, trajectories_on(workers, cluster):
        found = estimate(Structure.of(problem), seed, progress)
        result = made(problem, found, seed, progress)
    progress("done", 1.0)
    return replace(result, seconds=time.process_time() - clock)
