"""The sparse engine of ODIN for many states, by conjugate gradients; it gives no bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve, Gradients
from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.grids import finer_grid
from odinfer.gp.shared_hyperparameters import shared_operators
from odinfer.gp.standardisation import Units
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import Solution, gauss_newton
from odinfer.odin.sparse.conjugate_gradients import Krylov, NormalEquations
from odinfer.odin.sparse.jacobian import SparseField
from odinfer.odin.sparse.risk import SparseLinear, SparseRisk
from odinfer.optimize.levenberg_marquardt import Rule, damped_step, levenberg_marquardt
from odinfer.problem.problem import Problem

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
    unknowns = K * sum(len(finer_grid(e.t, grid)[0]) for e in data)
    if algebra == "dense" or (algebra == "auto" and (unknowns < FEWEST_UNKNOWNS or K < FEWEST_STATES)):
        return None
    x = np.concatenate([_fill(e.y) for e in data])
    u = np.concatenate([problem.inputs_at(i, e.t) for i, e in enumerate(data)])
    x = np.clip(x, *problem.state_bounds)
    theta = problem.theta(np.clip(np.ones(len(problem.free)), *problem.phi_bounds))
    field = SparseField(model, np.concatenate([e.t for e in data]), x, theta, u)
    return field if algebra == "sparse" or 4 * field.pattern.n_colours <= 3 * (K + len(theta)) else None


def _fill(y: Array) -> Array:
    """Observations with the state's mean where there is none."""
    seen = np.isfinite(y)
    mean = np.where(seen, y, 0.0).sum(0) / np.maximum(seen.sum(0), 1)
    return np.where(seen, y, mean)


class _Match(NamedTuple):
    """One search for the φ (F,) that matches slopes best: the squared mismatch, the field and the mismatch there."""

    phi: Array
    value: float
    lin: SparseLinear
    e: Array


@dataclass(frozen=True)
class Sparse(SparseRisk):
    """A risk of many states that minimises itself, and turns solutions into curves."""

    notes = (NO_BANDS,)

    @staticmethod
    def of(
        problem: Problem,
        units: Units,
        hypers: Sequence[Hyperparameters],
        jitter: float,
        grid: int,
        temper: float,
        field: SparseField,
    ) -> Sparse:
        """As `Dense.of`; the jitter is in units of each state's variance."""
        grids = []
        for e in problem.data.experiments:
            t, rows = finer_grid(e.t, grid)
            y = np.full((len(t), e.y.shape[1]), np.nan)
            y[rows] = units.standard(e.y)
            groups, mean = shared_operators(hypers, units.standard_time(t, e.t[0]), y, jitter)
            grids.append((t, y, tuple(g.tempered(temper) for g in groups), mean))
        return Sparse.build(problem, units, hypers, grids, field, np.array([h.variance for h in hypers]))

    def match(self, phi: Array, gamma: float = 1.0, iterations: int = 10) -> tuple[Array, Array]:
        """As `Dense.match`: φ (S, F) that best match the slopes of the GP mean, and the squared mismatch (S,)."""
        z, level = np.clip(self.mean, *self.z_bounds), np.full(len(self.v), gamma)
        weights = 1.0 / (self.w + gamma)

        def at(phi: Array) -> _Match:
            lin = self.linearise(z, phi)
            e = self.mismatch(z, lin.f)
            with np.errstate(over="ignore", invalid="ignore"):
                value = float((e * e * weights).sum())
            return _Match(phi, value if np.isfinite(value) else np.inf, lin, e)

        def propose(now: _Match, damping: float) -> tuple[_Match, bool]:
            H = NormalEquations.at(self, now.lin, level, now.phi).phi_block().toarray()
            g = self.gradient(z, now.lin, now.e, level, now.phi)[1]
            step = damped_step(H[None], g[None], np.array([damping]))[0]
            new = at(np.clip(now.phi + step, *self.problem.phi_bounds))
            return new, new.value <= now.value

        def settles(better: bool, gain: float, now: _Match, damping: float) -> bool:
            return bool(better) and gain <= 1e-3 * (1.0 + now.value)

        ends = []
        for p in phi:
            start = at(p)
            rule = Rule(least=0.0, most=1e2, tries=iterations if len(p) and np.isfinite(start.value) else 0)
            ends.append(levenberg_marquardt(start, propose, settles, rule).point)
        return np.array([s.phi for s in ends]), np.array([s.value for s in ends])

    def minimise(
        self, z: Array, phi: Array, rule: GammaRule, rival: float = np.inf, gamma: Array | float = 1e-2
    ) -> Solution:
        """Gauss–Newton by conjugate gradients from one start.

        γ starts small, whatever is asked for: the equations hold for most states, and those for which they do not raise
        theirs.
        """
        return gauss_newton(self, z, phi, rule, tolerance=TOLERANCE, rival=rival, gamma=1e-2, steps=Krylov())

    def curves(self, s: Solution) -> list[Curve]:
        """States and slopes at the grid times, cubic in between; without bands."""
        f = self.linearise(s.z, s.phi).f
        return [self._curve(s.z[b.rows], f[b.rows], self.t[b.rows]) for b in self.blocks]

    def mean_curves(self) -> list[Curve]:
        """The GP means alone: what is left when no start gave a finite model."""
        return [self._curve(b.mean, self._gp_slopes(i, b.mean), self.t[b.rows]) for i, b in enumerate(self.blocks)]

    def gradients(self, s: Solution) -> list[Gradients]:
        """f against the GP's derivative with its standard deviation √(diag A), per experiment."""
        every, found = self.linearise(s.z, s.phi).f, []
        for i, b in enumerate(self.blocks):
            sd = np.empty(b.y.shape)
            for g in b.groups:
                sd[:, g.members] = np.sqrt(np.square(g.T.T) @ g.w)[:, None] * np.sqrt(self.v[g.members])
            slopes = (every[b.rows], self._gp_slopes(i, s.z[b.rows]), sd)
            found.append(Gradients(self.t[b.rows], *map(self.units.user_slope, slopes)))
        return found

    def _gp_slopes(self, block: int, z: Array) -> Array:
        """D z: Q is orthogonal, so that D = Q (QᵀD)."""
        b = self.blocks[block]
        return b.apply("T", b.apply("S", z), transpose=True)

    def _curve(self, z: Array, slope: Array, t: Array) -> Curve:
        return Curve.of_standard(self.units, t, z, slope, np.full(z.shape, np.nan))
