"""Log-Laplace noise is Laplace noise of the logarithm."""

import numpy as np

from odinfer.noise.laplace import Laplace
from odinfer.noise.loglaplace import Loglaplace


def test_the_logarithm_is_laplaces():
    y, a = np.array([0.1, 1.0, 30.0]), (2.0, 0.7)
    own = Loglaplace().log_density(y, a)
    np.testing.assert_allclose(own, Laplace().log_density(np.log(y), (np.log(2.0), 0.7)) - np.log(y))


def test_only_positive_values_can_be_observed():
    assert Loglaplace().refuses(np.array([1.0, 0.0])) == "must be positive"
    assert Loglaplace().refuses(np.array([1.0, np.nan])) is None
