"""Criteria charge for unknowns: more of them cost more, and few data most."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odinfer.diagnostics.information_criteria import aic, aicc, bic


def test_known_values():
    assert aic(-10.0, 3) == 26.0
    assert aicc(-10.0, 3, 10) == pytest.approx(26.0 + 24.0 / 6.0)
    assert bic(-10.0, 3, 10) == pytest.approx(20.0 + 3 * math.log(10))
    assert aicc(-10.0, 9, 10) == math.inf


@given(st.floats(-1e6, 1e6), st.integers(1, 50), st.integers(60, 1000))
def test_an_unknown_more_must_pay_for_itself(loglik, unknowns, observations):
    assert aic(loglik, unknowns + 1) >= aic(loglik, unknowns)
    assert aicc(loglik, unknowns, observations) >= aic(loglik, unknowns)
    assert bic(loglik, unknowns, observations) > aic(loglik, unknowns) - 1e-6  # from 8 observations on
