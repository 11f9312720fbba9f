"""Models without free parameters, or without any unknown, are fitted and judged like others."""

import numpy as np
import pytest

import odinfer as od

T = np.linspace(0.0, 3.0, 12)
SCATTER = np.random.default_rng(1).normal(size=12)
CLEAN = 3.0 * np.exp(-0.7 * T)


@pytest.mark.parametrize("method", ["odin", "trajectory"])
@pytest.mark.parametrize("noise", ["x ~ normal(x, s)", "x ~ lognormal(x)", "x ~ poisson(x)"])
@pytest.mark.parametrize("start", ["x(0) = 3", "x > 0"])
def test_a_model_whose_parameters_are_all_fixed_is_fitted(method, noise, start):
    y = np.round(CLEAN) if "poisson" in noise else CLEAN * np.exp(0.05 * SCATTER)
    model = od.Model.from_text(f"x' = -k*x; fixed k = 0.7; {start}; {noise}")
    fit = od.fit(model, od.Data(T, y, states=["x"]), method=method)
    assert fit.converged
    assert float(fit.predict([0.0])["x"].iloc[0]) == pytest.approx(3.0, rel=0.2)
    assert "contradict" not in fit.summary()


def test_a_fixed_rate_that_is_wrong_contradicts_level_data_from_any_initial_value():
    fit = od.fit(od.Model.from_text("x' = -k*x; fixed k = 3"), od.Data(2 * T, 2.0 + 0.1 * SCATTER, states=["x"]))
    assert "contradicts the data" in fit.summary()


def test_a_fixed_rate_that_is_wrong_contradicts_the_data():
    model = od.Model.from_text("x' = -k*x; fixed k = 3; x(0) = 3")
    fit = od.fit(model, od.Data(T, CLEAN + 0.02 * SCATTER, states=["x"]))
    assert "contradicts the data" in fit.summary()
