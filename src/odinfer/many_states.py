"""ODIN where there are many states, each coupled to a few: what replaces the dense algebra, and when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from odinfer import gradient_matching as gm
from odinfer.assemble import observations
from odinfer.continuation import Followed
from odinfer.curve import Curve, Gradients
from odinfer.gp import Hyperparameters
from odinfer.krylov import Krylov, NormalEquations
from odinfer.problem import Problem
from odinfer.risk import Units
from odinfer.snapped import shared_operators
from odinfer.solve import GammaRule, Solution, gauss_newton
from odinfer.sparse_risk import SparseRisk
from odinfer.sparsity import SparseField

Array = NDArray[np.float64]

# From here on conjugate gradients are much faster than dense factors; below, the dense algebra also gives bands.
FEWEST_STATES, FEWEST_UNKNOWNS = 16, 1000
# Of a large sum a smaller share is enough: 0.01 per state of some hundred each.
TOLERANCE = 3e-5
NO_BANDS = "95 % bands of the states are not computed for so many of them"


def sparse_field(problem: Problem, grid: int, algebra: str = "auto") -> SparseField | None:
    """The field with its sparse derivatives, if asked for or ("auto") where it is faster than dense algebra."""
    model, data = problem.model, problem.data.experiments
    K = len(model.states)
    unknowns = K * sum(len(gm.finer_grid(e.t, grid)[0]) for e in data)
    if algebra == "dense" or (algebra == "auto" and (unknowns < FEWEST_UNKNOWNS or K < FEWEST_STATES)):
        return None
    x = np.concatenate([_filled(e.y) for e in data])
    u = np.concatenate([problem.inputs_at(i, e.t) for i, e in enumerate(data)])
    x = np.clip(x, *problem.state_bounds)
    theta = problem.theta(np.clip(np.ones(len(problem.free)), *problem.phi_bounds))
    field = SparseField(model, np.concatenate([e.t for e in data]), x, theta, u)
    return field if algebra == "sparse" or 4 * field.pattern.n_colours <= 3 * (K + len(theta)) else None


def _filled(y: Array) -> Array:
    """Observations with the state's mean where there is none."""
    seen = np.isfinite(y)
    mean = np.where(seen, y, 0.0).sum(0) / np.maximum(seen.sum(0), 1)
    return np.where(seen, y, mean)


def build_risk(
    problem: Problem,
    units: Units,
    hypers: Sequence[Hyperparameters],
    jitter: float,
    grid: int,
    temper: float,
    field: SparseField,
) -> SparseRisk:
    """As `gradient_matching.build_risk`; the jitter is in units of each state's variance."""
    grids = []
    for e in problem.data.experiments:
        t, rows = gm.finer_grid(e.t, grid)
        y = np.full((len(t), e.y.shape[1]), np.nan)
        y[rows] = units.standard(e.y)
        groups, mean = shared_operators(hypers, (t - e.t[0]) / units.time, y, jitter)
        grids.append((t, y, tuple(g.tempered(temper) for g in groups), mean))
    return SparseRisk.build(problem, units, hypers, grids, field, np.array([h.variance for h in hypers]))


def match(risk: SparseRisk, phi: Array, gamma: float = 1.0, iterations: int = 10) -> tuple[Array, Array]:
    """As `starts.match`: φ (S, F) that best match the slopes of the GP mean, and the squared mismatch (S,)."""
    z, K = np.clip(risk.mean, *risk.z_bounds), len(risk.v)
    low, high = risk.problem.phi_bounds
    weights = 1.0 / (risk.w + gamma)
    ends, costs = [], []
    for p in phi:
        damping, cost, e = 1e-3, np.inf, np.empty(0)
        lin = risk.linearise(z, p)
        e = risk.mismatch(z, lin.f)
        with np.errstate(over="ignore", invalid="ignore"):
            cost = float((e * e * weights).sum())
        for _ in range(iterations if len(p) and np.isfinite(cost) else 0):
            H = NormalEquations.at(risk, lin, np.full(K, gamma), p).phi_block().toarray()
            g = risk.gradient(z, lin, e, np.full(K, gamma), p)[1]
            H[np.diag_indices(len(p))] += damping * H.diagonal() + 1e-12 * (1.0 + H.diagonal().max())
            trial = np.clip(p - np.linalg.solve(H, g), low, high)
            new = risk.linearise(z, trial)
            e_new = risk.mismatch(z, new.f)
            with np.errstate(over="ignore", invalid="ignore"):
                value = float((e_new * e_new * weights).sum())
            if not value <= cost:
                damping *= 10.0
                if damping > 1e2:
                    break
                continue
            gain, p, lin, e, cost, damping = cost - value, trial, new, e_new, value, damping * 0.1
            if gain <= 1e-3 * (1.0 + value):
                break
        ends.append(p)
        costs.append(cost if np.isfinite(cost) else np.inf)
    return np.array(ends), np.array(costs)


def minimise(
    risk: SparseRisk, z: Array, phi: Array, rule: GammaRule, rival: float = np.inf, tolerance: float = TOLERANCE
) -> Solution:
    """Gauss–Newton by conjugate gradients from one start."""
    # A small γ at first: the equations hold for most states, and those for which they do not raise theirs.
    return gauss_newton(risk, z, phi, rule, tolerance=tolerance, rival=rival, gamma=1e-2, steps=Krylov())


def curves(risk: SparseRisk, s: Solution) -> list[Curve]:
    """States and slopes at the grid times, cubic in between; without bands."""
    return [_curve(risk, s.z[b.rows], f, risk.t[b.rows]) for b, f in zip(risk.blocks, _slopes(risk, s), strict=True)]


def mean_curves(risk: SparseRisk) -> list[Curve]:
    """The GP means alone: what is left when no start gave a finite model."""
    return [_curve(risk, b.mean, _gp_slopes(risk, i, b.mean), risk.t[b.rows]) for i, b in enumerate(risk.blocks)]


def gradients(risk: SparseRisk, s: Solution) -> list[Gradients]:
    """f against the GP's derivative with its standard deviation √(diag A), per experiment."""
    rate, found = risk.units.scale / risk.units.time, []
    for i, (b, f) in enumerate(zip(risk.blocks, _slopes(risk, s), strict=True)):
        sd = np.empty(b.y.shape)
        for g in b.groups:
            sd[:, g.members] = np.sqrt(np.square(g.T.T) @ g.w)[:, None] * np.sqrt(risk.v[g.members])
        found.append(Gradients(risk.t[b.rows], f * rate, _gp_slopes(risk, i, s.z[b.rows]) * rate, sd * rate))
    return found


def _slopes(risk: SparseRisk, s: Solution) -> list[Array]:
    f = risk.linearise(s.z, s.phi).f
    return [f[b.rows] for b in risk.blocks]


def _gp_slopes(risk: SparseRisk, block: int, z: Array) -> Array:
    """D z: Q is orthogonal, so that D = Q (QᵀD)."""
    b = risk.blocks[block]
    return b.apply("T", b.apply("S", z), transpose=True)


def _curve(risk: SparseRisk, z: Array, slope: Array, t: Array) -> Curve:
    rate = risk.units.scale / risk.units.time
    return Curve(t, risk.units.user(z), slope * rate, np.full(z.shape, np.nan))


def trajectories(followed: Followed) -> list[Curve]:
    """The trajectories of all experiments; without bands, which are not computed for many states."""
    return [Curve(t, x, slope, np.full(x.shape, np.nan)) for t, x, slope in followed.paths]


def unbiased_sigma(problem: Problem, followed: Followed) -> Array:
    """Noise standard deviations with the fitted unknowns taken off the degrees of freedom, evenly over states."""
    n = observations(problem)
    unknowns = len(followed.paths) * len(n) + len(followed.phi)
    correction = np.sqrt(n / np.maximum(n - unknowns / len(n), 1.0))
    return np.where(np.isnan(problem.known_sigma), followed.sigma * correction, followed.sigma)
