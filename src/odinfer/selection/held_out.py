"""Scores on observations that were left out of a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.methods import Method, fit
from odinfer.observation.plain import Plain
from odinfer.problem.problem import Problem
from odinfer.trajectory.simulate import simulate

Array = NDArray[np.float64]

HOLDOUTS = ("last", "gaps")
_SHARE = 0.2


def heldout(problem: Problem, method: Method, seed: int = 0, which: str = "last") -> dict[str, float]:
    """Fit without a fifth of the times, and predict there by following the equations from the first time.

    Args:
        problem: with all data.
        method: as for the fit of all data.
        seed: of the fit and of the gaps.
        which: the "last" times, or random "gaps" between the first and the last.

    Returns:
        heldout_rmse: root mean squared error, each state in units of its own standard deviation.
        heldout_loglik: log density of the left-out observations under prediction and noise.
    """
    rng = np.random.default_rng(seed)
    kept = [_kept(len(e.t), which, rng) for e in problem.data.experiments]
    try:
        part = replace(problem, data=problem.data.keeping(kept))
    except InputError as error:
        raise InputError(f"too few data to hold a fifth out: {error}") from None
    result = fit(part, method=method, seed=seed)
    stage = result.stages.get("refined", result.stages["odin"])
    scale = np.nanstd(np.concatenate([e.y for e in problem.data.experiments]), 0)
    sigma = np.array([stage.sigma[n] for n in problem.model.states])
    errors, squares, count = [], np.zeros(len(sigma)), np.zeros(len(sigma), int)
    for e, keep, x in zip(problem.data.experiments, kept, stage.x, strict=True):
        predicted = simulate(problem.model, stage.theta, x[0], e.t, e.u, rtol=1e-6, atol=1e-8)[~keep]
        miss = e.y[~keep] - predicted
        seen = np.isfinite(e.y[~keep])
        errors.append((miss / np.where(scale > 0, scale, 1.0))[seen])
        squares += (np.where(seen, miss, 0.0) ** 2).sum(0)
        count += seen.sum(0)
    density = float(Plain(sigma, count).loglik(squares))
    rmse = float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))
    return {"heldout_rmse": rmse, "heldout_loglik": density}


def _kept(n: int, which: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    out = max(round(_SHARE * n), 1)
    keep = np.ones(n, bool)
    left = slice(n - out, n) if which == "last" else rng.choice(np.arange(1, n - 1), out, replace=False)
    keep[left] = False
    return keep
