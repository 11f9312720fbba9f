"""What the data say around a maximum: covariances of linear regression, and spreads of what depends on them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.uncertainty.information import Information, information
from odinfer.uncertainty.small_sample import quantile, threshold
from uncertainty.lines import line_data, regression

FEW = settings(max_examples=25, derandomize=True, deadline=None)


@pytest.fixture(scope="module")
def of_line(line) -> tuple[od.Data, Information]:
    data = line_data(3, 12)
    return data, od.fit(line, data).maximum().info


def test_of_a_straight_line_it_is_the_covariance_of_linear_regression(of_line):
    data, info = of_line
    _, error, df = regression(data.t, data.y[:, 0])
    X = np.stack([np.ones(12), data.t], -1)
    C = np.linalg.inv(X.T @ X)
    np.testing.assert_allclose(info.covariance, error**2 * C / C[1, 1], rtol=1e-5)
    np.testing.assert_allclose(info.freedom, [df], rtol=1e-6)
    assert info.count == pytest.approx(12 / df)
    assert info.sigma[0] == pytest.approx(error / np.sqrt(C[1, 1]), rel=1e-6)


def test_the_spread_of_a_prediction_is_that_of_regression(of_line):
    data, info = of_line
    _, error, df = regression(data.t, data.y[:, 0])
    t = np.array([-1.0, 0.0, 1.5, 7.0])
    sd, freedom = info.spread(np.stack([np.ones(4), t], -1))
    Sxx = ((data.t - data.t.mean()) ** 2).sum()
    np.testing.assert_allclose(sd, error * np.sqrt(Sxx / 12 + (t - data.t.mean()) ** 2), rtol=1e-5)
    np.testing.assert_allclose(freedom, df, rtol=1e-6)
    np.testing.assert_allclose(info.fall(np.stack([np.ones(4), t], -1), 0.9), threshold(df, 12 / df, 0.9), rtol=1e-5)


def test_known_noise_leaves_the_information_as_it_is(lv, lv_data):
    fit = od.fit(od.Problem(lv.model, lv_data, sigma={"prey": 0.1, "predator": 0.1}))
    best = fit.maximum()
    info = information(best.likelihood, best.refined)
    right = np.linalg.inv(best.refined.information.dense()[0])
    np.testing.assert_allclose(info.covariance, right, rtol=1e-6, atol=1e-12)
    sd, freedom = info.spread(np.eye(6))
    np.testing.assert_allclose(sd, np.sqrt(np.diag(right)), rtol=1e-6)
    assert np.isinf(freedom).all()
    np.testing.assert_allclose(info.fall(np.eye(6), 0.95), quantile(np.inf, 0.95) ** 2, rtol=1e-6)


def test_a_prior_counts_as_an_observation(decay, decay_data):
    free, told = (
        od.fit(od.Problem(decay, decay_data, sigma={"x": 0.05}, prior=prior, positive=False)).maximum().info
        for prior in ({}, {"k": ("normal", 0.7, 0.01)})
    )
    right = np.linalg.inv(free.covariance) + np.diag([0.0, 1 / 0.01**2])
    np.testing.assert_allclose(np.linalg.inv(told.covariance), right, rtol=0.03)


@FEW
@given(seed=st.integers(0, 1000), magnitude=st.floats(-90, 90), sign=st.sampled_from([-1, 1]))
def test_a_multiple_of_a_quantity_has_the_multiple_of_its_spread(lv_fit, seed, magnitude, sign):
    info, factor = lv_fit.maximum().info, sign * 10.0**magnitude
    a = np.random.default_rng(seed).normal(size=6)
    sd, freedom = info.spread(a)
    more, same = info.spread(factor * a)
    assert more == pytest.approx(abs(factor) * sd)
    assert same == pytest.approx(freedom)
    assert info.fall(factor * a, 0.95) == pytest.approx(info.fall(a, 0.95))
    # Between the fewest of one state and all of them together.
    assert info.freedom.min() * (1 - 1e-9) <= freedom <= info.freedom.sum() * (1 + 1e-9)


def test_what_the_data_do_not_see_has_an_infinite_spread(decay_data):
    model = od.Model.from_text("x' = -k*x + 0*m")
    best = od.fit(od.Problem(model, decay_data, start={"m": 1.0})).maximum()
    sd, _ = best.info.spread(np.eye(3))
    assert best.likelihood.unknowns.names == ("x(0)", "k", "m")
    assert np.isfinite(sd[:2]).all()
    assert sd[2] == np.inf
    assert best.info.flat.shape == (3, 1)


def test_a_quantity_that_nothing_changes_is_certain(lv_fit):
    sd, freedom = lv_fit.maximum().info.spread(np.zeros(6))
    assert sd == 0.0
    assert np.isinf(freedom)


def test_what_depends_on_one_experiment_has_the_same_spread_by_its_own_numbers_as_by_all(decay, decay_data):
    problem = od.Problem(decay, od.Data.join({"one": decay_data, "two": decay_data}))
    best = od.fit(problem).maximum()
    u = best.likelihood.unknowns
    for e in range(2):
        S = np.random.default_rng(e).normal(size=(5, len(u.own(e))))
        for own, every in zip(best.info.of(u.own(e)).spread(S), best.info.spread(u.lift(e, S)), strict=True):
            np.testing.assert_allclose(own, every, rtol=1e-10)
