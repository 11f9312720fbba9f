"""Models whose conditions differ in one constant input."""

import numpy as np
import pandas as pd
import pytest

import odinfer as od


def test_a_dose_of_each_experiment_beside_local_parameters_is_fitted():
    rng, t, doses = np.random.default_rng(0), np.linspace(0.25, 8.0, 12), {"a": 4.0, "b": 6.0}
    rows = [
        (name, time, dose / 2.0 * np.exp(-0.5 * time + 0.03 * rng.normal()), dose)
        for name, dose in doses.items()
        for time in t
    ]
    table = pd.DataFrame(rows, columns=["experiment", "time", "conc", "dose"])
    text = "body' = -k*body; conc ~ lognormal(body/V); body(0) = dose; input dose; local k, V; log k, V"
    fit = od.fit(od.Model.from_text(text), od.read_csv(table, inputs=["dose"]))
    assert fit.theta["V[a]"] == pytest.approx(2.0, rel=0.1)
    assert fit.theta["k[b]"] == pytest.approx(0.5, rel=0.1)
