"""Which series are unlike the rest: an estimate far from the median, by the spread of all and by its own error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from odinfer.apps.each.row import Estimate
from odinfer.uncertainty.results import BAND

Array = NDArray[np.float64]

FEWEST = 8  # series, below which there is no rest to be unlike
_CHANCE = 0.05  # of naming any of series that are all alike, were their estimates normal
_MAD = 1.4826  # makes the median absolute deviation a standard deviation


def distances(estimates: Sequence[Estimate]) -> Array:
    """How far each estimate is from their median, in standard deviations (E,); 0 where nothing can be said.

    The standard deviation is the larger of that of all estimates (robust, so that a few far ones do not hide
    themselves) and the estimate's own: what is merely unknown is not unlike. Positive estimates are compared by
    their logarithms.
    """
    table = np.array(estimates, float).reshape(-1, 3)
    known = np.isfinite(table[:, 0])
    if known.sum() < FEWEST:
        return np.zeros(len(table))
    with np.errstate(all="ignore"):
        if (table[known, 0] > 0).all():
            table = np.log(np.maximum(table, 0.0))
        value, low, high = table.T
        centre = np.median(value[known])
        spread = _MAD * np.median(np.abs(value[known] - centre))
        own = np.nan_to_num((high - low) / (2 * BAND), nan=0.0, posinf=np.inf)
        away: Array = np.nan_to_num(np.abs(value - centre) / np.maximum(spread, own), nan=0.0, posinf=0.0)
    return away


def unlike(quantities: Mapping[str, Mapping[str, Estimate]]) -> dict[str, tuple[str, ...]]:
    """The series that are unlike the rest, the most unlike first, each with what is unlike of it.

    Args:
        quantities: name → series → estimate.
    """
    found: dict[str, dict[str, float]] = {}
    count = sum(map(len, quantities.values()))
    far = NormalDist().inv_cdf(1.0 - 0.5 * _CHANCE / max(count, 1))
    for name, by_series in quantities.items():
        for series, distance in zip(by_series, distances(list(by_series.values())).tolist(), strict=True):
            if distance > far:
                found.setdefault(series, {})[name] = distance
    order = sorted(found, key=lambda series: -max(found[series].values()))
    return {series: tuple(sorted(found[series], key=lambda n: -found[series][n])) for series in order}
