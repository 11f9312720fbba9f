"""Convergence diagnostics of Markov chains: R-hat, effective sample sizes and a verdict."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

Array = NDArray[np.float64]

# Chains agree below this R-hat; below so many effective draws the posterior mean itself is a guess.
R_HAT_LIMIT, ESS_LIMIT, DIVERGENT_LIMIT = 1.05, 100.0, 0.01


def split_chains(draws: Array, parts: int = 2) -> Array:
    """Chains (C, N) cut into `parts` pieces each, (parts·C, N // parts); a drift shows as disagreement."""
    n = draws.shape[1] // parts
    return draws[:, draws.shape[1] - parts * n :].reshape(parts * draws.shape[0], n)


def r_hat(draws: Array) -> float:
    """Split R-hat of chains (C, N), the larger of the rank-normalised (location) and the folded one (spread).

    1 for chains that agree; infinite for chains each stuck at its own value; NaN for fewer than 4 draws.
    """
    if draws.shape[1] < 4 or not np.isfinite(draws).all():
        return float("nan")
    pieces = split_chains(draws)
    return max(_basic_r_hat(_normal_scores(v)) for v in (pieces, np.abs(pieces - np.median(pieces))))


def ess(draws: Array) -> float:
    """Bulk effective sample size of chains (C, N): of the rank-normalised pieces, by Geyer's initial sequence."""
    if draws.shape[1] < 4 or not np.isfinite(draws).all():
        return float("nan")
    x = _normal_scores(split_chains(draws))
    C, n = x.shape
    centred = x - x.mean(1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n)
    cov = np.fft.irfft(np.abs(spectrum) ** 2, 2 * n)[:, :n].mean(0) / n
    within = cov[0] * n / (n - 1)
    total = within * (n - 1) / n + x.mean(1).var(ddof=1)
    if not total > 0 or not within > 0:
        return 0.0 if total > 0 else float("nan")
    rho = 1.0 - (within - cov) / total
    rho[0] = 1.0
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(1)
    end = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: end[0] if len(end) else len(pairs)])  # positive and falling
    time = max(2.0 * pairs.sum() - 1.0, 1.0 / np.log10(max(C * n, 10)))
    return float(C * n / time)


def convergence_verdict(
    r_hats: Mapping[str, float], sizes: Mapping[str, float], divergent: float = 0.0
) -> tuple[str, bool]:
    """A sentence on whether to use the result, and the same as a truth value.

    Args:
        r_hats, sizes: R-hat and effective sample size by name.
        divergent: the share of divergent draws, of samplers that know of them.
    """
    if not r_hats:
        return "converged: no parameter was sampled", True
    strange = [n for n in r_hats if not (np.isfinite(r_hats[n]) or np.isposinf(r_hats[n])) or np.isnan(sizes[n])]
    if strange:
        return f"do not use: the chain of {strange[0]} is constant, too short or not finite", False
    worst, fewest = max(r_hats, key=r_hats.__getitem__), min(sizes, key=sizes.__getitem__)
    if r_hats[worst] > R_HAT_LIMIT:
        return f"do not use: the chains have not mixed (R-hat {r_hats[worst]:.3g} for {worst})", False
    if sizes[fewest] < ESS_LIMIT:
        return f"do not use: the chains are too short ({sizes[fewest]:.0f} effective draws of {fewest})", False
    if divergent > DIVERGENT_LIMIT:
        return f"do not use: {divergent:.0%} of the draws diverged", False
    return f"converged: R-hat at most {r_hats[worst]:.3f}, at least {sizes[fewest]:.0f} effective draws", True


def _normal_scores(x: Array) -> Array:
    """Ranks over all chains as normal quantiles: R-hat then works for any distribution."""
    return np.asarray(ndtri((rankdata(x).reshape(x.shape) - 0.375) / (x.size + 0.25)))


def _basic_r_hat(x: Array) -> float:
    n = x.shape[1]
    within, between = x.var(1, ddof=1).mean(), x.mean(1).var(ddof=1)
    if within <= 1e-20:  # the scores are of order one: this is rounding
        return float("inf") if between > 1e-20 else float("nan")
    return float(np.sqrt((n - 1) / n + between / within))
