"""The result of a fit: tables, predictions, derivatives, stages, files; results without and fits with a problem."""

import pickle
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from fits import assert_same, failed, make_fit, uncertain
from odinfer.diagnostics.verdicts import CONSISTENT, CONTRADICTS
from odinfer.gp.curves import Curve
from odinfer.result.prediction_interval import prediction_interval
from odinfer.result.stages import ExperimentFit, frame

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
    np.testing.assert_allclose(lv_fit.residuals, lv_data.y - lv_fit.states.to_numpy(), atol=1e-12)
    rmse = np.sqrt((lv_fit.residuals**2).mean())
    for state in ("prey", "predator"):
        assert lv_fit.details["rmse"][state] == pytest.approx(rmse[state])


def test_missing_observations_have_missing_residuals_and_estimated_states(lv):
    y = np.array(lv.sample(0.1, 0).y)
    y[4, 0] = np.nan
    fit = od.fit(lv.model, od.Data(lv.t, y, states=lv.model.states))
    assert np.isnan(fit.residuals.iloc[4, 0])
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
    r2 = (lv_fit.residuals**2).sum().to_numpy()
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
    assert two.residuals_of("long").shape == (12, 2)
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
        ((7, lv_data), "fit takes equations as text"),
        ((lv.model, lv_data.y), "data need names"),
    ):
        with pytest.raises(od.InputError, match=words):
            od.fit(*arguments)


@pytest.mark.parametrize("seed", [-1, 1.5, "one", None])
def test_a_seed_that_is_no_whole_number_is_refused(lv, lv_data, seed):
    with pytest.raises(od.InputError, match="seed"):
        od.fit(lv.model, lv_data, seed=seed)


def test_a_whole_number_of_numpy_is_a_seed(decay, decay_data):
    assert od.fit(decay, decay_data, seed=np.int64(3)).theta == od.fit(decay, decay_data, seed=3).theta


def test_a_fit_goes_to_other_processes_without_the_problem_and_the_cache(lv_fit):
    assert lv_fit.problem is not None
    assert lv_fit.cache.minima is not None
    there = pickle.loads(pickle.dumps(lv_fit))
    assert type(there) is od.FitResult
    own = {f.name: getattr(lv_fit, f.name) for f in fields(od.FitResult)}
    assert_same(there, od.FitResult(**own))


@pytest.mark.parametrize(
    ("kind", "ends"), [("likelihood", (0.8, 1.25)), ("profile", None), ("bootstrap", None), ("sample", None)]
)
def test_every_kind_of_interval_is_that_of_its_own_result(kind, ends):
    fit = uncertain()
    found = {
        "likelihood": fit.uncertainty.interval,
        "profile": lambda: {"a": fit.profiles["a"].interval()},
        "bootstrap": fit.bootstrapped.interval,
        "sample": fit.sampled.interval,
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
    more = fit.including(known.profiles["a"], known.bootstrapped, known.sampled)
    assert more.profiles == known.profiles
    assert (more.bootstrapped, more.sampled) == (known.bootstrapped, known.sampled)
    assert more.draws is known.sampled.theta
    assert fit.intervals_by_kind() == {}
    with pytest.raises(od.InputError, match="not dict"):
        fit.including({})


def test_why_there_are_no_intervals_is_said_in_words_of_the_method():
    assert "need a maximum of the likelihood" in make_fit(details={"stage_used": "odin"}).without_intervals
    assert "'two-step' gives no intervals" in make_fit(method="two-step", details={}).without_intervals


# --- names that users of other packages guess


def test_parameters_have_value_error_and_interval_by_name(lv_fit):
    assert set(lv_fit.params) == set("abcd")
    for name, p in lv_fit.params.items():
        assert p.value == lv_fit.theta[name]
        assert p.interval == lv_fit.interval()[name]
        assert p.stderr == lv_fit.stderr[name]
        assert p.interval[0] < p.value - p.stderr < p.value < p.value + p.stderr < p.interval[1]
    known = make_fit().params["d"]
    assert known.fixed
    assert np.isnan(known.stderr)


def test_criteria_follow_from_the_log_likelihood_and_the_number_of_unknowns(lv_fit, odin_fit):
    unknowns = 8  # four parameters, two initial values, two noise levels
    assert lv_fit.loglik == lv_fit.stages["refined"].loglik
    assert lv_fit.aic == pytest.approx(2 * unknowns - 2 * lv_fit.loglik)
    assert lv_fit.bic == pytest.approx(unknowns * np.log(40) - 2 * lv_fit.loglik)
    assert np.isnan(odin_fit.aic)
    assert np.isnan(odin_fit.bic)


def test_the_p_value_is_that_of_the_model_test():
    assert make_fit(details={"model_test": {"p": 0.25, "statistic": 1.0, "draws": 39}}).pvalue == 0.25
    assert np.isnan(make_fit().pvalue)


def test_the_table_has_the_numbers_of_parameters_and_initial_values(lv_fit):
    table = lv_fit.table()
    assert list(table.index) == ["a", "b", "c", "d", "prey(0)", "predator(0)"]
    assert table["estimate"]["a"] == lv_fit.theta["a"]
    assert (table["low"] < table["estimate"]).all()
    assert (table["estimate"] < table["high"]).all()
    fixed = make_fit().table().loc["d"]
    assert fixed["note"] == "fixed"
    assert np.isnan(fixed["stderr"])
    many = tuple(f"x{i}" for i in range(40))
    assert len(make_fit(many, ("k",)).table()) == 41


def test_tables_are_written_for_markdown_and_latex():
    fit = make_fit(("x_1",), ("k|m", "50%"))
    lines = fit.to_markdown().splitlines()
    assert lines[1].startswith("| --- | ---: |")
    assert lines[2].startswith(r"| k\|m | 1")
    assert len({line.replace(r"\|", "").count("|") for line in lines}) == 1
    text = fit.to_latex()
    assert text.startswith(r"\begin{tabular}{lr")
    assert r"50\% (fixed) & 1.1" in text
    assert r"x\_1(" in text


def test_a_plot_uses_axes_of_the_caller():
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots(1, 2)
    assert make_fit().plot(ax=axes) is figure
    assert [ax.get_ylabel() for ax in axes] == ["prey", "predator"]
    single = Figure().subplots()
    make_fit().plot(ax=single)
    assert [text.get_text() for text in single.get_legend().get_texts()] == ["prey", "predator"]
    assert len(single.lines) >= 4
    with pytest.raises(od.InputError, match="6 panels, but ax has 2 axes"):
        make_fit(tuple("ABCDEF")).plot(ax=axes)


def test_plots_draw_on_axes_of_the_caller_and_return_them(lv_fit):
    from matplotlib.figure import Figure

    for plot in (lv_fit.plot_residuals, lv_fit.plot_predicted, lv_fit.plot_quantiles):
        axes = Figure().subplots(1, 2)
        assert list(plot(ax=axes)) == list(axes)
        assert len(axes[0].figure.axes) == 2
        assert len(plot()) == 2
    ax = Figure().subplots()
    assert lv_fit.plot_phase(ax=ax) is ax
    with pytest.raises(od.InputError, match="2 panels, but ax has 1 axes"):
        lv_fit.plot_residuals(ax=ax)
    ax = Figure().subplots()
    assert lv_fit.profile("a").plot(ax=ax) is ax.figure
    assert ax.lines


def test_names_of_other_packages_lead_to_ours(lv_fit):
    with pytest.raises(AttributeError, match=r"'conf_int'; use fit.interval\(\)"):
        _ = lv_fit.conf_int
    with pytest.raises(od.InputError, match="no posterior draws; add them first"):
        _ = lv_fit.posterior
    with pytest.raises(od.InputError, match="times must be numbers"):
        lv_fit.predict("now")
    assert repr(lv_fit.params["a"]).startswith("2.08773 ± 0.058, 95 % 1.973")


# --- results and live fits


def test_a_loaded_result_has_no_methods_that_need_its_problem(tmp_path, lv_fit):
    lv_fit.save(tmp_path / "fit.json")
    result = od.load(tmp_path / "fit.json")
    assert type(result) is od.FitResult
    for name in ("problem", "profile", "bootstrap", "sample", "test", "forecast", "maximum", "to_petab"):
        assert not hasattr(result, name)
        assert name not in dir(result)
        with pytest.raises(od.InputError, match=rf"'{name}' needs the model .*result\.attach") as caught:
            getattr(result, name)
        assert "\n" not in str(caught.value)
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = result.colour


def test_a_result_with_its_problem_is_a_fit_again(tmp_path, lv, lv_data, lv_fit):
    lv_fit.save(tmp_path / "fit.json")
    fit = od.load(tmp_path / "fit.json").attach(od.Problem(lv.model, lv_data))
    assert isinstance(fit, od.Fit)
    np.testing.assert_allclose(fit.forecast([2.5]), lv_fit.forecast([2.5]), rtol=1e-5)
    assert type(fit.including(fit.profile("a"))) is od.Fit


def test_a_parameter_that_was_released_to_negative_values_stays_so_after_attaching(tmp_path):
    t = np.linspace(0, 3, 16)
    y = 2.0 * np.exp(0.5 * t) + 0.05 * np.random.default_rng(0).normal(size=16)
    problem = od.Problem(od.Model.from_text("x' = -k*x"), od.Data(t, y, states=["x"]))
    fit = od.fit(problem)
    assert fit.theta["k"] == pytest.approx(-0.5, abs=0.05)
    fit.save(tmp_path / "fit.json")
    again = od.load(tmp_path / "fit.json").attach(problem)
    assert again.interval(0.9)["k"] == pytest.approx(fit.interval(0.9)["k"], rel=1e-4)
    assert fit.forecast([4.0])["x"].item() == pytest.approx(again.forecast([4.0])["x"].item(), rel=1e-6)


@pytest.mark.parametrize("what", ["states", "parameters", "experiments", "data"])
def test_a_result_refuses_the_problem_of_another_fit(lv, lv_data, lv_fit, what):
    names = lv.model.states
    model = {
        "states": "prey' = a*prey - b*prey*cat; cat' = -c*cat + d*prey*cat",
        "parameters": "prey' = q*prey - b*prey*predator; predator' = -c*predator + d*prey*predator",
    }.get(what)
    data = {
        "states": od.Data(lv_data.t, lv_data.y, states=["prey", "cat"]),
        "experiments": od.Data.join({"control": lv_data}),
        "data": od.Data(lv_data.t, lv_data.y + 1.0, states=names),
    }.get(what, lv_data)
    problem = od.Problem(od.Model.from_text(model) if model else lv.model, data)
    with pytest.raises(od.InputError, match=f"another problem: its {what} differ"):
        lv_fit.attach(problem)


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
    with pytest.raises(od.InputError, match=r"a band of new observations needs .*result\.attach"):
        loaded.predict([1.0], observed=True)
    again = loaded.attach(counted.problem).predict([1.0], observed=True)
    np.testing.assert_array_equal(again, counted.predict([1.0], observed=True))


def test_stages_answer_by_attribute_and_by_key(lv_fit):
    assert list(lv_fit.stages) == ["odin", "refined"]
    for stage in lv_fit.stages.values():
        for key in ("theta", "gamma", "sigma", "x", "objective", "loglik", "seconds", "note"):
            assert stage[key] is getattr(stage, key)
        pd.testing.assert_frame_equal(stage["states"], stage.states)
        assert list(stage.theta) == ["a", "b", "c", "d"]
        assert stage.x[0].shape == (20, 2)
        assert stage.seconds > 0
        with pytest.raises(AttributeError):
            stage["nothing"]
    assert lv_fit.theta == lv_fit.stages["refined"].theta
    np.testing.assert_allclose(lv_fit.stages["refined"].x[0], lv_fit.states)
    assert np.abs(lv_fit.stages["odin"].x[0] - lv_fit.states.to_numpy()).max() > 1e-6


def test_states_at_the_observation_times_are_those_of_the_curve():
    e = make_fit().experiments["1"]
    x, sd = e.estimate()
    at = np.searchsorted(e.curve.t, e.t)
    np.testing.assert_allclose(x, e.curve.x[at], rtol=1e-12)
    np.testing.assert_allclose(sd, e.curve.sd[at], rtol=1e-12)
    np.testing.assert_array_equal(x, e.x)


@pytest.mark.parametrize("spoilt", ["x", "slope"])
def test_a_curve_with_a_hole_gives_no_estimate_instead_of_an_error(spoilt):
    e = make_fit().experiments["1"]
    parts = {key: np.array(getattr(e.curve, key)) for key in ("t", "x", "slope", "sd")}
    parts[spoilt][3, 0] = np.nan
    for found in ExperimentFit(e.t, e.y, Curve(**parts)).estimate():
        assert found.shape == e.y.shape
        assert np.isnan(found).all()


def test_a_failed_fit_has_observations_and_no_states():
    e = failed().experiments["1"]
    assert np.isfinite(e.y).all()
    assert np.isnan(e.estimate()).all()


def test_a_table_has_the_times_as_its_index_and_a_column_per_name():
    table = frame(np.array([0.5, 1.0]), np.array([[1.0, 2.0], [3.0, 4.0]]), ("x", "y"))
    assert table.index.name == "time"
    assert table.to_dict("list") == {"x": [1.0, 3.0], "y": [2.0, 4.0]}
    assert table.loc[1.0, "y"] == 4.0


def test_bands_hold_error_and_noise_and_widen_with_the_level():
    fit = make_fit()
    e = fit.experiments["1"]
    t = np.linspace(e.t[0], e.t[-1], 7)
    x, _, sd = e.curve.at(t)
    mean, low, high = prediction_interval(fit, "1", t)
    np.testing.assert_array_equal(mean, x)
    sigma = np.array([fit.sigma[name] for name in fit.state_names])
    np.testing.assert_allclose(high - low, 2 * 1.959963984540054 * np.sqrt(sd**2 + sigma**2), rtol=1e-9)
    np.testing.assert_allclose(high + low, 2 * x, rtol=1e-9, atol=1e-12)
    wide = prediction_interval(fit, "1", t, level=0.99)
    assert (wide[1] < low).all()
    assert (wide[2] > high).all()


def test_tables_of_predictions_have_the_same_numbers():
    fit = make_fit()
    t = fit.experiments["1"].t
    table = fit.predict(t, observed=True).to_numpy()
    for k, values in enumerate(prediction_interval(fit, "1", t)):
        np.testing.assert_array_equal(table[:, k::3], values)
