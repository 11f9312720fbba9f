"""Empirical Bayes for long series: the evidence by chains, in linear time.

A part of the data that dense algebra can search globally shows where to start: all of it averaged, and stretches of it
at finer resolution, since averages may have lost what is fast. The best of these starts climbs the evidence of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.evidence import LOG_RATIOS, Hyperparameters, Limits, Series, empirical_bayes
from odinfer.gp.markov.binning import Binned, joined
from odinfer.gp.markov.block_tridiagonal import Factor
from odinfer.gp.markov.state_space import Chain

Array = NDArray[np.float64]

_SAMPLE = 120  # observations of a sample
_SERIES = 10  # experiments of a sample
_MANY = 4000  # observations of many experiments: more of them determine no smoothness any better


def bayes_by_chains(
    series: Sequence[Sequence[Series]],
    kernels: Sequence[str],
    known_noise: Sequence[float | None],
    margin: float,
    bounds: tuple[float, float],
    weak_prior: bool,
) -> list[Hyperparameters]:
    """Hyperparameters that maximise the evidence; as `empirical_bayes`, for kernels that have chains."""
    limits = Limits.of(bounds, weak_prior)
    found = []
    for state, known in zip(series, known_noise, strict=True):
        starts = list(_subsample(state, kernels, known, margin, bounds, weak_prior))
        some = state[:: max(sum(len(s.t) for s in state) // _MANY, 1)]
        worth = [at_ratio(h, _log_ratio(h), _bin(h, some), known, limits)[1] for h in starts]
        best = starts[int(np.argmax(worth))]
        # One set of bins for all of a climb, or the evidence would jump.
        own = _climb(best, _bin(best, some), known, limits)
        whole = own if len(some) == len(state) else at_ratio(own, _log_ratio(own), _bin(own, state), known, limits)[0]
        found.append(whole)
    return found


def _log_ratio(hyper: Hyperparameters) -> float:
    return float(np.log(hyper.noise / hyper.variance))


def at_ratio(
    hyper: Hyperparameters, log_rho: float, binned: Sequence[Binned], known: float | None, limits: Limits
) -> tuple[Hyperparameters, float]:
    """A process with a given shape and noise ratio and its best variance, and its evidence with the prior of the ratio.

    With P the precision of the chain of unit variance and H picking its values at the n observations, the determinant
    of C + ρI is that of P + HᵀH/ρ, divided by that of P, times ρⁿ; and yᵀ(C + ρI)⁻¹y is the least of
    |y − Hp|²/ρ + pᵀPp.
    """
    rho = float(np.exp(log_rho))
    first = np.concatenate([np.arange(len(b.t)) == 0 for b in binned])
    chain = Chain.of([hyper], np.concatenate([b.t for b in binned]), first)
    y, weight = (np.concatenate([getattr(b, v) for b in binned])[:, 0] for v in ("y", "count"))
    weight, n = weight / rho, float(sum(b.count.sum() for b in binned))
    band = chain.band(np.ones(1))
    band[0, :: chain.d] += weight
    factor = Factor.of(band, chain.d)
    if factor is None:
        return hyper, -np.inf
    right = np.zeros(band.shape[1])
    right[:: chain.d] = weight * y
    p = factor.solve(right).reshape(1, -1, chain.d)
    left = y - p[0, :, 0]
    quad = float(chain.energy(p)[0] + (weight * left * left).sum() + sum(b.within[0] for b in binned) / rho)
    logdet = float(2.0 * factor.log_diagonal.sum() - chain.logdet[0] + n * log_rho)
    if known is None:
        low, high = max(limits.low, limits.low / rho), max(limits.high, limits.low / rho)
        v = min(max(quad / n, low), high)
    else:
        v = known / rho
    evidence = float(-0.5 * (n * np.log(2.0 * np.pi * v) + logdet + quad / v))
    found = replace(hyper, variance=v, noise=rho * v, evidence=evidence)
    return found, evidence - float(limits.prior(np.array(log_rho)))


def _bin(hyper: Hyperparameters, state: Sequence[Series]) -> list[Binned]:
    """Each series with observations joined that a process cannot tell apart."""
    return [Binned.of(s.t, s.y[:, None], joined([hyper], s.t)) for s in state]


def _climb(start: Hyperparameters, binned: Sequence[Binned], known: float | None, limits: Limits) -> Hyperparameters:
    """The local maximum over log shapes and log ρ."""
    from scipy.optimize import minimize

    d = len(start.shape)
    low, high = np.log(limits.low), np.log(limits.high)

    def at(v: Array) -> tuple[Hyperparameters, float]:
        shape = tuple(np.exp(np.clip(v[:d], low, high)).tolist())
        return at_ratio(
            replace(start, shape=shape), float(np.clip(v[d], LOG_RATIOS[0], LOG_RATIOS[-1])), binned, known, limits
        )

    first = np.append(np.log(start.shape), np.log(start.noise / start.variance))
    simplex = first + np.vstack([np.zeros(d + 1), 0.2 * np.eye(d + 1)])
    options = {"initial_simplex": simplex, "xatol": 3e-3, "fatol": 1e-3, "maxfev": 60 * (d + 1)}
    result = minimize(lambda v: -at(v)[1], first, method="Nelder-Mead", options=options)
    return at(result.x)[0]


def _subsample(
    state: Sequence[Series],
    kernels: Sequence[str],
    known: float | None,
    margin: float,
    bounds: tuple[float, float],
    weak_prior: bool,
) -> Iterator[Hyperparameters]:
    """What dense algebra finds in samples of the data; the noise of averages counted back."""
    some = state[:: -(-len(state) // _SERIES)]
    longest = max(len(s.t) for s in some)
    each = max(_SAMPLE // len(some), 20)
    most = max(-(-longest // each), 1)
    for size in sorted({most, max(round(most**0.5), 1), 1}, reverse=True):
        samples = [_average(s, size, each) for s in some]
        samples = [s for s in samples if len(s.t) > 1]
        noise = None if known is None else known / size
        if samples:
            h = empirical_bayes([samples], kernels, [noise], margin, bounds, weak_prior=weak_prior)[0]
            yield replace(h, noise=h.noise * size)


def _average(s: Series, size: int, most: int) -> Series:
    """The first observations in groups of `size`, at most so many groups."""
    n = min(len(s.t) // size, most) * size
    return Series(*(v[:n].reshape(-1, size).mean(1) for v in (s.t, s.y)))
