"""The Markov engine of ODIN: the results of the dense engine in time linear in the number of observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve, Gradients
from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.grids import finer_grid
from odinfer.gp.markov.binning import Binned, joined
from odinfer.gp.markov.block_tridiagonal import Factor
from odinfer.gp.markov.state_space import Chain
from odinfer.gp.standardisation import Units
from odinfer.odin import startpoints
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import Solution, gauss_newton
from odinfer.odin.markov.banded_steps import Equations, steps
from odinfer.odin.markov.risk import MarkovRisk, Span
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Markov(MarkovRisk):
    """A risk that minimises itself by chains, and turns solutions into curves."""

    notes = ()

    @staticmethod
    def of(
        problem: Problem,
        units: Units,
        hypers: Sequence[Hyperparameters],
        jitter: float,
        grid: int = 1,
        temper: float = 1.0,
    ) -> Markov:
        """As `Dense.of`; observations that are too close to be told apart are joined."""
        K, start = len(hypers), 0
        noise = np.array([h.noise for h in hypers])
        y: list[Array] = []
        count: list[Array] = []
        t, times, spans, u = [], [], [], []
        within = np.zeros(K)
        for i, e in enumerate(problem.data.experiments):
            bins = Binned.of(e.t, units.standard(e.y), joined(hypers, units.standard_time(e.t, e.t[0])))
            own, rows = finer_grid(bins.t, grid)
            for found, values in ((y, bins.y), (count, bins.count)):
                found.append(np.zeros((len(own), K)))
                found[-1][rows] = values
            t.append(own)
            times.append(units.standard_time(own, e.t[0]))
            u.append(problem.inputs_at(i, own))
            spans.append(Span(slice(start, start := start + len(own))))
            within += bins.within
        first = np.zeros(start, bool)
        first[[s.rows.start for s in spans]] = True
        chain = Chain.of(hypers, np.concatenate(times), first)
        weight, v = np.concatenate(count) / noise, np.array([h.variance for h in hypers])
        mean = _posterior_mean(chain, v, jitter, np.concatenate(y), weight)
        return Markov(
            problem, units, tuple(hypers), tuple(spans), np.concatenate(t), np.concatenate(u), np.concatenate(y),
            weight, float((within / noise).sum()), chain, v * temper, jitter * temper, mean,
        )  # fmt: skip

    def match(self, phi: Array) -> tuple[Array, Array]:
        """φ (S, F) that best match the slopes of the GP mean from starts (S, F), and the squared mismatch (S,)."""
        return startpoints.match(self, phi)

    def minimise(
        self, z: Array, phi: Array, rule: GammaRule, rival: float = np.inf, gamma: Array | float = 1.0
    ) -> Solution:
        """Gauss–Newton from one start; given up where it stays above the risk of a rival."""
        return gauss_newton(self, z, phi, rule, rival=rival, gamma=gamma, steps=steps)

    def slopes(self, s: Solution) -> Array:
        """f(x, θ) in the user's units at all points (M, K)."""
        return self.units.user_slope(self.linearise(s.z, s.phi).f)

    def gradients(self, s: Solution) -> list[Gradients]:
        """f against the GP's derivative with its standard deviation √(diag A), per experiment."""
        K, M, d = self.shape
        marginals = self.given_z[1].marginals(K).reshape(K, M, d, d)
        rows = self.chain.slope
        sd = np.sqrt(np.einsum("kmi,kmij,kmj->mk", rows, marginals, rows) + self.jitter)
        every = self.slopes(s), *(self.units.user_slope(v) for v in (self.slopes_of(self.process(s.z)).T, sd))
        return [Gradients(self.t[b.rows], *(v[b.rows] for v in every)) for b in self.blocks]

    def curves(self, s: Solution) -> list[Curve]:
        """The states at the grid times, with bands from the Laplace approximation; cubic in between."""
        lin = self.linearise(s.z, s.phi)
        e = self.mismatch(s.z, lin.f)
        variance = Equations.at(self, s.z, lin, e, s.gamma, s.phi).variances()
        sd = np.sqrt(np.maximum(variance, 0.0))
        factor = self.given_f(s.gamma)
        assert factor is not None
        slope = self.slopes_of(self.process(s.z) + self.drawn(factor, s.gamma, e)).T
        slope = np.where(s.gamma > 1e-2, slope, lin.f)
        return [Curve.of_standard(self.units, self.t[b.rows], *(v[b.rows] for v in (s.z, slope, sd)))
                for b in self.blocks]  # fmt: skip

    def mean_curves(self) -> list[Curve]:
        """The GP means alone, without bands: what is left when no start gave a finite model."""
        slope, none = self.mean_slopes.T, np.zeros_like(self.mean)
        return [Curve.of_standard(self.units, self.t[b.rows], *(v[b.rows] for v in (self.mean, slope, none)))
                for b in self.blocks]  # fmt: skip


def _posterior_mean(chain: Chain, v: Array, jitter: float, y: Array, weight: Array) -> Array:
    """The means (M, K) of z given observations y (M, K) with weights 1/σ², zero where there is none."""
    K, M = chain.rate.shape
    own = weight.T / (1.0 + jitter * weight.T)  # z is the process plus the jitter's noise
    band = chain.band(v)
    band[0, :: chain.d] += own.ravel()
    right = np.zeros((K, M, chain.d))
    right[..., 0] = own * y.T
    factor = Factor.of(band, chain.d)
    if factor is None:
        return np.where(weight > 0, y, 0.0)
    g = factor.solve(right.ravel()).reshape(K, M, chain.d)[..., 0].T
    share = jitter * weight / (1.0 + jitter * weight)
    return np.asarray(g + share * (y - g))
