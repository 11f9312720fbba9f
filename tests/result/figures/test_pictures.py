"""Pictures of inputs, phases, residuals, slopes and chains: what is drawn and what is written beside it."""

from dataclasses import replace

import numpy as np
from matplotlib.text import Text

import odinfer as od
from fits import ODD, hidden, make_fit, refuted, uncertain
from odinfer.result.figures.inputs import inputs_picture
from odinfer.result.figures.phase import phase_picture
from odinfer.result.figures.residuals import predicted_picture, quantiles_picture, residuals_picture
from odinfer.result.figures.samples import ranks_picture, traces_picture
from odinfer.result.figures.slopes import slopes_picture
from odinfer.style.drawing import svg
from odinfer.style.picture import combined_figure, panel_figure


def test_inputs_and_events_are_drawn_as_long_as_the_fit_has_its_problem():
    t = np.linspace(0.5, 4.0, 8)
    data = od.Data(t, np.exp(-0.5 * t)[:, None], ["x"], inputs={"u": (t, np.sin(t))})
    model = od.Model.from_text("input u\nx' = -k*x + u\nat 1, 2: x = x + 1\nx(0) = 1")
    fit = make_fit(("x",), ("k",), problem=od.Problem(model, data))
    picture = inputs_picture(fit)
    assert [plot.name for plot in picture.plots] == ["u", "doses and events"]
    assert picture.plots[1].alt == "doses and events at times 1, 2"
    assert picture.plots[0].alt.startswith("u: a known input between ")
    for plot in picture.plots:
        assert svg(panel_figure(plot)).startswith(b"<svg")
    assert inputs_picture(make_fit()) is None


def test_an_input_with_one_value_is_no_picture():
    t = np.linspace(0.5, 4.0, 8)
    data = od.Data(t, np.exp(-0.5 * t)[:, None], ["x"], inputs={"u": ([0.0], [2.0])})
    fit = make_fit(("x",), ("k",), problem=od.Problem(od.Model.from_text("input u\nx' = -k*x + u"), data))
    assert inputs_picture(fit) is None


def test_two_states_have_a_phase_portrait_and_others_none():
    picture = phase_picture(refuted())
    assert len(panel_figure(picture.plots[0]).axes[0].lines) == 4
    assert picture.plots[0].alt == "predator against prey: the path of the estimated states"
    assert phase_picture(ODD["one state"]) is None
    assert phase_picture(ODD["six states"]) is None
    assert phase_picture(ODD["failed"]) is None


def words(figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text)}


def dots(plot):
    (line,) = (line for line in panel_figure(plot).axes[0].lines if line.get_marker() == "o")
    return line.get_xydata()


def test_residuals_of_columns_are_standardised_and_have_a_panel_each():
    figure = combined_figure(residuals_picture(hidden()))
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


def test_every_chain_has_its_line_and_every_parameter_its_panel():
    picture = traces_picture(uncertain())
    assert [plot.name for plot in picture.plots] == ["a", "b", "c"]
    lines = panel_figure(picture.plots[0]).axes[0].lines
    assert len(lines) == len({line.get_color() for line in lines}) == 4
    np.testing.assert_array_equal(lines[1].get_ydata(), uncertain().sampled.theta["a"][1])
    assert picture.plots[0].alt == "a: draws in their order of 4 chains, R-hat 1.010"
    assert [words for words, _ in picture.groups] == ["chain 1", "chain 2", "chain 3", "chain 4"]


def test_ranks_count_every_draw_of_a_chain_once():
    ax = panel_figure(ranks_picture(uncertain()).plots[0]).axes[0]
    for patch in ax.patches:
        values, edges = patch.get_data()[:2]
        assert values.sum() == 25
        assert (edges[0], edges[-1]) == (0, 100)


def test_a_method_that_samples_has_them_too_and_a_fit_without_draws_has_none():
    fit = make_fit(samples={"a": np.random.default_rng(0).normal(size=(2, 50))}, details={"r_hat": {"a": 1.2}})
    assert traces_picture(fit).plots[0].title == "R-hat 1.200"
    assert traces_picture(make_fit()) is ranks_picture(make_fit()) is None


def test_verdicts_and_gamma_are_written():
    fit = make_fit(contradicting=("prey",))
    assert {"contradicts the data, γ = 3", "consistent, γ = 1e-6"} <= words(combined_figure(slopes_picture(fit)))


def test_the_words_say_how_far_slopes_are_apart():
    alt = slopes_picture(make_fit(contradicting=("prey",))).plots[0].alt
    assert alt.startswith("slope of prey by its equation and by the data, up to ")
    assert alt.endswith("apart: contradicts the data")


def test_a_fit_without_gradients_has_no_picture_of_slopes():
    assert slopes_picture(ODD["no gradients"]) is None
