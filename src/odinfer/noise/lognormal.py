"""lognormal(median, sd): the logarithm is normal, with this standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from odinfer.noise.family import Array, positive
from odinfer.noise.normal import Normal


class OnLogs:
    """What makes a family of the logarithm of another family: of positive values, with the median first."""

    def refuses(self, y: Array) -> str | None:
        return None if np.all((y > 0) | np.isnan(y)) else "must be positive"

    @np.errstate(all="ignore")
    def transformed(self, y: Any, xp: Any = np) -> Any:
        return xp.where(y > 0, xp.log(xp.where(y > 0, y, 1.0)), np.nan)

    def restored(self, x: Array) -> Array:
        return np.exp(x)

    def slope(self, y: Any) -> Any:
        return 1 / y

    def clipped(self, a: Sequence[Array]) -> list[Array]:
        return [positive(value) for value in a]


@dataclass(frozen=True)
class Lognormal(OnLogs, Normal):
    arguments: ClassVar[tuple[str, ...]] = ("median", "sd")
