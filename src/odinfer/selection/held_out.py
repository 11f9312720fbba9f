"""Scores on held-out observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.methods import Method, fit
from odinfer.observation import observation_of
from odinfer.ode.adaptive_mesh import integrated
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

HOLDOUTS = ("last", "gaps")
_HELD_OUT_SHARE = 0.2
_TOLERANCE = 1e-7  # of the integration


def holdout_scores(problem: Problem, method: Method, seed: int = 0, which: str = "last") -> dict[str, float]:
    """Fit without a fifth of the times, and predict there by following the equations from the start.

    Args:
        problem: with all data.
        method: as for the fit of all data.
        seed: of the fit and of the gaps.
        which: the "last" times, or random "gaps" between the first and the last.

    Returns:
        heldout_rmse: root mean squared error, each column in units of its own standard deviation.
        heldout_loglik: log density of the left-out observations under prediction and noise.
    """
    rng = np.random.default_rng(seed)
    kept = [_kept_times(len(e.t), which, rng) for e in problem.data.experiments]
    try:
        part = replace(problem, data=problem.data.with_rows(kept))
    except InputError as error:
        raise InputError(f"too few data to hold a fifth out: {error}") from None
    result = fit(part, method=method, seed=seed)
    stage = result.stages.get("refined") or list(result.stages.values())[-1]
    phi = problem.phi(np.array([stage.theta[p] for p in problem.parameters]))
    starts = (
        [x[0] for x in stage.x]
        if problem.fully_observed_gaussian
        else [e.curve.x[0] for e in result.experiments.values()]
    )
    x = [_simulate(problem, e, phi, x0) for e, x0 in enumerate(starts)]
    scale = np.nanstd(np.concatenate([e.y for e in problem.data.experiments]), 0)
    observation, errors = observation_of(problem), []
    for e, (own, keep) in enumerate(zip(problem.data.experiments, kept, strict=True)):
        miss = (own.y - observation.predicted(e, x[e][None], phi[None])[0])[~keep]
        errors.append((miss / np.where(scale > 0, scale, 1.0))[np.isfinite(own.y[~keep])])
    rmse = float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))
    # What is left out is worth the difference between all data and those that were kept.
    every = _loglik(problem, x, phi, stage.sigma)
    rest = _loglik(part, [states[keep] for states, keep in zip(x, kept, strict=True)], phi, stage.sigma)
    return {"heldout_rmse": rmse, "heldout_loglik": every - rest}


def _simulate(problem: Problem, e: int, phi: Array, x0: Array) -> Array:
    """States (N, K) at the times of an experiment from its initial values (K,); NaN if the trajectory ends before."""
    t, unknown = problem.data.experiments[e].t, np.full(len(x0), np.nan)
    path = integrated(problem, e, problem.theta_of(e, phi), x0, unknown, tolerance=_TOLERANCE)
    return np.full((len(t), len(x0)), np.nan) if path is None else path.states(t)


def _loglik(problem: Problem, x: Sequence[Array], phi: Array, sigma: dict[str, float]) -> float:
    """The log-likelihood of states (N, K) of every experiment, noise levels being known."""
    known = replace(problem, sigma={**problem.sigma, **sigma})
    y = [e.y[None] for e in problem.data.experiments]
    return float(observation_of(known).best([own[None] for own in x], y, phi[None])[1][0])


def _kept_times(n: int, which: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    out = max(round(_HELD_OUT_SHARE * n), 1)
    keep = np.ones(n, bool)
    left = slice(n - out, n) if which == "last" else rng.choice(np.arange(1, n - 1), out, replace=False)
    keep[left] = False
    return keep
