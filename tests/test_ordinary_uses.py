"""Ordinary problems that are easy to get silently wrong: tiny initial values, few data, wrong signs, nothing to fit."""

import numpy as np
import pytest

import odinfer as od

LOGISTIC = od.Model.from_text("x' = r*x*(1 - x/K)", name="logistic")


def logistic(x0, t):
    return 1.0 / (1.0 + (1.0 / x0 - 1.0) * np.exp(-t))


@pytest.mark.parametrize("x0", [1e-8, 1e-12, 1e-20, 1e-35])
def test_growth_from_a_tiny_initial_value_is_simulated_to_seven_digits(x0):
    t = np.linspace(0.0, -1.5 * np.log(x0), 40)
    x = od.simulate(LOGISTIC, {"r": 1.0, "K": 1.0}, [x0], t)[:, 0]
    np.testing.assert_allclose(x, logistic(x0, t), rtol=1e-6)


@pytest.mark.parametrize("x0", [1e-12, 1e-16, 1e-20])
def test_the_log_likelihood_of_growth_from_a_tiny_initial_value_is_exact(x0):
    t = np.linspace(0.0, -1.5 * np.log(x0), 40)
    y = logistic(x0, t) + 0.01 * np.random.default_rng(0).normal(size=len(t))
    problem = od.Problem(LOGISTIC, od.Data(t, y, states=["x"]))
    exact = (-0.5 * ((y - logistic(x0, t)) / 0.01) ** 2 - np.log(0.01 * np.sqrt(2.0 * np.pi))).sum()
    found = od.loglik(problem, {"r": 1.0, "K": 1.0, "x(0)": x0, "sigma x": 0.01})
    assert found == pytest.approx(exact, abs=1e-4)


def test_a_state_that_starts_at_zero_beside_a_tiny_one_is_simulated_as_accurately():
    model = od.Model.from_text("x' = x; y' = x", name="chain")
    t = np.linspace(0.0, 40.0, 9)
    x = od.simulate(model, {}, {"x": 1e-17, "y": 0.0}, t)
    np.testing.assert_allclose(x[1:, 1], 1e-17 * np.expm1(t[1:]), rtol=1e-6)


def decay(t):
    return od.Data(t, 3.0 * np.exp(-0.7 * t) + 0.02 * np.random.default_rng(1).normal(size=len(t)), states=["x"])


DECAY = od.Model.from_text("x' = -k*x", name="decay")


def test_a_method_can_be_given_by_name():
    data = decay(np.linspace(0.0, 3.0, 12))
    assert od.fit(DECAY, data, method="trajectory").method == "trajectory"
    assert od.fit(DECAY, data, method="odin").theta == od.fit(DECAY, data).theta
    with pytest.raises(od.InputError, match="unknown method 'odn'; did you mean 'odin'"):
        od.fit(DECAY, data, method="odn")


def test_a_model_without_free_parameters_that_does_not_follow_the_data_is_contradicted_by_them():
    t = np.linspace(0.0, 3.0, 12)
    data = od.Data(t, 2.0 + 0.5 * t + 0.05 * np.random.default_rng(1).normal(size=12), states=["x"])
    fit = od.fit(od.Problem(DECAY, data, fixed={"k": 3.0}))
    assert fit.verdicts == {"x": "contradicts the data"}


def test_an_equation_with_a_wrong_sign_ends_with_a_status_and_files(tmp_path):
    text = "a' = r*a*(1 - a/K) + c*a*d; d' = e*a*d - m*d; log r, K, c, e, m; a > 0; d > 0"
    right = od.Model.from_text(text.replace("+ c*a*d", "- c*a*d"), name="right")
    t = np.arange(0.0, 25.0)
    theta = {"r": 0.6, "K": 12.0, "c": 0.3, "e": 0.1, "m": 0.4}
    x = od.simulate(right, theta, [4.0, 1.1], t)
    y = x * np.exp(0.05 * np.random.default_rng(2).normal(size=x.shape))
    fit = od.fit(od.Model.from_text(text, name="wrong"), od.Data(t, y, states=["a", "d"]))
    assert fit.status
    fit.save(tmp_path / "fit.json")
    assert od.load(tmp_path / "fit.json").status == fit.status


def test_more_unknowns_than_observations_are_the_headline_and_no_verdict_is_given():
    data = od.Data(np.arange(4.0), [[1.0, 2.0], [1.5, 1.8], [2.5, 1.2], [2.2, 1.9]], states=["prey", "predator"])
    fit = od.fit(od.systems.lotka_volterra.model, data)
    heading = " ".join(fit.summary().splitlines()[:4])
    assert "Not determined: 8 observations for 8 unknowns" in heading
    assert "converged" not in heading
    assert set(fit.verdicts.values()) <= {"not judged"}
    assert "equations are consistent" not in fit.summary()
    assert fit.uncertainty is None
    assert "unknowns" in fit.warnings[0]


ABSORPTION = "gut' = -ka*gut; cen' = ka*gut - k*cen; gut(0) = 0; cen(0) = 0; DV ~ normal(cen)"


@pytest.mark.parametrize(
    "text", [ABSORPTION, f"input u; {ABSORPTION.replace('ka*gut;', 'ka*gut + u;', 1)}", "x' = r*x*(1 - x/K); x(0) = 0"]
)
def test_states_that_rest_at_zero_whatever_the_parameters_are_refused(text):
    model = od.Model.from_text(text)
    column = "DV" if "DV" in text else "x"
    inputs = {"u": ([0.0, 9.0], [0.0, 0.0])} if model.inputs else None
    data = od.Data(np.arange(1.0, 7.0), np.array([2.0, 1.5, 1.0, 0.8, 0.7, 0.6]), states=[column], inputs=inputs)
    with pytest.raises(od.InputError, match="every state starts at 0 and stays there"):
        od.fit(model, data)


def test_states_that_a_dose_moves_from_zero_are_fitted():
    t = np.arange(1.0, 9.0)
    y = 10.0 * 1.5 / 1.2 * (np.exp(-0.3 * t) - np.exp(-1.5 * t)) + 0.05 * np.random.default_rng(2).normal(size=8)
    fit = od.fit(od.Model.from_text(ABSORPTION), od.Data(t, y, states=["DV"], doses=[(0.0, 10.0, "gut")]))
    assert fit.converged


def test_limits_that_are_not_found_are_named_in_one_warning():
    t = np.linspace(0.0, 1.9, 20)
    y = np.stack([5.0 - 3.0 * t + 1.5 * t**2, 3.0 + 0.8 * t - 0.6 * t**2], 1)
    fit = od.fit(od.Model.from_text("x' = a*x - b*x*y; y' = -c*y + d*x*y"), od.Data(t, y, states=["x", "y"]))
    assert sum("could not be computed" in warning for warning in fit.warnings) <= 1


@pytest.mark.parametrize("text", ["x' = -k*x", "x' = -k*x; x ~ normal(x)"])
def test_bands_of_new_observations_from_few_data_are_those_of_student(text):
    fit = od.fit(od.Model.from_text(text), decay(np.linspace(0.0, 3.0, 8)))
    band = fit.predict([1.5], observed=True)
    half = 0.5 * float((band["x_high"] - band["x_low"]).iloc[0])
    assert half == pytest.approx(np.hypot(2.447 * fit.sigma["x"], 2.447 * 0.4 * fit.sigma["x"]), rel=0.06)
