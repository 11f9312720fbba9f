"""Continuation from an ODIN solution of many states to a trajectory: equations are tightened stepwise.

The path is held to a collocation formula (Lobatto IIIA: integrals of the polynomial through the slopes) as a
least-squares penalty that grows from one round to the next, and the smoother no longer counts. This is the risk
again with other operators, so the same steps minimise it. A chaotic system can be followed because the path is
never left to itself: it starts as the estimate of the states and bends towards a solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odinfer.gp.curves import Curve, Hermite
from odinfer.gp.shared_hyperparameters import Element, Group
from odinfer.observation.gaussian_states import GaussianNoise
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import Solution, gauss_newton
from odinfer.odin.sparse.conjugate_gradients import Krylov
from odinfer.odin.sparse.risk import SparseRisk
from odinfer.problem.parameter_vector import ParameterVector

Array = NDArray[np.float64]

STAGES = 4
# Variance by which the path may leave the equations on an element, in units of the noise: as much at first, in the
# end too little to matter for any estimate.
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)
_COARSE = 0.1  # a mesh is too coarse if its polynomials leave the equations by this share of the noise
_NOISE_FLOOR = 1e-9  # smallest noise, in units of the states' scales


def _lobatto(s: int) -> tuple[Array, Array]:
    """Points c (s,) on [0, 1] with both ends, and A (s−1, s): integrals from 0 to each c but the first."""
    inner = np.polynomial.legendre.Legendre.basis(s - 1).deriv().roots()
    c = np.concatenate([[0.0], 0.5 * (np.sort(inner.real) + 1.0), [1.0]])
    lagrange = np.linalg.inv(np.vander(c, increasing=True))
    powers = c[1:, None] ** np.arange(1, s + 1) / np.arange(1, s + 1)
    return c, powers @ lagrange


C, A = _lobatto(STAGES)


class Mesh(NamedTuple):
    """Collocation points t (N,), where the observed times stand among them, and the operators of e = T f − S x."""

    t: Array
    rows: NDArray[np.int64]
    element: Element


def mesh(seen: Array, parts: int, time: float) -> Mesh:
    """`parts` elements per gap between the times `seen`; operators for time in units of `time`."""
    ends = np.append(np.linspace(seen[:-1], seen[1:], parts, endpoint=False, axis=1).ravel(), seen[-1])
    h = np.diff(ends)
    t = np.append((ends[:-1, None] + h[:, None] * C[:-1]).ravel(), ends[-1])
    S = np.broadcast_to(np.eye(STAGES)[1:] - np.eye(STAGES)[0], (len(h), STAGES - 1, STAGES))
    element = Element(h[:, None, None] * A / time, np.ascontiguousarray(S))
    return Mesh(t, (STAGES - 1) * parts * np.arange(len(seen)), element)


def group(m: Mesh, K: int, w: float) -> Group:
    """The mesh's operators for all K states, with variance w of the mismatches."""
    n, e, s = m.element.T.shape
    rows = np.broadcast_to((e * np.arange(n)[:, None] + np.arange(e))[..., None], (n, e, s)).ravel()
    columns = np.broadcast_to(((s - 1) * np.arange(n)[:, None] + np.arange(s))[:, None], (n, e, s)).ravel()
    T, S = (sparse.csr_array((v.ravel(), (rows, columns)), shape=(n * e, len(m.t))) for v in m.element)
    S.eliminate_zeros()
    return Group(np.arange(K), np.empty((0, 0)), T, S, np.full(n * e, w), m.element)


@dataclass(frozen=True)
class ContinuationResult:
    """A trajectory of many states at a maximum of the likelihood.

    Attributes:
        phi: free parameters (F,).
        paths: per experiment, times (N,), states and slopes (N, K) in the user's units.
        sigma: noise standard deviations (K,).
        left: the same with the fitted unknowns taken off the degrees of freedom, evenly over states.
        loglik, objective: log-likelihood at the maximum over the noise; −loglik − log p(θ).
        defect: largest departure from the collocation equations, in units of the noise.
        iterations, converged: of the last round.
    """

    phi: Array
    paths: tuple[tuple[Array, Array, Array], ...]
    sigma: Array
    left: Array
    loglik: float
    objective: float
    defect: float
    iterations: int
    converged: bool

    def curves(self) -> list[Curve]:
        """The trajectories of all experiments; without bands, which are not computed for many states."""
        return [Curve(t, x, slope, np.full(x.shape, np.nan)) for t, x, slope in self.paths]

    def intervals(self) -> None:
        """Return no intervals: they are not computed for many states."""


def tighten_equations(
    risk: SparseRisk, solution: Solution, levels: Sequence[float] = LEVELS
) -> ContinuationResult | None:
    """Tighten the equations from an ODIN solution on; None if the path left the finite numbers."""
    problem, units = risk.problem, risk.units
    times = [e.t for e in problem.data.experiments]
    if any(len(t) < 2 for t in times):  # an experiment of one time has no path
        return None
    paths = _paths(risk, solution)
    noise, phi, parts = np.array([h.noise for h in risk.hypers]), solution.phi, 1
    for level in levels:
        last = level == levels[-1]
        if last and _defect(risk, paths, phi, noise) > _COARSE:
            parts = 2
        tight = _tighten(risk, [mesh(t, parts, units.time) for t in times], paths, noise, level)
        s = gauss_newton(
            tight, tight.mean, phi, GammaRule(fixed=0.0), steps=Krylov(tolerance=0.1, most=100),
            max_iterations=20 if last else 3, tolerance=1e-5,
        )  # fmt: skip
        if not np.isfinite(s.risk):
            return None
        paths, phi, noise = _paths(tight, s), s.phi, _noise(tight, s.z)
    e = tight.mismatch(s.z, tight.linearise(s.z, phi).f)
    sigma, n = units.user_sd(np.sqrt(noise)), problem.count
    loglik = float(GaussianNoise.of(problem).loglik(units.user_sd(np.sqrt(_squares(tight, s.z))) ** 2, sigma**2))
    spare = np.maximum(n - ParameterVector(problem).size / len(n), 1.0)
    left = np.where(np.isnan(problem.known_sigma), sigma * np.sqrt(n / spare), sigma)
    return ContinuationResult(
        phi, tuple((units.user_time(t), units.user(x), units.user_slope(slope)) for t, x, slope in paths),
        sigma, left, loglik, problem.prior_at(phi).value - loglik,
        float((np.abs(e) / np.sqrt(noise)[:, None]).max()), s.iterations, s.converged,
    )  # fmt: skip


def _paths(risk: SparseRisk, s: Solution) -> list[tuple[Array, Array, Array]]:
    """Per experiment times, states and slopes, all standardised."""
    f = risk.linearise(s.z, s.phi).f
    return [(risk.units.standard_time(risk.t[b.rows]), s.z[b.rows], f[b.rows]) for b in risk.blocks]


def _tighten(
    risk: SparseRisk, meshes: Sequence[Mesh], paths: Sequence[tuple[Array, Array, Array]], noise: Array, level: float
) -> SparseRisk:
    """The risk of a path on the meshes, its mismatches weighed with `level` times the noise."""
    units, grids = risk.units, []
    for e, m, path in zip(risk.problem.data.experiments, meshes, paths, strict=True):
        y = np.full((len(m.t), len(noise)), np.nan)
        y[m.rows] = units.standard(e.y)
        grids.append((m.t, y, (group(m, len(noise), level),), Hermite(*path)(units.standard_time(m.t))))
    hypers = [replace(h, noise=float(v)) for h, v in zip(risk.hypers, noise, strict=True)]
    return SparseRisk.build(risk.problem, units, hypers, grids, risk.field, noise)


def _squares(risk: SparseRisk, z: Array) -> Array:
    """Residual sums of squares (K,), standardised."""
    return np.asarray(np.sum([((z[b.rows] - b.y) ** 2 * (b.weight > 0)).sum(0) for b in risk.blocks], 0))


def _noise(risk: SparseRisk, z: Array) -> Array:
    """Noise variances (K,), standardised: known, or at their maximum likelihood."""
    known = np.sqrt(risk.units.standard_variance(risk.problem.known_sigma))
    return GaussianNoise(known, risk.problem.count, _NOISE_FLOOR**2).variance(_squares(risk, z))


def _defect(risk: SparseRisk, paths: Sequence[tuple[Array, Array, Array]], phi: Array, noise: Array) -> float:
    """How far the path between collocation points leaves the equations over an element, in units of the noise."""
    problem, units, worst = risk.problem, risk.units, 0.0
    for i, (t, x, f) in enumerate(paths):
        h, middle = np.diff(t), 0.5 * (t[1:] + t[:-1])
        spline = Hermite(t, x, f)
        at = units.user_time(middle)
        slope = problem.model.evaluate(at, units.user(spline(middle)), problem.theta(phi), problem.inputs_at(i, at))
        miss = (spline.derivative(middle) - units.standard_slope(slope)) * h[:, None]
        worst = max(worst, float(np.nanmax(np.abs(miss) / np.sqrt(noise))))
    return worst
