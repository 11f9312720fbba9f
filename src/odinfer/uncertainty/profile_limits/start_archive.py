"""All places at which a likelihood was found that is not too low: where to start from for another one nearby.

A likelihood has several ridges. The one that is highest at a value of an unknown need not be so at the next one, and
then only what was found on the others leads to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# E-folds, or shares of what counts as nothing: where no unknown is further apart, places are the same, or alike.
_SAME, _ALIKE = 0.05, 0.3
_MOST = 600  # places that are kept, the best of them


class Pool:
    """Places v (n, P) and what the objective is there (n,).

    Args:
        least: sizes (P,) below which unknowns are as good as 0; infinite for those that are logs.
    """

    def __init__(self, least: Array) -> None:
        self.least = least
        self.v, self.value = np.empty((0, len(least))), np.empty(0)

    def add(self, v: Array, value: Array, most: float) -> None:
        """Places (B, P) with objectives (B,) that are not above the most."""
        low = np.flatnonzero((value <= most) & np.isfinite(v).all(1))
        every, values = np.concatenate([self.v, v[low]]), np.concatenate([self.value, value[low]])
        order = np.argsort(values, kind="stable")
        _, first = np.unique(np.round(self._scaled(every[order]) / _SAME), axis=0, return_index=True)
        kept = order[np.sort(first)[:_MOST]]
        self.v, self.value = every[kept], values[kept]

    def best(self, count: int, among: NDArray[np.bool_] | None = None) -> Array:
        """Places (≤ count, P) where the objective is least, that are not alike; among some (n,) only, if given."""
        order = np.argsort(self.value, kind="stable")
        return self._unlike(order if among is None else order[among[order]], self._scaled(self.v), count)

    def near(self, place: int, value: float, count: int) -> Array:
        """Places (≤ count, P) next to a value of an unknown, that are not alike in the others."""
        z, goal = self._scaled(self.v), np.zeros(len(self.least))
        goal[place] = value
        order = np.argsort(np.abs(z[:, place] - self._scaled(goal)[place]), kind="stable")
        return self._unlike(order, np.delete(z, place, 1), count)

    def _unlike(self, order: NDArray[np.int64], z: Array, count: int) -> Array:
        taken: list[int] = []
        for i in order.tolist():
            if all(np.abs(z[i] - z[j]).max(initial=0.0) > _ALIKE for j in taken):
                taken.append(i)
            if len(taken) == count:
                break
        return self.v[taken]

    def _scaled(self, v: Array) -> Array:
        """On a scale on which all magnitudes, and both signs, are apart."""
        with np.errstate(over="ignore"):
            return np.where(np.isinf(self.least), v, np.arcsinh(v / self.least))
