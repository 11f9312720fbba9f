"""The problem of a single equation, driven by the estimates of the other states as known inputs.

So an equation is judged whether or not the others are right: its own solution either follows its state or does not.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.data.series import Series
from odinfer.gp.curves import Hermite
from odinfer.gp.grids import finer_grid
from odinfer.likelihood.refinement import TrajectoryOptimum, paths_through, refine
from odinfer.model.model import Model
from odinfer.ode.adaptive_mesh import Budget
from odinfer.odin.dense_engine import Dense
from odinfer.odin.gauss_newton import Solution
from odinfer.odin.markov.engine import Markov
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_ACCURACY = 1e-3  # of a solution, in units of the state's scale: its inputs are estimates
_ITERATIONS, _STEPS = 25, 2000  # for one solution, which takes 3 to 25, and 50 to 200 of integration, as a rule
_PARTS = 6  # points per gap of the grid at which the other states are handed over


@dataclass(frozen=True, eq=False)
class Estimate:
    """ODIN's states of every experiment: per experiment times t (M,), x and slopes (M, K)."""

    risk: Dense | Markov
    solution: Solution
    curves: tuple[tuple[Array, Array, Array], ...]

    @staticmethod
    def of(risk: Dense | Markov, s: Solution) -> Estimate:
        x = [risk.units.user(s.z[b.rows]) for b in risk.blocks]
        return Estimate(risk, s, tuple((g.t, xe, g.gp) for g, xe in zip(risk.gradients(s), x, strict=True)))

    def dense(self) -> list[tuple[Array, Array]]:
        """Times and states between the grid points, by cubic Hermite interpolation."""
        found = []
        for t, x, slope in self.curves:
            fine, _ = finer_grid(t, _PARTS)
            found.append((fine, Hermite(t, x, slope)(fine) if len(t) > 1 else x))
        return found

    def observed(self) -> list[Array]:
        """States (N, K) at the observation times of every experiment, which are grid times unless some were joined."""
        found = []
        for (t, x, slope), e in zip(self.curves, self.risk.problem.data.experiments, strict=True):
            joined = not np.isin(e.t, t).all()
            found.append(Hermite(t, x, slope)(e.t) if joined else x[np.searchsorted(t, e.t)])
        return found


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
        return self.problem.model.equation(self.k)

    def alone(self, problem: Problem, estimate: Estimate) -> tuple[Problem, Array]:
        """The equation's own problem, its parameters free and all others held at their estimates; and its start."""
        p, s = problem.linear, estimate.solution
        # On a log scale an estimate can overflow: the largest float has the same effect in any equation.
        theta = dict(zip(p.model.parameters, np.nan_to_num(p.theta(s.phi)).tolist(), strict=True))
        sensitivity = np.abs(estimate.risk.linearise(s.z, s.phi).fphi[:, self.k]).max(0)
        free = [name for name, size in zip(p.free, sensitivity, strict=True) if size > 0]
        experiments = zip(p.data.experiments, estimate.dense(), strict=True)
        inputs: dict[str, Mapping[str, Series]] = {
            e.name: {name: (t, x[:, i]) for i, name in enumerate(p.model.states) if i != self.k}
            for e, (t, x) in experiments
        }
        own = Problem(
            self.model,
            p.data.select((self.state,)).with_inputs(inputs),
            bounds={n: p.limits(n) for n in (*free, self.state)},
            fixed={n: v for n, v in theta.items() if n not in free},
            prior={} if callable(p.prior) else {n: v for n, v in p.prior.items() if n in free},
            sigma={n: v for n, v in p.sigma.items() if n == self.state},
            scale={n: p.scale[n] for n in free if n in p.scale},
        )
        return own, own.phi(np.array([theta[n] for n in p.model.parameters]))

    def follow(self, problem: Problem, estimate: Estimate) -> tuple[Problem, TrajectoryOptimum] | None:
        """The solution of this equation nearest to its data; None if none could be followed."""
        own, phi = self.alone(problem, estimate)
        curves = {e.name: c for e, c in zip(problem.data.experiments, estimate.curves, strict=True)}
        guess = [
            (t, x[:, self.k : self.k + 1], slope[:, self.k : self.k + 1])
            for t, x, slope in (curves[e.name] for e in own.data.experiments)
        ]
        scale = estimate.risk.units.of_state(self.k).scale
        found = refine(own, scale, paths_through(own, guess), phi, _ITERATIONS, _ACCURACY, Budget(_STEPS))
        return None if found is None else (own, found)
