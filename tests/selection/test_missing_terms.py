"""Where an equation fails, and what it lacks."""

import numpy as np
import pytest

import odinfer as od
from odinfer.paper.systems import lotka_volterra
from odinfer.selection.missing_terms import Gap, gaps, hints


@pytest.fixture(scope="module")
def without_growth():
    """Predators that do not eat: the term prey*predator is missing."""
    model = od.Model.from_text("prey' = a*prey - b*prey*predator\npredator' = -c*predator")
    problem = od.Problem(model, lotka_volterra.sample(0.05, 2))
    return problem, od.fit(problem)


def test_the_missing_term_comes_first(without_growth):
    found = hints(*without_growth, "predator")
    assert found[0].term == "prey*predator"
    assert found[0].correlation > 0.8


def test_a_term_that_the_equation_has_does_not_come_up(without_growth):
    assert "predator" not in {h.term for h in hints(*without_growth, "predator")}


def test_the_gap_of_the_wrong_equation_leaves_its_band_and_that_of_the_right_one_does_not(without_growth):
    _, fit = without_growth
    (wrong,), (right,) = gaps(fit, "predator"), gaps(fit, "prey")
    assert sum(b - a for a, b in wrong.stretches) > 1.0
    assert sum(b - a for a, b in right.stretches) < 0.3


def test_single_points_are_no_stretch():
    t, sd = np.arange(6.0), np.ones(6)
    assert Gap("x", "1", t, np.array([0, 9, 0, 0, 9, 9.0]), sd).stretches == [(4.0, 5.0)]
    assert Gap("x", "1", t, np.zeros(6), sd).stretches == []


def test_there_are_no_hints_where_a_state_is_hidden():
    t = np.linspace(0.0, 4.0, 12)
    problem = od.Problem(od.Model.from_text("x' = -k*x; y' = x - y"), od.Data(t, np.exp(-t), states=["y"]))
    with pytest.raises(od.InputError, match=r"a hint at missing terms needs every state observed .* x is hidden"):
        hints(problem, None, "y")
