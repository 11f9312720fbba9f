"""Stiff, bursting and chaotic systems without a guess: at the likelihood of the truth's own optimum, nobody accused."""

import numpy as np
import pytest

import odinfer as od
from odinfer.diagnostics.verdicts import CONSISTENT, CONTRADICTS
from odinfer.likelihood.refinement import maximise_from_initial

HODGKIN_HUXLEY = """
v' = I - gna*m^3*h*(v - 50) - gk*n^4*(v + 77) - gl*(v + 54.4)
m' = 0.1*(v + 40)/(1 - exp(-(v + 40)/10))*(1 - m) - 4*exp(-(v + 65)/18)*m
h' = 0.07*exp(-(v + 65)/20)*(1 - h) - h/(1 + exp(-(v + 35)/10))
n' = 0.01*(v + 55)/(1 - exp(-(v + 55)/10))*(1 - n) - 0.125*exp(-(v + 65)/80)*n
"""
LORENZ = "x' = s*(y - x); y' = x*(r - z) - y; z' = x*y - b*z"
SYSTEMS = {
    "robertson": (
        "x' = -a*x + b*y*z; y' = a*x - b*y*z - c*y^2; z' = c*y^2",
        {"a": 0.04, "b": 1e4, "c": 3e7}, [1, 0, 0], np.geomspace(1e-5, 1e5, 40), 0.02,
    ),
    "two rates": ("x' = -a*x; y' = a*x - b*y", {"a": 1e6, "b": 1e-6}, [1, 0], np.geomspace(1e-7, 3e6, 40), 0.02),
    "lienard 1000": (
        "x' = m*(y - x^3/3 + x); y' = -x/m", {"m": 1000.0}, [2, 0.6], np.linspace(0, 2000, 40), 0.02,
    ),
    "hodgkin-huxley": (
        HODGKIN_HUXLEY, {"I": 10.0, "gna": 120.0, "gk": 36.0, "gl": 0.3}, [-65, 0.05, 0.6, 0.32],
        np.linspace(0, 30, 80), 0.02,
    ),
    "blow-up": ("x' = a*x^2", {"a": 1.0}, [1.0], np.linspace(0, 0.999, 25), 0.01),
}  # fmt: skip
SLOW = {
    "van der pol 100": ("x' = y; y' = m*(1 - x^2)*y - x", {"m": 100.0}, [2, 0], np.linspace(0, 200, 40), 0.02),
    "van der pol 1000": ("x' = y; y' = m*(1 - x^2)*y - x", {"m": 1000.0}, [2, 0], np.linspace(0, 2000, 40), 0.02),
}


def posed(text, theta, x0, t, noise, seed=0):
    model = od.Model.from_text(text)
    x = od.simulate(model, theta, x0, t, rtol=1e-9, atol=1e-13)
    y = x + noise * x.std(0) * np.random.default_rng(seed).normal(size=x.shape)
    return od.Problem(model, od.Data(t, y, states=model.states)), x


def check(text, theta, x0, t, noise):
    problem, x = posed(text, theta, x0, t, noise)
    fit = od.fit(problem)
    phi = problem.phi(np.array([theta[p] for p in problem.model.parameters]))
    known = maximise_from_initial(problem, x.std(0), [x[0]], phi)
    assert fit.stages["refined"].loglik > known.loglik - 0.1
    assert fit.details["stage_used"] == "refined"
    assert set(fit.verdicts.values()) == {CONSISTENT}
    for name, (low, high) in fit.interval(0.999).items():
        assert low < theta[name] < high


@pytest.mark.parametrize("name", SYSTEMS)
def test_stiff_and_bursting_systems_are_fitted(name):
    check(*SYSTEMS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_relaxation_oscillations_are_fitted(name):
    check(*SLOW[name])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_chaos_beyond_prediction_keeps_odins_estimate_and_accuses_nobody():
    theta = {"s": 10.0, "r": 28.0, "b": 8 / 3}
    problem, _ = posed(LORENZ, theta, [-8, 7, 27], np.linspace(0, 20, 400), 0.02)
    fit = od.fit(problem)
    assert CONTRADICTS not in fit.verdicts.values()
    assert fit.details["stage_used"] == "odin"
    assert fit.theta == pytest.approx(theta, rel=0.05)
