"""Smoothing splines against scipy, and their slopes as a linear map."""

import numpy as np
from scipy.interpolate import make_smoothing_spline

from odinfer.gp.splines import cross_validated, natural, roughness


def test_the_spline_is_the_smoothing_spline_of_scipy():
    t = np.sort(np.random.default_rng(0).uniform(0.0, 5.0, 12))
    y = np.sin(t)
    for lam in (1e-3, 0.1, 10.0):
        mine = np.linalg.solve(np.eye(12) + lam * roughness(t), y)
        expected = make_smoothing_spline(t, y, lam=lam)
        np.testing.assert_allclose(mine, expected(t), atol=1e-9)
        np.testing.assert_allclose(natural(t, t)[1] @ mine, expected.derivative()(t), atol=1e-7)


def test_cross_validation_finds_the_noise_and_short_series_do_not_stop_it():
    rng = np.random.default_rng(1)
    t = np.linspace(0.0, 6.0, 60)
    _, variance = cross_validated([(t, np.sin(t) + 0.1 * rng.normal(size=60))])
    assert 0.007 < variance < 0.014
    short = [(np.array([0.0, 1.0]), np.array([1.0, 2.0])), (np.array([0.5]), np.array([1.0])), (np.empty(0),) * 2]
    assert cross_validated(short) == (0.0, 0.0)


def test_a_natural_spline_goes_on_straight_outside_its_knots():
    knots = np.array([0.0, 1.0, 2.0, 3.0])
    values, slopes = (m @ np.array([0.0, 1.0, 0.5, 2.0]) for m in natural(knots, np.array([3.0, 4.0, 5.0])))
    np.testing.assert_allclose(np.diff(values), slopes[1:])
    np.testing.assert_allclose(slopes, slopes[0])
