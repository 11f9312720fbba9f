"""The result of a fit: tables, predictions, derivatives, stages, files; and what the entry point refuses."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from fits import assert_same, make_fit, uncertain
from odinfer.diagnostics.verdicts import CONSISTENT, CONTRADICTS
from odinfer.result.fit import Workings

FEW = settings(max_examples=25, derandomize=True, deadline=None)


@pytest.fixture(scope="module")
def odin_fit(lv, lv_data):
    """The ODIN stage alone, so that its curves are the result."""
    return od.fit(od.Problem(lv.model, lv_data), method=od.Odin(refine=False))


@pytest.fixture(scope="module")
def two(lv):
    """Two experiments with their own times."""
    data = {"short": lv.sample(0.1, 1, np.linspace(0, 1, 9)), "long": lv.sample(0.1, 2, np.linspace(0, 2, 12))}
    return od.fit(lv.model, od.Data.join(data))


def both(test):
    return pytest.mark.parametrize("which", ["lv_fit", "odin_fit"])(test)


@both
def test_states_are_a_table_over_the_observation_times(which, request, lv_data):
    fit = request.getfixturevalue(which)
    assert isinstance(fit.states, pd.DataFrame)
    assert list(fit.states.columns) == ["prey", "predator"]
    assert fit.states.index.name == "time"
    np.testing.assert_array_equal(fit.states.index, lv_data.t)
    pd.testing.assert_frame_equal(fit.states, fit.states_of("1"))
    assert np.abs(fit.states.to_numpy() - lv_data.y).max() < 0.5


@both
def test_predictions_equal_the_states_at_the_observation_times(which, request, lv_data):
    fit = request.getfixturevalue(which)
    table = fit.predict(lv_data.t)
    assert list(table.columns) == ["prey", "prey_low", "prey_high", "predator", "predator_low", "predator_high"]
    np.testing.assert_allclose(table[["prey", "predator"]], fit.states, rtol=1e-9)


@pytest.mark.parametrize("which", ["lv_fit", "odin_fit"])
@FEW
@given(t=st.lists(st.floats(0.0, 2.0), min_size=1, max_size=8))
def test_bands_contain_the_estimate_at_any_time(which, request, t):
    table = request.getfixturevalue(which).predict(t)
    assert len(table) == len(t)
    assert np.isfinite(table.to_numpy()).all()
    for state in ("prey", "predator"):
        assert (table[f"{state}_low"] <= table[state]).all()
        assert (table[state] <= table[f"{state}_high"]).all()
        assert (table[f"{state}_high"] - table[f"{state}_low"]).max() > 0


def test_bands_widen_in_a_gap_and_with_noise(lv):
    def width(fit, t):
        table = fit.predict(t)
        return (table["prey_high"] - table["prey_low"]).to_numpy()

    t = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 1.2, 1.3, 1.4, 1.6, 1.8, 2.0])
    gap = od.fit(od.Problem(lv.model, lv.sample(0.1, 0, t)), method=od.Odin(refine=False, gamma=1e6))
    assert width(gap, 0.8)[0] > 2 * width(gap, 0.3)[0]
    noisy, quiet = (od.fit(lv.model, lv.sample(sd, 0)) for sd in (0.5, 0.05))
    assert (width(noisy, lv.t) > 3 * width(quiet, lv.t)).all()


def test_a_trajectory_of_the_refined_stage_solves_the_equations(lv, lv_fit):
    t = np.linspace(0.0, 2.0, 57)
    start = lv_fit.predict([0.0])[["prey", "predator"]].to_numpy()[0]
    right = od.simulate(lv.model, lv_fit.theta, start, t)
    np.testing.assert_allclose(lv_fit.predict(t)[["prey", "predator"]], right, rtol=1e-4, atol=1e-5)


def test_derivatives_are_the_field_at_the_states(lv, lv_fit, odin_fit):
    t = np.linspace(0.0, 2.0, 23)
    for fit, tolerance in ((lv_fit, 1e-2), (odin_fit, 0.5)):
        x = fit.predict(t)[["prey", "predator"]].to_numpy()
        theta = np.array([fit.theta[p] for p in lv.model.parameters])
        f = lv.model.linearise(t, x, theta, np.zeros((23, 0)))[0]
        slope = fit.derivative(t)
        assert list(slope.columns) == ["prey", "predator"]
        np.testing.assert_allclose(slope, f, atol=tolerance)
    h = 1e-5
    inside = t[1:-1]
    difference = (lv_fit.predict(inside + h).to_numpy() - lv_fit.predict(inside - h).to_numpy()) / (2 * h)
    np.testing.assert_allclose(lv_fit.derivative(inside), difference[:, [0, 3]], atol=1e-3)


def test_residuals_are_observed_minus_estimated(lv_fit, lv_data):
    np.testing.assert_allclose(lv_fit.residuals(), lv_data.y - lv_fit.states.to_numpy(), atol=1e-12)
    rmse = np.sqrt((lv_fit.residuals() ** 2).mean())
    for state in ("prey", "predator"):
        assert lv_fit.details["rmse"][state] == pytest.approx(rmse[state])


def test_missing_observations_have_missing_residuals_and_estimated_states(lv):
    y = np.array(lv.sample(0.1, 0).y)
    y[4, 0] = np.nan
    fit = od.fit(lv.model, od.Data(lv.t, y, states=lv.model.states))
    assert np.isnan(fit.residuals().iloc[4, 0])
    assert np.isfinite(fit.states.to_numpy()).all()
    assert fit.details["observations"] == {"prey": 19, "predator": 20}


@pytest.mark.parametrize("t", [-0.01, 2.01, np.nan, np.inf, [1.0, 5.0]])
def test_times_outside_the_data_are_refused_in_one_line(lv_fit, t):
    for ask in (lv_fit.predict, lv_fit.derivative):
        with pytest.raises(od.InputError, match="outside the data") as caught:
            ask(t)
        assert "\n" not in str(caught.value)


def test_a_single_time_is_a_table_of_one_row(lv_fit):
    assert lv_fit.predict(1.0).shape == (1, 6)
    assert lv_fit.derivative(1.0).shape == (1, 2)


def test_the_log_likelihood_is_that_of_the_residuals(lv_fit):
    r2 = (lv_fit.residuals() ** 2).sum().to_numpy()
    s2 = r2 / 20  # at its maximum over the noise
    assert lv_fit.stages["refined"].loglik == pytest.approx(float((-10 * np.log(2 * np.pi * s2) - 10).sum()), abs=1e-6)
    assert lv_fit.details["loglik"] == lv_fit.stages["refined"].loglik


def test_noise_is_reported_without_the_bias_of_the_fitted_unknowns(lv):
    found = np.array([list(od.fit(lv.model, lv.sample(0.1, seed)).sigma.values()) for seed in range(20)])
    assert np.sqrt((found**2).mean()) == pytest.approx(0.1, rel=0.1)


def test_gamma_in_the_units_of_the_user_scales_with_them(lv, lv_data):
    wrong = od.Model.from_text("prey' = a*prey^2 + b*predator\npredator' = -c*predator + d*prey*predator")
    fit = od.fit(od.Problem(wrong, lv_data), method=od.Odin(refine=False))
    rate = lv_data.y.std(0) / lv_data.t.std()
    for k, state in enumerate(lv.model.states):
        assert fit.gamma_user[state] == pytest.approx(fit.gamma[state] * rate[k] ** 2, rel=1e-9)


def test_every_field_describes_the_fit(lv, lv_fit):
    assert lv_fit.model == "lotka_volterra"
    assert lv_fit.method == "odin"
    assert lv_fit.seed == 0
    assert lv_fit.converged
    assert lv_fit.status == "converged"
    assert lv_fit.state_names == lv.model.states
    assert lv_fit.parameter_names == lv.model.parameters
    assert set(lv_fit.verdicts.values()) <= {CONSISTENT, CONTRADICTS}
    assert lv_fit.options["kernel"] == "auto"
    assert 1 <= lv_fit.details["starts_agreeing"] <= lv_fit.details["starts"] == 10
    assert set(lv_fit.details["kernels"]) == set(lv.model.states)
    assert lv_fit.warnings == ()
    assert isinstance(lv_fit.summary(), str)


def test_experiments_are_addressed_by_name(two):
    assert list(two.experiments) == ["short", "long"]
    assert len(two.states) == 9
    assert len(two.states_of("long")) == 12
    assert two.predict([1.5], experiment="long").shape == (1, 6)
    assert two.residuals("long").shape == (12, 2)
    with pytest.raises(od.InputError, match="outside the data"):
        two.predict([1.5])
    with pytest.raises(od.InputError, match="did you mean 'long'"):
        two.states_of("lng")
    assert [x.shape for x in two.stages["odin"].x] == [(9, 2), (12, 2)]


def test_xarray_holds_the_numbers(lv_fit, lv_data, two):
    data = lv_fit.to_xarray()
    np.testing.assert_allclose(data["theta"].sel(parameter=["a", "d"]), [lv_fit.theta["a"], lv_fit.theta["d"]])
    np.testing.assert_allclose(data["x"], lv_fit.states)
    np.testing.assert_array_equal(data["y"], lv_data.y)
    np.testing.assert_allclose(data["stage_theta"].sel(stage="odin"), list(lv_fit.stages["odin"].theta.values()))
    assert two.to_xarray()["y_1"].shape == (12, 2)


@pytest.mark.parametrize("which", ["lv_fit", "odin_fit", "two"])
def test_a_saved_fit_loads_back_exactly(which, request, tmp_path):
    fit = request.getfixturevalue(which)
    path = tmp_path / "fit.json"
    fit.save(path)
    back = od.load(path)
    for name in ("model", "equations", "method", "seed", "theta", "gamma", "gamma_user", "sigma", "verdicts", "status"):
        assert getattr(back, name) == getattr(fit, name)
    assert back.converged == fit.converged
    assert back.details == fit.details
    assert back.options == fit.options
    for name in fit.experiments:
        pd.testing.assert_frame_equal(back.states_of(name), fit.states_of(name))
    inside = np.linspace(0.0, 1.0, 11)
    pd.testing.assert_frame_equal(back.predict(inside), fit.predict(inside))
    pd.testing.assert_frame_equal(back.derivative(inside), fit.derivative(inside))
    for name, stage in fit.stages.items():
        assert back.stages[name].theta == stage.theta
        pd.testing.assert_frame_equal(back.stages[name].states, stage.states)


def test_progress_is_told_in_order(lv, lv_data):
    told = []
    od.fit(lv.model, lv_data, progress=lambda what, share: told.append((what, share)))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(told) >= 3
    assert all(isinstance(what, str) and what for what, _ in told)


def test_a_fit_needs_a_problem_or_a_model_with_data(lv, lv_data):
    problem = od.Problem(lv.model, lv_data)
    for arguments, words in (
        ((lv.model,), "needs data"),
        ((problem, lv_data), "takes no data"),
        (("x' = -k*x", lv_data), "takes a Problem or a Model"),
        ((lv.model, lv_data.y), "needs data"),
    ):
        with pytest.raises(od.InputError, match=words):
            od.fit(*arguments)


@pytest.mark.parametrize("seed", [-1, 1.5, "one", None])
def test_a_seed_that_is_no_whole_number_is_refused(lv, lv_data, seed):
    with pytest.raises(od.InputError, match="seed"):
        od.fit(lv.model, lv_data, seed=seed)


def test_a_whole_number_of_numpy_is_a_seed(decay, decay_data):
    assert od.fit(decay, decay_data, seed=np.int64(3)).theta == od.fit(decay, decay_data, seed=3).theta


def test_a_fit_goes_to_other_processes_without_the_problem_and_the_workings(lv_fit):
    assert lv_fit.problem is not None
    assert lv_fit.workings.minima is not None
    there = pickle.loads(pickle.dumps(lv_fit))
    assert_same(there, replace(lv_fit, problem=None, workings=Workings()))


@pytest.mark.parametrize(
    ("kind", "ends"), [("likelihood", (0.8, 1.25)), ("profile", None), ("bootstrap", None), ("sample", None)]
)
def test_every_kind_of_interval_is_that_of_its_own_result(kind, ends):
    fit = uncertain()
    found = {
        "likelihood": fit.uncertainty.interval,
        "profile": lambda: {"a": fit.profiles["a"].interval()},
        "bootstrap": fit.bootstrapped.interval,
        "sample": fit.posterior.interval,
    }[kind]()
    assert fit.interval(kind=kind) == fit.intervals_by_kind()[kind] == found
    assert ends is None or found["a"] == ends


def test_the_best_interval_is_the_likelihoods_or_that_of_the_samplers_own_draws():
    fit = uncertain()
    assert fit.interval() == fit.interval(kind="likelihood")
    draws = {"a": np.random.default_rng(0).normal(size=(4, 100))}
    sampled = make_fit(samples=draws)
    assert sampled.draws is sampled.samples
    assert sampled.interval()["a"] == pytest.approx(np.quantile(draws["a"], [0.025, 0.975]))
    assert sampled.covariance.loc["a", "a"] == pytest.approx(draws["a"].var(ddof=1))


def test_results_are_added_without_changing_the_fit_they_are_added_to():
    fit, known = make_fit(), uncertain()
    more = fit.including(known.profiles["a"], known.bootstrapped, known.posterior)
    assert more.profiles == known.profiles
    assert (more.bootstrapped, more.posterior) == (known.bootstrapped, known.posterior)
    assert more.draws is known.posterior.theta
    assert fit.intervals_by_kind() == {}
    with pytest.raises(od.InputError, match="not dict"):
        fit.including({})


def test_why_there_are_no_intervals_is_said_in_words_of_the_method():
    assert "refined stage" in make_fit(details={"stage_used": "odin"}).without_intervals
    assert "'two-step' gives no intervals" in make_fit(method="two-step", details={}).without_intervals


# --- where not every state is observed as it is


@pytest.fixture(scope="module")
def counted() -> od.Fit:
    """Counts of a tenth of what decays, from a known start; y is hidden."""
    t = np.linspace(0, 4, 17)
    counts = np.random.default_rng(2).poisson(40 * np.exp(-0.7 * t)).astype(float)
    model = od.Model.from_text("y' = -k*y; n ~ poisson(0.1*y); y(0) = A; log k, A")
    return od.fit(od.Problem(model, od.Data(t, counts, states=["n"])), seed=0)


def test_new_counts_are_predicted_by_column_and_are_whole(counted):
    found = counted.predict([0.0, 1.1, 4.0], observed=True)
    assert list(found) == ["n", "n_low", "n_high"]
    assert (found[["n_low", "n_high"]] % 1 == 0).all(axis=None)
    assert (found["n_low"] <= found["n"]).all()
    assert (found["n"] <= found["n_high"]).all()
    inside = counted.predict(counted.experiments["1"].t, observed=True)
    y = counted.experiments["1"].y[:, 0]
    assert ((inside["n_low"] <= y) & (y <= inside["n_high"])).mean() > 0.8
    assert list(counted.predict([1.0])) == ["y", "y_low", "y_high"]


def test_predicted_values_along_the_curve_are_a_tenth_of_the_state_with_a_tenth_of_its_error(counted):
    e = counted.experiments["1"]
    np.testing.assert_allclose(e.expected, 0.1 * e.curve.x, rtol=1e-9)
    np.testing.assert_allclose(e.expected_sd, 0.1 * e.curve.sd, rtol=1e-3)
    np.testing.assert_allclose(counted.observables["n"], 0.1 * counted.states["y"], rtol=1e-9)


def test_a_fit_from_a_file_needs_its_problem_for_new_observations(counted, tmp_path):
    counted.save(tmp_path / "fit.json")
    loaded = od.load(tmp_path / "fit.json")
    with pytest.raises(od.InputError, match=r"a band of new observations needs problem=od\.Problem"):
        loaded.predict([1.0], observed=True)
    again = loaded.predict([1.0], observed=True, problem=counted.problem)
    np.testing.assert_array_equal(again, counted.predict([1.0], observed=True))
