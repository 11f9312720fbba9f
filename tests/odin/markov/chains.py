"""The same risk by chains and by dense matrices."""

import numpy as np

import odinfer as od
from odinfer.gp.smoother import smooth_states
from odinfer.gp.standardisation import Units
from odinfer.odin.dense_engine import Dense
from odinfer.odin.markov.engine import Markov


def two_experiments(system: od.systems.System, **more) -> od.Problem:
    """Of different lengths, the second with missing cells."""
    span = float(system.t[-1])
    t = span * np.linspace(0.0, 0.8, 17)
    y = np.array(system.sample(0.1, 2, t).y)
    y[2, 0] = y[5, 1] = y[6, 1] = np.nan
    one = system.sample(0.1, 1, span * np.linspace(0.0, 1.0, 23))
    data = od.Data.join({"one": one, "two": od.Data(t, y, states=system.model.states)})
    return od.Problem(system.model, data, **{"positive": False, **more})


def both(problem: od.Problem, kernel="matern52", jitter=1e-4, grid=2, temper=3.0) -> tuple[Dense, Markov]:
    units = Units.of(problem)
    hypers = smooth_states(problem, units, kernel)
    return tuple(kind.of(problem, units, hypers, jitter, grid, temper) for kind in (Dense, Markov))
