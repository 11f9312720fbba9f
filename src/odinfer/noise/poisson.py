"""poisson(mean)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odinfer.noise.family import Array, Counts, Rows, positive, uncorrelated
from odinfer.noise.special import log_mass, log_poisson_tail

MOST = 1e15  # beyond, a Poisson count is drawn as a rounded normal: numpy's integers end at 9e18


def poisson_draws(rng: np.random.Generator, mean: Array) -> Array:
    """Counts of these means, however large."""
    many = np.floor(mean + np.sqrt(mean) * rng.normal(size=mean.shape))
    return np.where(mean > MOST, many, rng.poisson(np.minimum(mean, MOST)))


@dataclass(frozen=True)
class Poisson(Counts):
    def in_domain(self, a: Sequence[Any], xp: Any = np) -> Any:
        return (a[0] >= 0) & xp.isfinite(a[0])

    def log_mass(self, y: Any, a: Sequence[Any], xp: Any) -> Any:
        return log_mass(y, a[0], y - a[0], xp)

    def log_tail(self, y: Any, a: Sequence[Any], upper: bool, xp: Any) -> Any:
        return log_poisson_tail(y, a[0], upper, xp)

    def random(self, rng: np.random.Generator, a: Sequence[Array]) -> Array:
        return poisson_draws(rng, np.asarray(a[0], float))

    @np.errstate(all="ignore")
    def rows(self, y: Array, a: Sequence[Array]) -> Rows:
        m = positive(a[0])
        return uncorrelated([(m - y) / m], [1 / np.sqrt(m)])
