"""Join observations that are too close in time for a process to distinguish.

The precision of a chain grows with a high power of one over the lag, and with it what rounding does; and where a series
holds hundreds of observations per lengthscale, their means say the same as they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.markov.state_space import order, own_time

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

# The shortest lag in units of 1/λ, by the size of the chain's state: there rounding costs some 1e-3 nats.
_SHORTEST = {2: 3e-4, 3: 6e-3, 4: 3e-2}
# Bins of a series that are enough, if none need be longer, in units of 1/λ, to have no more.
_ENOUGH, _LONGEST = 20_000, 0.1


@dataclass(frozen=True, eq=False)
class Binned:
    """Observations of K states at n times, joined to those of B bins.

    Attributes:
        t: mean times (B,).
        y: mean observations (B, K), zero where there is none.
        count: how many (B, K).
        within: sums of squares within the bins (K,), about straight lines: noise alone, were there any number of bins.
    """

    t: Array
    y: Array
    count: Array
    within: Array

    @staticmethod
    def of(t: Array, y: Array, label: Index) -> Binned:
        """Times (n,) in order and observations (n, K), NaN where there is none, with the bin (n,) of each."""
        seen = np.isfinite(y)
        y0 = np.where(seen, y, 0.0)
        if len(t) == label[-1] + 1:  # every time alone
            return Binned(t, y0, seen.astype(float), np.zeros(y.shape[1]))
        first = np.searchsorted(label, np.arange(label[-1] + 1))
        count = np.add.reduceat(seen.astype(float), first, 0)
        mean = np.add.reduceat(y0, first, 0) / np.maximum(count, 1.0)
        times = np.add.reduceat(t, first) / np.diff(np.append(first, len(t)))
        within = [
            _within_bins(t - times[label], y0[:, k] - mean[label, k], seen[:, k], label, times, mean[:, k], n)
            for k, n in enumerate(count.T)
        ]
        return Binned(times, mean, count, np.array(within))


def _within_bins(dt: Array, dy: Array, seen: Mask, label: Index, t: Array, mean: Array, count: Array) -> float:
    """Squares of deviations dy (n,) within bins about the slopes of their means, less what the slopes' noise adds."""
    full = np.flatnonzero(count)
    if len(full) < 3:
        return float(np.square(dy[seen]).sum())
    gap = t[full][2:] - t[full][:-2]
    slope, doubt = np.zeros(len(t)), np.zeros(len(t))  # of bins that have neighbours on both sides
    slope[full[1:-1]] = (mean[full][2:] - mean[full][:-2]) / gap
    doubt[full[1:-1]] = (1.0 / count[full][2:] + 1.0 / count[full][:-2]) / gap**2
    free = float(count.sum() - len(full))
    added = float((dt**2 * doubt[label])[seen].sum())
    total = float(np.square(dy - slope[label] * dt)[seen].sum())
    return total * free / (free + added) if free > 0 else 0.0


def joined(hypers: Sequence[Hyperparameters], t: Array) -> Index:
    """Which bin each of the times (n,) from the start of the data belongs to, such that no lag is too short."""
    steps = np.zeros(len(t) - 1)
    for h in hypers:
        least = _SHORTEST[order(h.kernel) or 3]
        steps = np.maximum(steps, np.diff(own_time(h.kernel, h.shape, t)[0]) / least)
    labels = _labels(steps)
    shares = np.geomspace(max(_SHORTEST[order(h.kernel) or 3] for h in hypers) / _LONGEST, 1.0, 9)[-2::-1]
    for share in shares if len(t) > _ENOUGH else ():
        if labels[-1] < _ENOUGH:
            break
        labels = _labels(share * steps)
    return labels


def _labels(steps: Array) -> Index:
    """Bins (n,) of times with given steps (n−1,) between them, in units of the shortest step between two bins."""
    at = np.append(0.0, np.cumsum(np.minimum(steps, 2.0)))  # a long step opens a new bin, whatever its length
    cells = np.floor(at + 1e-9)
    return np.append(0, np.cumsum(np.diff(cells) > 0)).astype(np.int64)
