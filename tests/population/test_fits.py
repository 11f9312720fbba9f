"""A fitted population: estimates, intervals, individuals, forecasts, comparison, files and the command."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import odinfer as od
from apps.command.commands import odinfer
from odinfer.population.compare import likelihood_ratio
from odinfer.population.result import saved_estimate
from odinfer.population.start import start_vectors, with_units
from odinfer.population.structure import Structure

TRUTH = {"k_pop": 0.5, "omega_k": 0.3, "s": 0.3}
TEXT = "x' = -k*x; x(0) = 10; y ~ normal(x, s); log s"

VARIED = f"{TEXT}; k ~ lognormal(k_pop*where(sex == f, r, 1), omega_k) by subject"


def rows(seed: int = 0, subjects: int = 40, omega: float = 0.3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    t = np.array([0.5, 1.0, 2.0, 4.0])
    sex = np.where(np.arange(subjects) % 2 == 0, "f", "m")
    k = 0.5 * np.exp(omega * rng.normal(size=subjects)) * np.where(sex == "f", 1.5, 1.0)
    y = 10 * np.exp(-k[:, None] * t) + 0.3 * rng.normal(size=(subjects, 4))
    columns = {"id": np.repeat(np.arange(subjects), 4), "time": np.tile(t, subjects), "y": y.ravel()}
    return pd.DataFrame(columns | {"sex": np.repeat(sex, 4)})


def study(seed: int = 0, subjects: int = 40, omega: float = 0.3) -> od.Data:
    return od.read_csv(rows(seed, subjects, omega), states=["y"], covariates=["sex"])


@pytest.fixture(scope="module")
def fit() -> od.PopulationFit:
    return od.fit(od.Model.from_text(VARIED), study(1))


def test_the_truth_lies_within_the_intervals_and_both_kinds_agree(fit):
    for name, value in (TRUTH | {"r": 1.5}).items():
        low, high = fit.intervals[name]
        assert low < value < high
    curvature = fit.interval(kind="curvature")
    for name, (low, high) in fit.interval().items():
        assert curvature[name] == pytest.approx((low, high), rel=0.1)
    narrower = fit.interval(0.5)
    assert all(fit.intervals[n][0] < narrower[n][0] < narrower[n][1] < fit.intervals[n][1] for n in narrower)


def test_a_profile_limit_is_where_the_reoptimised_likelihood_has_fallen_by_1_92(fit):
    limit = fit.intervals["omega_k"][1]
    text = f"{TEXT}; k ~ lognormal(k_pop*where(sex == f, r, 1), {limit}) by subject"
    held = od.fit(od.Model.from_text(text), study(1))
    assert fit.loglik - held.loglik == pytest.approx(1.92, abs=0.1)


def test_a_profile_passes_through_the_maximum_and_the_limits(fit):
    profile = fit.profile("omega_k")
    assert profile.max() == pytest.approx(fit.loglik, abs=0.01)
    assert profile.idxmax() == pytest.approx(fit.theta["omega_k"])
    at_limits = np.interp(fit.intervals["omega_k"], profile.index, profile.to_numpy())
    assert fit.loglik - at_limits == pytest.approx([1.92, 1.92], abs=0.15)
    with pytest.raises(od.InputError, match="no parameter 'omega_x'"):
        fit.profile("omega_x")


def test_individual_parameters_shrink_towards_the_population_and_follow_the_data(fit):
    assert -0.05 < fit.shrinkage["k"] < 0.3
    own = fit.individual
    assert ((own["k_low"] < own["k"]) & (own["k"] < own["k_high"])).all()
    assert fit.eta["k"].std() == pytest.approx(fit.theta["omega_k"], rel=0.3)


def test_standardised_residuals_of_a_right_model_are_standard_normal(fit):
    table = fit.residuals
    for column in ("residual", "individual_residual"):
        assert abs(table[column].mean()) < 0.25
        assert 0.7 < table[column].std() < 1.3


def test_a_forecast_is_wide_for_a_new_subject_and_narrow_for_one_with_data(fit):
    t = [1.0, 3.0]
    widths = []
    bare = od.Data([0.5], [9.0], states=["y"]).with_covariates({"1": {"sex": "m"}})
    known = od.Data([0.5, 1, 2, 4], 10 * np.exp(-0.8 * np.array([0.5, 1, 2, 4])), states=["y"])
    known = known.with_covariates({"1": {"sex": "m"}})
    for draws in (fit.forecast(t), fit.forecast(t, data=bare), fit.forecast(t, data=known), fit.forecast(t, "1")):
        low, middle, high = draws.band(noise=False)
        assert ((low < middle) & (middle < high)).all()
        widths.append(float((high - low)[1, 0]))
    assert widths[0] > widths[2]
    assert widths[1] > widths[2]
    low, _, high = fit.forecast(t, data=known).band(noise=False)
    assert low[1, 0] < 10 * np.exp(-0.8 * 3.0) < high[1, 0]


def test_the_command_forecasts_new_subjects_and_those_of_the_data_from_a_saved_fit(fit, tmp_path):
    (tmp_path / "m.ode").write_text(VARIED)
    rows(1).to_csv(tmp_path / "d.csv", index=False)
    fit.save(tmp_path / "fit.json")
    (tmp_path / "new.csv").write_text(
        "id,time,y,sex\nsampled,1,4.5,m\nsampled,2,2.0,m\nunknown,1,<1000,m\nunknown,2,,m\n"
    )
    command = ["forecast", "m.ode", "d.csv", "--fit", "fit.json", "--times", "3,1"]
    run = odinfer(*command, "--new", "new.csv", "--subject", "7", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert "y of 7, sampled and unknown, with 95 % bands at 2 times" in run.stdout
    table = pd.read_csv(tmp_path / "forecast.csv").set_index(["subject", "time"])
    assert [*table.index] == [(name, t) for name in ("7", "sampled", "unknown") for t in (1.0, 3.0)]
    width = (table["y_high"] - table["y_low"]).xs(3.0, level="time")
    assert 2 * width["sampled"] < width["unknown"]
    low, middle, high = fit.forecast([1.0, 3.0], "7").band(noise=False)
    assert table.loc["7"].to_numpy() == pytest.approx(np.hstack([middle, low, high]), rel=0.1)
    assert odinfer(*command, "--observed", "--level", "0.5", cwd=tmp_path).code == 0
    anyone = pd.read_csv(tmp_path / "forecast.csv")
    assert [*anyone["subject"]] == ["new", "new"]
    (tmp_path / "m.ode").write_text(VARIED.replace("-k*x", "-k*x - 0"))
    assert "is a fit of other equations" in odinfer(*command, cwd=tmp_path).stderr
    (tmp_path / "m.ode").write_text(TEXT)
    assert "for models with parameters that vary" in odinfer(*command, "--subject", "7", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    "damage", [{"theta": 3}, {"theta": {}}, {"theta": {"k": "x"}}, {"fixed_at_zero": None}, {"fixed_at_zero": [["k"]]}]
)
def test_a_damaged_population_fit_is_refused_in_one_line(fit, tmp_path, damage):
    fit.save(tmp_path / "fit.json")
    content = json.loads((tmp_path / "fit.json").read_text())
    (tmp_path / "fit.json").write_text(json.dumps(content | damage))
    with pytest.raises(od.InputError) as error:
        saved_estimate(tmp_path / "fit.json", fit.problem)
    assert "\n" not in str(error.value)


def test_simulated_studies_have_the_design_of_the_data_and_give_the_estimates_back(fit):
    again = od.fit(fit.problem.model, fit.simulate(1, seed=3)[0])
    for name, se in fit.standard_errors.items():
        assert abs(again.theta[name] - fit.theta[name]) < 4 * se


def test_an_effect_without_variation_is_fixed_at_zero_and_said():
    text = "x' = -k*x; x(0) = x0; y ~ normal(x, s); log s"
    text += "; k ~ lognormal(k_pop, omega_k) by subject; x0 ~ lognormal(x0_pop, omega_x0) by subject"
    found = od.fit(od.Model.from_text(text), study(5))
    assert found.fixed_at_zero == ("x0",)
    assert found.theta["omega_x0"] == 0.0
    assert any("fixed" in said and "x0" in said for said in found.warnings)
    assert found.theta["x0_pop"] == pytest.approx(10.0, rel=0.05)


def test_comparison_finds_the_covariate_and_the_ratio_test_respects_boundaries(fit):
    models = {
        "none": f"{TEXT}; k ~ lognormal(k_pop, omega_k) by subject",
        "sex": f"{TEXT}; k ~ lognormal(k_pop*where(sex == f, r, 1), omega_k) by subject",
    }
    found = od.compare({name: od.Model.from_text(text, name) for name, text in models.items()}, study())
    assert found.best == "sex"
    assert found.test("none", "sex") < 0.01
    assert likelihood_ratio(2.706, 1, 1) == pytest.approx(0.05, abs=1e-3)
    assert likelihood_ratio(3.841, 1) == pytest.approx(0.05, abs=1e-3)
    assert likelihood_ratio(0.0, 1, 1) == 1.0


@pytest.mark.slow
def test_the_command_compares_populations_and_writes_the_report_of_the_best(tmp_path):
    small = study(0, 12).experiments
    rows = [(e.name, t, y, e.covariates["sex"]) for e in small for t, y in zip(e.t, e.y[:, 0], strict=True)]
    pd.DataFrame(rows, columns=["id", "time", "y", "sex"]).to_csv(tmp_path / "data.csv", index=False)
    for name, centre in {"none": "k_pop", "sex": "k_pop*where(sex == f, r, 1)"}.items():
        (tmp_path / f"{name}.ode").write_text(f"{TEXT}\nk ~ lognormal({centre}, omega_k) by subject\n")
    run = odinfer("compare", "none.ode", "sex.ode", "data.csv", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert run.stdout.startswith("sex has the lowest BIC, by ")
    document = json.loads((tmp_path / "comparison" / "comparison.json").read_text("utf-8"))
    assert document["best"] == "sex"
    assert (tmp_path / "comparison" / "report.html").exists()


def test_files_have_what_the_fit_has(fit, tmp_path):
    fit.save(tmp_path / "fit.json")
    document = json.loads((tmp_path / "fit.json").read_text("utf-8"))
    assert document["theta"] == pytest.approx(dict(fit.theta))
    fit.save(tmp_path / "individual.csv")
    assert len(pd.read_csv(tmp_path / "individual.csv")) == 40
    with pytest.raises(od.InputError, match="json"):
        fit.save(tmp_path / "fit.txt")


@pytest.mark.parametrize(
    "kind", ["spaghetti", "fits", "individual", "observed", "residuals", "vpc", "effects", "covariates"]
)
def test_every_figure_can_be_drawn(fit, kind):
    assert len(fit.plot(kind).axes) >= 1


def test_pictures_draw_into_axes_of_the_caller_and_have_a_panel_for_each_label(fit):
    from matplotlib.figure import Figure

    axes = Figure().subplots(1, 2)
    figure = fit.plot("vpc", axes, by="sex")
    assert figure is axes[0].figure
    assert [ax.get_title(loc="left") or ax.get_title() for ax in axes] == ["y, sex f", "y, sex m"]
    assert axes[0].get_ylim() == axes[1].get_ylim()
    assert len(fit.plot("fits", subjects=["3"]).axes) == 1
    assert len({ax.get_ylim() for ax in fit.plot("fits", subjects=["1", "2", "3"]).axes}) == 1
    with pytest.raises(od.InputError, match="has 2 panels, not 1"):
        fit.plot("observed", axes[0])
    with pytest.raises(od.InputError, match="no covariate 'age'"):
        fit.plot("spaghetti", by="age")
    with pytest.raises(od.InputError, match="no subject '99'"):
        fit.plot("fits", subjects=["99"])


def test_draws_given_the_data_have_the_conditional_means_and_bands(fit):
    draws = np.log(fit.conditional(400)["k"]).groupby("subject", sort=False)
    assert draws.mean().to_numpy() == pytest.approx(np.log(fit.individual["k"]).to_numpy(), abs=0.05)
    width = np.log(fit.individual["k_high"] / fit.individual["k_low"]) / (2 * 1.96)
    assert draws.std().to_numpy() == pytest.approx(width.to_numpy(), rel=0.25)


def test_the_summary_has_the_exact_likelihood_with_its_error_and_what_focei_would_have_said(fit):
    said = fit.summary()
    assert f"{fit.loglik:.3f}" in said
    assert "FOCEI would have said" in said
    assert "CV" in said


def test_counts_and_a_nonlinear_equation_can_be_fitted():
    rng = np.random.default_rng(2)
    t, rows = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), []
    for i in range(15):
        r = 0.8 * np.exp(0.2 * rng.normal())
        n = 100 / (1 + 19 * np.exp(-r * t))
        rows += [(i, time, count) for time, count in zip(t, rng.poisson(n), strict=True)]
    data = od.read_csv(pd.DataFrame(rows, columns=["id", "time", "seen"]), states=["seen"])
    text = "n' = r*n*(1 - n/K); n(0) = 5; seen ~ poisson(n); log K; r ~ lognormal(r_pop, omega) by subject"
    found = od.fit(od.Model.from_text(text), data)
    assert found.converged
    for name, value in {"r_pop": 0.8, "K": 100.0, "omega": 0.2}.items():
        low, high = found.intervals[name]
        assert low < value < high


@pytest.mark.parametrize(("names", "accuracy"), [("abcde", 2e-3), ("abcdef", 0.05)])  # quadrature, sampling
def test_many_effects_are_integrated_as_a_gaussian_model_says(names, accuracy):
    """Linear in its effects, the model has a normal marginal likelihood in closed form."""
    rng, d = np.random.default_rng(4), len(names)
    t = np.array([0.2, 0.5, 1.0, 1.5, 2.0, 3.0])
    basis = np.stack([t**i / math.factorial(i) for i in range(d)], 1)
    y = basis @ (1.0 + 0.5 * rng.normal(size=(d, 4))) + 0.2 * rng.normal(size=(6, 4))
    frame = pd.DataFrame({"id": np.repeat(np.arange(4), 6), "time": np.tile(t, 4), "y": y.T.ravel()})
    text = "".join(f"x{i}' = x{i + 1}; " for i in range(d - 1)) + f"x{d - 1}' = 0; y ~ normal(x0, 0.2)"
    text += "".join(f"; x{i}(0) = {n}; {n} ~ normal(m_{n}, 0.5) by subject" for i, n in enumerate(names))
    problem = od.Problem(od.Model.from_text(text), od.read_csv(frame, states=["y"]))
    V = 0.25 * basis @ basis.T + 0.04 * np.eye(6)
    r = y - basis.sum(1)[:, None]
    exact = -0.5 * ((r * np.linalg.solve(V, r)).sum() + 4 * np.linalg.slogdet(2 * np.pi * V)[1])
    found = od.loglik(problem, {f"m_{n}": 1.0 for n in names})
    assert found == pytest.approx(exact, abs=accuracy)
    assert od.loglik(problem, {f"m_{n}": 1.0 for n in names}, approximation="fo") == pytest.approx(exact, abs=1e-4)
    assert od.loglik(problem, {f"m_{n}": 1.0 for n in names}, approximation="laplace") == pytest.approx(exact, abs=1e-4)


def test_a_lag_as_an_event_has_the_likelihood_of_later_doses():
    frame = study(3, 6).experiments
    rows = [(e.name, t, y) for e in frame for t, y in zip(e.t + 1.0, e.y[:, 0], strict=True)]
    frame = pd.DataFrame(rows, columns=["id", "time", "y"])
    text = "x' = -k*x; x(0) = 0; y ~ normal(x, 0.3); k ~ lognormal(0.5, 0.3) by subject"
    lag = "; depot' = 0; wait' = where(depot > 0, 1, 0); depot(0) = 0; wait(0) = 0"
    lag += "; when wait > lag: x += depot, depot = 0, wait = 0"
    found = []
    for statements, late, values in ((text, 0.8, {}), (text + lag, 0.0, {"lag": 0.8})):
        into = "x" if late else "depot"
        doses = pd.DataFrame({"id": [*map(str, range(6))] * 2, "time": np.repeat([0.0, 2.6], 6) + late, "amt": 8.0})
        table = pd.concat([frame, doses.assign(cmt=into)]).sort_values(["id", "time"])
        problem = od.Problem(od.Model.from_text(statements), od.read_csv(table, states=["y"]))
        found.append(od.loglik(problem, values))
    assert found[1] == pytest.approx(found[0], abs=1e-2)


def test_a_single_effect_without_variation_is_fixed_at_zero_and_said(tmp_path):
    rng, t = np.random.default_rng(2), np.tile([0.5, 1.0, 2.0, 4.0], 10)
    y = 10 * np.exp(-0.5 * t) + 0.3 * rng.normal(size=40)
    data = od.read_csv(pd.DataFrame({"id": np.repeat(np.arange(10), 4), "time": t, "y": y}), states=["y"])
    found = od.fit(od.Model.from_text(f"{TEXT}; k ~ lognormal(k_pop, omega_k) by subject"), data)
    assert any(said.startswith("The variation of k between subjects is estimated as zero") for said in found.warnings)
    assert found.fixed_at_zero == ("k",)
    assert found.theta["omega_k"] == 0.0
    shared = od.fit(od.Model.from_text(TEXT), data, seed=0)
    assert found.loglik == pytest.approx(shared.loglik, abs=1e-3)
    assert found.theta["k_pop"] == pytest.approx(shared.theta["k"], rel=1e-3)
    assert "omega_k 0 (fixed)" in " ".join(found.summary().split())
    assert "no variation between subjects" in found.summary()
    found.save(tmp_path / "report.html")
    with pytest.raises(od.InputError, match="no parameter varies"):
        found.plot("effects")


def test_more_random_effects_than_observations_are_pointed_out(tmp_path):
    rng, k, c = np.random.default_rng(3), 0.5, 10.0
    k, c = k * np.exp(0.3 * rng.normal(size=12)), c * np.exp(0.3 * rng.normal(size=12))
    t = rng.uniform(0.5, 4.0, 12)
    frame = pd.DataFrame({"subject": np.arange(12), "time": t, "y": c * np.exp(-k * t) + 0.1 * rng.normal(size=12)})
    text = "x' = -k*x; x(0) = c; y ~ normal(x, 0.1); k ~ lognormal(k_pop, omega_k) by subject"
    text += "; c ~ lognormal(c_pop, 0.3) by subject"
    found = od.fit(od.Model.from_text(text), od.read_csv(frame, states=["y"]))
    said = "There are more random effects (24, 2 in each subject) than observations (12)"
    assert any(warning.startswith(said) for warning in found.warnings)
    (tmp_path / "m.ode").write_text(text)
    frame.to_csv(tmp_path / "d.csv", index=False)
    assert said in " ".join(odinfer("check", "m.ode", "d.csv", cwd=tmp_path).stdout.split())


def test_a_fit_in_other_units_is_the_same_fit():
    """Slopes and a coefficient of age have any sign; the search and the intervals must not know their units."""
    rng, t = np.random.default_rng(8), np.array([1.0, 2.0, 3.0, 4.0])
    age = rng.uniform(20, 60, 15)
    y = (5.0 + 0.1 * (age - 40) + rng.normal(size=15))[:, None] * t + 2.0 * rng.normal(size=(15, 4))
    frame = pd.DataFrame({"id": np.repeat(np.arange(15), 4), "time": np.tile(t, 15), "age": np.repeat(age, 4)})
    text = "x' = k; x(0) = 0; y ~ normal(x); k ~ normal(m + c*(age - 40), omega) by subject"
    found = []
    for unit in (1.0, 1e4, 1e-3):
        data = od.read_csv(frame.assign(y=unit * y.ravel()), states=["y"], covariates=["age"])
        fit = od.fit(od.Model.from_text(text), data)
        assert fit.converged
        found.append({name: np.array([fit.theta[name], *fit.intervals[name]]) / unit for name in fit.theta})
    for other in found[1:]:
        for name, values in found[0].items():
            assert other[name] == pytest.approx(values, rel=1e-3)


@pytest.mark.parametrize(("seed", "reaches_zero"), [(1, True), (6, False)])
def test_the_lower_limit_of_a_spread_is_zero_where_the_fit_without_it_is_not_rejected(seed, reaches_zero):
    rng, t = np.random.default_rng(seed), np.array([0.5, 1.0, 2.0, 4.0])
    k, c = 0.5 * np.exp(0.4 * rng.normal(size=10)), 10 * np.exp(0.1 * rng.normal(size=10))
    y = c[:, None] * np.exp(-k[:, None] * t) * (1 + 0.1 * rng.normal(size=(10, 4)))
    frame = pd.DataFrame({"id": np.repeat(np.arange(10), 4), "time": np.tile(t, 10), "y": y.ravel()})
    text = "x' = -k*x; x(0) = c; y ~ normal(x, b*x); log b; k ~ lognormal(k_pop, omega_k) by subject"
    models = {"with": f"{text}; c ~ lognormal(c_pop, omega_c) by subject", "without": text}
    fit, without = (od.fit(od.Model.from_text(own), od.read_csv(frame, states=["y"])) for own in models.values())
    assert (2.0 * (fit.loglik - without.loglik) < 3.84) == reaches_zero
    low, high = fit.intervals["omega_c"]
    assert (low == 0.0) == reaches_zero
    assert low < 0.9 * fit.theta["omega_c"] < 0.9 * high


def test_precise_data_whose_effects_follow_a_common_parameter_have_an_accurate_likelihood_and_limits():
    """Individual values are known to 1 % for any rate kout, and move with it by many times that."""
    rng, t = np.random.default_rng(3), np.array([3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    kin = 10 * np.exp(0.3 * rng.normal(size=10))
    y = kin[:, None] / 0.2 * (1 - np.exp(-0.2 * t)) + 0.5 * rng.normal(size=(10, 6))
    frame = pd.DataFrame({"id": np.repeat(np.arange(10), 6), "time": np.tile(t, 10), "y": y.ravel()})
    text = "r' = kin - kout*r; r(0) = 0; y ~ normal(r); log kout; kin ~ lognormal(kin_pop, omega) by subject"
    fit = od.fit(od.Model.from_text(text), od.read_csv(frame, states=["y"]))
    assert fit.loglik_error < 0.01
    assert od.loglik(fit.problem, fit.theta) == pytest.approx(fit.loglik, abs=0.01)
    assert fit.intervals["kout"][0] < 0.2 < fit.intervals["kout"][1]
    assert fit.intervals["kout"] == pytest.approx(fit.interval(kind="curvature")["kout"], abs=5e-4)


def crossover(subjects: int = 10, noise: float = 0.1) -> pd.DataFrame:
    """x grows at a rate that differs between subjects and between their two occasions, which begin at 0 and 3."""
    rng, rows = np.random.default_rng(6), []
    for i in range(subjects):
        rates = 1.0 + 0.4 * rng.normal() + 0.3 * rng.normal(size=2)
        for t in (1.0, 2.0, 3.0, 4.0, 5.0):
            x = rates[0] * min(t, 3.0) + rates[1] * max(t - 3.0, 0.0)
            rows.append((i, t, x + noise * rng.normal(), 1.0 if t < 3.0 else 7.0))
    return pd.DataFrame(rows, columns=["id", "time", "y", "occ"])


OCCASIONS = "x' = k; x(0) = 0; y ~ normal(x, 0.1); k ~ normal(m, omega) by subject; k ~ normal(k, gamma) by occ"


def test_variation_by_occasion_has_the_likelihood_of_its_gaussian_model():
    """x is linear in the effects, so that the marginal likelihood is normal; an occasion begins at its first row."""
    frame = crossover()
    t = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    basis = np.stack([t, np.minimum(t, 3.0), np.maximum(t - 3.0, 0.0)], 1)
    V = basis @ np.diag([0.4**2, 0.3**2, 0.3**2]) @ basis.T + 0.01 * np.eye(5)
    r = frame["y"].to_numpy().reshape(-1, 5).T - t[:, None]
    exact = -0.5 * ((r * np.linalg.solve(V, r)).sum() + 10 * np.linalg.slogdet(2 * np.pi * V)[1])
    for kinds in ({"inputs": ["occ"], "states": ["y"]}, {}):  # read as an input, or as a column like others
        problem = od.Problem(od.Model.from_text(OCCASIONS), od.read_csv(frame, **kinds))
        assert od.loglik(problem, {"m": 1.0, "omega": 0.4, "gamma": 0.3}) == pytest.approx(exact, abs=2e-3)


def test_variation_by_occasion_can_be_fitted_and_forecast():
    data = od.read_csv(crossover(30), states=["y"], inputs=["occ"])
    found = od.fit(od.Model.from_text(OCCASIONS), data)
    assert found.converged
    for name, value in {"m": 1.0, "omega": 0.4, "gamma": 0.3}.items():
        low, high = found.intervals[name]
        assert low < value < high
    assert list(found.eta) == ["k", "k_occ1", "k_occ2"]
    assert "k by subject, k by occ" in found.summary()
    assert np.isfinite(found.forecast([2.0, 6.0], data=data.only("3")).values).all()


@pytest.mark.parametrize("equation", ["-k*x", "-k*x + 0*x^2"])  # by the matrix exponential, and by steps
def test_a_dose_at_steady_state_is_the_limit_of_the_doses_before_it(equation):
    k, between, t = 0.05, 12.0, np.array([0.0, 1.0, 6.0, 20.0])
    x = 100.0 / (1.0 - np.exp(-k * between)) * np.exp(-k * np.where(t == 0.0, between, t))
    data = od.Data(t, x + 1.0, states=["y"], doses=[od.Dose(0.0, 100.0, steady=between)])
    problem = od.Problem(od.Model.from_text(f"x' = {equation}; x(0) = 0; y ~ normal(x, 1); log k"), data)
    assert od.loglik(problem, {"k": k}) == pytest.approx(-0.5 * 4 - 2 * np.log(2 * np.pi), abs=1e-4)
    late = od.Data(t - 1.0, x, states=["y"], doses=[od.Dose(0.0, 100.0, steady=between)])
    with pytest.raises(od.InputError, match="comes after the first dose or observation"):
        od.Problem(problem.model, late)


def test_a_steady_state_that_the_doses_before_do_not_reach_is_said():
    frame = crossover().drop(columns="occ").assign(amt=np.nan)
    doses = pd.DataFrame({"id": range(10), "time": 0.0, "amt": 1.0, "ii": 0.01, "ss": 1.0})
    data = od.read_csv(pd.concat([doses, frame]), states=["y"])
    fit = od.fit(od.Model.from_text("x' = -k*x; x(0) = 0; y ~ normal(x); k ~ lognormal(m, omega) by subject"), data)
    assert any("steady state" in said for said in fit.warnings)


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_fit():
    model = od.Model.from_text("x' = -k*x^1.1; x(0) = 10; y ~ normal(x, 0.3); k ~ lognormal(k_pop, omega) by subject")
    alone, together = (od.fit(model, study(2), workers=workers) for workers in (1, 2))
    assert alone.loglik == together.loglik
    assert alone.intervals == together.intervals
    assert od.compare([model], study(2), workers=2).fits["model"].loglik == alone.loglik


@pytest.mark.slow
def test_a_prior_pulls_the_posterior(fit):
    low, high = fit.sample(500, prior={"k_pop": ("lognormal", 0.45, 0.01)}).interval()["k_pop"]
    assert 0.43 < low < high < 0.47


def test_draws_from_the_posterior_agree_with_the_intervals(fit, tmp_path):
    posterior = fit.sample(2000)
    assert posterior.converged
    for name, (low, high) in posterior.interval().items():
        width = fit.intervals[name][1] - fit.intervals[name][0]
        assert (low, high) == pytest.approx(fit.intervals[name], abs=0.2 * width)
    assert posterior.individual["k"].mean(0) == pytest.approx(fit.individual["k"].to_numpy(), rel=0.05)
    posterior.save(tmp_path / "posterior.nc")
    fit.save(tmp_path / "fit.nc")
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(tmp_path / "posterior.nc", engine="h5netcdf", group="posterior") as read:
        assert read["k"].dims == ("chain", "draw", "subject")
    with xarray.open_dataset(tmp_path / "fit.nc", engine="h5netcdf") as read:
        assert read["estimate"].sel(parameter="k_pop") == pytest.approx(fit.theta["k_pop"])


def test_a_prior_of_correlations_is_uniform_over_correlation_matrices():
    """With three effects, each correlation has the density (1 − r²)^(1/2) (Lewandowski et al. 2009)."""
    from odinfer.model.priors import Prior
    from odinfer.population.posterior import log_prior
    from odinfer.population.structure import Structure

    text = "x' = -k*x + c - d*x; x(0) = 10; y ~ normal(x, 0.3); correlated all"
    text += "; k ~ lognormal(0.5, 1) by subject; c ~ normal(1, 1) by subject; d ~ lognormal(1, 1) by subject"
    s = Structure.of(od.Problem(od.Model.from_text(text), study(0, 4)))
    grid = np.linspace(-6, 6, 61)
    v = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), -1).reshape(-1, 3)
    w = np.exp([log_prior(s, Prior.of({}, s.names), frozenset(), own) for own in v[::23]])
    r = np.array([list(s.values(own).values()) for own in v[::23]])
    assert (w @ r**2) / w.sum() == pytest.approx([0.25, 0.25, 0.25], abs=0.02)  # mean of r² under that density


@pytest.mark.slow
def test_the_test_of_a_model_accepts_the_right_one_and_rejects_a_wrong_one(fit):
    assert not fit.test(39).contradicts()
    wrong = "x' = -k; x(0) = 10; y ~ normal(x, s); log s; k ~ lognormal(k_pop, omega_k) by subject"
    assert od.fit(od.Model.from_text(wrong), study(1)).test(79).contradicts()


def test_a_part_of_the_noise_that_goes_to_zero_leaves_the_other_intervals_as_they_are():
    """Without proportional noise in the data, b goes to zero; the intervals of the rest are those without b."""
    table = {name: od.fit(od.Model.from_text(text), study(5)).intervals for name, text in (
        ("both", "x' = -k*x; x(0) = 10; y ~ normal(x, a + b*x); log a, b; k ~ lognormal(k_pop, omega) by subject"),
        ("one", "x' = -k*x; x(0) = 10; y ~ normal(x, a); log a; k ~ lognormal(k_pop, omega) by subject"),
    )}  # fmt: skip
    for name, ends in table["one"].items():
        assert table["both"][name] == pytest.approx(ends, rel=0.1)
    assert table["both"]["b"][0] == 0.0
    assert 0.0 < table["both"]["b"][1] < 0.1


def test_every_seed_starts_from_both_solutions_of_an_absorption_with_proportional_noise():
    rng, t, rows = np.random.default_rng(5), np.array([0.5, 1, 2, 4, 8, 12, 24, 36]), []
    for i in range(12):
        ka, CL, V = np.exp(np.log([1.0, 4.0, 70.0]) + 0.3 * rng.normal(size=3))
        y = 6e4 / V * ka / (ka - CL / V) * (np.exp(-CL / V * t) - np.exp(-ka * t)) * (1 + 0.2 * rng.normal(size=8))
        rows += [(i, 0.0, 6e4, np.nan), *((i, own, np.nan, value) for own, value in zip(t, y, strict=True))]
    model = (
        "gut' = -ka*gut; body' = ka*gut - CL/V*body; gut(0) = 0; body(0) = 0; conc ~ normal(body/V, b*body/V); log b"
    )
    model += "".join(f"; {p} ~ lognormal({p}_pop, omega_{p}) by subject" for p in ("ka", "CL", "V"))
    table = pd.DataFrame(rows, columns=["subject", "time", "amt", "conc"])
    structure = with_units(Structure.of(od.Problem(od.Model.from_text(model), od.read_csv(table, states=["conc"]))))
    for seed in (2, 3, 15, 16):
        with np.errstate(all="ignore"):
            V = sorted(structure.values(v)["V_pop"] for v in start_vectors(structure, seed))
        assert len(V) == 2
        assert V[0] < 10 < 50 < V[1]
