"""Columns that do not change, or are zero throughout, are fitted; nothing is said of values that nobody gave."""

import numpy as np
import pytest

import odinfer as od

T = np.linspace(0.0, 5.0, 12)
PREDATION = "u' = a*u - b*u*v; v' = -c*v + d*u*v"


@pytest.mark.filterwarnings("ignore:.*is constant")
def test_a_column_of_zeros_beside_a_growing_one_is_fitted():
    y = np.stack([np.exp(0.3 * T), 0.0 * T], 1)
    fit = od.fit(od.Model.from_text(PREDATION), od.Data(T, y, states=["u", "v"]))
    assert fit.theta["a"] == pytest.approx(0.3, rel=1e-3)


@pytest.mark.filterwarnings("ignore:.*is constant")
def test_counts_that_are_all_zero_leave_the_rate_open_and_the_fit_says_so():
    fit = od.fit(od.Model.from_text("I' = k*I; I ~ poisson(I)"), od.Data(T, 0.0 * T, states=["I"]))
    assert fit.interval()["k"] == (0.0, np.inf)
    assert "k is not identifiable: every value fits" in fit.warnings
