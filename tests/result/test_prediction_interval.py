"""Where new observations are expected: about the curve, as wide as its error and the noise together."""

import numpy as np

from fits import make_fit
from odinfer.result.prediction_interval import new_observations


def test_bands_hold_error_and_noise_and_widen_with_the_level():
    fit = make_fit()
    e = fit.experiments["1"]
    t = np.linspace(e.t[0], e.t[-1], 7)
    x, _, sd = e.curve.at(t)
    mean, low, high = new_observations(fit, "1", t, None)
    np.testing.assert_array_equal(mean, x)
    sigma = np.array([fit.sigma[name] for name in fit.state_names])
    np.testing.assert_allclose(high - low, 2 * 1.959963984540054 * np.sqrt(sd**2 + sigma**2), rtol=1e-9)
    np.testing.assert_allclose(high + low, 2 * x, rtol=1e-9, atol=1e-12)
    wide = new_observations(fit, "1", t, None, level=0.99)
    assert (wide[1] < low).all()
    assert (wide[2] > high).all()


def test_tables_of_predictions_have_the_same_numbers():
    fit = make_fit()
    t = fit.experiments["1"].t
    table = fit.predict(t, observed=True).to_numpy()
    for k, values in enumerate(new_observations(fit, "1", t, None)):
        np.testing.assert_array_equal(table[:, k::3], values)
