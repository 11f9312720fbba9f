"""Pictures: drawn for every fit however odd, without pyplot, and with what they promise on them."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from fits import ODD, hidden, make_fit
from odinfer.result.figures import gamma_figure, gradients_figure, pictured, residuals_figure, states_figure
from odinfer.style.drawing import png

FIGURES = [states_figure, gradients_figure, residuals_figure, gamma_figure]


def words(figure) -> list[str]:
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@pytest.mark.parametrize("draw", FIGURES)
@pytest.mark.parametrize("name", list(ODD))
def test_every_picture_of_every_fit_is_drawn_or_said_to_be_absent(draw, name):
    fit = ODD[name]
    figure = draw(fit)
    if figure is None:
        assert draw is gamma_figure or draw is gradients_figure
        assert not fit.gamma or not any(e.gradients for e in fit.experiments.values())
        return
    image = png(figure, dpi=40)
    assert image.startswith(b"\x89PNG")
    pixels = np.asarray(figure.canvas.buffer_rgba())
    assert len(np.unique(pixels.reshape(-1, 4), axis=0)) > 10  # not blank


@pytest.mark.parametrize("draw", FIGURES)
def test_a_panel_shows_finite_limits_and_all_of_its_text_is_on_the_picture(draw):
    figure = draw(make_fit(tuple("ABCDEF"), contradicting=("C",)))
    png(figure, dpi=100)  # the figure's own, to which it returns afterwards
    inside = figure.bbox
    for ax in figure.axes:
        assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()
        for text in (ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title, *ax.get_yticklabels()):
            if text.get_text() and text.get_visible() and ax.axison:
                box = text.get_window_extent()
                assert box.x0 >= inside.x0
                assert box.x1 <= inside.x1
                assert box.y1 <= inside.y1


def test_state_names_time_verdicts_and_gamma_are_written():
    fit = make_fit(contradicting=("prey",))
    for draw in (states_figure, residuals_figure):
        assert {"prey", "predator", "time"} <= set(words(draw(fit)))
    assert {"contradicts the data, γ = 3", "consistent, γ = 1e-6"} <= set(words(gradients_figure(fit)))
    assert {"prey", "predator", "3  contradicts the data", "1e-6  consistent"} <= set(words(gamma_figure(fit)))


def test_experiments_are_told_apart_by_colour_with_a_legend():
    figure = states_figure(make_fit(experiments=("control", "_dose", "$2$")))
    assert {"control", "_dose", "$2$"} <= set(words(figure))
    assert len({line.get_color() for line in figure.axes[0].lines}) == 3


def test_names_are_never_read_as_mathematics():
    fit = make_fit(("$x", "$\\frac$"), experiments=("$\\bad{$", "b$"))
    for draw in FIGURES:
        png(draw(fit), dpi=40)


def test_many_states_are_cut_with_a_note_and_the_contradicting_ones_come_first():
    for draw in FIGURES:
        found = words(draw(ODD["forty states"]))
        assert "24 of 40 states shown" in found
        assert any("x33" in word for word in found)


def test_a_band_does_not_flatten_the_lines():
    fit = make_fit()
    e = fit.experiments["1"]
    wide = replace(e, curve=replace(e.curve, sd=1e6 * np.ones_like(e.curve.sd)))
    ax = states_figure(replace(fit, experiments={"1": wide})).axes[0]
    assert np.diff(ax.get_ylim()) < 4 * np.ptp(np.append(e.curve.x[:, 0], e.y[:, 0]))


def test_constant_and_extreme_data_are_drawn():
    fit = make_fit()
    e = fit.experiments["1"]
    for level in (0.0, 1e-300, 1e200):
        x = np.full_like(e.curve.x, level)
        flat = replace(e, y=np.full_like(e.y, level), curve=replace(e.curve, x=x, slope=0 * x, sd=0 * x))
        odd = replace(fit, experiments={"1": flat})
        for draw in (states_figure, residuals_figure):
            png(draw(odd), dpi=40)


@pytest.mark.parametrize("values", [(0.0, np.nan), (np.inf, 1e-6), (1e-30, 1e30), (np.nan, np.nan)])
def test_gamma_of_any_size_is_drawn(values):
    fit = make_fit()
    gamma = dict(zip(fit.state_names, values, strict=True))
    png(gamma_figure(replace(fit, gamma=gamma, verdicts={})), dpi=40)


def test_equal_fits_give_equal_files():
    assert png(states_figure(make_fit())) == png(states_figure(make_fit()))


def test_fit_plot_writes_a_picture(tmp_path):
    make_fit().plot(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_pyplot_is_never_loaded_nor_matplotlib_on_import():
    code = (
        "import sys; sys.path.insert(0, 'tests'); from fits import make_fit\n"
        "from odinfer.result import report; from odinfer.style.drawing import png\n"
        "assert 'matplotlib' not in sys.modules\n"
        "for name in ('states', 'gradients', 'residuals', 'gamma'): png(report._FIGURES[name](make_fit()), 40)\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=__file__.rpartition("tests")[0])


def test_hidden_states_have_panels_without_data_and_other_columns_panels_of_their_own():
    fit = hidden()
    panels = {panel.name: panel for panel in pictured(fit)}
    assert list(panels) == ["S (hidden)", "I", "cases", "load"]
    assert {name: panel.logarithmic for name, panel in panels.items() if panel.logarithmic} == {"load": True}
    assert not any(np.isfinite(r.y).any() for r in panels["S (hidden)"].traces)
    for r, e in zip(panels["cases"].traces, fit.experiments.values(), strict=True):
        np.testing.assert_array_equal(r.y, e.y[:, 1])
        np.testing.assert_array_equal(r.centre, e.expected[:, 1])
    assert [ax.get_yscale() for ax in states_figure(fit).axes] == ["linear"] * 3 + ["log"]


def test_values_beyond_a_limit_are_triangles_and_no_dots():
    ax = states_figure(hidden()).axes[1]
    marks = [(line.get_marker(), int(np.isfinite(line.get_ydata()).sum())) for line in ax.lines]
    assert marks.count(("v", 2)) == marks.count(("^", 1)) == 2
    assert [n for marker, n in marks if marker == "o"] == [17, 17]
    assert {"below this limit", "above this limit"} <= set(words(states_figure(hidden())))
    assert "below this limit" not in words(states_figure(make_fit()))


def test_a_column_of_a_state_s_name_that_is_something_else_is_drawn_apart():
    fit = hidden()
    doubled = {name: replace(e, fitted=2 * e.fitted, expected=2 * e.expected) for name, e in fit.experiments.items()}
    assert [p.name for p in pictured(replace(fit, experiments=doubled))][:3] == ["S (hidden)", "I", "I (observed)"]


def test_residuals_of_columns_are_standardised_and_have_a_panel_each():
    figure = residuals_figure(hidden())
    assert {"I", "cases", "load", "± 2", "standard normal"} <= set(words(figure))
    dots = figure.axes[0].lines[0].get_ydata()
    np.testing.assert_array_equal(dots, hidden().experiments["one"].scores[:, 0])
