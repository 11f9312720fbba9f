"""Fits with unknown functions: recovered with their bands, counted by effective degrees of freedom."""

import numpy as np
import pytest

import odinfer as od


def infusion(t):
    return 3.0 * np.exp(-0.5 * ((t - 3.0) / 1.2) ** 2)


@pytest.fixture(scope="module")
def data():
    """x' = -0.5 x + infusion(t), with noise of 0.1."""
    fine = np.linspace(0, 10, 4001)
    x = [1.0]
    for t, h in zip(fine[:-1], np.diff(fine), strict=True):
        middle = x[-1] + 0.5 * h * (infusion(t) - 0.5 * x[-1])
        x.append(x[-1] + h * (infusion(t + 0.5 * h) - 0.5 * middle))
    t = np.linspace(0, 10, 41)
    return od.Data(t, np.interp(t, fine, x) + 0.1 * np.random.default_rng(0).normal(size=41), states=["x"])


@pytest.fixture(scope="module")
def fit(data):
    return od.fit(od.Model.from_text("x' = -0.5*x + ?(t)"), data)


def test_an_unknown_input_is_recovered_within_its_band(fit):
    t = np.linspace(0.2, 9.8, 49)
    found = fit.unknown["?"].at(t)
    assert np.abs(found["value"] - infusion(t)).max() < 0.3
    assert np.mean((found["low"] <= infusion(t)) & (infusion(t) <= found["high"])) > 0.7


def test_an_unknown_function_costs_its_effective_degrees_of_freedom(fit):
    freedom = fit.unknown["?(t)"].freedom
    assert 4 < freedom < 12
    assert fit.details["unknowns"] == pytest.approx(freedom + 2, abs=0.1)  # x(0) and the noise
    assert fit.bic == pytest.approx(-2 * fit.loglik + fit.details["unknowns"] * np.log(41))


def test_beyond_the_data_it_is_said_that_a_function_is_not_estimated(fit):
    found = fit.unknown["?"].at([9.0, 12.0])
    assert found["inside"].tolist() == [True, False]
    assert "beyond, it keeps its last value" in " ".join(fit.summary().split())


def test_coefficients_are_not_among_the_parameters_of_the_summary(fit):
    assert list(fit.table().index) == ["x(0)"]
    assert "unknown_w1" in fit.theta


def test_a_saved_fit_keeps_the_function_and_computes_it_again_when_attached(fit, data, tmp_path):
    fit.save(tmp_path / "fit.json")
    result = od.load(tmp_path / "fit.json")
    assert np.allclose(result.unknown["?"].table, fit.unknown["?"].table)
    with pytest.raises(od.InputError, match="attach"):
        result.unknown["?"].at([1.0])
    again = result.attach(od.Problem(od.Model.from_text("x' = -0.5*x + ?(t)"), data))
    assert again.unknown["?"].at([3.0])["low"][0] == pytest.approx(fit.unknown["?"].at([3.0])["low"][0], rel=1e-3)


def test_a_scale_that_is_given_is_kept(data):
    model = od.Model.from_text("x' = -0.5*x + ?(t); ?(t) ~ gp(2, 0.15)")
    found = od.fit(model, data).unknown["?"]
    assert (found.sd, found.length) == (2.0, 0.15)


def test_a_function_of_a_state_is_found_where_the_text_leaves_it_open():
    t = np.linspace(0, 8, 40)
    n = 10 / (1 + 19 * np.exp(-1.2 * t))
    data = od.Data(t, n + 0.1 * np.random.default_rng(1).normal(size=40), states=["n"])
    fit = od.fit(od.Model.from_text("n' = ?(n)"), data)
    at = np.array([2.0, 4.0, 6.0, 8.0])
    assert np.allclose(fit.unknown["?"].at(at)["value"], 1.2 * at * (1 - at / 10), atol=0.3)


def test_what_there_is_no_function_of_is_said(fit):
    with pytest.raises(od.InputError, match="no unknown function"):
        _ = fit.unknown["?beta"]
    with pytest.raises(od.InputError, match="one per argument"):
        fit.unknown["?"].at([1.0], [2.0])


def test_a_comparison_counts_an_unknown_function_by_its_effective_degrees_of_freedom(data):
    models = [od.Model.from_text("x' = -0.5*x + ?(t)", "open"), od.Model.from_text("x' = -0.5*x + c", "constant")]
    table = od.compare(models, data, draws=19).table
    assert table.index[0] == "open"
    assert 5 < table.loc["open", "parameters"] < 14


def test_an_unknown_input_is_found_from_counts_of_a_model_without_other_parameters():
    t = np.linspace(0, 10, 41)
    x = od.simulate(od.Model.from_text("x' = -0.5*x + 1 + sin(t)"), {}, [1.0], t)
    counts = np.random.default_rng(2).poisson(20 * np.asarray(x)[:, 0])
    model = od.Model.from_text("x' = -0.5*x + ?(t); cells ~ poisson(20*x); x(0) = 1")
    found = od.fit(model, od.Data(t, counts, states=["cells"])).unknown["?"].at(t[4:-4])
    assert np.mean((found["low"] <= 1 + np.sin(t[4:-4])) & (1 + np.sin(t[4:-4]) <= found["high"])) > 0.7


def test_a_periodic_input_is_found():
    t = np.linspace(0, 60, 61)
    x = od.simulate(od.Model.from_text("x' = -0.5*x + 2 + sin(t*pi/12)"), {}, [4.0], t)
    data = od.Data(t, np.asarray(x)[:, 0] + 0.1 * np.random.default_rng(3).normal(size=61), states=["x"])
    found = od.fit(od.Model.from_text("x' = -0.5*x + ?(t); ?(t) periodic 24"), data).unknown["?"].at(t)
    assert np.allclose(found["value"], 2 + np.sin(t * np.pi / 12), atol=0.3)


def test_an_elimination_nobody_knows_is_found_after_two_doses_with_its_noise(tmp_path):
    rows = [(0.5, 8.0), (1, 6.5), (2, 4.4), (3, 3.1), (4, 2.2), (6, 1.2)]
    rows += [(8.5, 8.5), (9, 6.9), (10, 4.7), (12, 2.4), (14, 1.2), (16, 0.7)]
    lines = ["time,conc,amt", "0,,10", "8,,10", *(f"{t},{y}," for t, y in rows)]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    model = od.Model.from_text("x' = -?(x); x(0) = 0; conc ~ normal(x, s)")
    fit = od.fit(model, od.read_csv(tmp_path / "data.csv"))
    assert fit.theta["s"] < 0.2
    assert np.allclose(fit.unknown["?"].at([2.0, 5.0])["value"], [0.74, 1.95], atol=0.3)


def test_a_function_that_falls_to_zero_is_found_within_its_band():
    t = np.linspace(0, 8, 40)
    x = od.simulate(od.Model.from_text("x' = 3/(1 + (x/4)^10) - 0.2*x"), {}, [0.2], t)
    data = od.Data(t, np.asarray(x)[:, 0] + 0.1 * np.random.default_rng(1).normal(size=40), states=["x"])
    fit = od.fit(od.Model.from_text("x' = ?(x) - 0.2*x; ?(x) decreasing >= 0"), data)
    at = np.linspace(0.3, 4.7, 23)
    found, truth = fit.unknown["?"].at(at), 3 / (1 + (at / 4) ** 10)
    assert (np.diff(found["value"]) <= 1e-12).all()
    assert (found["low"] >= 0).all()
    assert np.mean((found["low"] <= truth) & (truth <= found["high"])) > 0.85


def test_functions_with_laplace_noise_are_warned_of(data, monkeypatch):
    model = od.Model.from_text("x' = -0.5*x + ?(t); x ~ laplace(x, s)")
    monkeypatch.setattr("odinfer.methods.unknown.with_chosen_scales", refuse)
    with pytest.warns(od.InputWarning, match="kinks"), pytest.raises(od.InputError, match="stopped"):
        od.fit(model, data)


def refuse(*_):
    raise od.InputError("stopped here")


def test_the_band_is_wider_by_what_the_basis_leaves_out():
    few = od.Model.from_text("x' = ?(t); ?(t) from 0 to 1; ?(t) ~ gp(2, 0.1); ?(t) basis 6").declarations.unknown[0]
    many = od.Model.from_text("x' = ?(t); ?(t) from 0 to 1; ?(t) ~ gp(2, 0.1); ?(t) basis 60").declarations.unknown[0]
    assert len(few.coefficients) == 6
    assert 0.4 < few.unresolved_variance < 1.6
    assert many.unresolved_variance < 0.01


def test_few_observations_have_fewer_basis_functions():
    t = np.linspace(0, 1, 60)
    for count, functions in ((10, 12), (60, 20)):
        problem = od.Problem(od.Model.from_text("x' = ?(t)"), od.Data(t[:count], t[:count], states=["x"]))
        assert len(problem.model.declarations.unknown[0].coefficients) == functions
