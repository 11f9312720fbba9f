"""The observation model of fully observed states with Gaussian noise.

States and squares are (..., K) with any leading axes, so that one data set and many side by side are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from odinfer.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Noise of K states, at its maximum likelihood where it is not known.

    Attributes:
        known: standard deviations (K,), NaN where they are estimated.
        count: observations of each state (K,).
        floor: smallest variance (K,): exact data must not give an infinite likelihood.
        seen: per experiment, where something was observed (N, K).
    """

    known: Array
    count: NDArray[np.int64]
    floor: Array | float = 1e-300
    seen: tuple[NDArray[np.bool_], ...] = ()

    @staticmethod
    def of(problem: Problem, floor: Array | float = 1e-300) -> GaussianNoise:
        seen = tuple(np.isfinite(e.y) for e in problem.data.experiments)
        return GaussianNoise(problem.known_sigma, problem.count, floor, seen)

    @property
    def is_known(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.known)

    @property
    def owners(self) -> NDArray[np.int64]:
        return np.arange(len(self.known))

    def best(self, x: Sequence[Array], y: Sequence[Array], phi: Array | None = None) -> tuple[Array, Array]:
        """Variances (..., K) and the log-likelihood (...) of states x against observations y; see `Observation`."""
        rss = squares(x, y)
        variance = self.variance(rss)
        return variance, self.loglik(rss, variance)

    def whitened(self, x: Array, y: Array, variance: Array) -> tuple[Array, Array]:
        """(x − y)/σ and 1/σ, zero where nothing was observed."""
        r = x - y
        weight = np.where(np.isfinite(r), np.sqrt(1.0 / variance)[..., None, :], 0.0)
        return np.nan_to_num(r) * weight, weight

    def rows(self, e: int, x: Array, S: Array, y: Array, noise: Array, phi: Array) -> tuple[Array, Array]:
        r, weight = self.whitened(x, y, noise)
        return r, S * weight[..., None]

    def predicted(self, e: int, x: Array, phi: Array, t: Array | None = None) -> Array:
        return x

    def linearised(self, e: int, x: Array, S: Array, phi: Array, t: Array) -> tuple[Array, Array]:
        return x, S

    def outer(
        self, e: int, x: Array, noise: Array, phi: Array, t: Array, low: Array, high: Array, level: float
    ) -> tuple[Array, Array]:
        half = ndtri(0.5 * (1.0 + level)) * np.sqrt(noise)[:, None]
        return x - np.hypot(x - low, half), x + np.hypot(high - x, half)

    def residuals(self, e: int, x: Array, y: Array, noise: Array, phi: Array) -> Array:
        return (y - x) / np.sqrt(noise)[..., None, :]

    def variance(self, squares: Array) -> Array:
        """Variances (..., K): known, or those that make residuals with these sums of squares most likely."""
        return np.where(self.is_known, self.known**2, np.maximum(squares / self.count, self.floor))

    def loglik(self, squares: Array, variance: Array | None = None) -> Array:
        """log p of all observations (...), at the best variances if none are given."""
        v = self.variance(squares) if variance is None else variance
        return np.asarray(-0.5 * (self.count * np.log(2 * np.pi * v) + squares / v).sum(-1))

    def draw(self, rng: np.random.Generator, e: int, x: Array, phi: Array, sigma: Array, size: int) -> Array:
        seen = self.seen[e]
        return np.where(seen, x + sigma * rng.normal(size=(size, *seen.shape)), np.nan)


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
