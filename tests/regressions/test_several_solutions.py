"""Solutions that fit as well as the reported one are shown everywhere, and can be told apart by declarations."""

import re

import numpy as np
import pytest

import odinfer as od
from odinfer.apps.command.check import describe
from odinfer.result.report import html

ABSORPTION = "gut' = -ka*gut; cen' = ka*gut - CL/V*cen; gut(0) = 100; cen(0) = 0; DV ~ lognormal(cen/V); log ka, CL, V"
TRUTH = {"ka": 1.2, "CL": 4.0, "V": 35.0}


@pytest.fixture(scope="module")
def data():
    t = np.linspace(0.2, 12.0, 25)
    ka, k = TRUTH["ka"], TRUTH["CL"] / TRUTH["V"]
    c = 100 * ka / TRUTH["V"] / (ka - k) * (np.exp(-k * t) - np.exp(-ka * t))
    return od.Data(t, c * np.exp(0.1 * np.random.default_rng(0).normal(size=25)), states=["DV"])


def test_exchanged_rates_of_absorption_are_reported_in_headline_table_report_and_json(data, tmp_path):
    fit = od.fit(od.Model.from_text(ABSORPTION), data)
    (other,) = fit.details["alternatives"]
    assert other["ka"] == pytest.approx(fit.theta["CL"] / fit.theta["V"], rel=1e-3)
    assert fit.details["alternatives_loglik"][0] == pytest.approx(fit.details["loglik"], abs=0.01)
    assert "Another solution fits as well" in " ".join(fit.summary().split()[:40])
    assert "other 1" in fit.summary()
    assert "Solutions that fit as well" in html(fit)
    fit.save(tmp_path / "fit.json")
    assert od.load(tmp_path / "fit.json").summary() == fit.summary()


def test_the_warning_names_the_order_of_the_rates_that_are_exchanged(data):
    warnings = od.fit(od.Model.from_text(ABSORPTION), data).warnings
    assert re.search("choose by an order, ka [<>] CL/V", warnings[0])


def test_the_warning_names_the_order_of_exchangeable_exponentials():
    text = "A' = -a*A; B' = -b*B; C' = -c*C; y ~ normal(A + B + C); log a, b, c; A > 0; B > 0; C > 0"
    t = np.linspace(0.0, 4.0, 40)
    y = np.exp(-0.3 * t) + 2.0 * np.exp(-2.0 * t) + np.exp(-9.0 * t) + 1e-5 * np.random.default_rng(2).normal(size=40)
    warnings = od.fit(od.Model.from_text(text), od.Data(t, y, states=["y"])).warnings
    assert re.search("choose by an order, [abc] < [abc]", warnings[0])


def test_a_ridge_of_two_unknowns_of_which_the_product_is_known_is_one_solution():
    model = od.Model.from_text("u' = a*u - b*u*v; v' = -c*v + d*u*v", name="prey")
    t = np.linspace(0.0, 10.0, 60)
    u = od.simulate(model, {"a": 2.0, "b": 1.0, "c": 4.0, "d": 1.0}, {"u": 5.0, "v": 3.0}, t)[:, 0]
    fit = od.fit(model, od.Data(t, u + 0.3 * np.random.default_rng(3).normal(size=60), states=["u"]))
    assert "alternatives" not in fit.details
    assert fit.details["starts_agreeing"] >= 3
    assert any("b is not identifiable" in w or "not individually identifiable" in w for w in fit.warnings)


@pytest.mark.parametrize(("text", "ka"), [("ka > CL/V", 1.2), ("ka < CL/V", 4.0 / 35.0), ("CL/V > ka", 4.0 / 35.0)])
def test_an_inequality_between_expressions_chooses_one_of_two_solutions(data, text, ka):
    problem = od.Problem(od.Model.from_text(f"{ABSORPTION}; {text}"), data)
    fit = od.fit(problem)
    assert fit.theta["ka"] == pytest.approx(ka, rel=0.3)
    assert "alternatives" not in fit.details
    low, high = fit.uncertainty.interval()["ka"]
    assert low < fit.theta["ka"] < high
    assert f"Inequalities: {text}" in describe(problem)


def test_an_inequality_that_the_likelihood_opposes_holds_and_is_named(data):
    fit = od.fit(od.Model.from_text(f"{ABSORPTION}; V < 20*ka; V > 30*CL*ka/ka; ka > CL/V"), data)
    ka, CL, V = (fit.theta[name] for name in ("ka", "CL", "V"))
    assert 20.001 * ka > V
    assert V > 29.99 * CL
    assert "the estimate is at the inequality" in fit.warnings[0]


def test_limits_of_a_parameter_end_at_an_inequality():
    t = np.linspace(0.0, 3.0, 12)
    y = 3.0 * np.exp(-0.7 * t) + 0.3 * np.random.default_rng(1).normal(size=12)
    data = od.Data(t, y, states=["x"])
    free = od.fit(od.Model.from_text("x' = -k*x"), data)
    low, high = free.uncertainty.interval()["k"]
    middle = 0.5 * (free.theta["k"] + high)
    held = od.fit(od.Model.from_text(f"x' = -k*x; 2*k < {2 * middle!r}"), data)
    assert held.theta["k"] == pytest.approx(free.theta["k"], rel=1e-4)
    assert held.uncertainty.interval()["k"][1] == pytest.approx(middle, rel=1e-3)
    assert held.uncertainty.interval()["k"][0] == pytest.approx(low, rel=1e-2)


def test_a_posterior_stays_within_an_inequality(data):
    fit = od.fit(od.Model.from_text(f"{ABSORPTION}; ka < CL/V; ka < 5; CL < 50; V < 500"), data)
    found = fit.sample(chains=1, draws=50, warm_up=200).theta
    assert (found["ka"] < 1.01 * found["CL"] / found["V"]).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x' = -k*x; k > x", "compares what changes in time"),
        ("x' = -k*x; t < k", "compares what changes in time"),
        ("Algae' = r*Algae - m*Algae; r > 2*n", "'n' in 'r > 2[*]n' is no parameter"),
    ],
)
def test_inequalities_about_anything_but_parameters_are_refused(text, words):
    with pytest.raises(od.InputError, match=words):
        od.Model.from_text(text)


def test_of_solutions_of_one_likelihood_the_one_of_most_start_points_is_reported_with_their_number():
    rng, t = np.random.default_rng(4), np.linspace(0.5, 12.0, 10)
    subjects = {}
    for name, (ka, k) in {"one": (1.3, 0.1), "two": (0.9, 0.12), "three": (1.6, 0.09)}.items():
        c = 3.0 * ka / (ka - k) * (np.exp(-k * t) - np.exp(-ka * t))
        subjects[name] = od.Data(t, c * np.exp(0.05 * rng.normal(size=len(t))), states=["DV"])
    fit = od.fit(od.Model.from_text(f"{ABSORPTION}; local ka, CL, V"), od.Data.join(subjects))
    d = fit.details
    assert d["starts_agreeing"] >= d["starts_at_alternatives"] / len(d["alternatives"]) > 0
    assert d["starts_agreeing"] + d["starts_at_alternatives"] <= d["starts"]
    assert f"{d['starts_agreeing']} of {d['starts']} start points lead to this result" in fit.summary()
    assert f"{d['starts_at_alternatives']} to other solutions" in " ".join(fit.summary().split())


@pytest.mark.parametrize("seed", [0, 4])  # for which every start point leads to the same one of both
def test_parameters_that_a_product_exchanges_are_named_where_all_start_points_agree(seed):
    model = od.Model.from_text("N' = r*N*(1 - N/K)*(N/A - 1)")
    t = np.linspace(0.0, 25.0, 25)
    x = od.simulate(model, {"r": 0.5, "K": 100.0, "A": 20.0}, {"N": 25.0}, t)
    data = od.Data(t, x + 0.02 * x.std() * np.random.default_rng(seed).normal(size=x.shape), states=["N"])
    fit = od.fit(model, data)
    (other,) = fit.details["alternatives"]
    assert (other["K"], other["A"]) == pytest.approx((fit.theta["A"], fit.theta["K"]))
    assert "choose by an order, " in " ".join(fit.warnings)
    ordered = od.fit(model.with_statements("A < K"), data)
    assert "alternatives" not in ordered.details
    assert ordered.theta["K"] == pytest.approx(100.0, rel=0.02)
