"""Designs: optimal samples known in closed form, exhaustive search, spacing, costs, doses, two models, simulation."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.optimal_design.exchange import NONE, Exchange, Rules
from odinfer.optimal_design.information import Sample

DECAY = od.Model.from_text("x' = -k*x; y ~ normal(x, 0.1)", "decay")
ORAL = od.Model.from_text(
    "gut' = -ka*gut; body' = ka*gut - CL/V*body; gut(0) = 100; body(0) = 0; conc ~ normal(body/V, 0.1)", "oral"
)
ORAL_VALUES = {"ka": 1.2, "CL": 3.0, "V": 30.0}
TIMES = np.arange(0.0, 24.25, 1.0)


def oral(**options):
    return od.design(ORAL, **{"theta": ORAL_VALUES, "times": TIMES, "add": 3, "apart": 0.0, **options})


@pytest.mark.parametrize("k", [0.25, 0.5, 1.0])
def test_two_samples_of_a_decay_from_an_unknown_value_are_at_the_start_and_after_one_time_constant(k):
    design = od.design(DECAY, theta={"k": k}, x0={"x": 5.0}, times=np.linspace(0, 10, 101), add=2, apart=0.1)
    assert design.times == pytest.approx([0.0, 1.0 / k])


def test_one_sample_of_a_decay_from_a_known_value_is_after_one_time_constant():
    model = od.Model.from_text("x' = -k*x; x(0) = 5; y ~ normal(x, 0.1)")
    assert od.design(model, theta={"k": 0.5}, times=(0, 10), add=1).times == pytest.approx([2.0])


def test_expected_errors_are_those_of_linear_regression():
    model = od.Model.from_text("x' = b; x(0) = a; real a, b; y ~ normal(x, 0.2)")
    design = od.design(model, theta={"a": 1.0, "b": 2.0}, times=np.arange(5.0), add=4, apart=0.0)
    X = np.column_stack([np.ones(4), design.times])
    expected = np.sqrt(np.diag(0.04 * np.linalg.inv(X.T @ X))) / [1.0, 2.0]
    assert dict(zip(design.names, design.after, strict=True)) == pytest.approx(
        dict(zip("ab", expected, strict=True)), rel=1e-6
    )
    assert design.times.tolist() == [0.0, 0.0, 4.0, 4.0]


@pytest.mark.parametrize("criterion", ["D", "A"])
def test_exchanges_find_what_an_exhaustive_search_finds(criterion):
    found = oral(criterion=criterion, times=np.arange(0.0, 24.5, 2.0), apart=1.0)
    from odinfer.optimal_design.basis import Basis
    from odinfer.optimal_design.information import candidates, samples_at
    from odinfer.optimal_design.objective import Objective, criterion_for

    t = np.arange(0.0, 24.5, 2.0)
    basis = Basis.of_values(ORAL, ORAL_VALUES, {}, t)
    every = candidates(basis, samples_at(basis.problem, t, ["1"], ["conc"]))
    value = Objective.of(basis, every, criterion_for(basis, criterion, ()))
    best = min(itertools.combinations(range(len(t)), 3), key=lambda own: value(own, NONE)[0])
    assert found.times == pytest.approx(t[list(best)])


def test_samples_for_one_parameter_determine_it_better_than_those_for_all():
    own, every = oral(for_="CL", add=4), oral(add=4)
    assert own.after[own.names.index("CL")] < every.after[every.names.index("CL")]


def test_samples_for_a_forecast_determine_it_better_than_equally_spaced_ones():
    found = oral(for_="conc(30)", add=4)
    assert found.efficiency > 1.5
    forecast = found.table().loc["conc(30)"]
    assert 0 < forecast["rse_after"] < 0.3
    assert np.isnan(forecast["rse_before"])
    assert oral(for_="conc(30)", add=8).table().loc["conc(30)", "rse_after"] < forecast["rse_after"]


def test_a_fit_counts_with_its_data():
    data = od.Data(np.arange(6.0), 5.0 * np.exp(-0.5 * np.arange(6.0)), states=["y"])
    fit = od.fit(od.Problem(DECAY, data))
    design = od.design(fit, add=3)
    sd = np.sqrt(np.diag(fit.covariance))[0]
    assert design.before[design.names.index("k")] == pytest.approx(sd, rel=0.02)
    assert (design.after < design.before).all()


@pytest.mark.parametrize(
    ("noise", "values"),
    [
        ("poisson(x)", {}),
        ("negbinomial(x, 5)", {}),
        ("lognormal(x, 0.2)", {}),
        ("binomial(20*x/100, 20)", {}),
        ("student(x, 2, 4)", {}),
        ("normal(x, c*x)", {"c": 0.2}),
    ],
)
def test_expected_errors_agree_with_those_of_fits_to_many_data(noise, values):
    model = od.Model.from_text(f"x' = -k*x; x(0) = 60; y ~ {noise}")
    theta, t = {"k": 0.5, **values}, np.linspace(0, 4, 41)
    rng = np.random.default_rng(3)
    x = 60 * np.exp(-0.5 * t)
    draw = {
        "poisson": lambda: rng.poisson(x),
        "negbinomial": lambda: rng.negative_binomial(5, 5 / (5 + x)),
        "lognormal": lambda: x * np.exp(0.2 * rng.normal(size=len(t))),
        "binomial": lambda: rng.binomial(20, x / 100),
        "student": lambda: x + 2 * rng.standard_t(4, len(t)),
        "normal": lambda: x * (1 + 0.2 * rng.normal(size=len(t))),
    }[noise.partition("(")[0]]
    fit = od.fit(od.Problem(model, od.Data(t, np.asarray(draw(), float), states=["y"])))
    design = od.design(model, theta=theta, times=t, add=len(t), apart=0.08)
    k = fit.uncertainty.names.index("k")
    assert design.after[design.names.index("k")] == pytest.approx(np.sqrt(fit.covariance.iloc[k, k]), rel=0.25)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(1, 6), st.floats(0.0, 3.0))
def test_samples_are_as_far_apart_as_asked(add, apart):
    times = oral(add=add, apart=apart).times
    assert len(times) == add
    assert add == 1 or np.diff(np.sort(times)).min() >= apart * (1 - 1e-9)


def test_a_budget_is_kept_and_spent_on_what_is_worth_it():
    model = od.Model.from_text("a' = -k*a; b' = k*a - m*b; a(0) = 10; b(0) = 0; a ~ normal(a, 0.1); b ~ normal(b, 0.1)")
    costs = {"sample": 1.0, "a": 5.0, "b": 1.0}
    design = od.design(model, theta={"k": 0.4, "m": 0.2}, times=(0, 20), add=20, costs=costs, budget=11.0)
    assert sum(s.cost for s in design.samples) <= 11.0
    assert {s.columns for s in design.samples} == {("b",)}


def test_doses_that_tell_more_are_preferred():
    plans = [[(0, 10, "gut")], [(0, 300, "gut")]]
    design = oral(doses=plans)
    assert [plan.efficiency for plan in design.plans] == [pytest.approx(design.plans[0].efficiency), 1.0]
    assert design.plans[0].efficiency < 0.6


def test_designs_averaged_over_parameters_are_as_good_there_as_they_say():
    design = oral(add=4, draws=8, spread=0.3, seed=1)
    assert "averaged over 8 draws" in design.criterion
    assert np.isfinite(design.after).all()


def test_samples_that_tell_models_apart_are_where_they_differ():
    one = od.Model.from_text("body' = -CL/V*body; body(0) = 100; conc ~ normal(body/V, 0.1)", "bolus")
    design = oral(between=one, add=4)
    assert design.difference > 5
    assert design.times.min() <= 1.0  # absorption is seen at the beginning only
    assert design.efficiency > 1.0


def test_simulated_errors_agree_with_expected_ones():
    table = oral(add=6, confirm=60, seed=2).confirmation
    assert table["simulated"].to_numpy() == pytest.approx(table["expected"].to_numpy(), rel=0.35)
    assert (table["bias"].abs() < 0.6).all()


def test_new_samples_at_times_of_existing_ones_can_be_simulated():
    data = od.Data(np.arange(6.0), 5.0 * np.exp(-0.5 * np.arange(6.0)) + 0.01 * np.sin(np.arange(6.0)), states=["y"])
    fit = od.fit(od.Problem(DECAY, data))
    assert len(od.design(fit, add=2, times=np.arange(6.0), apart=0.0, confirm=5).confirmation) == 2


def test_the_picture_has_the_samples(tmp_path):
    figure = oral(add=4).plot(tmp_path / "design.svg")
    assert len(figure.axes) == 3
    assert "sample" in (tmp_path / "design.svg").read_text() or figure.axes[0].lines[-1].get_xdata().size == 4


def test_a_design_is_saved_as_json_and_csv(tmp_path):
    design = oral()
    design.save(tmp_path / "d.json")
    design.save(tmp_path / "d.csv")
    content = json.loads((tmp_path / "d.json").read_text())
    assert [s["time"] for s in content["samples"]] == design.times.tolist()
    assert (tmp_path / "d.csv").read_text().splitlines()[0] == "experiment,time,observe"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"times": None}, "needs times"),
        ({"theta": {"ka": 1.0}}, "no value is given for CL and V"),
        ({"for_": "kb"}, "the model has no 'kb'"),
        ({"add": 40, "apart": 1.0}, "at most 25 do"),
        ({"observe": "plasma"}, "'plasma' is not observed"),
        ({"criterion": "E"}, "criterion"),
        ({"criterion": "c"}, "name them with for_"),
        ({"costs": {"blood": 1.0}}, "no column 'blood'"),
        ({"budget": 0.5}, "no sample costs as little"),
        ({"apart": -1.0}, "must not be negative"),
        ({"times": [-5.0, 1.0, 2.0]}, "starts at -5"),
        ({"times": (24, 0)}, "24, is after the last one, 0"),
        ({"x0": {"gut": 5.0}}, "gives the initial value of gut itself"),
        ({"spread": 0.3}, "say how many: draws=50"),
    ],
)
def test_impossible_requests_are_refused_in_one_line(options, words):
    with pytest.raises(od.InputError, match=words) as caught:
        oral(**options)
    assert "\n" not in str(caught.value)


def test_unknown_noise_is_asked_for():
    model = od.Model.from_text("x' = -k*x; x(0) = 5")
    with pytest.raises(od.InputError, match="noise of x is not known"):
        od.design(model, theta={"k": 1.0}, times=(0, 5))
    assert len(od.design(model, theta={"k": 1.0}, times=(0, 5), sigma={"x": 0.1}, add=1).times) == 1


def test_a_parameter_that_no_sample_determines_is_named():
    model = od.Model.from_text("x' = -k*x; x(0) = a*b; y ~ normal(x, 0.1)")
    values = {"k": 0.5, "a": 2.0, "b": 3.0}
    with pytest.raises(od.InputError, match="determines a and b; observe another column, or fix one of them"):
        od.design(model, theta=values, times=(0, 5), for_="a")
    assert "determines a and b" in od.design(model, theta=values, times=(0, 5)).notes[0]


def test_samples_that_conflict_are_never_taken_together():
    samples = [Sample("1", t, ("x",)) for t in (0.0, 0.4, 1.0, 1.5)] + [Sample("2", 0.2, ("x",))]
    search = Exchange(Rules(samples, 0.5), lambda chosen, added: -np.asarray(added if len(added) else [0.0], float))
    assert sorted(search.grown(5)) == [0, 2, 3, 4] or len(search.grown(5)) == 4
