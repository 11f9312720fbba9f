"""Which term is missing: the screen, the refits, the ranking and the verdict."""

import json

import numpy as np
import pytest

import odinfer as od
from odinfer.discovery.verdicts import FOUND, NOTHING


@pytest.fixture(scope="module")
def growth():
    """Logistic growth with 3 % noise."""
    t = np.linspace(0, 8, 30)
    x = 10 / (1 + 19 * np.exp(-1.2 * t))
    return od.Data(t, x + 0.15 * np.random.default_rng(1).normal(size=30), states=["n"])


@pytest.fixture(scope="module")
def without_capacity(growth):
    return od.discover(od.Model.from_text("n' = r*n  # no limit"), growth, draws=39)


@pytest.fixture(scope="module")
def predators():
    return od.systems.lotka_volterra.sample(0.05, seed=2)


def test_the_term_that_was_left_out_comes_first_with_its_coefficient(without_capacity):
    first = without_capacity.ranking.iloc[0]
    assert (first.equation, first.term) == ("n", "c*n^2")
    assert first.low < -0.12 < first.high
    assert first.delta_bic < -100
    assert first.p > 0.05


def test_the_best_model_has_the_term_and_can_be_fitted(without_capacity):
    assert without_capacity.best.parameters == ("r", "c")
    assert "# no limit" in without_capacity.best.text
    assert without_capacity.fit.theta["r"] == pytest.approx(1.2, rel=0.1)


def test_nothing_is_missing_from_a_right_model(growth):
    found = od.discover(od.Model.from_text("n' = r*n*(1 - n/K)"), growth, draws=39)
    assert found.verdict == NOTHING
    assert found.best is found.problem.model
    assert "Nothing is missing" in found.summary()


def test_a_product_is_found_in_one_of_two_equations(predators):
    model = od.Model.from_text("prey' = a*prey - b*prey*predator; predator' = -c*predator")
    found = od.discover(model, predators, draws=39)
    assert found.tied[0].addition.state == "predator"
    assert found.tied[0].addition.term.form == "prey*predator"


def test_a_hidden_state_is_no_obstacle():
    t = np.linspace(0, 8, 25)
    blood = 10 * 1.0 / (1.0 - 0.3) * (np.exp(-0.3 * t) - np.exp(-t))
    data = od.Data(t, blood + 0.1 * np.random.default_rng(3).normal(size=25), states=["blood"])
    model = od.Model.from_text("gut' = -k*gut; blood' = k*gut; gut(0) = 10; blood(0) = 0")
    found = od.discover(model, data, draws=39, refits=6)
    assert "c*blood" in {own.addition.text for own in found.tied}


def test_what_was_found_is_saved_as_json_csv_and_a_folder(without_capacity, tmp_path):
    without_capacity.save(tmp_path / "found.json")
    content = json.loads((tmp_path / "found.json").read_text())
    assert content["ranking"][0]["term"] == "c*n^2"
    assert content["verdict"] == FOUND
    without_capacity.save(tmp_path / "all")
    assert {p.name for p in (tmp_path / "all").iterdir()} == {
        "discovery.json",
        "discovery.png",
        "ranking.csv",
        "best.ode",
    }
    assert od.Model.from_file(tmp_path / "all" / "best.ode").parameters == ("r", "c")


def test_a_function_is_refused_since_terms_are_added_to_text(growth):
    model = od.Model(lambda t, x, theta: [theta[0] * x[0]], states=["n"], parameters=["r"])
    with pytest.raises(od.InputError, match="write its equations"):
        od.discover(model, growth)


def test_a_model_that_leaves_a_function_open_is_refused(growth):
    with pytest.raises(od.InputError, match="leave that term out"):
        od.discover(od.Model.from_text("n' = ?(n)"), growth)


def test_of_terms_that_look_alike_the_simplest_comes_first():
    t = np.linspace(0, 6, 30)
    x = 0.02 + 0.1 * np.exp(-t)  # so small that sin(x) is x
    data = od.Data(t, x + 0.0005 * np.random.default_rng(4).normal(size=30), states=["x"])
    found = od.discover(od.Model.from_text("x' = a; real a"), data, draws=19)
    terms = [own.addition.text for own in found.tied]
    assert terms[0] == "c*x"
    assert "c*sin(x)" in terms
