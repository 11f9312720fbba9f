"""What an engine is, and which one a problem gets: the choice between dense and sparse algebra is made here alone."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from odinfer.matching.dense import Dense
from odinfer.matching.gamma import GammaRule
from odinfer.matching.minimise import Objective, Solution
from odinfer.matching.sparse.engine import Sparse, sparse_field
from odinfer.problem.problem import Problem
from odinfer.smoothing.curves import Curve, Gradients
from odinfer.smoothing.evidence import Hyperparameters
from odinfer.smoothing.smooth import smooth_states
from odinfer.smoothing.units import Units

Array = NDArray[np.float64]

ALGEBRA = ("auto", "dense", "sparse")
MOST_UNKNOWNS = 3000  # up to here dense algebra refines grids


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
        algebra: "dense", "sparse", or "auto": sparse where it is faster.
        grid: points per gap between observations; one where dense algebra would grow too large.
        temper, jitter, scale_time: see `odinfer.Odin`.
        smoothing: options of `smooth_states`.
    """
    units = Units.of(problem, scale_time)
    field = sparse_field(problem, grid, algebra)
    hypers = smooth_states(problem, units, **smoothing, on_grid=field is not None)
    if field is not None:
        return Sparse.of(problem, units, hypers, jitter, grid, temper, field)
    points = len(problem.model.states) * sum(len(e.t) for e in problem.data.experiments)
    return Dense.of(problem, units, hypers, jitter, grid if grid * points <= MOST_UNKNOWNS else 1, temper)
