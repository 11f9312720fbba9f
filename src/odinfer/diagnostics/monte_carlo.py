"""Monte Carlo p-values, and sequential stopping once the verdict at a level is certain.

Simulations stop when the verdict at a level is settled (Besag and Clifford 1991). Statistics of evidence are
log-likelihood ratios in nats: by Markov's inequality white noise alone exceeds x nats with probability e^-x at most.
Beyond the largest simulation the tail is taken to fall by half that rate, which makes p-values of statistics far beyond
all simulations as small as they are (compare Knijnenburg and others 2009).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_LOOKS = (8, 20, 50, 100, 150)  # simulations after which the verdict may be settled
_FEWEST = 20  # simulations that settle anything but a rejection
_TAIL = 0.5  # by which log p falls for every nat beyond the largest simulation
_SURE = 2.5  # a p-value so many times below the level hardly ever rises above it
_ACCEPTED = 1e-3  # probability of so many simulations that reach the statistic, were the p-value equal to the level


def simulate_until_decided(
    simulate: Callable[[int, int], Array], observed: Array, draws: int, level: float | None
) -> Array:
    """Statistics (B, S) of simulations of a right model, until the verdict at a level is settled.

    Args:
        simulate: returns those of the simulations from one number to another, the failed ones left out.
        observed: the statistics (S,) of the data, the last one in nats of evidence.
        draws: simulations at most.
        level: None to make all simulations.
    """
    null = np.empty((0, len(observed)))
    for begin, end in itertools.pairwise((0, *(n for n in _LOOKS if n < draws), draws)):
        null = np.concatenate([null, simulate(begin, end)])
        if level is not None and len(null) and verdict_known(observed, null, draws, level):
            break
    return null


def p_value(observed: Array, null: Array) -> float:
    """Probability that a right model has statistics as extreme as the observed ones.

    The smallest of the p-values of S statistics is itself calibrated by the same simulations (Tippett's combination).

    Args:
        observed: (S,), the last one in nats of evidence.
        null: of the simulations (B, S).
    """
    if len(null) == 0:
        return 1.0
    pool = np.vstack([observed, null])
    ranks = (pool[None, :, :] >= pool[:, None, :]).sum(1)  # 1 for the largest
    least = ranks.min(1)
    excess = max(float(observed[-1] - null[:, -1].max()), 0.0)
    tail = len(observed) * np.exp(-_TAIL * excess) / len(pool)
    return float(min((least <= least[0]).sum() / len(pool), tail if excess > 0.0 else 1.0))


def verdict_known(observed: Array, null: Array, draws: int, level: float) -> bool:
    """Decide whether the verdict at a level is known before all draws are made."""
    from scipy.special import bdtrc

    if p_value(observed, null) * _SURE <= level:
        return True
    if len(null) < _FEWEST:
        return False
    reached = int((null >= observed).sum(0).min())
    accepted = reached > 0 and bdtrc(reached - 1, len(null), level) < _ACCEPTED
    return bool(accepted or reached + 1 > level * (draws + 1))
