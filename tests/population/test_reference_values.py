"""Marginal likelihoods and estimates agree with values that were computed by other means."""

import math

import numpy as np
import pandas as pd
import pytest

import odinfer as od
from odinfer.apps.command.example import FOLDER

# Theophylline in 12 subjects (Boeckmann, Sheiner and Beal 1994), dose in mg/kg. Values by adaptive quadrature with 21
# nodes per dimension in an independent program, checked by importance sampling.
ESTIMATE = {
    "ka_pop": math.exp(0.45852056), "CL_pop": math.exp(-3.21823984), "V_pop": math.exp(-0.78186386),
    "omega_ka": 0.65798411, "omega_CL": 0.26564557, "omega_V": 0.13461698, "sigma conc": 0.69152809,
}  # fmt: skip
STANDARD_ERRORS = {"ka_pop": 0.198869, "CL_pop": 0.084226, "V_pop": 0.045901}  # of logarithms

# Ten subjects with two observations each (Wang 2007, J Pharmacokinet Pharmacodyn 34:575).
WANG = [10.68, 3.6837, 10.402, 6.454, 9.8814, 5.8565, 9.3408, 5.6209, 10.082, 6.7583, 9.8938, 6.5049, 9.8908, 6.9557,
        10.234, 6.4488, 9.9882, 6.7112, 9.6736, 6.6402]  # fmt: skip

ORAL = """
gut' = -ka*gut
body' = ka*gut - CL/V*body
gut(0) = 0
body(0) = 0
ka ~ lognormal(ka_pop, omega_ka) by subject
CL ~ lognormal(CL_pop, omega_CL) by subject
V ~ lognormal(V_pop, omega_V) by subject
"""


def theophylline(statements: str = "conc ~ normal(body/V)") -> od.Problem:
    return od.Problem(od.Model.from_text(ORAL + statements), od.read_csv(FOLDER / "theophylline.csv", states=["conc"]))


def wang(noise: str) -> od.Problem:
    table = pd.DataFrame({"subject": np.repeat(np.arange(10), 2), "time": [0.0, 1.0] * 10, "y": WANG})
    text = f"x' = -ke*x; x(0) = 10; ke ~ lognormal(ke_pop, omega) by subject; y ~ normal(x, {noise})"
    return od.Problem(od.Model.from_text(text), od.read_csv(table, states=["y"]))


def test_likelihoods_of_theophylline_agree_with_an_independent_program():
    problem = theophylline()
    assert od.loglik(problem, ESTIMATE) == pytest.approx(-179.95006, abs=2e-3)
    assert od.loglik(problem, ESTIMATE, approximation="focei") == pytest.approx(-179.30256, abs=1e-4)
    assert od.loglik(problem, ESTIMATE, approximation="laplace") == pytest.approx(-180.15427, abs=1e-4)


def test_estimates_of_theophylline_and_their_errors_agree_with_an_independent_program():
    fit = od.fit(theophylline())
    assert fit.converged
    assert fit.loglik == pytest.approx(-179.95006, abs=2e-3)
    assert fit.loglik_error < 5e-3
    for name, se in STANDARD_ERRORS.items():
        assert math.log(fit.theta[name] / ESTIMATE[name]) == pytest.approx(0.0, abs=0.02 * se)
        assert fit.standard_errors[name] / fit.theta[name] == pytest.approx(se, rel=0.01)
    for name in ("omega_ka", "omega_CL", "omega_V", "sigma conc"):
        assert fit.theta[name] == pytest.approx(ESTIMATE[name], rel=0.005)
    assert fit.ofv == pytest.approx(117.30034, abs=5e-3)


@pytest.mark.parametrize(
    ("statements", "loglik"),
    [
        ("conc ~ normal(body/V)\ncorrelated all", -173.8705),
        ("conc ~ normal(body/V, a + b*body/V)\nlog a, b", -170.890),
        pytest.param("conc ~ normal(body/V, sqrt(a^2 + (b*body/V)^2))\nlog a, b", -173.439, marks=pytest.mark.slow),
    ],
)
def test_other_models_of_theophylline_reach_their_reference_likelihoods(statements, loglik):
    assert od.fit(theophylline(statements)).loglik == pytest.approx(loglik, abs=5e-3)


@pytest.mark.slow
def test_twenty_seeds_lead_to_the_same_maximum():
    problem = theophylline()
    found = [od.fit(problem, seed=seed).loglik for seed in range(20)]
    assert np.ptp(found) < 1e-3


@pytest.mark.parametrize(
    ("noise", "exact", "focei"), [("sqrt(0.1)*x", 39.3548, 39.458), ("sqrt(0.1)", -1.9896, -2.059)]
)
def test_the_example_of_wang_has_its_exact_likelihood_and_that_of_nonmem(noise, exact, focei):
    problem, values = wang(noise), {"ke_pop": 0.5, "omega": 0.2}
    constant = 20 * math.log(2 * math.pi)
    assert -2 * od.loglik(problem, values) - constant == pytest.approx(exact, abs=1e-3)
    assert -2 * od.loglik(problem, values, approximation="focei") - constant == pytest.approx(focei, abs=1e-3)


def test_an_approximation_is_refused_where_nothing_varies_and_when_it_is_unknown():
    data = od.Data([0, 1, 2, 3], [3.0, 1.9, 1.1, 0.7], states=["x"])
    plain = od.Problem(od.Model.from_text("x' = -k*x"), data)
    with pytest.raises(od.InputError, match="random effects"):
        od.loglik(plain, {"k": 0.5, "x(0)": 3.0}, approximation="focei")
    with pytest.raises(od.InputError, match="approximation"):
        od.loglik(wang("0.3"), {"ke_pop": 0.5, "omega": 0.2}, approximation="saem")


def by_dense_integration(ke: float, omega: float, sd: float) -> float:
    """The likelihood of Wang's example by the trapezoidal rule over 20,001 points of the random effect."""
    eta = np.linspace(-8 * omega, 8 * omega, 20_001)
    total = 0.0
    for first, second in zip(WANG[::2], WANG[1::2], strict=True):
        f = 10 * np.exp(-ke * np.exp(eta))
        log = -0.5 * (((first - 10) / sd) ** 2 + ((second - f) / sd) ** 2) - 2 * np.log(sd) - np.log(2 * np.pi)
        log = log - 0.5 * (eta / omega) ** 2 - np.log(omega) - 0.5 * np.log(2 * np.pi)
        total += np.log(np.trapezoid(np.exp(log), eta))
    return total


@pytest.mark.parametrize(("ke", "omega", "sd"), [(0.5, 0.2, 0.3), (0.3, 1.5, 0.1), (1.0, 0.05, 2.0)])
def test_the_marginal_likelihood_is_the_integral(ke, omega, sd):
    found = od.loglik(wang(str(sd)), {"ke_pop": ke, "omega": omega})
    assert found == pytest.approx(by_dense_integration(ke, omega, sd), abs=2e-3)
