"""Gaussian noise with one standard deviation per state, known or estimated: the only place with its log-likelihood.

States and squares are (..., K) with any leading axes, so that one data set and many side by side are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Plain:
    """Noise of K states, at its maximum likelihood where it is not known.

    Attributes:
        known: standard deviations (K,), NaN where they are estimated.
        count: observations of each state (K,).
        floor: smallest variance (K,): exact data must not give an infinite likelihood.
    """

    known: Array
    count: NDArray[np.int64]
    floor: Array | float = 1e-300

    @staticmethod
    def of(problem: Problem, floor: Array | float = 1e-300) -> Plain:
        return Plain(problem.known_sigma, problem.count, floor)

    @property
    def is_known(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.known)

    def best(self, x: Sequence[Array], y: Sequence[Array]) -> tuple[Array, Array]:
        """Variances (..., K) and the log-likelihood (...) of states x against observations y; see `Noise`."""
        rss = squares(x, y)
        variance = self.variance(rss)
        return variance, self.loglik(rss, variance)

    def whitened(self, x: Array, y: Array, variance: Array) -> tuple[Array, Array]:
        """(x − y)/σ and 1/σ, zero where nothing was observed; see `Noise`."""
        r = x - y
        weight = np.where(np.isfinite(r), np.sqrt(1.0 / variance)[..., None, :], 0.0)
        return np.nan_to_num(r) * weight, weight

    def variance(self, squares: Array) -> Array:
        """Variances (..., K): known, or those that make residuals with these sums of squares most likely."""
        return np.where(self.is_known, self.known**2, np.maximum(squares / self.count, self.floor))

    def loglik(self, squares: Array, variance: Array | None = None) -> Array:
        """log p of all observations (...), at the best variances if none are given."""
        v = self.variance(squares) if variance is None else variance
        return np.asarray(-0.5 * (self.count * np.log(2 * np.pi * v) + squares / v).sum(-1))

    def draw(self, rng: np.random.Generator, x: Array, y: Array, sigma: Array, size: int) -> Array:
        """`size` sets of observations (size, N, K) of states x (..., N, K); missing where those in y (N, K) are."""
        return np.where(np.isfinite(y), x + sigma * rng.normal(size=(size, *y.shape)), np.nan)


def squares(x: Sequence[Array], y: Sequence[Array]) -> Array:
    """Residual sums of squares (..., K) of states x against observations y, (..., N, K) per experiment.

    What was not observed does not count; a state that is not finite does, and makes the sum so.
    """
    parts = [np.where(np.isnan(b), 0.0, a - b) ** 2 for a, b in zip(x, y, strict=True)]
    return np.asarray(np.sum([part.sum(-2) for part in parts], 0))


def log_density(x: Any, y: Any, seen: Any, sigma: Any) -> Any:
    """The same in JAX, for σ (K,) that is sampled: log p of y (N, K), without the constant.

    Args:
        seen: one where a value was observed, zero elsewhere (N, K).
    """
    from odinfer._jax import jnp

    z = jnp.where(seen > 0, (x - y) / sigma, 0.0)
    return -0.5 * (z**2).sum() - (seen.sum(0) * jnp.log(sigma)).sum()
