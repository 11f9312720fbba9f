"""What the page says beside a verdict, and offers to try next."""

import re

import numpy as np
import pytest

import odinfer as od
from apps.studio.browsing import example, fit, type_model
from odinfer.apps.command.example import FOLDER
from odinfer.apps.studio.interactive import Source, choice_of
from odinfer.apps.studio.live_likelihood import live_loglik
from odinfer.apps.studio.next_steps import caveats, next_steps

LOTKA = Source(FOLDER / "lotka_volterra.csv", choice_of({}))


def fitted(text, data, **options):
    return od.fit(od.Model.from_text(text), data, seed=0, **options)


def labels(steps):
    return [step["label"] for step in steps]


def test_a_missing_term_is_offered_as_a_model_that_can_be_read():
    data = od.read_csv(FOLDER / "lotka_volterra.csv")
    text = "prey' = a*prey - b*prey*predator  # known\npredator' = -c*predator\n"
    steps = next_steps(fitted(text, data), text)
    step = next(s for s in steps if s["label"].endswith("predator'"))
    assert "c_new" in od.Model.from_text(step["text"]).parameters
    assert "# known" in step["text"]
    assert re.search(r"gains \d+ nats", step["why"])


def test_residuals_that_grow_with_the_value_suggest_lognormal_noise():
    t = np.linspace(0, 4, 40)
    y = 20 * np.exp(-t) * np.exp(0.2 * np.random.default_rng(1).normal(size=40))
    text = "x' = -k*x\n"
    steps = next_steps(fitted(text, od.Data(t, y, states=["x"])), text)
    step = next(s for s in steps if s["label"] == "Log-normal noise for x")
    assert od.Model.from_text(step["text"]).declarations.columns[0].name == "x"


def test_own_values_of_many_experiments_suggest_random_effects_that_can_be_fitted(tmp_path):
    rng, t, rows = np.random.default_rng(0), np.linspace(0.5, 4, 5), []
    for i in range(6):
        k = 0.5 * np.exp(0.3 * rng.normal())
        rows += [(i, time, 5 * np.exp(-k * time) + 0.1 * rng.normal()) for time in t]
    text = "x' = -k*x\nx(0) = 5\nlocal k  # each its own\n"
    path = tmp_path / "d.csv"
    path.write_text("id,time,x\n" + "".join(f"{i},{time},{x:.3f}\n" for i, time, x in rows))
    data = od.read_csv(path)
    step = next(s for s in next_steps(fitted(text, data), text) if s["label"] == "Random effects on k")
    assert od.Model.from_text(step["text"]).declarations.local == ()
    found = od.fit(od.Model.from_text(step["text"]), data, seed=0)
    assert isinstance(found, od.PopulationFit)
    assert found.theta["k_pop"] == pytest.approx(0.5, rel=0.5)


def test_a_parameter_at_a_bound_is_said_and_one_inside_is_not():
    t = np.linspace(0, 4, 20)
    y = 8 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(0).normal(size=20)
    data = od.Data(t, y, states=["x"])
    assert any("k ended at a bound" in line for line in caveats(fitted("x' = -k*x\n0.1 < k < 0.5\n", data)))
    assert caveats(fitted("x' = -k*x\n0.1 < k < 5\n", data)) == []


def test_the_likelihood_of_sliders_is_that_of_the_package_and_none_where_there_is_none():
    text = (FOLDER / "lotka_volterra.ode").read_text()
    values = {"a": 2.0, "b": 1.0, "c": 4.0, "d": 1.0, "prey(0)": 5.0, "predator(0)": 3.0}
    problem = od.Problem(od.Model.from_text(text), od.read_csv(FOLDER / "lotka_volterra.csv"))
    expected = od.loglik(problem, values)
    assert live_loglik(text, "lv", LOTKA, values | {"other": 3})["loglik"] == pytest.approx(expected)
    assert live_loglik(text, "lv", LOTKA, values | {"a": -1.0})["loglik"] is None
    assert live_loglik(text, "lv", LOTKA, {"a": 2.0})["loglik"] is None


@pytest.mark.browser
@pytest.mark.timeout(240)
def test_the_card_offers_the_missing_term_as_a_second_model_and_the_likelihood_follows_the_sliders(page):
    example(page, "Prey and predators")
    said = "() => document.querySelector('#loglik').textContent"
    page.wait_for_function(f"() => ({said})().startsWith('log-likelihood')")
    before = page.inner_text("#loglik")
    page.fill("[aria-label='Value of a']", "2.5")
    page.press("[aria-label='Value of a']", "Enter")
    page.wait_for_function(f"(before) => ({said})() !== before", arg=before)
    type_model(page, "prey' = a*prey - b*prey*predator\npredator' = -c*predator\n")
    page.wait_for_selector("#slider-d", state="detached")
    fit(page)
    page.click('#next button:has-text("predator\'")')
    page.wait_for_function("() => document.querySelector('#editor textarea').value.includes('c_new')")
    assert page.locator("#model-tabs [role=tab]").all_inner_texts() == ["A", "B"]
    assert page.inner_text("#model-error") == ""
