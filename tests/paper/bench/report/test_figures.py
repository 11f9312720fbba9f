"""Figures show the numbers of the records, draw what is infinite as such, and are absent where nothing was run."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from odinfer.paper.bench.report import figures
from odinfer.paper.bench.report.results import outcome_entry, outcome_values, quartiles
from odinfer.paper.bench.report.tables import scalings
from odinfer.style.drawing import BAD, GOOD, png
from paper.bench.report.invented import emptied

SETTING = "LV, σ = 0.1"


def titles(figure) -> list[str]:
    return [ax.get_title(loc="left") for ax in figure.axes]


def panel(figure, title):
    return next(ax for ax in figure.axes if ax.get_title(loc="left") == title)


def test_every_figure_belongs_to_an_item_and_is_absent_before_the_first_result(results):
    drawn = figures.all_figures(results)
    assert {name[:2] for name in drawn} == {f"{i}_" for i in range(1, 9)}
    assert len([name for name in drawn if name.startswith("3_")]) == len(results.settings())
    assert all(draw() is None for draw in figures.all_figures(emptied(results)).values())


def test_a_box_has_the_quartiles_and_whiskers_of_its_sample():
    _, axes = figures.panel_grid(1, 1)
    ax, sample = axes[0, 0], np.random.default_rng(0).lognormal(size=50)
    figures.draw_boxes(ax, [sample], ["one"])
    low, median, high, _ = quartiles(sample)
    (bar,) = ax.patches
    assert (bar.get_y(), bar.get_y() + bar.get_height()) == pytest.approx((low, high))
    whisker, middle = (line.get_segments()[0] for line in ax.collections)
    assert whisker[:, 1] == pytest.approx(np.quantile(sample, (0.05, 0.95)))
    assert middle[:, 1] == pytest.approx([median] * 2)


def test_a_median_that_is_infinite_is_written_and_a_sample_without_numbers_is_left_out():
    figure, axes = figures.panel_grid(1, 1)
    ax = axes[0, 0]
    samples = [np.array([1.0, np.inf, np.inf]), np.array([]), np.array([-1.0]), np.array([1.0, 2.0, 3.0, np.inf])]
    figures.draw_boxes(ax, samples, list("abcd"))
    assert [(text.get_text(), text.xy[0]) for text in ax.texts] == [("∞", 0)]
    assert not ax.patches
    png(figure, dpi=40)


def test_few_points_are_drawn_as_points_and_make_no_box():
    _, axes = figures.panel_grid(1, 1)
    figures.draw_boxes(axes[0, 0], [np.array([1.0, 2.0]), np.arange(1.0, 9.0)], ["two", "eight"])
    np.testing.assert_array_equal(axes[0, 0].collections[0].get_offsets(), [[0.0, 1.0], [0.0, 2.0]])
    assert len(axes[0, 0].patches) == 1


def test_errors_have_a_panel_per_setting_with_the_limit_as_a_line(results):
    figure = figures.error_figure(results, "compared", "trmse_paper", "error")
    assert sorted(titles(figure)) == sorted(results.settings())
    ax = panel(figure, SETTING)
    limit = quartiles(outcome_values(results.at(SETTING, "limit"), outcome_entry("trmse_paper")))[1]
    dashed = [line for line in ax.lines if line.get_linestyle() != "-"]
    assert [line.get_ydata()[0] for line in dashed] == pytest.approx([limit])
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == ["AGM", "FGPGM", "RKG3", "ODIN (paper)", "ODIN, default"]


def test_errors_of_states_have_a_panel_per_state_and_setting(results):
    figure = figures.statewise_figure(results, "lotka_volterra")
    assert titles(figure) == [f"LV, σ = {noise}: {state}" for noise in (0.1, 0.5) for state in ("prey", "predator")]
    assert figures.statewise_figure(results, "lorenz96_10") is None


def test_trajectories_show_the_truth_and_never_leave_its_surroundings(results):
    figure = figures.trajectory_figure(results, SETTING)
    assert len(figure.axes) == 2 * len(results.methods("compared"))
    for ax in figure.axes[: len(results.methods("compared"))]:
        truth, median = (line.get_ydata() for line in ax.lines)
        assert median.min() >= truth.min() - 0.61 * np.ptp(truth)
        assert median.max() <= truth.max() + 0.61 * np.ptp(truth)


def test_seconds_of_ours_are_dots_and_the_papers_diamonds(results):
    (ax,) = figures.seconds_figure(results).axes
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["AGM"].get_ydata() == pytest.approx([100.0] * 6)
    assert (lines["AGM"].get_marker(), lines["AGM, in the paper"].get_marker()) == ("o", "D")
    assert lines["AGM, in the paper"].get_ydata()[0] == 4548.0
    assert "limit, in the paper" not in lines


def test_parameters_have_the_truth_as_a_line(results):
    figure = figures.parameter_figure(results)
    ax = panel(figure, "k6: PT, σ = 0.01")
    assert [line.get_ydata()[0] for line in ax.lines] == [0.3]


def test_marginals_are_histograms_with_the_gaussian_of_their_moments(results):
    figure = figures.marginal_figure(results)
    ax = panel(figure, "d: LV, σ = 0.1\nFGPGM")
    (line,) = ax.lines
    t, density = line.get_data()
    np.testing.assert_allclose(density, np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi))
    assert len(ax.patches) == 30


def test_gamma_is_red_where_the_equation_is_wrong_and_the_limit_of_verdicts_is_drawn(results):
    ax = figures.gamma_figure(results).axes[0]
    colours = {to_hex(line.get_color()).upper() for line in ax.lines if line.get_marker() == "."}
    assert colours == {GOOD.upper(), BAD.upper()}
    for line in ax.lines:
        if line.get_marker() == ".":
            wrong = to_hex(line.get_color()).upper() == BAD.upper()
            assert set(line.get_ydata()) == {2.0 if wrong else 1e-6}
    assert [0.1, 0.1] in [list(line.get_ydata()) for line in ax.lines]


def test_run_times_over_sizes_are_drawn_twice_with_a_line_and_with_a_power_law(results):
    line, power = figures.scaling_figure(results).axes
    assert (line.get_xscale(), power.get_xscale(), power.get_yscale()) == ("linear", "log", "log")
    for ax in (line, power):
        dots = next(v for v in ax.lines if v.get_marker() == "o")
        np.testing.assert_allclose(dots.get_ydata(), next(iter(scalings(results).values())).mean)
