"""States that start many orders of magnitude below their largest value keep their relative accuracy."""

import numpy as np
import pytest

import odinfer as od

# NIST StRD, Eckerle4: a Gaussian peak, posed as the differential equation that it solves.
PEAK = od.Model.from_text(
    "y' = -(t - b3)/b2^2*y; y(t0) = b1/b2*exp(-0.5*((400 - b3)/b2)^2); log b1, b2; 400 < b3 < 500", name="peak"
)
CERTIFIED = {"b1": 1.5543827178, "b2": 4.0888321754, "b3": 451.54121844}
WAVELENGTH = np.concatenate([np.arange(400.0, 436.0, 5.0), np.arange(436.5, 466.0, 1.5), np.arange(470.0, 501.0, 5.0)])
TRANSMITTANCE = np.array([
    0.0001575, 0.0001699, 0.000235, 0.0003102, 0.0004917, 0.000871, 0.0017418, 0.00464, 0.0065895, 0.0097302, 0.0149002,
    0.023731, 0.0401683, 0.0712559, 0.1264458, 0.2073413, 0.2902366, 0.3445623, 0.3698049, 0.3668534, 0.3106727,
    0.2078154, 0.1164354, 0.0616764, 0.03372, 0.0194023, 0.0117831, 0.0074357, 0.0022732, 0.00088, 0.0004579, 0.0002345,
    0.0001586, 0.0001143, 7.1e-05,
])  # fmt: skip


def peak():
    return od.Problem(PEAK, od.Data(WAVELENGTH, TRANSMITTANCE, states=["y"]))


def test_the_likelihood_of_a_peak_that_starts_at_1e_minus_35_is_exact():
    assert od.loglik(peak(), CERTIFIED) == pytest.approx(126.77586, abs=1e-4)


def test_a_peak_that_starts_at_1e_minus_35_is_fitted_to_six_digits():
    fit = od.fit(peak())
    assert fit.converged
    for name, value in CERTIFIED.items():
        assert fit.theta[name] == pytest.approx(value, rel=1e-6)
    assert fit.details["loglik"] == pytest.approx(126.77586, abs=1e-3)


def test_an_epidemic_that_starts_from_one_in_1e12_is_simulated_to_1e_minus_4():
    model = od.Model.from_text("S' = -b*S*I; I' = b*S*I - g*I", name="epidemic")
    t = np.linspace(0.0, 60.0, 61)
    x = od.simulate(model, {"b": 1.0, "g": 0.2}, [1.0, 1e-12], t)
    # S + I - (g/b) log S does not change along any solution.
    constant = x[:, 0] + x[:, 1] - 0.2 * np.log(x[:, 0])
    np.testing.assert_allclose(constant, 1.0, rtol=1e-8)
    np.testing.assert_allclose(x[:20, 1], 1e-12 * np.exp(0.8 * t[:20]), rtol=1e-4)
