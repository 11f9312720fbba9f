"""Starts respect what is known, and are near natural sizes or anywhere between bounds."""

import itertools

import numpy as np

import odinfer as od
from odinfer.scaling.dimensional_analysis import natural_sizes_of_free
from odinfer.search.startpoints import difference_noise, draw_parameters, draw_starts, starts

T = np.linspace(0.0, 14.0, 15)


def test_starts_keep_to_bounds_start_values_and_known_initial_values():
    text = "x' = -k*x + m*y; y' = k*x - y; x(0) = a; 2 < k < 3; start m = 5; a > 0; x > 0; y > 0"
    problem = od.Problem(od.Model.from_text(text), od.Data(T + 1, T[:, None] - 1.0, states=["x"]), positive=False)
    for i, (x0, phi) in enumerate(starts(problem, 30, np.random.default_rng(0))):
        theta = dict(zip(problem.parameters, problem.theta(phi), strict=True))
        assert 2.0 <= theta["k"] <= 3.0
        assert theta["a"] >= 0
        assert x0[0][0] == theta["a"]
        assert x0[0][1] > 0
        assert i or theta["m"] == 5.0


def test_noise_is_guessed_roughly_and_never_zero():
    y = 50.0 * np.sin(T / 5) + 20.0 * np.random.default_rng(3).normal(size=15)
    problem = od.Problem(
        od.Model.from_text("x' = -k*x; x(0) = 1"), od.Data(T, y[:, None], states=["x"]), positive=False
    )
    assert 8.0 < difference_noise(problem)[0] < 60.0
    smooth = od.Problem(
        od.Model.from_text("x' = -k*x; x(0) = 1"), od.Data(T, np.exp(-T)[:, None], states=["x"]), positive=False
    )
    assert difference_noise(smooth)[0] > 0


def test_with_bounds_for_all_some_starts_are_anywhere_between_them():
    text = "x' = -k*x; x(0) = a; 1e-8 < k < 1e8; 0.1 < a < 9; log k"
    problem = od.Problem(od.Model.from_text(text), od.Data(T, T[:, None], states=["x"]), positive=False)
    drawn = np.stack(list(itertools.islice(draw_starts(problem, np.random.default_rng(0)), 90)))
    low, high = problem.phi_bounds
    assert ((drawn >= low) & (drawn <= high)).all()
    away = np.abs(drawn[:, 0] - np.log(natural_sizes_of_free(problem)[0]))
    assert np.median(away[2::3]) > 2 * np.median(np.delete(away, np.s_[2::3]))


def test_parameters_from_anywhere_go_with_initial_values_as_they_are():
    problem = od.Problem(
        od.Model.from_text("x' = -k*x; y' = k*x - m*y"),
        od.Data(T, np.exp(-np.outer(T, [0.1, 0.2])), states=["x", "y"]),
        positive=False,
    )
    near = np.array([1.0, 2.0, 3.0, 4.0])
    v = draw_parameters(problem, near, 5, np.random.default_rng(0))
    assert (v[:, :2] == near[:2]).all()
    assert len(np.unique(v[:, 2:], axis=0)) == 5
