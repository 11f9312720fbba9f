"""Lognormal noise is normal noise of the logarithm."""

import numpy as np
import pytest

from odinfer.noise.lognormal import Lognormal
from odinfer.noise.normal import Normal

LOGNORMAL = Lognormal()


def test_the_logarithm_is_normal():
    y, a = np.array([0.1, 1.0, 30.0]), (2.0, 0.7)
    own = LOGNORMAL.log_density(y, a)
    np.testing.assert_allclose(own, Normal().log_density(np.log(y), (np.log(2.0), 0.7)) - np.log(y))
    np.testing.assert_allclose(LOGNORMAL.transformed(y), np.log(y))
    assert LOGNORMAL.quantile(0.5, a) == pytest.approx(2.0)


@pytest.mark.parametrize("y", [0.0, -1.0])
def test_only_positive_values_can_be_observed(y):
    assert LOGNORMAL.refuses(np.array([1.0, y, np.nan])) == "must be positive"
    assert LOGNORMAL.log_density(np.array(y), (2.0, 0.7)) == -np.inf
    assert LOGNORMAL.log_cdf(np.array(y), (2.0, 0.7)) == -np.inf
    assert LOGNORMAL.log_sf(np.array(y), (2.0, 0.7)) == 0.0
