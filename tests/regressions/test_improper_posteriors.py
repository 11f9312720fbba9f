"""A posterior that has no integral is refused, naming the parameter and what to do."""

import numpy as np
import pytest

import odinfer as od

T = np.linspace(0.0, 3.0, 15)
GROWTH = od.Data(T, 0.01 * np.exp(T) * np.exp(0.05 * np.random.default_rng(0).normal(size=15)), states=["x"])
LOGISTIC = od.Model.from_text("x' = r*x*(1 - x/K)", name="logistic")


def test_a_capacity_that_the_data_do_not_limit_is_not_sampled():
    with pytest.raises(od.InputError, match=r"no limit to 'K' from above.*K < 1000.*prior"):
        od.fit(LOGISTIC, GROWTH).sample(chains=1, draws=10)


def test_with_a_bound_it_is():
    fit = od.fit(od.Problem(LOGISTIC, GROWTH, bounds={"K": (0.3, 50.0)}))
    found = fit.sample(chains=1, draws=20, warm_up=200)
    assert (found.theta["K"] <= 50.0).all()
