"""One equation on its own: the other states, as estimated, drive it as known inputs.

So an equation is judged whether or not the others are right: its own solution either follows its state or does not.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer import gradient_matching as gm
from odinfer import refine as rf
from odinfer.data import Series
from odinfer.model import Model
from odinfer.problem import Problem
from odinfer.risk import Risk
from odinfer.solve import Solution

Array = NDArray[np.float64]

_ACCURACY = 1e-3  # of a solution, in units of the state's scale: its inputs are estimates
_PARTS = 6  # points per gap of the grid at which the other states are handed over


@dataclass(frozen=True, eq=False)
class Estimate:
    """ODIN's states of every experiment: per experiment times t (M,), x and slopes (M, K)."""

    risk: Risk
    solution: Solution
    curves: tuple[tuple[Array, Array, Array], ...]

    @staticmethod
    def of(risk: Risk, s: Solution) -> Estimate:
        x = risk.units.user(s.z)
        slopes = [g.gp for g in gm.gradients(risk, s)]
        return Estimate(
            risk, s, tuple((risk.t[b.rows], x[b.rows], d) for b, d in zip(risk.blocks, slopes, strict=True))
        )

    def dense(self) -> list[tuple[Array, Array]]:
        """Times and states between the grid points, by cubic Hermite interpolation."""
        from scipy.interpolate import CubicHermiteSpline

        found = []
        for t, x, slope in self.curves:
            fine, _ = gm.finer_grid(t, _PARTS)
            found.append((fine, CubicHermiteSpline(t, x, slope)(fine) if len(t) > 1 else x))
        return found

    def observed(self) -> list[Array]:
        """States (N, K) at the observation times of every experiment."""
        return [
            x[np.searchsorted(t, e.t)]
            for (t, x, _), e in zip(self.curves, self.risk.problem.data.experiments, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Driven(Model):
    """One equation of a larger model; it is evaluated by that model, so nothing is compiled again."""

    whole: Model | None = None
    k: int = 0

    @staticmethod
    def of(whole: Model, k: int) -> _Driven:
        others = tuple(s for s in whole.states if s != whole.states[k])
        name = f"{whole.name}: {whole.states[k]}"
        return _Driven(
            whole.field, whole.states[k : k + 1], whole.parameters, others + whole.inputs, name, whole=whole, k=k
        )

    def linearise(self, t: Array, x: Array, theta: Array, u: Array) -> tuple[Array, Array, Array]:
        """f (M, 1), ∂f/∂x (M, 1, 1) and ∂f/∂θ (M, 1, P); u holds the other states, then the model's inputs."""
        assert self.whole is not None
        others, k = len(self.whole.states) - 1, self.k
        z = np.concatenate([u[:, :k], x, u[:, k:others]], 1)
        f, fx, ft = self.whole.linearise(t, z, theta, u[:, others:])
        return f[:, k : k + 1], fx[:, k : k + 1, k : k + 1], ft[:, k : k + 1]


@dataclass(frozen=True, eq=False)
class Equation:
    """The equation of state k of a problem, as a model of one state with the other states as inputs."""

    problem: Problem
    k: int

    @property
    def state(self) -> str:
        return self.problem.model.states[self.k]

    @functools.cached_property
    def model(self) -> Model:
        return _Driven.of(self.problem.model, self.k)

    def alone(self, problem: Problem, estimate: Estimate) -> tuple[Problem, Array]:
        """The equation's own problem, its parameters free and all others held at their estimates; and its start."""
        p, s = problem, estimate.solution
        theta = dict(zip(p.model.parameters, p.theta(s.phi).tolist(), strict=True))
        sensitivity = np.abs(estimate.risk.linearise(s.z, s.phi).fphi[:, self.k]).max(0)
        free = [name for name, size in zip(p.free, sensitivity, strict=True) if size > 0]
        experiments = zip(p.data.experiments, estimate.dense(), strict=True)
        inputs: dict[str, Mapping[str, Series]] = {
            e.name: {name: (t, x[:, i]) for i, name in enumerate(p.model.states) if i != self.k}
            for e, (t, x) in experiments
        }
        own = Problem(
            self.model,
            p.data.select((self.state,)).driven_by(inputs),
            bounds={n: p.limits(n) for n in (*free, self.state)},
            fixed={n: v for n, v in theta.items() if n not in free},
            prior={} if callable(p.prior) else {n: v for n, v in p.prior.items() if n in free},
            sigma={n: v for n, v in p.sigma.items() if n == self.state},
            scale={n: p.scale[n] for n in free if n in p.scale},
        )
        return own, own.phi(np.array([theta[n] for n in p.model.parameters]))

    def follow(self, problem: Problem, estimate: Estimate) -> tuple[Problem, rf.Refined] | None:
        """The solution of this equation nearest to its data; None if none could be followed."""
        own, phi = self.alone(problem, estimate)
        curves = {e.name: c for e, c in zip(problem.data.experiments, estimate.curves, strict=True)}
        guess = [
            (t, x[:, self.k : self.k + 1], slope[:, self.k : self.k + 1])
            for t, x, slope in (curves[e.name] for e in own.data.experiments)
        ]
        scale = estimate.risk.units.scale[self.k : self.k + 1]
        found = rf.refine(own, scale, rf.paths_through(own, guess), phi, accuracy=_ACCURACY)
        return None if found is None else (own, found)


def states_on(paths: Sequence[Any], problem: Problem) -> list[Array]:
    """States (N, K) of trajectories at the observation times."""
    return [p.nodes[np.searchsorted(p.mesh, e.t)] for p, e in zip(paths, problem.data.experiments, strict=True)]
