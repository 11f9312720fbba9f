"""The ODIN risk of long series, exactly that of risk.py, in time linear in their length.

With p the chain of the process g and its derivatives (gp/markov/state_space.py), tempered variance v and jitter ε,

    zᵀ C⁻¹ z                   is the least of |z − g|²/ε + pᵀPp/v,
    rᵀ (A + γI)⁻¹ r            is the least of |r − g'|²/(ε + γ) + |g|²/ε + pᵀPp/v,   r = f − Dz,
    log det(A + γI)            is log det(B + LᵀL/(ε + γ)) − log det B + M log(ε + γ),  B = P/v + EᵀE/ε,

where E takes p to g and L to g': the jitter is noise on z, γ and jitter are noise on f. All matrices are block
tridiagonal. Least values are computed as sums of squares, which are right to second order in the errors of p.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.markov.block_tridiagonal import Factor
from odinfer.gp.markov.state_space import Chain
from odinfer.odin.gamma import GammaRule
from odinfer.odin.risk import AnyRisk, Linear

Array = NDArray[np.float64]

_H = 0.003  # of log γ, for differences
_SCAN = 9  # values of log γ among which a first search starts


@dataclass(frozen=True)
class Span:
    """One experiment: where its points stand among all stacked points."""

    rows: slice


@dataclass(frozen=True, eq=False)
class MarkovRisk(AnyRisk):
    """The risk of one problem with given hyperparameters, by chains.

    Attributes:
        blocks: the experiments.
        y: standardised observations (M, K), averaged where times were joined; zero where missing.
        weight: their number by 1/σ² (M, K).
        within: the sum of squares within joined times, in units of the noise.
        chain: of the K processes at the M points.
        v: their variances (K,), times the temper.
        jitter: times the temper.
        mean: GP posterior means of all states at all points (M, K): where x starts.
    """

    blocks: tuple[Span, ...]
    y: Array
    weight: Array
    within: float
    chain: Chain
    v: Array
    jitter: float
    mean: Array
    _last: dict[str, Array] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """K, M and the length d of a state of the chain."""
        return (*self.chain.rate.shape, self.chain.d)

    @functools.cached_property
    def given_z(self) -> tuple[Array, Factor]:
        """The band of the precision of p given z, of all states stacked, and its factor."""
        band = self.chain.band(self.v)
        band[0, :: self.chain.d] += 1.0 / self.jitter
        factor = Factor.of(band, self.chain.d)
        if factor is None:
            raise FloatingPointError("the processes' precision is not positive definite")
        return band, factor

    def process(self, z: Array) -> Array:
        """The processes' states p (K, M, d) given z (M, K)."""
        if self._last.get("z") is not z:  # asked for by the mismatch and by the terms without γ
            K, M, d = self.shape
            right = np.zeros((K, M, d))
            right[..., 0] = z.T / self.jitter
            p = self.given_z[1].solve(right.ravel()).reshape(K, M, d)
            self._last.update(z=z, p=p)
        return self._last["p"]

    def slopes_of(self, p: Array) -> Array:
        """The derivatives (K, M) of processes in states p (K, M, d)."""
        return np.asarray(np.einsum("kmd,kmd->km", self.chain.slope, p))

    def given_f(self, gamma: Array) -> Factor | None:
        """The factor of the precision of p given z and f, of all states stacked."""
        K, M, d = self.shape
        band = self.given_z[0].copy()
        weight = 1.0 / (self.jitter + gamma)
        rows = self.chain.slope[..., :2]
        at = band.reshape(2 * d, K, M, d)
        at[0, ..., 0] += weight[:, None] * rows[..., 0] ** 2
        at[1, ..., 0] += weight[:, None] * rows[..., 0] * rows[..., 1]
        at[0, ..., 1] += weight[:, None] * rows[..., 1] ** 2
        return Factor.of(band, d)

    def drawn(self, factor: Factor, gamma: Array, r: Array) -> Array:
        """The processes' states (K, M, d, ...) drawn by mismatches r (K, M, ...), where z is zero."""
        K, M, d = self.shape
        weight = (1.0 / (self.jitter + gamma)).reshape(-1, *[1] * (r.ndim - 1))
        more = r.shape[2:]
        right = np.einsum("kmd,km...->kmd...", self.chain.slope, weight * r)
        return factor.solve(right.reshape(K * M * d, -1)).reshape(K, M, d, *more)

    def mismatch(self, z: Array, f: Array) -> Array:
        """r = f − Dz for all states and points (K, M)."""
        return np.asarray(f.T - self.slopes_of(self.process(z)))

    def state_terms(self, z: Array, phi: Array) -> float:
        """The terms of R without γ: the GP prior, the data, and −2 log p(θ)."""
        p = self.process(z)
        apart, miss = z.T - p[..., 0], z - self.y
        total = float((self.chain.energy(p) / self.v).sum() + np.vdot(apart, apart) / self.jitter)
        total += float(np.vdot(self.weight * miss, miss)) + self.within + 2.0 * self.problem.prior_at(phi).value
        return total if np.isfinite(total) else np.inf

    def terms_by_state(self, e: Array, gamma: Array) -> Array:
        """The terms of R with γ, by state (K,)."""
        K, M, _ = self.shape
        factor = self.given_f(gamma)
        if factor is None or not np.isfinite(e).all():
            return np.full(K, np.inf)
        h = self.drawn(factor, gamma, e)
        left = e - self.slopes_of(h)
        with np.errstate(over="ignore", invalid="ignore"):
            quad = self.chain.energy(h) / self.v + np.square(h[..., 0]).sum(1) / self.jitter
            quad += np.square(left).sum(1) / (self.jitter + gamma)
        halves = (factor.log_diagonal - self.given_z[1].log_diagonal).reshape(K, -1).sum(1)
        return np.asarray(quad + 2.0 * halves + M * np.log(self.jitter + gamma))

    def gamma_terms(self, e: Array, gamma: Array) -> float:
        """The terms of R with γ: the mismatch of gradients and the log-determinant; infinite where f is."""
        total = float(self.terms_by_state(e, gamma).sum())
        return total if np.isfinite(total) else np.inf

    def gamma_gradient(self, e: Array, gamma: Array) -> Array:
        """½ dR/dlog γ (K,), by differences."""
        up, down = (self.terms_by_state(e, gamma * np.exp(h)) for h in (_H, -_H))
        wide = self.terms_by_state(e, gamma * np.exp(2.0 * _H)) - self.terms_by_state(e, gamma * np.exp(-2.0 * _H))
        return np.asarray(0.5 * (8.0 * (up - down) - wide) / (12.0 * _H))

    def best_gamma(self, e: Array, rule: GammaRule, gamma: Array | None = None) -> Array:
        """The γ (K,) that minimise R by the rule; near those given, or among all."""
        K = len(self.v)
        if rule.fixed is not None:
            return np.full(K, rule.fixed)
        low, high = np.log(rule.bounds)
        different = 1 if rule.shared else K

        def cost(logs: Array) -> Array:
            every = self.terms_by_state(e, np.exp(np.broadcast_to(logs, K)))
            return every.sum(keepdims=True) if rule.shared else every

        if gamma is None:
            grid = np.linspace(low, high, _SCAN)
            at = grid[np.argmin([cost(np.full(different, g)) for g in grid], 0)]
        else:
            at = np.clip(np.log(gamma[:different]), low, high)
        return np.broadcast_to(np.exp(_newton_descent(cost, at, low, high)), K).copy()

    def gradient(self, z: Array, lin: Linear, e: Array, gamma: Array, phi: Array) -> tuple[Array, Array, Array]:
        """½ dR/dz (M, K), ½ dR/dφ (F,) and ½ dR/dlog γ (K,)."""
        gz, g_phi = self.descent(z, lin, e, gamma, phi)
        return gz, g_phi, self.gamma_gradient(e, gamma)

    def descent(self, z: Array, lin: Linear, e: Array, gamma: Array, phi: Array) -> tuple[Array, Array]:
        """½ dR/dz (M, K) and ½ dR/dφ (F,): those of the sums of squares, at the p that make them least."""
        factor = self.given_f(gamma)
        assert factor is not None
        h = self.drawn(factor, gamma, e)
        a = ((e - self.slopes_of(h)) / (self.jitter + gamma)[:, None]).T
        gz = (z - (self.process(z) + h)[..., 0].T) / self.jitter + self.weight * (z - self.y)
        gz += np.einsum("mk,mkj->mj", a, lin.fz)
        return gz, np.einsum("mk,mkp->p", a, lin.fphi) + self.problem.prior_at(phi).gradient

    @functools.cached_property
    def mean_slopes(self) -> Array:
        """The derivatives of the processes at the GP means (K, M)."""
        return self.slopes_of(self.process(self.mean))

    def products(self, m: Array, gamma: float) -> Array:
        """mᵀ (A + γI)⁻¹ m (S, c, c) of sets of mismatches m (S, K, M, c), summed over states."""
        S, K, M, c = m.shape
        level = np.full(K, gamma)
        factor = self.given_f(level)
        assert factor is not None
        columns = m.transpose(1, 2, 0, 3).reshape(K, M, S * c)
        h = self.drawn(factor, level, np.where(np.isfinite(columns), columns, 0.0))
        left = columns - np.einsum("kmd,kmdc->kmc", self.chain.slope, h)
        weighted = left.reshape(K * M, S, c).transpose(1, 0, 2) / (self.jitter + gamma)
        return np.asarray(np.swapaxes(columns.reshape(K * M, S, c).transpose(1, 0, 2), 1, 2) @ weighted)


def _newton_descent(cost: Callable[[Array], Array], at: Array, low: float, high: float) -> Array:
    """Newton's method on functions of one variable each, side by side, within bounds; values by `cost`."""
    width = np.full(len(at), 2.0)  # the longest step
    here = cost(at)
    for _ in range(20):
        middle = np.clip(at, low + _H, high - _H)
        down, mid, up = cost(middle - _H), (here if (middle == at).all() else cost(middle)), cost(middle + _H)
        d2 = (up - 2.0 * mid + down) / _H**2
        d1 = (up - down) / (2.0 * _H) + d2 * (at - middle)
        step = np.where(d2 > 0, -d1 / np.where(d2 > 0, d2, 1.0), -np.sign(d1) * width)
        new = np.clip(at + np.clip(step, -width, width), low, high)
        if np.abs(new - at).max() < 1e-7:
            break
        value = cost(new)
        better = value <= here + 1e-12 * np.abs(here)
        width = np.where(better, width, np.minimum(0.25 * np.abs(new - at), width))
        moved = np.abs(np.where(better, new - at, 0.0)).max()
        at, here = np.where(better, new, at), np.where(better, value, here)
        if (better.all() and moved < 1e-3) or width.max() < 1e-7:  # Newton's next step would be a millionth
            break
    return at
