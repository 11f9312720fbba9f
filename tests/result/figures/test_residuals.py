"""Pictures of residuals: over time, against predictions, against normal quantiles."""

from dataclasses import replace

import numpy as np
from matplotlib.text import Text

from fits import ODD, hidden, make_fit
from odinfer.result.figures.residuals import predicted_picture, quantiles_picture, residuals_picture
from odinfer.style.picture import alone, sheet


def words(figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text)}


def dots(plot):
    (line,) = (line for line in alone(plot).axes[0].lines if line.get_marker() == "o")
    return line.get_xydata()


def test_residuals_of_columns_are_standardised_and_have_a_panel_each():
    figure = sheet(residuals_picture(hidden()))
    assert {"I", "cases", "load", "± 2", "standard normal"} <= words(figure)
    found = figure.axes[0].lines[0].get_ydata()
    np.testing.assert_array_equal(found, hidden().experiments["one"].scores[:, 0])


def test_the_words_count_what_is_far_out():
    fit = make_fit()
    e = fit.experiments["1"]
    r = e.residuals[:, 0]
    beyond = int((np.abs(r) > 2 * fit.sigma["prey"]).sum())
    said = residuals_picture(fit).plots[0].alt
    assert said == f"prey: residuals over time within ±{np.abs(r).max():.2g}, {beyond} of 20 beyond ± 2 σ"


def test_observed_stands_against_predicted():
    fit = make_fit(missing=0.3)
    e = fit.experiments["1"]
    np.testing.assert_allclose(dots(predicted_picture(fit).plots[0]), np.stack([e.x[:, 0], e.y[:, 0]], -1))
    seen = int(np.isfinite(e.y[:, 0]).sum())
    assert (
        predicted_picture(fit).plots[0].alt.startswith(f"prey: {seen} observations against predictions, correlation 0.")
    )
    assert predicted_picture(ODD["failed"]) is None


def test_standardised_residuals_are_ordered_against_normal_quantiles():
    fit = make_fit()
    points = dots(quantiles_picture(fit).plots[0])
    r = np.sort(fit.experiments["1"].residuals[:, 0] / fit.sigma["prey"])
    np.testing.assert_allclose(points[:, 1], r)
    assert np.all(np.diff(points[:, 0]) > 0)
    np.testing.assert_allclose(points[:, 0], -points[::-1, 0], atol=1e-12)


def test_an_outlier_is_said_to_be_one():
    fit = make_fit()
    e = fit.experiments["1"]
    y = e.y.copy()
    y[3, 0] += 20 * fit.sigma["prey"]
    assert "none suspiciously far out" in quantiles_picture(fit).plots[0].alt
    far = replace(fit, experiments={"1": replace(e, y=y)})
    assert "1 beyond ± 3.5, where normal noise hardly ever is" in quantiles_picture(far).plots[0].alt
