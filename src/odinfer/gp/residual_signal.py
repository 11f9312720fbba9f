"""Evidence for a smooth signal in residuals, against independent noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.kernels import kernel

Array = NDArray[np.float64]

# Signal-to-noise ratios of variances that are tried, from hardly visible to hardly any noise.
_RATIOS = 10.0 ** np.arange(-2.0, 4.1, 0.25)
SUSPICIOUS = 1.0  # nats of evidence for a signal, which right models leave in about 2 % of all states
# Lengthscales of a signal of which nothing is known, in spans of the data.
_LENGTHSCALES = (0.05, 0.1, 0.2, 0.4)
_BINS = 300  # a signal of these lengthscales hardly changes within one


def signal(t: Sequence[Array], residuals: Sequence[Array], hyper: Hyperparameters) -> tuple[float, float]:
    """Evidence in nats for a smooth signal in residuals, against white noise (0 where there is none); and the noise.

    The signal is a Gaussian process with the smoother's kernel and lengthscale, the noise level is profiled out on both
    sides, so the value does not depend on units.

    Args:
        t: times of each experiment in the smoother's units.
        residuals: observed minus estimated, NaN where nothing was observed.
        hyper: of the smoother of this state.

    Returns:
        The evidence, and the standard deviation of the noise beside the signal, if there is one.
    """
    gain, variance, white = _gains(t, [r[None] for r in residuals], hyper.kernel, hyper.shape)
    best = int(gain[0].argmax())
    if gain[0, best] <= 0:
        return 0.0, float(np.sqrt(white[0]))
    return float(gain[0, best]), float(np.sqrt(variance[0, best]))


def evidence(t: Sequence[Array], residuals: Sequence[Array]) -> Array:
    """The same in nats (B,) for B sets of residuals, each (B, n) per experiment, and a signal of unknown smoothness.

    The mean over lengthscales and signal-to-noise ratios; below 0 where white noise is the better explanation.
    """
    from scipy.special import logsumexp

    span = max(float(times[-1] - times[0]) for times in t)
    binned = [_binned(times, r) for times, r in zip(t, residuals, strict=True)]
    gains = [_compare(binned, "rbf", (share * span,))[0] for share in _LENGTHSCALES if span > 0]
    if not gains:
        return np.zeros(len(residuals[0]))
    grid = np.concatenate(gains, 1)
    return np.asarray(logsumexp(grid, axis=1) - np.log(grid.shape[1]))


class _Binned(NamedTuple):
    """Residuals of one experiment as far as a signal that is constant within bins can tell them apart.

    Of the n values in a bin only the mean holds any of the signal: √n times the mean is √n times the signal, and noise
    with the variance of one value. The rest is noise alone, and counts by its sum of squares.

    Attributes:
        t, weight: a time and √n of every bin (b,).
        values: √n times the means (B, b).
        rest, more: sums of squares about the means (B,), of so many more values.
    """

    t: Array
    weight: Array
    values: Array
    rest: Array
    more: int


def _binned(t: Array, r: Array, most: int = _BINS) -> _Binned:
    """Residuals (B, n), missing in all of the B sets or in none, in bins of equal length unless there are few."""
    seen = np.isfinite(r).all(0)
    t, r = t[seen], r[:, seen]
    if len(t) <= most:
        return _Binned(t, np.ones(len(t)), r, np.zeros(len(r)), 0)
    place = np.minimum(((t - t[0]) / (t[-1] - t[0]) * most).astype(int), most - 1)
    begin = np.flatnonzero(np.diff(place, prepend=-1))
    count = np.diff(np.append(begin, len(t)))
    mean = np.add.reduceat(r, begin, axis=1) / count
    rest = ((r - np.repeat(mean, count, 1)) ** 2).sum(1)
    weight = np.sqrt(count)
    return _Binned(np.add.reduceat(t, begin) / count, weight, weight * mean, rest, len(t) - len(count))


def _gains(
    t: Sequence[Array], residuals: Sequence[Array], name: str, shape: tuple[float, ...]
) -> tuple[Array, Array, Array]:
    """As `_compared`, for residuals (B, n) as they are."""
    return _compare([_binned(times, r, len(times)) for times, r in zip(t, residuals, strict=True)], name, shape)


def _compare(binned: Sequence[_Binned], name: str, shape: tuple[float, ...]) -> tuple[Array, Array, Array]:
    """Nats gained and noise variances (B, R) by a signal at each ratio, and the variance without one (B,)."""
    eigenvalues, rotated, known = [], [], {}  # experiments at the same times share a covariance
    for b in binned:
        key = b.t.tobytes(), b.weight.tobytes()
        if key not in known:
            C = kernel(name).gram(b.t, b.t, np.array(shape)).C
            known[key] = np.linalg.eigh(C * np.outer(b.weight, b.weight))
        w, V = known[key]
        eigenvalues.append(np.maximum(w, 0.0))
        rotated.append(b.values @ V)
    w, q = np.concatenate(eigenvalues), np.concatenate(rotated, 1) ** 2
    rest, n = sum(b.rest for b in binned), q.shape[1] + sum(b.more for b in binned)
    total = 1.0 + _RATIOS[:, None] * w
    variance = np.maximum((q @ (1.0 / total).T + np.reshape(rest, (-1, 1))) / n, 1e-300)
    white = np.maximum((q.sum(1) + rest) / n, 1e-300)
    gain = -0.5 * n * np.log(variance / white[:, None]) - 0.5 * np.log(total).sum(1)
    return gain, variance, white
