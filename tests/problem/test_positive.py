"""Parameters of models from text are positive unless something else is declared."""

import numpy as np
import pytest

import odinfer as od

T = np.linspace(0.0, 5.0, 12)


def problem(text: str, y=None, **options) -> od.Problem:
    y = np.exp(-0.5 * T) if y is None else y
    return od.Problem(od.Model.from_text(text), od.Data(T, np.asarray(y)[:, None], states=["x"]), **options)


def test_an_undeclared_parameter_is_positive_and_on_a_log_scale():
    p = problem("x' = -k*x")
    assert p.assumed_positive == {"k"}
    assert p.scale_of("k") == "log"
    assert p.limits("k") == (0.0, np.inf)


@pytest.mark.parametrize(
    "declared", ["real k", "linear k", "k > -5", "k < 0", "0 < k < 9", "start k = -1", "k ~ normal(1, 2)"]
)
def test_a_declaration_takes_the_assumption_back(declared):
    assert not problem(f"x' = -k*x; {declared}").assumed_positive


@pytest.mark.parametrize("declared", ["k > 0", "k < 9", "start k = 2", "k ~ lognormal(1, 2)"])
def test_a_declaration_that_says_nothing_of_negative_values_leaves_it(declared):
    p = problem(f"x' = -k*x; {declared}")
    assert p.limits("k")[0] == 0.0
    assert p.scale_of("k") == "log"


def test_functions_and_initial_values_are_of_any_sign():
    model = od.Model(lambda t, x, theta: [-theta[0] * x[0]], states=["x"], parameters=["k"])
    p = od.Problem(model, od.Data(T, np.exp(-T)[:, None], states=["x"]))
    assert p.limits("k") == (-np.inf, np.inf)
    assert "x(0)" not in problem("x' = -k*x; y' = -x; y(0) = x(0)").assumed_positive
    assert problem("x' = -k*x", positive=False).limits("k") == (-np.inf, np.inf)


def test_odin_works_on_linear_scales_with_a_bound_of_zero():
    p = problem("x' = -k*x; m > 2; x ~ normal(m*x)").linear
    assert p.limits("k") == (0.0, np.inf)
    assert p.limits("m") == (2.0, np.inf)
    assert not p.is_log.any()
    assert p.linear is p


def test_a_parameter_of_the_other_sign_is_released_and_named():
    y = 2.0 * np.exp(0.3 * T) + 0.05 * np.random.default_rng(0).normal(size=len(T))
    fit = od.fit(problem("x' = -k*x", y))
    assert fit.theta["k"] == pytest.approx(-0.3, abs=0.02)
    assert any("k < 0" in warning and "real k" in warning for warning in fit.warnings)


def test_a_bound_forbids_the_release():
    y = 2.0 * np.exp(0.3 * T) + 0.05 * np.random.default_rng(0).normal(size=len(T))
    fit = od.fit(problem("x' = -k*x; k > 0", y))
    assert 0.0 <= fit.theta["k"] < 1e-2
