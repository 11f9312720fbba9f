"""The paper's optimiser of the risk: L-BFGS-B on states, parameters and log γ together, with basin hopping."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import Objective, Solution

Array = NDArray[np.float64]


def lbfgsb(
    risk: Objective,
    z: Array,
    phi: Array,
    rule: GammaRule,
    gamma_start: float = 1.0,
    hops: int = 0,
    rng: np.random.Generator | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Solution:
    """The paper's optimiser: L-BFGS-B on (x, θ, log γ) jointly, with basin hopping if `hops` > 0."""
    from scipy.optimize import basinhopping, minimize

    shape, F, K = z.shape, len(phi), z.shape[1]
    n_gamma = 0 if rule.fixed is not None else 1 if rule.shared else K

    def unpack(v: Array) -> tuple[Array, Array, Array]:
        free = np.exp(v[z.size + F :])
        gamma = np.full(K, rule.fixed) if rule.fixed is not None else np.broadcast_to(free, K)
        return v[: z.size].reshape(shape), v[z.size : z.size + F], gamma

    def half_risk(v: Array) -> tuple[float, Array]:
        zv, pv, gamma = unpack(v)
        lin = risk.linearise(zv, pv)
        e = risk.mismatch(zv, lin.f)
        if not np.isfinite(e).all():
            return 1e100, np.zeros_like(v)
        gz, gp, gg = risk.gradient(zv, lin, e, gamma, pv)
        tail = gg if n_gamma == K and not rule.shared else np.full(n_gamma, gg.sum())
        return 0.5 * risk.value(zv, e, gamma, pv), np.concatenate([gz.ravel(), gp, tail])

    z_low, z_high = (np.broadcast_to(b, shape).ravel() for b in risk.z_bounds)
    p_low, p_high = risk.problem.phi_bounds
    log_gamma = np.log(np.array([rule.bounds] * n_gamma)).reshape(-1, 2)
    low = np.concatenate([z_low, p_low, log_gamma[:, 0]])
    high = np.concatenate([z_high, p_high, log_gamma[:, 1]])
    start = np.clip(np.concatenate([z.ravel(), phi, np.full(n_gamma, np.log(gamma_start))]), low, high)
    options = {"method": "L-BFGS-B", "jac": True, "bounds": np.column_stack([low, high])}
    if hops:
        result = basinhopping(
            half_risk, start, niter=hops, minimizer_kwargs=options, rng=rng
        ).lowest_optimization_result
    else:
        result = minimize(half_risk, start, **options)
    zv, pv, gamma = unpack(result.x)
    return Solution(zv, pv, gamma.copy(), 2.0 * float(result.fun), int(result.nit), bool(result.success))
