"""Pictures of a comparison: every equation has its bar, every candidate its line, every accused one its gap."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from fits import refuted
from odinfer.result.figures.marks import MAX_PANELS
from odinfer.selection.figures import fits_figure, fits_picture, gamma_picture, gaps_picture, letters
from odinfer.style.drawing import BAD, GOOD, STYLE, png
from odinfer.style.picture import combined_figure
from selection.rivals import compared, made

BOTH = compared(one=made(contradicting=("prey",)), two=made(2.0))


def words(figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text)}


def gamma_figure(comparison):
    return gamma_picture(comparison).figure


def test_the_picture_is_drawn(found, tmp_path):
    found.plot(tmp_path / "gamma.png")
    assert (tmp_path / "gamma.png").read_bytes().startswith(b"\x89PNG")


def test_candidates_have_letters_the_best_first():
    assert letters(BOTH) == {"one": "A", "two": "B"}
    assert letters(compared(low=made(1.0), high=made(9.0))) == {"high": "A", "low": "B"}
    many = letters(compared(**{f"m{i}": made(-float(i)) for i in range(30)}))
    assert [many[f"m{i}"] for i in (0, 25, 26, 29)] == ["A", "Z", "A1", "D1"]


def test_every_equation_of_every_candidate_has_a_bar_in_the_colour_of_its_verdict():
    figure = gamma_figure(BOTH)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["A: prey", "A: predator", "B: prey", "B: predator"]
    assert {"3  contradicts", "1e-6  consistent"} <= words(figure)
    bars = [to_hex(bar.get_facecolor()).upper() for bar in figure.axes[0].patches if bar.get_height() == 0.5]
    assert bars == [BAD.upper(), GOOD.upper(), GOOD.upper(), GOOD.upper()]
    assert gamma_picture(BOTH).alt.startswith("γ: A: prey 3  contradicts; A: predator 1e-6  consistent; B")


def test_what_is_expected_of_a_right_equation_is_shaded():
    shaded = [bar for bar in gamma_figure(BOTH).axes[0].patches if bar.get_height() > 0.8]
    assert [bar.get_x() + bar.get_width() for bar in shaded] == pytest.approx([0.01] * 4)


@pytest.mark.parametrize("gamma", [np.nan, np.inf, 0.0, 1e-300, 1e30])
def test_gamma_of_any_size_is_drawn(gamma):
    figure = gamma_figure(compared(one=made(gamma=gamma), two=made(2.0)))
    png(figure, dpi=40)
    assert np.isfinite(figure.axes[0].get_xlim()).all()


def test_every_candidate_has_a_line_over_the_data_and_the_best_is_the_strongest():
    figure = fits_figure(BOTH)
    assert len(figure.axes) == 2
    for ax in figure.axes:
        dots, *lines = ax.lines
        assert dots.get_marker() == "o"
        assert len(lines) == 2
        assert lines[0].get_linewidth() > lines[1].get_linewidth()
    said = {"data", "A one: prey rejected", "B two: not rejected", "prey", "predator"}
    assert said | {"contradicted: the equation of A"} <= words(figure)


def test_a_refuted_candidate_is_drawn_by_its_own_best_trajectory_and_the_compromise_is_dotted():
    wrong = made(contradicting=("prey",))
    comparison = compared(right=made(20.0), wrong=replace(wrong, fit=refuted()))
    ax = fits_figure(comparison).axes[0]
    own, compromise = (line for line in ax.lines if line.get_color() == BAD)
    best = refuted().experiments["1"].best
    np.testing.assert_allclose(np.interp(best.t, *own.get_data()), best.x[:, 0], atol=1e-3)
    assert compromise.get_linestyle() == ":"
    assert "ODIN's compromise with the data" in words(fits_figure(comparison))
    alt = fits_picture(comparison).plots[0].alt
    assert alt == "prey: observations and the fits of 2 candidates, contradicted: the equation of B"


def test_many_candidates_are_told_apart_by_colour_and_kind_of_line():
    figure = fits_figure(compared(**{f"m{i}": made(float(i)) for i in range(12)}))
    kinds = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines[1:]}
    assert len(kinds) == 12
    png(figure, 60)
    assert all(legend.get_window_extent().x1 <= figure.bbox.x1 for legend in figure.legends)


def test_live_plots_have_the_data_once_and_a_line_per_candidate():
    lines = fits_picture(BOTH).plots[0].live["lines"]
    assert [line["name"] for line in lines] == ["A", "B"]
    assert [len(line["seen"]) for line in lines] == [20, 0]
    assert [line["wide"] for line in lines] == [True, False]
    assert STYLE["faint"] not in {line["colour"] for line in lines}


def test_gaps_are_drawn_for_the_accused_alone_and_name_the_experiment_if_there_are_several():
    assert gaps_picture(compared(one=made(), two=made())) is None
    assert [plot.title for plot in gaps_picture(BOTH).plots] == ["A: equation for prey"]
    assert "it fails at times" in gaps_picture(BOTH).plots[0].alt
    several = gaps_picture(compared(one=made(contradicting=("prey",), experiments=("low", "high")), two=made()))
    assert [plot.title for plot in several.plots] == [f"A: equation for prey, experiment {e}" for e in ("low", "high")]


def test_many_equations_are_cut_and_names_are_never_mathematics():
    states = tuple(f"$x{i}" for i in range(30))
    comparison = compared(one=made(states=states, contradicting=states), two=made(states=states))
    assert len(gamma_figure(comparison).axes[0].get_yticks()) == MAX_PANELS
    assert len(gaps_picture(comparison).plots) == MAX_PANELS
    for figure in (gamma_figure(comparison), fits_figure(comparison), combined_figure(gaps_picture(comparison))):
        png(figure, dpi=30)
