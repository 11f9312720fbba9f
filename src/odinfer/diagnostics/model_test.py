"""Test whether the model as a whole describes the data, by a parametric bootstrap of its residuals.

The statistic is the evidence for a smooth signal in the residuals of the best trajectory, summed over the observed
columns, and for more noise than is known where it is known. Its distribution under the model comes from refits of
simulated data. All equations share one trajectory, so this test sees more than tests of single equations, but not which
equation is wrong.

Simulations end when the verdict is settled (monte_carlo.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.diagnostics.monte_carlo import p_value, simulate_until_decided
from odinfer.likelihood.likelihood import Likelihood
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.uncertainty.bootstrap import refitted
from odinfer.uncertainty.maximum import Maximum

Array = NDArray[np.float64]

DRAWS = 199  # simulations
_SIDE_BY_SIDE = 1_000_000  # values of simulations that are fitted at once
_ACCURACY = 1e-3  # nats per experiment to which they are fitted: what is compared differs by many times as much
_TRIES, _FEWEST_TRIES = 30, 8  # of the optimiser, for usual trajectories and for those that cost many times as much
# Values in all simulations that are fitted unasked, where data are compressed (likelihood/observation_operator.py) and
# elsewhere; and the fewest simulations that say anything.
_UNASKED, _UNASKED_WHOLE, _FEWEST = 200_000_000, 10_000_000, 39


@dataclass(frozen=True)
class ModelTest:
    """The result of the test of a model.

    Attributes:
        signal: nats of evidence, over all columns, for a signal in the residuals of its best trajectory, and for more
            noise than is known.
        p: probability that a right model leaves as much; NaN if no trajectory of this one follows the data.
        draws: number of simulations.
    """

    signal: float
    p: float
    draws: int

    @staticmethod
    def of(stored: Any) -> ModelTest:
        """As a fit keeps it in its details; one that says nothing if there was none."""
        own = stored if isinstance(stored, Mapping) else {}
        signal, p = (own.get(name, np.nan) for name in ("signal", "p"))
        return ModelTest(signal, p, own.get("draws", 0))

    def contradicts(self, level: float) -> bool:
        """Decide whether the model is rejected at a level."""
        return self.p <= level


def unasked(problem: Problem, draws: int) -> int:
    """How many of so many simulations are worth their time where nobody asked for them; 0 if too few would be left."""
    affordable = (_UNASKED if problem.fully_observed_gaussian else _UNASKED_WHOLE) // max(int(problem.count.sum()), 1)
    return min(draws, affordable) if affordable >= min(draws, _FEWEST) else 0


def judge_model(
    maximum: Maximum | None, seed: int, draws: int, progress: Progress = no_progress, level: float | None = None
) -> ModelTest:
    """Compare what the best trajectory leaves of the data with what those of data simulated from it leave.

    Args:
        maximum: of the likelihood; None if there is none.
        seed: of the simulations.
        draws: how many.
        progress: told about the progress.
        level: end once the verdict at this level is settled; None to make all simulations for the sake of p.
    """
    if maximum is None:
        return ModelTest(np.nan, np.nan, 0)
    states = maximum.refined.states(maximum.likelihood.t)
    observed = _evidence(maximum.likelihood, states, maximum, maximum.refined.phi[None])
    size = max(_SIDE_BY_SIDE // max(int(maximum.likelihood.problem.count.sum()), 1), 1)

    def simulate(begin: int, end: int) -> Array:
        progress("testing the model", begin / draws)
        parts = [_refit_signals(maximum, min(size, end - i), (seed, i)) for i in range(begin, end, size)]
        return np.concatenate(parts)[:, None]

    null = simulate_until_decided(simulate, observed, draws, level)
    return ModelTest(float(observed[0]), p_value(observed, null), len(null))


def _refit_signals(maximum: Maximum, size: int, seed: tuple[int, int]) -> Array:
    """Nats of evidence (n,) for a signal in what refits leave of n sets of simulated data, those that succeed."""
    refined, accuracy = maximum.refined, _ACCURACY * maximum.likelihood.unknowns.experiments
    most = max(int(_TRIES / refined.effort), _FEWEST_TRIES)
    on, found = refitted(maximum.nearby, refined, maximum.info.sigma, size, seed, accuracy, most)
    good = np.flatnonzero(np.isfinite(found.value))
    own = found.take(good)
    return _evidence(on.likelihood.take(good), on.observed(own), maximum, own.phi)


def _evidence(likelihood: Likelihood, x: Sequence[Array], maximum: Maximum, phi: Array) -> Array:
    """Nats of evidence (B,) against states x (B, N, K) by their residuals."""
    noise = maximum.refined.sigma**2
    return np.asarray((likelihood.signal(x, noise, phi) + likelihood.excess(x, noise, phi)).sum(-1))


def signal_left(maximum: Maximum) -> Array:
    """Nats of evidence (K,), state by state, for a signal in the residuals of a maximum of the likelihood."""
    likelihood, refined = maximum.likelihood, maximum.refined
    return np.asarray(likelihood.signal(refined.states(likelihood.t), refined.sigma**2, refined.phi[None])[0])
