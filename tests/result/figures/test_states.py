"""Pictures: drawn for every fit however odd, without pyplot, and with what they promise on them."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import odinfer as od
from fits import ODD, hidden, make_fit, refuted
from odinfer.result.figures.states import state_panels, states_figure, states_picture
from odinfer.result.report import PICTURES
from odinfer.style.drawing import BAD, STYLE, png
from odinfer.style.picture import SingleFigure, combined_figure, panel_figure

ALWAYS = ("states", "residuals")


def figure_of(name, fit):
    picture = PICTURES[name](fit)
    return (
        picture.figure if isinstance(picture, SingleFigure) else None if picture is None else combined_figure(picture)
    )


def words(figure) -> list[str]:
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@pytest.mark.parametrize("what", list(PICTURES))
@pytest.mark.parametrize("name", list(ODD))
def test_every_picture_of_every_fit_is_drawn_or_said_to_be_absent(what, name):
    figure = figure_of(what, ODD[name])
    if figure is None:
        assert what not in ALWAYS
        return
    image = png(figure, dpi=40)
    assert image.startswith(b"\x89PNG")
    pixels = np.asarray(figure.canvas.buffer_rgba())
    assert len(np.unique(pixels.reshape(-1, 4), axis=0)) > 10  # not blank


@pytest.mark.parametrize("what", ["states", "slopes", "residuals", "predicted", "quantiles"])
def test_a_panel_shows_finite_limits_and_all_of_its_text_is_on_the_picture(what):
    fit = make_fit(tuple("ABCDEF"), contradicting=("C",))
    for figure in (figure_of(what, fit), panel_figure(PICTURES[what](fit).plots[2])):
        png(figure, dpi=100)  # the figure's own, to which it returns afterwards
        inside = figure.bbox
        for ax in figure.axes:
            assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()
            low, high = ax.get_ylim()
            ticks = [text for text in ax.get_yticklabels() if low <= text.get_position()[1] <= high]
            for text in (ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title, *ticks):
                if text.get_text() and text.get_visible() and ax.axison:
                    box = text.get_window_extent()
                    assert box.x0 >= inside.x0
                    assert box.x1 <= inside.x1
                    assert box.y1 <= inside.y1


@pytest.mark.parametrize("name", list(ODD))
def test_every_panel_says_what_it_shows(name):
    for draw in PICTURES.values():
        picture = draw(ODD[name])
        for part in () if picture is None else [picture] if isinstance(picture, SingleFigure) else picture.plots:
            assert len(part.alt) > 10
            assert "nan" not in part.alt


def test_state_names_time_and_verdicts_are_written():
    fit = make_fit(contradicting=("prey",))
    for what in ALWAYS:
        assert {"prey", "predator", "time"} <= set(words(figure_of(what, fit)))
    said = {"its equation contradicts the data", "its equation is consistent"}
    assert said <= set(words(states_figure(fit)))
    assert not said & set(words(states_figure(ODD["infinite"])))


def test_a_refuted_model_is_drawn_by_its_own_best_trajectory_beside_the_compromise():
    figure = states_figure(refuted())
    assert {"ODIN's compromise", "the model's best trajectory"} <= set(words(figure))
    best = refuted().experiments["1"].best
    for k, ax in enumerate(figure.axes):
        dashed = [line for line in ax.lines if line.get_color() == BAD]
        assert len(dashed) == 1
        np.testing.assert_allclose(np.interp(best.t, *dashed[0].get_data()), best.x[:, k], atol=1e-3)
    assert not {"ODIN's compromise", "the model's best trajectory"} & set(words(states_figure(make_fit())))
    alt = states_picture(refuted()).plots[0].alt
    assert "the model's own best trajectory misses them by up to" in alt
    assert alt.endswith("its equation contradicts the data")


def test_the_trajectory_of_a_refuted_model_has_the_compromise_beside_it():
    fit = make_fit(contradicting=("prey",))
    figure = states_figure(fit)
    assert {"ODIN's compromise", "the model's best trajectory"} <= set(words(figure))
    for k, ax in enumerate(figure.axes):
        (dashed,) = (line for line in ax.lines if line.get_color() == STYLE["faint"])
        np.testing.assert_allclose(dashed.get_ydata(), fit.stages["odin"].x[0][:, k])
    assert "misses" not in states_picture(fit).plots[0].alt
    assert states_picture(fit).plots[0].live["beside"] == "ODIN's compromise"


def test_a_model_that_is_refuted_as_a_whole_says_so_in_every_panel_and_hidden_states_are_said_to_be():
    fit = hidden(details={"model_test": {"p": 0.01, "draws": 99}})
    against = "the model contradicts the data (p = 0.01)"
    for plot in states_picture(fit).plots:
        assert plot.title == (f"not observed; {against}" if "hidden" in plot.name else against)
    for plot in states_picture(hidden()).plots:
        assert plot.title == ("not observed: what the model implies" if "hidden" in plot.name else "")
        assert ("not observed" in plot.alt) == ("hidden" in plot.name)


def test_words_say_how_far_the_data_are_from_the_fit():
    fit = make_fit()
    e = fit.experiments["1"]
    size = np.abs(e.y[:, 0] - e.x[:, 0]).max()
    said = states_picture(fit).plots[0].alt
    assert said == f"prey: 20 observations and fit, residuals within ±{size:.2g}, its equation is consistent"


def test_between_the_dotted_lines_lie_new_observations():
    fit = make_fit()
    (trace,) = state_panels(fit)[0].traces
    expected = fit.predict(trace.t, observed=True)
    np.testing.assert_allclose(trace.low, expected["prey_low"], rtol=1e-9)
    np.testing.assert_allclose(trace.high, expected["prey_high"], rtol=1e-9)
    assert "95 % of new data" in words(states_figure(fit))
    assert "95 % of new data" not in words(states_figure(refuted()))


def test_of_many_experiments_each_has_panels_of_its_own_on_the_same_axis():
    panels = state_panels(ODD["nine experiments"])
    assert [panel.name for panel in panels[:2]] == ["prey, a", "prey, b"]
    assert len(panels) == 18
    axes = states_figure(ODD["nine experiments"]).axes
    assert len({ax.get_ylim() for ax in axes[:9]}) == 1
    assert len(state_panels(ODD["three experiments"])) == 2


def test_experiments_are_told_apart_by_colour_with_a_legend():
    figure = states_figure(make_fit(experiments=("control", "_dose", "$2$")))
    assert {"control", "_dose", "$2$"} <= set(words(figure))
    assert len({line.get_color() for line in figure.axes[0].lines}) == 3


def test_names_are_never_read_as_mathematics():
    fit = make_fit(("$x", "$\\frac$"), experiments=("$\\bad{$", "b$"))
    for what in PICTURES:
        if (figure := figure_of(what, fit)) is not None:
            png(figure, dpi=40)


def test_many_states_are_cut_with_a_note_and_the_contradicting_ones_come_first():
    for what in ("states", "slopes", "residuals", "predicted", "quantiles"):
        found = words(figure_of(what, ODD["forty states"]))
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
        for what in ALWAYS:
            png(figure_of(what, odd), dpi=40)


def test_equal_fits_give_equal_files():
    assert png(states_figure(make_fit())) == png(states_figure(make_fit()))


def test_fit_plot_writes_a_picture(tmp_path):
    make_fit().plot(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_pyplot_is_never_loaded_nor_matplotlib_on_import():
    code = (
        "import sys; sys.path.insert(0, 'tests'); from fits import make_fit\n"
        "from odinfer.result import report\n"
        "assert 'matplotlib' not in sys.modules\n"
        "report.html(make_fit())\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


def test_hidden_states_have_panels_without_data_and_other_columns_panels_of_their_own():
    fit = hidden()
    panels = {panel.name: panel for panel in state_panels(fit)}
    assert list(panels) == ["I", "cases", "load", "S (hidden)"]
    assert {name: panel.logarithmic for name, panel in panels.items() if panel.logarithmic} == {"load": True}
    assert not any(np.isfinite(r.y).any() for r in panels["S (hidden)"].traces)
    for r, e in zip(panels["cases"].traces, fit.experiments.values(), strict=True):
        np.testing.assert_array_equal(r.y, e.y[:, 1])
        np.testing.assert_allclose(np.interp(e.curve.t, r.t, r.centre), e.expected[:, 1], atol=0.02)
    assert [ax.get_yscale() for ax in states_figure(fit).axes] == ["linear", "linear", "log", "linear"]


def test_values_beyond_a_limit_are_triangles_and_no_dots():
    ax = states_figure(hidden()).axes[0]
    marks = [(line.get_marker(), int(np.isfinite(line.get_ydata()).sum())) for line in ax.lines]
    assert marks.count(("v", 2)) == marks.count(("^", 1)) == 2
    assert [n for marker, n in marks if marker == "o"] == [17, 17]
    assert {"below this limit", "above this limit"} <= set(words(states_figure(hidden())))
    assert "below this limit" not in words(states_figure(make_fit()))


def test_a_column_of_a_state_s_name_that_is_something_else_is_drawn_apart():
    fit = hidden()
    doubled = {name: replace(e, fitted=2 * e.fitted, expected=2 * e.expected) for name, e in fit.experiments.items()}
    assert [p.name for p in state_panels(replace(fit, experiments=doubled))][:2] == ["I (observed)", "cases"]


def test_axes_have_the_headers_of_the_data(tmp_path):
    table = {"Days since dose": range(8), "Height [cm]": [0.6, 1.3, 2.5, 4.1, 6.8, 8.4, 9.1, 9.8]}
    data = od.read_csv(pd.DataFrame(table), time="Days since dose", columns={"Height [cm]": "h"})
    fit = od.fit("h' = r*h*(1 - h/K)", data)
    for axes in (fit.plot().axes[0], fit.plot_residuals(), fit.plot(ax=Figure().subplots()).axes[0]):
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("Days since dose", "Height [cm]")
    fit.save(tmp_path / "fit.json")
    assert od.load(tmp_path / "fit.json").plot().axes[0].get_xlabel() == "Days since dose"
