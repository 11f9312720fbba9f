"""Searching without a smoother: hidden states are found from anywhere, and starts respect what is known."""

import numpy as np
import pytest

import odinfer as od
from odinfer.gp.residual_signal import SUSPICIOUS
from odinfer.likelihood.refinement import shoot
from odinfer.search import multistart as module
from odinfer.search.multistart import multistart, signal_left

T = np.linspace(0.0, 14.0, 15)
SIR = "S' = -b*S*I/763; I' = b*S*I/763 - g*I; log b, g; S > 0; I > 0"


def sir(seed=3, sd=15.0):
    model = od.Model.from_text(SIR)
    x = od.simulate(model, {"b": 1.66, "g": 0.45}, {"S": 760.0, "I": 3.0}, T)
    y = x[:, 1:] + sd * np.random.default_rng(seed).normal(size=(15, 1))
    return od.Problem(model, od.Data(T, y, states=["I"]))


def test_a_hidden_state_is_found_as_well_as_from_the_truth():
    problem = sir()
    ways = multistart(problem, 0)
    truth = shoot(problem, np.full(2, np.nan), [np.array([760.0, 3.0])], problem.phi(np.array([1.66, 0.45])))
    assert ways.best.objective < truth.objective + 0.05
    assert ways.agreeing >= 3
    assert ways.ends[0] == pytest.approx(ways.best.objective, abs=0.05)
    assert signal_left(problem, ways.best) <= SUSPICIOUS


def test_agreement_on_what_leaves_most_of_the_data_unexplained_ends_no_search(monkeypatch):
    monkeypatch.setattr(module, "STARTS", 15)
    monkeypatch.setattr(module, "ALL_STARTS", 20)
    t = np.linspace(0.0, 20.0, 80)
    y = 3.0 * np.exp(-0.3 * t) + 0.3 * np.sin(2.0 * t)
    problem = od.Problem(od.Model.from_text("x' = k*(m - x); x(0) = a"), od.Data(t, y[:, None], states=["x"]))
    ways = multistart(problem, 0)
    assert signal_left(problem, ways.best) > 30.0
    assert ways.agreeing >= 10
    assert len(ways.ends) >= 20


def test_the_same_seed_gives_the_same_answer():
    one, other = (multistart(sir(), 5) for _ in range(2))
    assert one.ends == other.ends


def test_local_parameters_start_in_every_experiment():
    one = od.Data(T, np.exp(-0.2 * T)[:, None], states=["x"])
    model = od.Model.from_text("x' = -k*x; local k; x(0) = 1")
    problem = od.Problem(model, od.Data.join({"a": one, "b": one}))
    assert problem.parameters == ("k[a]", "k[b]")
    best = multistart(problem, 0).best
    np.testing.assert_allclose(problem.theta(best.phi), [0.2, 0.2], rtol=1e-4)


def test_where_no_trajectory_exists_nothing_is_found_and_nothing_raised():
    model = od.Model.from_text("x' = 1 + x^2; x(0) = 1e3; y ~ normal(q*x)")
    ways = multistart(od.Problem(model, od.Data(T, np.sin(T)[:, None], states=["y"])), 0)
    assert ways.best is None
    assert ways.agreeing == 0


def test_with_bounds_for_all_starts_are_followed_side_by_side_and_agree():
    text = "S' = -b*S*I/763; I' = b*S*I/763 - g*I; S(0) = 763 - I(0); log b, g, I(0)\n"
    model = od.Model.from_text(text + "1e-3 < b < 1e3; 1e-3 < g < 1e3; 0.01 < I(0) < 100")
    x = od.simulate(model, {"b": 1.66, "g": 0.45, "I(0)": 3.0}, {}, T)
    y = x[:, 1:] + 15.0 * np.random.default_rng(1).normal(size=(15, 1))
    problem = od.Problem(model, od.Data(T, y, states=["I"]))
    one, other = (multistart(problem, 2) for _ in range(2))
    assert one.ends == other.ends
    assert one.agreeing >= 3
    truth = shoot(problem, np.full(2, np.nan), [np.array([760.0, 3.0])], problem.phi(np.array([1.66, 0.45, 3.0])))
    assert one.best.objective < truth.objective + 1e-3


def test_ends_that_are_not_far_below_the_best_are_remembered():
    t = np.linspace(0.0, 10.0, 12)
    y = 2.0 + 1.5 * np.exp(-0.6 * t) + 0.05 * np.random.default_rng(1).normal(size=12)
    text = "x' = -k*(x - m); x(0) = a; log k, m, a; 1e-4 < k < 1e3; 1e-4 < m < 1e3; 1e-4 < a < 1e3"
    problem = od.Problem(od.Model.from_text(text), od.Data(t, y[:, None], states=["x"]), sigma={"x": 0.05})
    ways = multistart(problem, 0)
    value = module.SideBySide.of(problem, 1e-6).solve(ways.known).worth.value
    assert value.min() == pytest.approx(ways.best.objective, abs=0.05)
    assert value.max() < value.min() + 15.5
    assert len(value) > 3


def test_with_bounds_for_all_and_no_trajectory_nothing_is_found_and_nothing_raised():
    model = od.Model.from_text("x' = 1 + x^2; x(0) = 1e3; y ~ normal(q*x); 0 < q < 9")
    assert multistart(od.Problem(model, od.Data(T, np.sin(T)[:, None], states=["y"])), 0).best is None
