"""Censored values: the log-probability of a tail in place of the density.

`limit` says of each observation where the true value lies: −1 below y, +1 above y, 0 at y.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from odinfer.errors import InputError
from odinfer.noise.family import Array, Family, LocationScale, Rows
from odinfer.noise.special import STEP

FLAT = 1e-6  # curvature, in units of the squared slope, below which Newton's steps would go astray


def log_density(family: Family, y: Any, a: Sequence[Any], limit: Any, xp: Any = np) -> Any:
    """log p of y, log P(Y ≤ y) or log P(Y > y)."""
    kind = continuous(family)
    tail = xp.where(limit < 0, kind.log_cdf(y, a, xp), kind.log_sf(y, a, xp))
    return xp.where(limit == 0, kind.log_density(y, a, xp), tail)


@np.errstate(all="ignore")
def rows(family: Family, y: Array, a: Sequence[Array], limit: Array) -> Rows:
    """As the family's own; a limit has one row, and one for each argument that shapes its distribution."""
    kind = continuous(family)
    y, limit, *a = np.broadcast_arrays(y, limit, *a)
    m, s, *shape = kind.clipped(a)
    r, J = kind.rows(y, a)
    side = np.where(limit < 0, 1.0, -1.0)
    z = side * (kind.transformed(y) - kind.transformed(m)) / s
    hopeless = np.isnan(z) & ~np.isnan(y)  # below the least possible y
    u = np.where(hopeless, -side * 1e100, np.clip(z, -1e100, 1e100))
    hazard = kind.standard_hazard(u, shape)
    curvature = hazard * (hazard - kind.standard_slope(u, shape))
    root = np.sqrt(np.where(curvature > FLAT * hazard**2, curvature, hazard**2))
    R, D = np.zeros_like(r), np.zeros_like(J)
    R[..., 0] = np.where(root > 0, -hazard / np.where(root > 0, root, 1.0), 0.0)
    D[..., 0, 0] = -side * root * kind.slope(m) / s
    D[..., 0, 1] = -root * u / s
    for i in range(len(shape)):
        up, down = (kind.standard_log_cdf(u, _scale(shape, i, 1 + h)) for h in (STEP, -STEP))
        R[..., 2 + i] = 1.0
        D[..., 2 + i, 2 + i] = -(up - down) / (2 * STEP * shape[i])
    seen = (limit == 0)[..., None]
    return Rows(np.where(seen, r, R), np.where(seen[..., None], J, D))


def continuous(family: Family) -> LocationScale:
    """The family, if it can have limits."""
    if not isinstance(family, LocationScale):
        raise InputError("a count cannot be censored; leave the limit out, or use a continuous noise such as normal")
    return family


def _scale(shape: Sequence[Array], i: int, factor: float) -> list[Array]:
    return [value * factor if j == i else value for j, value in enumerate(shape)]
