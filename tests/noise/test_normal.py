"""Normal noise, whose rows are those of least squares."""

import numpy as np

from odinfer.noise.normal import Normal

NORMAL = Normal()


def test_the_first_row_is_the_residual_of_least_squares():
    y, m, s = np.array([1.0, 3.0]), np.array([2.0, 2.5]), np.array([0.5, 2.0])
    r, J = NORMAL.rows(y, [m, s])
    np.testing.assert_allclose(r[:, 0], (m - y) / s)
    np.testing.assert_allclose(J[:, 0, 0], 1 / s)


def test_tails_are_accurate_where_probabilities_underflow():
    # log Φ(z) = log φ(z) − log(−z) − 1/z² + … far out.
    z = -1e3
    right = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.log(-z) - 1 / z**2
    np.testing.assert_allclose(NORMAL.log_cdf(z, (0.0, 1.0)), right, rtol=1e-14)
    np.testing.assert_allclose(NORMAL.log_sf(-z, (0.0, 1.0)), right, rtol=1e-14)


def test_any_number_can_be_observed():
    assert NORMAL.refuses(np.array([-1.0, 0.0, np.nan])) is None
    np.testing.assert_array_equal(NORMAL.transformed(np.array([-1.0, 2.0])), [-1.0, 2.0])
