"""Fits where no smoother can be had: hidden states and other noise end in estimates, intervals and a judgement."""

import numpy as np
import pytest

import odinfer as od
from odinfer.errors import none_if_singular
from odinfer.gp.curves import Curve
from odinfer.uncertainty.maximum import Maximum
from odinfer.uncertainty.verification import judge_with_intervals

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


def relaxation_oscillator(seed):
    """Van der Pol's equation, of which most start points lead to a trajectory that stays near zero."""
    model = od.Model.from_text("x' = y; y' = mu*(1-x^2)*y - x")
    t = np.linspace(0.0, 60.0, 80)
    x = od.simulate(model, {"mu": 10.0}, {"x": 2.0, "y": 0.0}, t)[:, 0]
    return model, od.Data(t, x + 0.05 * x.std() * np.random.default_rng(seed).normal(size=80), states=["x"])


@pytest.mark.filterwarnings("ignore:'y' has no column")
def test_start_points_that_agree_on_what_explains_nothing_do_not_end_a_search():
    fit = od.fit(*relaxation_oscillator(3))
    assert fit.theta["mu"] == pytest.approx(10.0, rel=1e-2)
    assert fit.pvalue > 0.05
    assert fit.details["starts_agreeing"] >= 3


@pytest.mark.filterwarnings("ignore:'y' has no column")
def test_a_higher_optimum_along_the_profiles_replaces_the_estimate():
    problem = od.Problem(*relaxation_oscillator(0))
    t = problem.data.experiments[0].t
    flat = Curve(t, np.zeros((len(t), 2)) + 0.1, np.zeros((len(t), 2)), np.zeros((len(t), 2)))
    poor = Maximum.near(problem, np.array([0.02]), [flat])
    assert poor.loglik < -140
    judged = []
    best, _, known = judge_with_intervals(poor, lambda m: (judged.append(m.loglik), False))
    assert len(judged) == 2
    assert best.loglik > poor.loglik + 100
    assert known.high[0] < 11
