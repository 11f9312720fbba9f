"""One place decides what is said about a model: the same for a fit and for a comparison, and only what was tested."""

import numpy as np

import odinfer as od
from odinfer.diagnostics.equation_test import Judgement
from odinfer.diagnostics.verdicts import CONSISTENT, CONTRADICTS, NOT_JUDGED, Case, judge_fit
from odinfer.paper.systems import lotka_volterra

WRONG = od.Model.from_text("prey' = a*prey^2 + b*predator\npredator' = -c*predator + d*prey*predator", "wrong")


def test_a_model_that_is_accepted_as_a_whole_has_consistent_equations_without_tests_of_each(lv_fit):
    assert lv_fit.verdicts == dict.fromkeys(lv_fit.state_names, CONSISTENT)
    assert [j.draws for j in lv_fit.cache.case.equations] == [0, 0]
    assert lv_fit.cache.case.whole.p > 0.05
    assert f"(p = {lv_fit.details['model_test']['p']:.2g})" in lv_fit.summary()


def test_a_fit_and_a_comparison_say_the_same_about_a_wrong_model():
    data = lotka_volterra.sample(0.1, 0)
    fit = od.fit(WRONG, data)
    found = od.compare(WRONG, data)
    assert fit.verdicts == {"prey": CONTRADICTS, "predator": CONSISTENT}
    assert found.candidates["wrong"].fit.verdicts == fit.verdicts
    assert found.candidates["wrong"].judgements == fit.cache.case.equations
    assert fit.details["equation_tests"]["prey"]["p"] <= 0.025
    assert found.table["p"]["wrong"] == fit.details["model_test"]["p"] <= 0.05
    assert "wrong: the equation for prey contradicts the data" in found.summary()
    assert any("the data contradict" in w for w in fit.warnings)


def test_an_equation_without_a_solution_that_could_be_followed_is_not_judged():
    case = Case((Judgement("x", 3.0, np.inf, 1e-6, 1.0, 0, False), Judgement("y", 3.0, 0.0, 1e-6, 1.0, 0, False)))
    assert case.verdicts(("x", "y", "z")) == {"x": NOT_JUDGED, "y": CONSISTENT, "z": NOT_JUDGED}


def test_a_case_keeps_the_numbers_of_the_test_of_the_whole_model(lv_fit):
    w = lv_fit.cache
    case = judge_fit(lv_fit.problem, w.search, w.minima, w.maximum, draws=39)
    assert 20 <= case.whole.draws <= 39
    assert case.numbers() == {"model_test": {"p": case.whole.p, "signal": case.whole.signal, "draws": case.whole.draws}}
