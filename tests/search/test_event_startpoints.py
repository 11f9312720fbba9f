"""Models whose states trigger events are recovered from noisy data; start points meet thresholds at observations."""

import numpy as np
import pytest

import odinfer as od
from odinfer.search.event_startpoints import with_thresholds
from odinfer.search.startpoints import draw_starts

BALL = "h' = v\nv' = -g\nwhen h < 0 and v < 0: v = -e*v\nh(0) = 2\nv(0) = 0"
NEURON = "V' = (rest - V + R)/tau\nwhen V > th: V = -70\nV(0) = -65\nfixed rest = -65\nreal th"
THERMOSTAT = "T' = -k*(T - 10) + q*on\non' = 0\nwhen T < a: on = 1\nwhen T > b: on = 0\nT(0) = 18\non(0) = 1"
CHEMOSTAT = (
    "S' = -m*S*X/(K + S)\nX' = Y*m*S*X/(K + S)\nwhen S < low: S = S0, X = 0.5*X\nS(0) = 10\nX(0) = 0.5\nfixed S0 = 10"
)
SYSTEMS = {
    "a bouncing ball": (BALL, {"g": 9.81, "e": 0.8}, "h", 3.0, 0.03),
    "a neuron that fires": (NEURON, {"R": 30.0, "tau": 10.0, "th": -50.0, "rest": -65.0}, "V", 100.0, 0.5),
    "a thermostat": (THERMOSTAT, {"k": 0.1, "q": 3.0, "a": 18.0, "b": 22.0}, "T", 40.0, 0.2),
    "a chemostat with refill": (CHEMOSTAT, {"m": 0.8, "K": 2.0, "Y": 0.4, "low": 1.0, "S0": 10.0}, "S X", 30.0, 0.1),
}


def problem(what, count=80):
    text, values, columns, end, sd = SYSTEMS[what]
    model, t = od.Model.from_text(text), np.linspace(0.01, 1.0, count) * end
    x = od.simulate(model, {name: values[name] for name in model.parameters}, {}, np.append(0.0, t))[1:]
    names = columns.split()
    y = x[:, [model.states.index(name) for name in names]]
    return od.Problem(model, od.Data(t, y + sd * np.random.default_rng(0).normal(size=y.shape), states=names)), values


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("what", SYSTEMS)
def test_parameters_are_recovered_from_noisy_data(what):
    posed, values = problem(what)
    fit = od.fit(posed)
    assert fit.converged
    assert fit.loglik > od.loglik(posed, {name: values[name] for name in posed.free}) - 0.1
    for name in posed.free:
        assert fit.theta[name] == pytest.approx(values[name], rel=0.15)


def test_start_points_meet_a_threshold_at_an_observation():
    posed, _ = problem("a thermostat", 20)
    drawn = with_thresholds(posed, draw_starts(posed, np.random.default_rng(0)), np.random.default_rng(1))
    thresholds = np.exp([next(drawn)[[posed.free.index("a"), posed.free.index("b")]] for _ in range(40)])
    seen = posed.data.experiments[0].y
    inside = (thresholds >= seen.min() - 1e-9) & (thresholds <= seen.max() + 1e-9)
    assert inside.mean() > 0.7
