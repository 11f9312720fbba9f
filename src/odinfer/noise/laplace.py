"""laplace(mean, b): the absolute deviation has mean b."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from odinfer.noise.family import Array, LocationScale, Rows, uncorrelated


@dataclass(frozen=True)
class Laplace(LocationScale):
    arguments: ClassVar[tuple[str, ...]] = ("mean", "b")

    def standard_log_density(self, z: Any, shape: Sequence[Any], xp: Any = np) -> Any:
        return -abs(z) - np.log(2)

    def standard_slope(self, z: Array, shape: Sequence[Array]) -> Array:
        return -np.sign(z)

    def standard_log_cdf(self, z: Any, shape: Sequence[Any], xp: Any = np) -> Any:
        return xp.where(z < 0, z - np.log(2), xp.log1p(-0.5 * xp.exp(-xp.where(z < 0, 0.0, z))))

    def standard_quantile(self, p: Array, shape: Sequence[Array]) -> Array:
        return np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p)))

    def standard_draw(self, rng: np.random.Generator, shape: Sequence[Array], size: tuple[int, ...]) -> Array:
        return rng.laplace(size=size)

    @np.errstate(all="ignore")
    def rows(self, y: Array, a: Sequence[Array]) -> Rows:
        m, b = self.clipped(a)
        z = (self.transformed(y) - self.transformed(m)) / b
        by_m = self.slope(m) / b
        return uncorrelated([-np.sign(z) * by_m, (1 - abs(z)) / b], [by_m, 1 / b])
