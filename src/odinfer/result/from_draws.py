"""Build a Fit from the draws of a sampler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve
from odinfer.gp.smoother import noise_sd
from odinfer.odin.dense_engine import Dense
from odinfer.odin.gauss_newton import Solution
from odinfer.result.assemble import assemble, named, stage
from odinfer.result.fit import Fit
from odinfer.sampling.diagnostics import convergence_verdict, ess, r_hat

Array = NDArray[np.float64]

_KEPT_CHAINS, _KEPT_DRAWS = 4, 1000


@dataclass(frozen=True)
class Draws:
    """What a sampler leaves behind.

    Attributes:
        phi: kept draws (C, N, F).
        z, sd: posterior mean and standard deviation (M, K) of the standardised states.
        gamma: (K,), as fixed or as its posterior mean.
        acceptance: share of accepted moves by name.
        seconds: of sampling, without the start.
        divergences: number of divergent draws, of samplers that know of them.
        details: further numbers.
    """

    phi: Array
    z: Array
    sd: Array
    gamma: Array
    acceptance: Mapping[str, float]
    seconds: float
    divergences: int = 0
    details: Mapping[str, Any] | None = None


def to_fit(method: Any, seed: int, risk: Dense, draws: Draws) -> Fit:
    """Posterior means, bands, draws and diagnostics as a Fit."""
    problem, units = risk.problem, risk.units
    names, free = problem.model.states, problem.free
    theta = problem.theta(draws.phi)  # (C, N, P)
    mean = theta.mean((0, 1)) if len(free) else problem.theta(np.empty(0))
    phi = problem.phi(mean)
    by_name = {n: theta[..., j] for n, j in zip(free, problem.free_index, strict=True)}
    r_hats, sizes = ({n: g(v) for n, v in by_name.items()} for g in (r_hat, ess))
    with np.errstate(over="ignore"):  # of chains that ran away along a parameter without an upper bound
        deviations = {n: float(v.std()) for n, v in by_name.items()}
    sentence, converged = convergence_verdict(
        r_hats, sizes, draws.divergences / (draws.phi.shape[0] * draws.phi.shape[1])
    )
    s = Solution(draws.z, phi, draws.gamma, float("nan"), draws.phi.shape[1], converged)
    slope = risk.slopes(s)
    curves = [
        Curve(risk.t[b.rows], units.user(s.z[b.rows]), slope[b.rows], units.user_sd(draws.sd[b.rows]))
        for b in risk.blocks
    ]
    found = stage(
        problem, mean, curves, noise_sd(units, risk.hypers),
        gamma=named(names, draws.gamma), seconds=draws.seconds, note=sentence,
    )  # fmt: skip
    return assemble(
        problem,
        method,
        seed,
        {method.name: found},
        curves,
        status=sentence,
        converged=converged,
        units=units,
        gradients=risk.gradients(s),
        samples={n: thin(v) for n, v in by_name.items()},
        details={
            "r_hat": r_hats,
            "ess": sizes,
            "acceptance": dict(draws.acceptance),
            "divergences": draws.divergences,
            "theta_sd": deviations,
            "kernels": {n: h.kernel for n, h in zip(names, risk.hypers, strict=True)},
            **(draws.details or {}),
        },
    )


def thin(draws: Array) -> Array:
    """At most 4 chains of at most 1000 evenly spaced draws."""
    kept = draws[:_KEPT_CHAINS]
    if kept.shape[1] <= _KEPT_DRAWS:
        return kept
    return kept[:, np.linspace(0, kept.shape[1] - 1, _KEPT_DRAWS).round().astype(int)]
