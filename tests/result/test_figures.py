"""Pictures: drawn for every fit however odd, without pyplot, and with what they promise on them."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from fits import ODD, make_fit
from odinfer.result.figures import gamma_figure, gradients_figure, residuals_figure, states_figure
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
