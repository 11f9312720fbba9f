"""Step 1 of ODIN for a whole problem: a Gaussian process per state, and its posterior curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.gp.curves import Curve
from odinfer.gp.evidence import Hyperparameters, Series, empirical_bayes
from odinfer.gp.grids import dense_times
from odinfer.gp.kernels import kernel
from odinfer.gp.markov.evidence import bayes_by_chains
from odinfer.gp.markov.state_space import order
from odinfer.gp.shared_hyperparameters import bayes_on_grid
from odinfer.gp.standardisation import Units
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

# Rougher than the evidence would like, because that matches gradients better (an RBF smooths corners away);
# warped only where the evidence clearly asks for it.
AUTO = ("matern52", "warped-matern52")
_AUTO_MARGIN = 2.0


def smooth_states(
    problem: Problem,
    units: Units,
    kernel_name: str = "auto",
    shared: bool = False,
    bounds: tuple[float, float] = (1e-10, 1e6),
    thorough: bool = False,
    weak_prior: bool = False,
    by: str = "eigenvalues",
) -> tuple[Hyperparameters, ...]:
    """Empirical Bayes for every state (one set for all if shared).

    Args:
        by: "eigenvalues" of dense matrices; with shapes from one "grid", for many states; or "chains", for many times.

    Raises:
        InputError: a kernel has no chain.
    """
    series = []
    for k in range(len(problem.model.states)):
        observed = [(e.t, e.y[:, k], e.t[0], np.isfinite(e.y[:, k])) for e in problem.data.experiments]
        own = units.of_state(k)
        series.append(
            [Series(units.standard_time(t[s], t0), own.standard(y[s])) for t, y, t0, s in observed if s.any()]
        )
    known = [None if np.isnan(v) else float(v) for v in units.standard_variance(problem.known_sigma)]
    names, margin = (AUTO, _AUTO_MARGIN) if kernel_name == "auto" else ((kernel_name,), 0.0)
    if by == "chains" and not chainable(kernel_name):
        raise InputError(f"algebra 'markov' takes a Matérn kernel, warped or not, and kernel '{kernel_name}' is none")
    search = bayes_by_chains if by == "chains" else bayes_on_grid if by == "grid" and not shared else None
    pooled = [[s for state in series for s in state]] if shared else series
    levels = known[:1] if shared else known
    if search is not None:
        found = search(pooled, names, levels, margin, bounds, weak_prior)
    else:
        found = empirical_bayes(pooled, names, levels, margin, bounds, thorough, weak_prior)
    return tuple(found * (len(series) if shared else 1))


def chainable(kernel_name: str) -> bool:
    """Whether the processes of a kernel, or of all that "auto" may choose, are Markov chains."""
    return all(order(name) is not None for name in (AUTO if kernel_name == "auto" else (kernel_name,)))


def noise_sd(units: Units, hypers: Sequence[Hyperparameters]) -> Array:
    """Noise standard deviations (K,) in the user's units."""
    return units.user_sd(np.sqrt([h.noise for h in hypers]))


def facts(problem: Problem, hypers: Sequence[Hyperparameters]) -> dict[str, dict[str, Any]]:
    """Kernel and evidence by state."""
    pairs = list(zip(problem.model.states, hypers, strict=True))
    return {"kernels": {n: h.kernel for n, h in pairs}, "evidence": {n: h.evidence for n, h in pairs}}


def posterior_curves(
    problem: Problem, units: Units, hypers: Sequence[Hyperparameters], jitter: float = 1e-6
) -> list[Curve]:
    """Posterior mean, its derivative and the standard deviation of the states, per experiment.

    A state that an experiment does not observe keeps its prior there.
    """
    found = []
    for e in problem.data.experiments:
        dense = dense_times(e.t)
        x, slope, sd = (np.empty((len(dense), len(hypers))) for _ in range(3))
        at = units.standard_time(dense, e.t[0])
        for k, h in enumerate(hypers):
            seen = np.isfinite(e.y[:, k])
            t, y = units.standard_time(e.t[seen], e.t[0]), units.of_state(k).standard(e.y[seen, k])
            correlation, shape = kernel(h.kernel), np.array(h.shape)
            S = h.variance * correlation.gram(t, t, shape).C + (h.noise + jitter) * np.eye(len(t))
            cross = correlation.gram(at, t, shape)
            gain = np.linalg.solve(S, h.variance * cross.C.T).T  # (D, n)
            x[:, k] = gain @ y
            slope[:, k] = h.variance * cross.dC @ np.linalg.solve(S, y)
            prior = h.variance * np.diag(correlation.gram(at, at, shape).C)
            sd[:, k] = np.sqrt(np.maximum(prior - h.variance * (gain * cross.C).sum(1), 0.0))
        found.append(Curve.of_standard(units, dense, x, slope, sd))
    return found
