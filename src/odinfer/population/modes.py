"""The mode of each subject's latent values given its data, by Gauss–Newton steps for all subjects side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.population.nodes import Engine
from odinfer.population.structure import natural_slope

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_ITERATIONS = 60
_SMALL_STEP = 1e-6  # in standard deviations of the random effects
_LARGEST_STEP = 2.0  # in the same unit, of one step


@dataclass(frozen=True, eq=False)
class Modes:
    """Modes in standardised latent values u, with x = m + L u and u ~ N(0, I) before data.

    Attributes:
        u: modes (E, d).
        information: Gauss–Newton curvature (E, d, d) of −log p(y, u) at the mode.
        gradient: its gradient (E, d), zero but for the accuracy of the search.
        log_joint: log p(y|u) + log p(u) at the mode (E,).
    """

    u: Array
    information: Array
    gradient: Array
    log_joint: Array


def linearise(engine: Engine, v: Array, e: Index, u: Array) -> tuple[Array, Array, Array]:
    """log p(y, u) (B,), the gradient (B, d) and Gauss–Newton curvature (B, d, d) of −log p(y, u)."""
    s, d = engine.structure, u.shape[1]
    m, L = s.means(v)[0], s.cholesky(v)
    x = m[e][:, s.active] + u @ L.T
    theta = s.individual(v, e, engine.full(v, e, x, m))
    subjects = engine.subjects
    solved = subjects.solve(e, theta, slopes=True)
    with np.errstate(all="ignore"):
        a, by, _ = subjects.linearised(solved)
        sigma = s.sigma(v)
        log_p = solved.sums(subjects.log_density(a, solved.row, sigma))
        r, J = subjects.rows(a, solved.row, sigma)
        slopes = np.stack(
            [natural_slope(s.effects[i].family, theta[:, subjects.wanted[k]]) for k, i in enumerate(s.active)], 1
        )
        to_u = (slopes[:, :, None] * L)[solved.node]
        JW = J[..., : a.shape[1]] @ (by[..., :d] @ to_u)
        gradient = solved.sums(np.einsum("mr,mrd->md", r, JW))
        H = solved.sums(np.swapaxes(JW, 1, 2) @ JW)
    value = log_p - 0.5 * (u**2).sum(1) - 0.5 * d * np.log(2.0 * np.pi)
    bad = ~(np.isfinite(value) & np.isfinite(gradient).all(1) & np.isfinite(H).all((1, 2)))
    value, gradient, H = np.where(bad, -np.inf, value), gradient + u, H + np.eye(d)
    gradient[bad], H[bad] = 0.0, np.eye(d)
    return value, gradient, H


def find_modes(engine: Engine, v: Array, start: Array | None = None) -> Modes:
    """Levenberg–Marquardt for every subject, from given standardised values (E, d) or from the centre."""
    E, d = len(engine.structure.subjects), len(engine.structure.active)
    every = np.arange(E)
    u = np.zeros((E, d)) if start is None else start.copy()
    value, g, H = linearise(engine, v, every, u)
    if start is not None and not np.isfinite(value).all():
        lost = np.flatnonzero(~np.isfinite(value))
        u[lost] = 0.0
        value[lost], g[lost], H[lost] = linearise(engine, v, lost, u[lost])
    damping, active = np.full(E, 1e-3), every
    for _ in range(_ITERATIONS):
        D = np.einsum("eii->ei", H[active])
        step = -np.linalg.solve(H[active] + (damping[active, None] * D)[:, :, None] * np.eye(d), g[active][..., None])
        step = step[..., 0]
        size = np.abs(step).max(1)
        step *= np.minimum(1.0, _LARGEST_STEP / np.maximum(size, 1e-300))[:, None]
        new_value, new_g, new_H = linearise(engine, v, active, u[active] + step)
        good = new_value >= value[active] - 1e-12
        here = active[good]
        u[here] += step[good]
        value[here], g[here], H[here] = new_value[good], new_g[good], new_H[good]
        damping[active] = np.where(good, damping[active] * 0.1, damping[active] * 10.0)
        done = (good & (size < _SMALL_STEP)) | (damping[active] > 1e8)
        active = active[~done]
        if not len(active):
            break
    return Modes(u, H, g, value)
