"""The risk of a problem, without the options of a method."""

import odinfer as od
from odinfer.gp.smoother import smooth_states
from odinfer.gp.standardisation import Units
from odinfer.odin.dense_engine import Dense


def risk_of(problem: od.Problem, kernel="matern52", jitter=1e-3, grid=1, temper=1.0) -> Dense:
    units = Units.of(problem)
    return Dense.of(problem, units, smooth_states(problem, units, kernel), jitter, grid, temper)
