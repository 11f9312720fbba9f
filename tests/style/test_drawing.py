"""Pictures: equal ones give equal files, axes stand where they are asked to, and ticks are numbers in full."""

import io
import re
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from odinfer.style.drawing import (
    BAD,
    CLOUD,
    GOOD,
    PALETTE,
    STYLE,
    THEME,
    UNKNOWN,
    WIDTH,
    _format_tick,
    add_axes,
    css_colour,
    neutral_theme_css,
    new_figure,
    png,
    set_label,
    shorten,
    svg,
    theme_css,
    thin_points,
)


def picture(words="x", height=1.5):
    figure = new_figure(height)
    ax = add_axes(figure, 1.0, 0.5, 5.0, 0.8)
    ax.plot([0.0, 1.0], [0.0, 2.0])
    set_label(ax.set_title, words, loc="left")
    return figure, ax


def test_equal_figures_give_equal_files_of_the_size_asked_for():
    one, other = (png(picture()[0], dpi=50) for _ in range(2))
    assert one == other != png(picture("y")[0], dpi=50)
    assert one.startswith(b"\x89PNG")
    assert struct.unpack(">II", one[16:24]) == (round(WIDTH * 50), 75)
    assert b"Software" not in one


def test_a_blank_figure_is_white():
    pixels = imread(io.BytesIO(png(new_figure(0.5), dpi=40)))
    assert pixels.shape[:2] == (20, round(WIDTH * 40))
    assert (pixels[..., :3] == 1.0).all()


def test_figures_share_nothing_with_pyplot():
    code = "import sys; from odinfer.style.drawing import *; figure = new_figure(1.0); add_axes(figure, 1, 0.3, 5, 0.5)"
    code += "; png(figure, 20); sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_axes_are_placed_in_inches():
    figure, ax = picture(height=3.0)
    assert figure.get_size_inches().tolist() == [WIDTH, 3.0]
    box = ax.get_position()
    assert [box.x0 * WIDTH, box.y0 * 3.0, box.width * WIDTH, box.height * 3.0] == pytest.approx([1.0, 0.5, 5.0, 0.8])
    assert [ax.spines[side].get_visible() for side in ("left", "bottom", "top", "right")] == [True, True, False, False]


@pytest.mark.parametrize("words", ["$\\frac$", "_$x^$_", "a_b^c", "捕食者", "<b>"])
def test_names_are_drawn_as_they_are(words):
    figure, ax = picture(words)
    assert ax.get_title(loc="left") == words
    assert png(figure, dpi=30).startswith(b"\x89PNG")


def test_labels_have_the_colour_of_ink_unless_told_otherwise():
    _, ax = picture()
    set_label(ax.set_xlabel, "time")
    set_label(ax.set_ylabel, "prey", colour=BAD, loc="top")
    assert (ax.xaxis.label.get_color(), ax.yaxis.label.get_color()) == (STYLE["ink"], BAD)


def ticks(low, high):
    figure, ax = picture()
    ax.set_xlim(low, high)
    figure.draw_without_rendering()
    places = ax.get_xticks()
    return [(v, t.get_text()) for v, t in zip(places, ax.get_xticklabels(), strict=True) if low <= v <= high]


@settings(max_examples=15, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_numbers_in_full_that_can_be_told_apart(low, span):
    shown = ticks(low, low + span)
    assert len({text for _, text in shown}) == len(shown) > 1
    for value, text in shown:
        assert float(text.replace("\N{MINUS SIGN}", "-")) == pytest.approx(value, abs=1e-3 * span)
        assert "-" not in text.split("e")[0]


def test_rounding_errors_of_the_locator_do_not_show_at_zero():
    figure, ax = picture()
    ax.set_xlim(-0.3, 0.3)
    assert ax.xaxis.get_major_formatter()(1e-17) == "0"
    assert ax.xaxis.get_major_formatter()(-0.1) == "\N{MINUS SIGN}0.1"
    assert figure.axes == [ax]


# How linear RGB looks without one kind of cones (Machado, Oliveira and Fernandes 2009).
VISION = {
    "all cones": np.eye(3),
    "no long": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no medium": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no short": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def nearest_pair(colours, vision):
    """The smallest distance between two colours as they are seen."""
    rgb = np.array([to_rgb(c) for c in colours])
    seen = np.clip(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ np.transpose(vision), 0, 1)
    seen = np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)
    return np.linalg.norm(seen[:, None] - seen[None], axis=-1)[np.triu_indices(len(rgb), 1)].min()


@pytest.mark.parametrize("kind", VISION)
def test_colours_can_be_told_apart_with_any_colour_vision(kind):
    assert nearest_pair(PALETTE, VISION[kind]) > 0.1
    assert nearest_pair((GOOD, BAD, UNKNOWN), VISION[kind]) > 0.1


def test_this_measure_of_colours_warns_of_red_and_green():
    brown, olive = "#A52A2A", "#556B2F"
    assert nearest_pair((brown, olive), VISION["no medium"]) < 0.1 < nearest_pair((brown, olive), VISION["all cones"])


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=40), st.integers(2, 30))
def test_long_names_are_cut_with_a_mark(name, most):
    cut = shorten(name, most)
    assert len(cut) <= most
    assert cut == name if len(name) <= most else cut.endswith("…") and name.startswith(cut[:-1])


def test_ticks_are_written_in_full():
    class Axis:
        def __init__(self, *view):
            self.get_view_interval = lambda: view

    def tick(value, *view):
        return _format_tick(Axis(*view), value, 0)

    assert tick(-0.5, -1, 1) == "−0.5"
    assert tick(2024.25, 2024, 2026) == "2024.25"
    assert tick(5e-17, -1, 1) == "0"
    assert tick(150000, 0, 300000) == "1.5e5"


@given(st.integers(0, 100), st.integers(0, 30_000), st.sampled_from([0.0, 0.5]))
@settings(max_examples=20, deadline=None)
def test_of_many_points_a_thousand_are_drawn_and_the_extremes_are_among_them(seed, n, missing):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    y[rng.uniform(size=n) < missing] = np.nan
    seen, some = np.flatnonzero(np.isfinite(y)), thin_points(y)
    assert (np.diff(some) > 0).all()
    if len(seen) <= 1000:
        np.testing.assert_array_equal(some, np.arange(n))
    else:
        assert 800 <= len(some) <= 1000
        assert np.isin(some, seen).all()
        assert np.isin([np.nanargmin(y), np.nanargmax(y)], some).all()


def test_a_drawing_follows_the_page_and_keeps_its_words():
    figure, ax = picture("<b>0.123456</b>")
    ax.plot([0.0, 1.0], [1.0, 0.0], color=PALETTE[0])
    text = svg(figure).decode()
    assert "prefers-color-scheme:dark" in text
    assert "stroke: var(--plot-c0)" in text
    assert "&lt;b&gt;0.123456&lt;/b&gt;" in text
    assert "<b>" not in text
    assert PALETTE[0].lower() not in re.sub(r"<style>.*?</style>", "", text)
    assert svg(picture()[0]) == svg(picture()[0])


def luminance(colour: str) -> float:
    """As the guidelines for accessible pages have it."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_what_does_not_know_its_page_is_seen_on_white_and_on_black():
    text = svg(picture()[0], neutral_theme_css()).decode()
    assert "prefers-color-scheme" not in text
    colours = dict(re.findall(r"--plot-(\w+):(#[0-9A-F]{6,8});", text))
    assert set(colours) == {name for name, _ in THEME.values()}
    assert colours["c0"] == CLOUD
    for name, colour in colours.items():
        y = luminance(colour[:7])
        on_white, on_black = 1.05 / (y + 0.05), (y + 0.05) / 0.06  # of a page that is nearly black
        least = {"ink": 4.0, "faint": 3.6, "grid": 0, "back": 0, "line": 1.8}.get(name, 1.8)
        assert min(on_white, on_black) >= least, name


def test_small_numbers_on_ticks_keep_their_digits():
    figure = new_figure(1.5)
    ax = add_axes(figure, 1.0, 0.5, 5.0, 0.8)
    ax.plot([0.0, 1.0], [0.00125, 0.0015])
    assert ">0.00125<" in svg(figure).decode()


def test_colours_have_names_in_style_sheets_if_they_are_ours():
    assert css_colour(PALETTE[1]) == css_colour(PALETTE[1].lower()) == "var(--plot-c1)"
    assert css_colour("#123456") == "#123456"
    assert {name for name, _ in THEME.values()} == set(re.findall(r"--plot-(\w+):", theme_css()))
