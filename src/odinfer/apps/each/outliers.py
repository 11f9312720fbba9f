"""Find outliers among series: estimates far from the median, by the spread of all and by their own errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from odinfer.apps.each.row import Estimate
from odinfer.uncertainty.results import BAND

Array = NDArray[np.float64]

FEWEST = 8  # series below which no outliers are named
_CHANCE = 0.05  # probability of naming any series if all estimates come from one normal distribution
_MAD = 1.4826  # makes the median absolute deviation a standard deviation


def distances(estimates: Sequence[Estimate]) -> Array:
    """Compute how far each estimate is from their median, in standard deviations (E,); 0 if that is not known.

    The standard deviation is the larger of the spread of all estimates (by the median absolute deviation) and the
    estimate's own, so that an uncertain estimate is no outlier. Positive estimates are compared by their logarithms.
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


def find_outliers(quantities: Mapping[str, Mapping[str, Estimate]]) -> dict[str, tuple[str, ...]]:
    """Name the outliers, the farthest first, each with its quantities that are far out.

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
