"""Searching without a smoother: hidden states are found from anywhere, and starts respect what is known."""

import numpy as np
import pytest

import odinfer as od
from odinfer.gp.residual_signal import SUSPICIOUS
from odinfer.likelihood.refinement import maximise_from_initial
from odinfer.search import multistart as module
from odinfer.search.multistart import convincing, exceeds_known_noise, search, signal_left

T = np.linspace(0.0, 14.0, 15)
SIR = "S' = -b*S*I/763; I' = b*S*I/763 - g*I; log b, g; S > 0; I > 0"


def sir(seed=3, sd=15.0):
    model = od.Model.from_text(SIR)
    x = od.simulate(model, {"b": 1.66, "g": 0.45}, {"S": 760.0, "I": 3.0}, T)
    y = x[:, 1:] + sd * np.random.default_rng(seed).normal(size=(15, 1))
    return od.Problem(model, od.Data(T, y, states=["I"]))


def test_a_hidden_state_is_found_as_well_as_from_the_truth():
    problem = sir()
    found = search(problem, 0)
    truth = maximise_from_initial(
        problem, np.full(2, np.nan), [np.array([760.0, 3.0])], problem.phi(np.array([1.66, 0.45]))
    )
    assert found.best.objective < truth.objective + 0.05
    assert found.agreeing >= 3
    assert found.objectives[0] == pytest.approx(found.best.objective, abs=0.05)
    assert signal_left(problem, found.best) <= SUSPICIOUS


def test_start_points_that_agree_end_the_search_though_the_model_is_wrong():
    t = np.linspace(0.0, 20.0, 80)
    y = 3.0 * np.exp(-0.3 * t) + 0.3 * np.sin(2.0 * t)
    problem = od.Problem(od.Model.from_text("x' = k*(m - x); x(0) = a"), od.Data(t, y[:, None], states=["x"]))
    found = search(problem, 0)
    assert signal_left(problem, found.best) > 30.0
    assert found.agreeing >= 8
    assert len(found.objectives) <= 100


def test_exchanged_rates_are_reported_as_separate_optima():
    # Absorption and elimination exchanged give the same curve with another volume ("flip-flop").
    t = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0, 12.0, 24.0])
    model = od.Model.from_text("gut' = -ka*gut; c' = ka*gut/V - k*c; gut(0) = 100; c(0) = 0")
    x = od.simulate(model, {"ka": 1.2, "V": 30.0, "k": 0.12}, {}, np.append(0.0, t))[1:, 1]
    y = x * (1.0 + 0.02 * np.random.default_rng(0).normal(size=len(t)))
    problem = od.Problem(model, od.Data(t, y[:, None], states=["c"]))
    found = search(problem, 0)
    every = problem.theta(np.vstack([found.best.phi, found.alternatives]))
    ka, V = np.sort(every[:, problem.parameters.index("ka")]), np.sort(every[:, problem.parameters.index("V")])
    assert len(every) == 2
    np.testing.assert_allclose(ka, [0.12, 1.2], rtol=0.2)
    np.testing.assert_allclose(V, [3.0, 30.0], rtol=0.2)


def test_a_ridge_on_which_only_a_product_matters_is_one_optimum():
    t = np.linspace(0.0, 10.0, 20)
    y = 3.0 * np.exp(-0.3 * t) + 0.05 * np.random.default_rng(0).normal(size=20)
    model = od.Model.from_text("x' = -a*b*x; x(0) = 3; x ~ normal(x)")
    assert not len(search(od.Problem(model, od.Data(t, y[:, None], states=["x"])), 0).alternatives)


def test_the_same_seed_gives_the_same_answer():
    one, other = (search(sir(), 5) for _ in range(2))
    assert one.objectives == other.objectives


def test_local_parameters_start_in_every_experiment():
    one = od.Data(T, np.exp(-0.2 * T)[:, None], states=["x"])
    model = od.Model.from_text("x' = -k*x; local k; x(0) = 1")
    problem = od.Problem(model, od.Data.join({"a": one, "b": one}))
    assert problem.parameters == ("k[a]", "k[b]")
    best = search(problem, 0).best
    np.testing.assert_allclose(problem.theta(best.phi), [0.2, 0.2], rtol=1e-4)


def test_where_no_trajectory_exists_nothing_is_found_and_nothing_raised():
    model = od.Model.from_text("x' = 1 + x^2; x(0) = 1e3; y ~ normal(q*x)")
    found = search(od.Problem(model, od.Data(T, np.sin(T)[:, None], states=["y"])), 0)
    assert found.best is None
    assert found.agreeing == 0


def test_with_bounds_for_all_starts_are_followed_side_by_side_and_agree():
    text = "S' = -b*S*I/763; I' = b*S*I/763 - g*I; S(0) = 763 - I(0); log b, g, I(0)\n"
    model = od.Model.from_text(text + "1e-3 < b < 1e3; 1e-3 < g < 1e3; 0.01 < I(0) < 100")
    x = od.simulate(model, {"b": 1.66, "g": 0.45, "I(0)": 3.0}, {}, T)
    y = x[:, 1:] + 15.0 * np.random.default_rng(1).normal(size=(15, 1))
    problem = od.Problem(model, od.Data(T, y, states=["I"]))
    one, other = (search(problem, 2) for _ in range(2))
    assert one.objectives == other.objectives
    assert one.agreeing >= 3
    truth = maximise_from_initial(
        problem, np.full(2, np.nan), [np.array([760.0, 3.0])], problem.phi(np.array([1.66, 0.45, 3.0]))
    )
    assert one.best.objective < truth.objective + 1e-3


def test_ends_that_are_not_far_below_the_best_are_remembered():
    t = np.linspace(0.0, 10.0, 12)
    y = 2.0 + 1.5 * np.exp(-0.6 * t) + 0.05 * np.random.default_rng(1).normal(size=12)
    text = "x' = -k*(x - m); x(0) = a; log k, m, a; 1e-4 < k < 1e3; 1e-4 < m < 1e3; 1e-4 < a < 1e3"
    problem = od.Problem(od.Model.from_text(text), od.Data(t, y[:, None], states=["x"]), sigma={"x": 0.05})
    found = search(problem, 0)
    value = module.BatchLikelihood.of(problem, 1e-6).solve(found.known).worth.value
    assert value.min() == pytest.approx(found.best.objective, abs=0.05)
    assert value.max() < value.min() + 15.5
    assert len(value) > 3


def test_with_bounds_for_all_and_no_trajectory_nothing_is_found_and_nothing_raised():
    model = od.Model.from_text("x' = 1 + x^2; x(0) = 1e3; y ~ normal(q*x); 0 < q < 9")
    assert search(od.Problem(model, od.Data(T, np.sin(T)[:, None], states=["y"])), 0).best is None


@pytest.mark.parametrize(("sigma", "exceeds"), [(0.3, False), (0.05, True)])
def test_residuals_far_beyond_a_known_noise_do_not_end_a_search_though_they_hold_no_signal(sigma, exceeds):
    t = np.linspace(0.0, 3.0, 40)
    y = 5.0 * np.exp(-0.7 * t) + 0.3 * np.random.default_rng(8).normal(size=t.shape)
    model = od.Model.from_text("x' = -k*x; x(0) = 5; log k")
    problem = od.Problem(model, od.Data(t, y, states=["x"]), sigma={"x": sigma})
    found = maximise_from_initial(problem, np.full(1, np.nan), [np.array([5.0])], problem.phi(np.array([0.7])))
    assert exceeds_known_noise(problem, found) == exceeds
    assert convincing(problem, found) != exceeds
