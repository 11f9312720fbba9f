"""The risk of a problem, without the options of a method."""

import odinfer as od
from odinfer.matching.dense import Dense
from odinfer.smoothing.smooth import smooth_states
from odinfer.smoothing.units import Units


def risk_of(problem: od.Problem, kernel="matern52", jitter=1e-3, grid=1, temper=1.0) -> Dense:
    units = Units.of(problem)
    return Dense.of(problem, units, smooth_states(problem, units, kernel), jitter, grid, temper)
