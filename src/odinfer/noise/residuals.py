"""Quantile residuals: standard normal under the model, for every noise family."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odinfer.noise.family import Array, Family
from odinfer.noise.special import special


@np.errstate(all="ignore")
def quantile_residuals(family: Family, y: Array, a: Sequence[Array], rng: np.random.Generator | None = None) -> Array:
    """Φ⁻¹ of P(Y ≤ y), in either tail from that tail's own probability.

    Of counts, Φ⁻¹ of a number between P(Y < y) and P(Y ≤ y): drawn from `rng`, or halfway if there is none.
    """
    below, above = family.log_cdf(y, a), family.log_sf(y, a)
    if family.discrete:
        u = np.full(np.shape(below), 0.5) if rng is None else rng.uniform(size=np.shape(below))
        log_p = family.log_density(y, a)
        below = np.logaddexp(family.log_cdf(y - 1, a), np.log(u) + log_p)
        above = np.logaddexp(above, np.log1p(-u) + log_p)
    lower = special(np).ndtri_exp(np.minimum(below, 0.0))
    upper = -special(np).ndtri_exp(np.minimum(above, 0.0))
    possible = np.maximum(below, above) > -np.inf  # else the arguments are outside their domain
    return np.where(possible, np.where(below < above, lower, upper), np.nan)
