"""Straight lines, of which everything is known: data, and what linear regression says."""

import numpy as np
from scipy import stats

import odinfer as od


def regression(t, y):
    """Slope, its standard error and the degrees of freedom."""
    found = stats.linregress(t, y)
    return found.slope, found.stderr, len(t) - 2


def line_data(seed: int, n: int) -> od.Data:
    t = np.linspace(0.0, 3.0, n)
    return od.Data(t, 1.0 + 0.5 * t + 0.2 * np.random.default_rng(seed).normal(size=n), states=["x"])
