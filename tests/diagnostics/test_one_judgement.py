"""A fit and a comparison of the same model say the same of it, and nothing that is printed contradicts itself."""

import functools

import numpy as np
import pytest

import odinfer as od
from odinfer.apps.command.example import FOLDER
from odinfer.diagnostics.equation_test import FALSE_ALARMS
from odinfer.diagnostics.verdicts import CONTRADICTS
from odinfer.result.summary import headline
from odinfer.selection.report import sentence

# Yeast in a culture, hourly (Carlson 1913); the froth of a wheat beer in cm over seconds (Leike 2002); the rise of
# pressure while nitric oxide reacts with oxygen, over minutes (Bodenstein and Linder 1922, in Bellman and others 1967).
YEAST = (9.6, 18.3, 29.0, 47.2, 71.1, 119.1, 174.6, 257.3, 350.7, 441.0, 513.3, 559.7, 594.8, 629.4, 640.8, 651.1,
         655.9, 659.6, 661.8)  # fmt: skip
FROTH = ((0, 15, 30, 45, 60, 75, 90, 105, 120, 150, 180, 210, 240, 300, 360),
         (17.0, 16.1, 14.9, 14.0, 13.2, 12.5, 11.9, 11.2, 10.7, 9.7, 8.9, 8.3, 7.5, 6.3, 5.2))  # fmt: skip
PRESSURE = ((0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 19, 24, 29, 39),
            (0, 1.4, 6.3, 10.5, 14.2, 17.6, 21.4, 23.0, 27.0, 30.5, 34.4, 38.8, 41.6, 43.5, 45.3))  # fmt: skip
REFUTED = ("contradict", "Do not rely")


def series(t, y, state):
    return od.Data(np.asarray(t, float), np.asarray(y), states=[state])


def posed(name):
    if name == "hare_lynx":
        model = od.Model.from_text("hare' = a*hare - b*hare*lynx; lynx' = -g*lynx + d*hare*lynx", name)
        return od.Problem(model, od.read_csv(FOLDER / "hare_lynx.csv", model.states), positive=False)
    text, data = {
        "gompertz": ("N' = a*N*log(K/N); K > 0; N > 0", series(range(19), YEAST, "N")),
        "logistic": ("N' = r*N*(1 - N/K)", series(range(19), YEAST, "N")),
        "froth": ("h' = -k*h", series(*FROTH, "h")),
        "bellman": ("y' = p1*(126.2 - y)*(91.9 - y)^2 - p2*y^2; y >= 0", series(*PRESSURE, "y")),
    }[name]
    return od.Problem(od.Model.from_text(text, name), data, positive=False)


@functools.cache
def fitted(name):
    return od.fit(posed(name))


@pytest.mark.parametrize(
    "name", ["gompertz", "logistic", "froth", "bellman", pytest.param("hare_lynx", marks=pytest.mark.slow)]
)
def test_fit_and_comparison_give_one_judgement(name):
    fit, comparison = fitted(name), od.compare([posed(name)])
    (candidate,) = comparison.candidates.values()
    assert fit.verdicts == candidate.fit.verdicts
    for state, said in comparison.verdicts[name].items():
        assert (said == "contradicts") == (fit.verdicts[state] == CONTRADICTS)
    against = any(word in headline(fit) for word in REFUTED)
    assert headline(candidate.fit).replace("γ", "gamma") == headline(fit).replace("γ", "gamma")
    said = sentence(name, candidate, FALSE_ALARMS)
    assert ("contradicts the data (" in said or "the model is rejected" in said) == against
    assert (CONTRADICTS in fit.verdicts.values() or candidate.whole.contradicts(FALSE_ALARMS)) == against


@pytest.mark.parametrize("name", ["gompertz", "froth", "bellman"])
def test_no_two_sentences_contradict_each_other(name):
    fit = fitted(name)
    text = " ".join(str(fit).split())
    refuted = any(word in headline(fit) for word in REFUTED)
    assert not (refuted and "All equations are consistent" in text)
    assert not ("No trajectory of the model" in text and "consistent with the data." in text)
    if len(fit.state_names) == 1:  # the model is its equation
        assert refuted == (CONTRADICTS in fit.verdicts.values())
    assert not refuted or "the intervals assume that the model is right" in text


def test_the_estimate_of_bellmans_problem_is_the_published_one_and_its_start_is_within_its_bound():
    fit = fitted("bellman")
    assert fit.details["stage_used"] == "refined"
    assert fit.theta["p1"] == pytest.approx(4.577e-6, rel=2e-3)
    assert fit.theta["p2"] == pytest.approx(2.796e-4, rel=5e-3)
    (row,) = (line.split() for line in str(fit).splitlines() if line.startswith("y(0)"))
    assert float(row[-2]) >= 0.0
    band = fit.predict(np.linspace(0.0, 39.0, 40))
    assert (band["y_low"] >= 0.0).all()
