"""The small-sample correction: Student's interval for a straight line, and what can only be known about covariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from odinfer.optimize.arrow_matrix import ArrowMatrix
from odinfer.uncertainty.small_sample import corrected, quantile, sd_interval, threshold

FEW = settings(max_examples=25, derandomize=True, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def dense(M, v, known, n, prior):
    return corrected(ArrowMatrix.from_dense(M), v, known, n, ArrowMatrix.from_dense(prior[None]))


@given(freedom=st.floats(1, 1e6), level=st.floats(0.1, 0.999))
def test_the_threshold_is_students_for_one_observation_per_degree_of_freedom(freedom, level):
    q = quantile(freedom, level)
    assert float(threshold(freedom, 1.0, level)) == pytest.approx(freedom * np.log1p(q**2 / freedom), rel=1e-9)
    assert threshold(np.inf, 1.0, level) == pytest.approx(quantile(np.inf, level) ** 2)


@FEW
@given(seed=SEEDS, n=st.integers(4, 40), level=st.floats(0.1, 0.99))
def test_at_the_ends_of_students_interval_the_likelihood_of_a_line_has_fallen_by_the_threshold(seed, n, level):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0.0, 3.0, n))
    y = 1.0 + 0.5 * t + rng.normal(size=n)
    line = stats.linregress(t, y)
    least = ((y - line.intercept - line.slope * t) ** 2).sum()
    held = line.slope + line.stderr * stats.t.ppf(0.5 * (1 + level), n - 2)
    rest = y - held * t
    fall = n * np.log(((rest - rest.mean()) ** 2).sum() / least)
    assert fall == pytest.approx(float(threshold(n - 2, n / (n - 2), level)), rel=1e-6)


def test_quantiles_are_students_and_normal_for_known_noise():
    np.testing.assert_allclose(quantile([3.0, 30.0, np.inf], 0.95), [3.182446, 2.042272, 1.959964], rtol=1e-6)
    assert (np.diff(quantile(np.array([1.0, 2.0, 10.0, 1e6, np.inf]), 0.9)) < 0).all()


@FEW
@given(seed=SEEDS, n=st.integers(5, 30))
def test_of_one_state_the_covariance_is_that_of_regression(seed, n):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    best, least = np.linalg.lstsq(X, y)[:2]
    found = dense((X.T @ X)[None], least / n, np.array([False]), [n], np.zeros((3, 3)))
    s2 = least[0] / (n - 3)
    np.testing.assert_allclose(found.covariance, s2 * np.linalg.inv(X.T @ X), rtol=1e-6)
    np.testing.assert_allclose(found.freedom, [n - 3])
    np.testing.assert_allclose(found.sigma, np.sqrt(s2))
    assert found.count == pytest.approx(n / (n - 3))
    assert found.flat.shape == (3, 0)
    assert best.shape == (3,)


def products(seed: int, K: int = 3, P: int = 4, n: int = 12):
    """Cross products (K, P, P) of any sensitivities, noise variances and a prior's curvature."""
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(K, n, P)) * 10.0 ** rng.uniform(-2, 2, P)
    return np.swapaxes(J, 1, 2) @ J, 10.0 ** rng.uniform(-2, 1, K), np.diag(rng.uniform(0.0, 1.0, P))


@FEW
@given(seed=SEEDS)
def test_known_noise_needs_no_correction(seed):
    M, v, prior = products(seed)
    found = dense(M, v, np.ones(3, bool), [12] * 3, prior)
    np.testing.assert_allclose(found.covariance, np.linalg.inv((M / v[:, None, None]).sum(0) + prior), rtol=1e-6)
    np.testing.assert_allclose(found.covariance, found.plain)
    np.testing.assert_allclose(found.sigma, np.sqrt(v))
    assert np.isinf(found.freedom).all()
    assert found.count == 1.0


@FEW
@given(seed=SEEDS)
def test_noise_that_is_estimated_costs_certainty_and_observations(seed):
    M, v, prior = products(seed)
    mixed = np.array([True, False, False])
    found, sure = (dense(M, v, known, [12] * 3, prior) for known in (mixed, np.ones(3, bool)))
    d = np.sqrt(np.diag(found.plain))
    assert np.linalg.eigvalsh((found.covariance - found.plain) / np.outer(d, d)).min() > -1e-9
    assert (np.diag(found.plain) >= np.diag(sure.plain) * (1 - 1e-9)).all()
    assert (found.sigma[1:] > np.sqrt(v[1:])).all()
    assert found.sigma[0] == pytest.approx(np.sqrt(v[0]))
    assert np.isinf(found.freedom[0])
    assert (found.freedom[1:] < 12).all()
    # All unknowns together spend as many observations as there are, less what the prior already said.
    assert 24 - found.freedom[1:].sum() <= 4 + 1e-9


@FEW
@given(seed=SEEDS)
def test_shares_of_the_states_add_up_and_units_do_not_matter(seed):
    M, v, prior = products(seed)
    found = dense(M, v, np.zeros(3, bool), [12] * 3, 0.0 * prior)
    scale = found.plain / np.sqrt(np.outer(np.diag(found.plain), np.diag(found.plain)))
    np.testing.assert_allclose(sum(found.parts), found.plain, atol=1e-9 * np.abs(found.plain).max())
    assert np.abs(scale).max() == pytest.approx(1.0)
    units = 10.0 ** np.random.default_rng(seed).uniform(-3, 3, 4)
    other = dense(M * np.outer(units, units), v, np.zeros(3, bool), [12] * 3, 0.0 * prior)
    np.testing.assert_allclose(other.covariance * np.outer(units, units), found.covariance, rtol=1e-5)
    np.testing.assert_allclose(other.freedom, found.freedom, rtol=1e-6)


@FEW
@given(seed=SEEDS)
def test_directions_in_which_the_data_say_nothing_are_found_and_left_out(seed):
    rng = np.random.default_rng(seed)
    blind = rng.normal(size=4)
    blind /= np.linalg.norm(blind)
    J = rng.normal(size=(20, 4))
    J -= np.outer(J @ blind, blind)
    found = dense((J.T @ J)[None], np.array([0.5]), np.array([True]), [20], np.zeros((4, 4)))
    assert found.flat.shape == (4, 1)
    np.testing.assert_allclose(np.abs(found.flat[:, 0] @ blind), 1.0, rtol=1e-6)
    sees = np.linalg.svd(J, full_matrices=False)[2][:3]
    np.testing.assert_allclose(
        sees @ found.covariance @ sees.T, np.linalg.inv(sees @ (J.T @ J / 0.5) @ sees.T), rtol=1e-5, atol=1e-9
    )


def test_intervals_of_standard_deviations_cover_as_often_as_they_say():
    rng = np.random.default_rng(5)
    draws = rng.normal(size=(4000, 6)) * 2.0
    low, high = sd_interval(draws.std(1, ddof=1), 5, 0.9)
    assert np.mean((low < 2.0) & (high > 2.0)) == pytest.approx(0.9, abs=0.02)


@FEW
@given(seed=SEEDS)
def test_of_many_experiments_it_is_the_same_by_blocks(seed):
    rng = np.random.default_rng(seed)
    E, m, C, K = 5, 2, 3, 2
    M, P = ArrowMatrix(np.zeros((K, E, m, m)), np.zeros((K, E, m, C)), np.zeros((K, C, C))), E * m + C
    prior = ArrowMatrix(np.zeros((1, E, m, m)), np.zeros((1, E, m, C)), np.diag(rng.uniform(0, 1, C))[None])
    units = 10.0 ** rng.uniform(-2, 2, P)
    for e in range(E):
        places = np.append(np.arange(e * m, (e + 1) * m), E * m + np.arange(C))
        J = rng.normal(size=(K, 8, m + C)) * units[places]
        M.add(e, places, np.swapaxes(J, 1, 2) @ J)
    v, known, n = 10.0 ** rng.uniform(-1, 1, K), np.array([True, False]), [40, 40]
    found, right = corrected(M, v, known, n, prior), dense(M.dense(), v, known, n, prior.dense()[0])
    both = zip(
        (found.covariance, found.plain, *found.parts), (right.covariance, right.plain, *right.parts), strict=True
    )
    for mine, other in both:
        np.testing.assert_allclose(np.asarray(mine) * np.outer(units, units), other * np.outer(units, units), atol=1e-9)
    for name in ("freedom", "sigma", "count"):
        np.testing.assert_allclose(getattr(found, name), getattr(right, name), rtol=1e-9)
    assert found.flat.shape == right.flat.shape == (P, 0)
