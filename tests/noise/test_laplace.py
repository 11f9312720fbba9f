"""Laplace noise, whose most likely location is the median."""

import numpy as np

from odinfer.noise.laplace import Laplace

LAPLACE = Laplace()


def test_the_gradient_counts_values_above_and_below():
    y = np.array([1.0, 2.0, 3.0, 50.0, 2.5])
    r, J = LAPLACE.rows(y, [np.full(5, 2.5), np.full(5, 2.0)])
    np.testing.assert_array_equal(r[:, 0] * J[:, 0, 0], [0.5, 0.5, -0.5, -0.5, 0.0])


def test_tails_are_exponential_however_far():
    assert LAPLACE.log_cdf(-1e4, (0.0, 1.0)) == LAPLACE.log_sf(1e4, (0.0, 1.0)) == -1e4 - np.log(2)
