"""Forecasts of a decay keep their relative accuracy as far as it is followed."""

import numpy as np
import pytest

import odinfer as od


@pytest.fixture(scope="module")
def decay():
    t = np.linspace(0.0, 5.0, 6)
    y = 3.0 * np.exp(-0.47 * t) + 0.05 * np.random.default_rng(0).normal(size=len(t))
    return od.fit(od.Model.from_text("x' = -k*x", name="decay"), od.Data(t, y, states=["x"]))


@pytest.mark.parametrize("t", [10.0, 50.0, 100.0, 500.0])
def test_the_forecast_of_a_decay_is_exact_and_its_band_is_that_of_the_rate(decay, t):
    start = float(decay.predict([0.0])["x"].iloc[0])
    (x,), (low,), (high,) = (decay.forecast([t])[name] for name in ("x", "x_low", "x_high"))
    assert x == pytest.approx(start * np.exp(-decay.theta["k"] * t), rel=1e-5)
    slow, fast = decay.uncertainty.interval()["k"]
    # The uncertainty of k alone nearly determines the band far from the data.
    assert np.log(high / x) == pytest.approx((decay.theta["k"] - slow) * t, rel=0.2)
    assert np.log(x / low) == pytest.approx((fast - decay.theta["k"]) * t, rel=0.2)


def test_an_oscillation_that_passes_zero_keeps_a_symmetric_band():
    model = od.Model.from_text("x' = y; y' = -k*x", name="spring")
    t = np.linspace(0.0, 6.0, 25)
    clean = np.stack([np.cos(t), -np.sin(t)], -1)
    fit = od.fit(model, od.Data(t, clean + 0.02 * np.random.default_rng(0).normal(size=clean.shape), ["x", "y"]))
    zero = np.arctan2(fit.predict([0.0])["x"].iloc[0], 0.0) + 2.0 * np.pi
    table = fit.forecast(np.linspace(zero - 0.2, zero + 0.2, 9))
    assert (table["x_low"] < 0.0).any()
    assert ((table["x_high"] - table["x_low"]) > 0.01).all()
