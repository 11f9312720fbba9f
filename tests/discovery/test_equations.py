"""Equations from data alone: terms, estimates and what is said about them."""

import numpy as np
import pytest

import odinfer as od
from odinfer.discovery.sparse import stepwise
from odinfer.discovery.terms import Term


@pytest.fixture(scope="module")
def found():
    """From logistic growth with 2 % noise."""
    t = np.linspace(0, 8, 40)
    n = 10 / (1 + 19 * np.exp(-1.2 * t))
    data = od.Data(t, n + 0.1 * np.random.default_rng(1).normal(size=40), states=["n"])
    return od.discover(None, data, draws=39)


def test_the_terms_of_logistic_growth_are_found_with_their_coefficients(found):
    table = found.ranking.set_index(found.ranking["term"].str.partition("*")[2])
    assert set(table.index) == {"n", "n^2"}
    assert (table["delta_bic"] > 10).all()
    assert table.loc["n", "low"] < 1.2 < table.loc["n", "high"]


def test_equations_that_were_found_can_be_simulated_and_fitted(found):
    x = od.simulate(found.best, found.theta, [0.5], np.linspace(0, 8, 9))
    assert np.asarray(x)[-1, 0] == pytest.approx(10.0, rel=0.1)
    assert found.fit.converged


def test_the_summary_has_the_equations_and_what_the_columns_mean(found):
    text = found.summary()
    assert text.startswith("Equations with 2 terms")
    assert "n' = " in text
    assert "leaving the term out" in text


def test_stepwise_selection_finds_the_columns_that_made_the_data():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 12))
    y = 3 * A[:, 2] - 2 * A[:, 7] + 0.01 * rng.normal(size=60)
    terms = [Term(f"x^{j}") for j in range(12)]
    residual, columns = stepwise(y, A, terms)[2]
    assert set(columns) == {2, 7}
    assert residual < 0.1


def test_data_with_a_column_that_is_no_name_are_refused():
    data = od.Data([0, 1, 2], [1.0, 2.0, 3.0], states=["a b"])
    with pytest.raises(od.InputError, match="rename"):
        od.discover(None, data)


def test_discover_without_data_says_what_it_needs():
    with pytest.raises(od.InputError, match="needs data"):
        od.discover(None)
