"""normal(mean, sd)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from odinfer.noise.family import Array, LocationScale, Rows, uncorrelated
from odinfer.noise.special import special


@dataclass(frozen=True)
class Normal(LocationScale):
    profiled: ClassVar[bool] = True

    def standard_log_density(self, z: Any, shape: Sequence[Any], xp: Any = np) -> Any:
        return -0.5 * z**2 - 0.5 * np.log(2 * np.pi)

    def standard_slope(self, z: Array, shape: Sequence[Array]) -> Array:
        return -z

    def standard_log_cdf(self, z: Any, shape: Sequence[Any], xp: Any = np) -> Any:
        return special(xp).log_ndtr(z)

    def standard_hazard(self, z: Array, shape: Sequence[Array]) -> Array:
        return np.asarray(np.sqrt(2 / np.pi) / special(np).erfcx(-z / np.sqrt(2)))

    def standard_quantile(self, p: Array, shape: Sequence[Array]) -> Array:
        return np.asarray(special(np).ndtri(p))

    def standard_draw(self, rng: np.random.Generator, shape: Sequence[Array], size: tuple[int, ...]) -> Array:
        return rng.normal(size=size)

    @np.errstate(all="ignore")
    def rows(self, y: Array, a: Sequence[Array]) -> Rows:
        m, s = self.clipped(a)
        z = (self.transformed(y) - self.transformed(m)) / s
        by_m = self.slope(m) / s
        return uncorrelated([-z * by_m, (1 - z**2) / s], [by_m, np.sqrt(2) / s])
