"""Fits where no smoother can be had: hidden states and other noise end in estimates, intervals and a judgement."""

import numpy as np
import pytest

import odinfer as od
from odinfer.methods.multistart_mle import none_if_singular

T = np.linspace(0.0, 14.0, 15)
SIR = "S' = -b*S*I/763; I' = b*S*I/763 - g*I; S(0) = 763 - I(0); log b, g, I(0)"


def counts(seed=2):
    model = od.Model.from_text(SIR + "; cases ~ poisson(I)")
    x = od.simulate(model, {"b": 1.66, "g": 0.45, "I(0)": 3.0}, {}, T)
    y = np.random.default_rng(seed).poisson(x[:, 1:])
    return model, od.Data(T, y.astype(float), states=["cases"])


def test_counts_of_a_hidden_epidemic_give_estimates_with_intervals():
    fit = od.fit(*counts())
    assert fit.converged
    assert fit.columns == ("cases",)
    assert fit.gamma == {}
    assert fit.sigma == {}
    for name, (low, high) in fit.interval().items():
        truth = {"b": 1.66, "g": 0.45, "I(0)": 3.0}[name]
        assert low < truth < high, name
    assert fit.states.columns.tolist() == ["S", "I"]
    assert fit.observables.columns.tolist() == ["cases"]
    assert fit.details["starts_agreeing"] >= 3


def test_a_wrong_model_is_judged_as_a_whole():
    _, data = counts()
    wrong = od.Model.from_text("x' = k*x*(1 - x/M); cases ~ poisson(x); log k, M; x > 0")
    test = od.fit(wrong, data).details["model_test"]
    assert test["p"] < 0.05


def test_where_no_trajectory_follows_the_fit_says_that_it_failed():
    model = od.Model.from_text("x' = 1 + x^2; x(0) = 1e3; y ~ normal(q*x)")
    fit = od.fit(model, od.Data(T, np.sin(T)[:, None], states=["y"]))
    assert not fit.converged
    assert "failed" in fit.status
    assert np.isnan(fit.theta["q"])


def test_bad_luck_of_linear_algebra_is_nothing_and_bad_input_is_raised():
    def unlucky():
        raise np.linalg.LinAlgError

    assert none_if_singular(unlucky) is None
    assert none_if_singular(lambda: 3) == 3
    with pytest.raises(KeyError):
        none_if_singular(lambda: {}["x"])
