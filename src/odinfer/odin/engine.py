"""The engine protocol, and the choice of dense, Markov or sparse algebra for a problem."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve, Gradients
from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.markov.state_space import own_time
from odinfer.gp.smoother import chainable, smooth_states
from odinfer.gp.standardisation import Units
from odinfer.odin.dense_engine import Dense
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import Objective, Solution
from odinfer.odin.markov.engine import Markov
from odinfer.odin.sparse.engine import Sparse, sparse_field
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

ALGEBRA = ("auto", "dense", "sparse", "markov")
MOST_UNKNOWNS = 3000  # up to here dense algebra refines grids
_LONG = 300  # values of states from which on chains are faster than dense algebra
_MANY = 150  # times from which on the evidence is found faster by chains
_COARSE = 0.1  # gaps shorter than this, in units of 1/λ, need no points in between


class Engine(Objective, Protocol):
    """A risk that knows how to minimise itself, and how to turn a solution into curves."""

    @property
    def units(self) -> Units: ...
    @property
    def hypers(self) -> tuple[Hyperparameters, ...]: ...
    @property
    def mean(self) -> Array:
        """Where the states start (M, K)."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What users should know about results of this engine."""

    def match(self, phi: Array) -> tuple[Array, Array]: ...
    def minimise(
        self, z: Array, phi: Array, rule: GammaRule, rival: float = ..., gamma: Array | float = ...
    ) -> Solution: ...
    def curves(self, s: Solution) -> list[Curve]: ...
    def mean_curves(self) -> list[Curve]: ...
    def gradients(self, s: Solution) -> list[Gradients]: ...


def engine_of(
    problem: Problem, algebra: str, grid: int, temper: float, jitter: float, scale_time: bool = True, **smoothing: Any
) -> Engine:
    """Smooth the data of a problem and set up its risk.

    Args:
        algebra: "dense", "sparse" for many states, "markov" for many times, or "auto": what is fastest.
        grid: points per gap between observations; one where dense algebra would grow too large, or gaps are short.
        temper, jitter, scale_time: see `odinfer.Odin`.
        smoothing: options of `smooth_states`.
    """
    units, points = Units.of(problem, scale_time), _points(problem)
    field = None if algebra == "markov" else sparse_field(problem, grid, algebra)
    if field is not None:
        hypers = smooth_states(problem, units, **smoothing, by="grid")
        return Sparse.of(problem, units, hypers, jitter, grid, temper, field)
    if algebra == "markov" or (algebra == "auto" and direct(problem, smoothing["kernel_name"]) == "markov"):
        by = "chains" if sum(len(e.t) for e in problem.data.experiments) >= _MANY else "eigenvalues"
        hypers = smooth_states(problem, units, **smoothing, by=by)
        return Markov.of(problem, units, hypers, jitter, grid if _coarse(problem, units, hypers) else 1, temper)
    hypers = smooth_states(problem, units, **smoothing)
    return Dense.of(problem, units, hypers, jitter, grid if grid * points <= MOST_UNKNOWNS else 1, temper)


def direct(problem: Problem, kernel_name: str) -> str:
    """The faster algebra of those that factor matrices: "dense" for few values of states, "markov" for many times."""
    return "markov" if _points(problem) >= _LONG and chainable(kernel_name) else "dense"


def _points(problem: Problem) -> int:
    """States times observation times."""
    return len(problem.model.states) * sum(len(e.t) for e in problem.data.experiments)


def _coarse(problem: Problem, units: Units, hypers: tuple[Hyperparameters, ...]) -> bool:
    """Whether typical gaps between observations are long for any of the processes."""
    found = []
    for e in problem.data.experiments:
        t = units.standard_time(e.t, e.t[0])
        if len(t) > 1:
            found.append(max(float(np.median(np.diff(own_time(h.kernel, h.shape, t)[0]))) for h in hypers))
    return bool(found) and float(np.median(found)) > _COARSE
