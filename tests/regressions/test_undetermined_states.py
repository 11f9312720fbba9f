"""A hidden state that nothing observed depends on does not keep a model from being fitted."""

import numpy as np

import odinfer as od


def test_an_epidemic_model_is_fitted_to_the_infected_alone():
    model = od.Model.from_text("S' = -b*S*I; I' = b*S*I - g*I; R' = g*I", name="SIR")
    t = np.arange(0.0, 25.0)
    x = od.simulate(model, {"b": 0.002, "g": 0.4}, [700.0, 2.0, 0.0], t)
    data = od.Data(t, x[:, 1] + 5.0 * np.random.default_rng(0).normal(size=len(t)), states=["I"])
    bounds = {"b": (1e-4, 1e-1), "g": (1e-2, 1e1), "S": (100.0, 2000.0), "I": (0.01, 50.0)}
    fit = od.fit(od.Problem(model, data, bounds=bounds))
    assert fit.converged
    low, high = fit.uncertainty.interval()["g"]
    assert low < 0.4 < high
    (said,) = (warning for warning in fit.warnings if "not determined by the data" in warning)
    assert "R(0) = 0" in said
    curve = fit.experiments[next(iter(fit.experiments))].curve
    assert curve.x[0, 2] == 0.0
    assert curve.x[-1, 2] > 300.0
