"""Drawings for pages: the same axes as matplotlib's, as far as pictures use them, without matplotlib."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from odinfer.style.svg import Axis, SvgFigure, round_numbers

SVG = "{http://www.w3.org/2000/svg}"


def axes(height=2.0, width=3.0):
    figure = SvgFigure(height, width)
    return figure, figure.add_axes((0.2, 0.2, 0.7, 0.7))


def elements(figure, kind):
    return list(ElementTree.fromstring(figure.svg()).iter(SVG + kind))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.2, 9), (1e-9, 3e-9), (-1e7, 1e7), (99.9, 100.1), (5, 5)])
def test_ticks_are_round_numbers_within_the_axis(low, high):
    at = round_numbers(low, high, 6)
    assert 1 <= len(at) <= 8
    assert (at >= low - 1e-9 * abs(high)).all()
    assert (at <= high + 1e-9 * abs(high)).all()
    steps = np.diff(at)
    assert len(steps) == 0 or np.allclose(steps, steps[0])


def test_a_range_holds_all_data_and_a_logarithmic_one_only_what_is_positive():
    axis = Axis()
    axis.include([3.0, np.nan, np.inf, 7.0])
    assert axis.ends[0] < 3 < 7 < axis.ends[1]
    log = Axis(log=True)
    log.include([0.0, -1.0, 0.1, 1000.0])
    assert 0 < log.ends[0] < 0.1
    assert np.allclose(log.place([log.ends[0], log.ends[1]]), [0, 1])


def test_a_line_has_a_gap_where_a_value_is_missing():
    figure, ax = axes()
    ax.plot([0, 1, 2, 3, 4], [1, 2, np.nan, 2, 1], color="#123456")
    (path,) = (p for p in elements(figure, "path") if "#123456" in p.get("style"))
    assert path.get("d").count("M") == 2
    assert path.get("d").count("L") == 2


def test_y_grows_upwards_and_the_corners_are_the_limits():
    figure, ax = axes()
    ax.set(xlim=(0, 10), ylim=(0, 10))
    ax.plot([0, 10], [0, 10], color="#123456")
    (path,) = (p for p in elements(figure, "path") if "#123456" in p.get("style"))
    left, bottom, right, top = (0.2 * 216, 0.8 * 144, 0.9 * 216, 0.1 * 144)
    assert path.get("d") == f"M{left:g} {round(bottom, 2):g}L{right:g} {round(top, 2):g}"


def test_names_with_markup_stay_words():
    figure, ax = axes()
    evil = "</text><script>alert(1)</script>\x00"
    ax.set_xlabel(evil)
    ax.set_title(evil)
    assert elements(figure, "script") == []
    assert [t.text for t in elements(figure, "text")].count("</text><script>alert(1)</script> ") == 2


def test_values_of_any_size_make_a_drawing_that_can_be_read():
    figure, ax = axes()
    ax.plot([0, 1, 2], [1e-300, 1e300, -1e300])
    ax.fill_between([0, 1, 2], [np.nan] * 3, [1, 2, 3], color="#000000")
    ax.stairs([], [0.0], color="#000000")
    ax.axhline(np.nan, color="#000000")
    assert "nan" not in figure.svg().decode()


def test_equal_drawings_are_equal_files():
    def drawn():
        figure, ax = axes()
        ax.plot(np.linspace(0, 1, 50), np.sin(np.arange(50)), "o", ms=3)
        return figure.svg()

    assert drawn() == drawn()


def test_a_page_is_drawn_without_matplotlib():
    code = (
        "import sys; from odinfer.style.picture import *; from odinfer.style.html import page_figure;"
        "page_figure(PanelFigure((Plot('x', 'x', lambda ax: ax.plot([0, 1], [1, 2])),)));"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
