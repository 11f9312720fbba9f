"""A model that is wrong where its parameters can hide it is found out as a whole; a right one is not."""

import re

import numpy as np
import pytest

import odinfer as od
from odinfer.diagnostics.model_test import judge_model, unasked
from odinfer.paper.systems import System, lotka_volterra

PREDATOR = "predator' = -c*predator + d*prey*predator"
LIMITED = System(
    od.Model.from_text(f"prey' = a*prey - e*prey^2 - b*prey*predator\n{PREDATOR}"),
    {"a": 2.0, "e": 0.3, "b": 1.0, "c": 4.0, "d": 1.0},
    lotka_volterra.x0,
    lotka_volterra.t,
)


def outcome(model, data, draws=99):
    return judge_model(od.fit(model, data).maximum(), 0, draws)


def test_a_missing_limit_to_growth_is_seen_and_its_presence_is_enough():
    data = LIMITED.sample(0.1, 10)
    assert outcome(lotka_volterra.model, data).contradicts(0.05)
    assert not outcome(LIMITED.model, data).contradicts(0.05)


def test_the_comparison_says_so_where_no_single_equation_is_accused():
    data = LIMITED.sample(0.1, 10)
    other = od.Model.from_text(f"prey' = a*prey - b*prey*predator\n{PREDATOR} + 0*prey", name="the same again")
    found = od.compare([lotka_volterra.model, other], data, draws=99)
    assert found.table["p"].max() <= 0.05
    assert "contradicts" not in found.verdicts[found.best].values()
    words = " ".join(found.summary().split())
    assert "are one model for these data" in words
    assert words.count("the model is rejected") == 1
    assert "The data reject it." in words
    assert re.search("[:] the same as", words)


def test_the_same_seed_gives_the_same_p_value():
    data = lotka_volterra.sample(0.1, 1)
    assert outcome(lotka_volterra.model, data) == outcome(lotka_volterra.model, data)


def test_missing_values_and_several_experiments_are_allowed():
    y = lotka_volterra.sample(0.1, 2).y.copy()
    y[3:6, 0] = np.nan
    t = lotka_volterra.t
    data = od.Data.join(
        {"one": od.Data(t, y, states=lotka_volterra.model.states), "two": lotka_volterra.sample(0.1, 3)}
    )
    found = outcome(lotka_volterra.model, data, 39)
    assert 0.0 < found.p <= 1.0
    assert found.draws == 39


@pytest.mark.parametrize(("model", "seed"), [(LIMITED.model, 5), (lotka_volterra.model, 5), (lotka_volterra.model, 11)])
def test_simulations_end_early_without_another_verdict(model, seed):
    maximum = od.fit(model, LIMITED.sample(0.1, seed)).maximum()
    every, settled = judge_model(maximum, 0, 199), judge_model(maximum, 0, 199, level=0.05)
    assert every.draws == 199
    assert settled.draws <= every.draws
    assert settled.signal == every.signal
    assert settled.contradicts(0.05) == every.contradicts(0.05)


def test_a_right_model_is_accepted_after_a_tenth_of_the_simulations():
    maximum = od.fit(lotka_volterra.model, lotka_volterra.sample(0.1, 1)).maximum()
    assert judge_model(maximum, 0, 199, level=0.05).draws == 20


def test_a_clearly_wrong_model_is_rejected_after_eight_simulations():
    wrong = od.Model.from_text(f"prey' = a*prey^2 + b*predator\n{PREDATOR}")
    found = judge_model(od.fit(wrong, lotka_volterra.sample(0.1, 1)).maximum(), 0, 199, level=0.05)
    assert found.draws == 8
    assert found.p < 0.001


def test_without_a_trajectory_there_is_no_p_value():
    found = judge_model(None, 0, 19)
    assert np.isnan(found.p)
    assert not found.contradicts(0.05)


def test_a_fit_tests_itself_and_tells(lv_fit):
    test = lv_fit.test(draws=39)
    assert test == judge_model(lv_fit.maximum(), lv_fit.seed, 39)
    assert f"(p = {test.p:.2g})" in lv_fit.including(test).summary()
    with pytest.raises(od.InputError, match="draws"):
        lv_fit.test(draws=5)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_right_models_are_rejected_in_about_5_percent():
    p = [outcome(lotka_volterra.model, lotka_volterra.sample(0.1, seed), 199).p for seed in range(300_000, 300_200)]
    assert 1 <= np.sum(np.array(p) <= 0.05) <= 20


def test_unasked_there_are_fewer_simulations_of_more_data_and_at_last_none():
    def problem(n, text=""):
        t = np.linspace(0.0, 1.0, n)
        return od.Problem(od.Model.from_text("x' = -k*x" + text), od.Data(t, np.exp(-t), states=["x"]), positive=False)

    assert [unasked(problem(n), 199) for n in (20, 100_000)] == [199, 199]
    counts = [unasked(problem(n, "\nx ~ lognormal(x, s)"), 199) for n in (20, 100_000, 1_000_000)]
    assert counts == [199, 100, 0]


@pytest.mark.parametrize("text", ["x' = -k*x; y ~ normal(x, 0.02)", "x' = -k*x"])
def test_residuals_larger_than_known_noise_contradict_the_model(text):
    model, t = od.Model.from_text(text), np.linspace(0.0, 4.0, 12)
    y = 3.0 * np.exp(-0.5 * t) + 0.2 * np.random.default_rng(1).normal(size=12)  # white: nothing but its size is wrong
    column = model.declarations.columns[0].name if model.declarations.columns else "x"
    problem = od.Problem(model, od.Data(t, y, states=[column]), sigma={} if column == "y" else {"x": 0.02})
    fit = od.fit(problem)
    assert fit.pvalue < 0.05
    assert any(f"residuals of {column} contradict the given noise" in warning for warning in fit.warnings)
    right = od.fit(
        od.Problem(
            od.Model.from_text(text.replace("0.02", "0.2")), problem.data, sigma={} if column == "y" else {"x": 0.2}
        )
    )
    assert right.pvalue > 0.05
    assert not any("given noise" in warning for warning in right.warnings)
