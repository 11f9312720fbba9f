"""binomial(mean, n): counts out of n, each with probability mean/n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from odinfer.noise.family import Array, Counts, Rows, positive, uncorrelated
from odinfer.noise.special import log_beta, log_split

MOST = 9e18  # beyond, numpy's integers end


@dataclass(frozen=True)
class Binomial(Counts):
    arguments: ClassVar[tuple[str, ...]] = ("mean", "n")
    least: ClassVar[int] = 2

    def in_domain(self, a: Sequence[Any], xp: Any = np) -> Any:
        m, n = a
        return (m >= 0) & (m <= n) & (n == xp.floor(n)) & xp.isfinite(n)

    def log_mass(self, y: Any, a: Sequence[Any], xp: Any) -> Any:
        m, n = a
        some = y <= n
        y = xp.where(some, y, 0.0)
        return xp.where(some, log_split(y, n - y, m, n - m, y - m, xp), -np.inf)

    def log_tail(self, y: Any, a: Sequence[Any], upper: bool, xp: Any) -> Any:
        m, n = a
        some = y < n
        y, m, n = xp.where(some, y, 0.0), xp.where(some, m, 1.0), xp.where(some, n, 2.0)
        p, q = m / n, (n - m) / n
        log_p = log_beta(y + 1.0, n - y, p, q, xp) if upper else log_beta(n - y, y + 1.0, q, p, xp)
        return xp.where(some, log_p, -np.inf if upper else 0.0)

    def most(self, a: Sequence[Array]) -> Array:
        return a[1]

    def random(self, rng: np.random.Generator, a: Sequence[Array]) -> Array:
        m, n = a[0], np.minimum(a[1], MOST)
        return np.asarray(rng.binomial(n.astype(np.int64), np.clip(m / np.maximum(n, 1.0), 0.0, 1.0)), float)

    @np.errstate(all="ignore")
    def rows(self, y: Array, a: Sequence[Array]) -> Rows:
        n = np.maximum(positive(a[1]), 1.0)
        m = np.clip(positive(a[0]), None, n * (1 - 1e-15))
        variance = m * (n - m) / n
        return uncorrelated([(m - y) / variance, np.zeros_like(m)], [1 / np.sqrt(variance), np.zeros_like(m)])
