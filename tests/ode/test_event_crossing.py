"""Trajectories of a batch through events that states trigger: states, likelihood and sensitivities."""

import numpy as np
import pytest

import odinfer as od
from odinfer.likelihood.batch_likelihood import BatchLikelihood

BALL = "h' = v\nv' = -g\nwhen h < 0 and v < 0: v = -e*v\nh(0) = 2\nv(0) = 0"
NEURON = "V' = (R - V)/tau\nwhen V > th: V = low, n += 1\nn' = 0\nV(0) = 0\nn(0) = 0\nreal low"
THERMOSTAT = "T' = -k*(T - 10) + q*on\non' = 0\nwhen T < a: on = 1\nwhen T > b: on = 0\nT(0) = 18\non(0) = 1"
CHAIN = "x' = r\nn' = 0\nwhen x > c: x = x - d\nwhen x < 0.5*c: n = n + x\nx(0) = 0.6\nn(0) = 0"
TIMED = "x' = -k*x\nwhen t > tau: x = x + a\nx(0) = 1"
DOSED = "x' = -k*x\nn' = 0\nat 2: x = x + a\nwhen x > 1.5: n = n + x\nx(0) = 1\nn(0) = 0"
AT_A_TIME = "x' = -k*x\nwhen t >= 2: x = x + a\nx(0) = 1"
CASES = {
    "a bouncing ball": (BALL, {"g": 9.81, "e": 0.8}, "h"),
    "a neuron that fires and is counted": (NEURON, {"R": 20.0, "tau": 2.0, "th": 12.0, "low": -3.0}, "V n"),
    "a thermostat": (THERMOSTAT, {"k": 0.4, "q": 9.0, "a": 18.0, "b": 22.0}, "T"),
    "an event that triggers another": (CHAIN, {"r": 1.0, "c": 2.0, "d": 1.7}, "x n"),
    "an event at an unknown time": (TIMED, {"k": 0.5, "tau": 1.3, "a": 2.0}, "x"),
    "a dose that triggers an event": (DOSED, {"k": 0.5, "a": 2.0}, "x n"),
    "an event at a time that is observed": (AT_A_TIME, {"k": 0.5, "a": 2.0}, "x"),
}


def solver(what):
    text, values, columns = CASES[what]
    model = od.Model.from_text(text)
    theta = {name: values[name] for name in model.parameters}
    t = np.union1d([0.0, 2.0], np.linspace(0.0371, 3.9613, 41))
    x = od.simulate(model, theta, {}, t)
    names = columns.split()
    y = x[1:, [model.states.index(name) for name in names]] + 0.01
    problem = od.Problem(model, od.Data(t[1:], y, states=names), sigma=dict.fromkeys(names, 0.1))
    v = np.log([values.get(name, np.nan) for name in problem.free])
    return problem, values, BatchLikelihood.of(problem, 1e-8, 20_000), v


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("what", CASES)
def test_trajectories_and_sensitivities_are_those_of_the_reference(what):
    problem, values, solve, _ = solver(what)
    v = np.array(
        [np.log(values[n]) if is_log else values[n] for n, is_log in zip(problem.free, problem.is_log, strict=True)]
    )
    solved = solve.solve(v[None])
    expected = od.loglik(problem, {name: values[name] for name in problem.free})
    assert solved.worth.loglik[0] == pytest.approx(expected, abs=1e-3)
    _states, maps = solve.linearised(solved, np.zeros(1, int))
    for j, row in enumerate(1e-6 * np.eye(len(v))):
        ends = [solve.states(solve.solve((v + side * row)[None]).trajectories)[0][0] for side in (1, -1)]
        slope = (ends[0] - ends[1]) / 2e-6
        assert np.abs(slope - maps[0][0][..., j]).max() <= 1e-4 * np.abs(slope).max() + 1e-6


def test_events_without_end_end_the_trajectory():
    model = od.Model.from_text(
        "x' = -1\nwhen x < 0: x = 0.5*b\nb' = -b\nwhen x > 0 and x < b: b = 0.5*b\nx(0) = 1\nb(0) = p"
    )
    data = od.Data([1.0, 2.0, 3.0], [0.5, 0.4, 0.3], states=["x"])
    problem = od.Problem(model, data, sigma={"x": 0.1})
    assert BatchLikelihood.of(problem).solve(np.zeros((1, 1))).worth.value[0] == np.inf
