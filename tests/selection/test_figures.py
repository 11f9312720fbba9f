"""Pictures of a comparison: every equation has its bar, every candidate its line, every accused one its gap."""

import numpy as np
import pytest
from matplotlib.text import Text

from odinfer.result.figures import MOST
from odinfer.selection.figures import fits_figure, gamma_figure, gaps_figure
from odinfer.style.drawing import BAD, GOOD, png
from selection.rivals import compared, made

BOTH = compared(one=made(contradicting=("prey",)), two=made(2.0))


def words(figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text)}


def test_the_picture_is_drawn(found, tmp_path):
    found.plot(tmp_path / "gamma.png")
    assert (tmp_path / "gamma.png").read_bytes().startswith(b"\x89PNG")


def test_every_equation_of_every_candidate_has_a_bar_in_the_colour_of_its_verdict():
    figure = gamma_figure(BOTH)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["one: prey", "one: predator", "two: prey", "two: predator"]
    assert {"3  contradicts", "1e-6  consistent"} <= words(figure)
    from matplotlib.colors import to_hex

    bars = [to_hex(bar.get_facecolor()).upper() for bar in figure.axes[0].patches if bar.get_height() == 0.5]
    assert bars == [BAD.upper(), GOOD.upper(), GOOD.upper(), GOOD.upper()]


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
        assert [line.get_label() for line in lines] == ["one", "two"]
        assert lines[0].get_linewidth() > lines[1].get_linewidth()
    assert {"data", "one", "two", "prey", "predator"} <= words(figure)


def test_many_candidates_are_told_apart_by_colour_and_kind_of_line():
    figure = fits_figure(compared(**{f"m{i}": made(float(i)) for i in range(12)}))
    kinds = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines[1:]}
    assert len(kinds) == 12


def test_gaps_are_drawn_for_the_accused_alone_and_name_the_experiment_if_there_are_several():
    assert gaps_figure(compared(one=made(), two=made())) is None
    figure = gaps_figure(BOTH)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one: equation for prey"]
    several = gaps_figure(compared(one=made(contradicting=("prey",), experiments=("low", "high")), two=made()))
    titles = [ax.get_title(loc="left") for ax in several.axes]
    assert titles == [f"one: equation for prey, experiment {name}" for name in ("low", "high")]


def test_many_equations_are_cut_and_names_are_never_mathematics():
    states = tuple(f"$x{i}" for i in range(30))
    comparison = compared(one=made(states=states, contradicting=states), two=made(states=states))
    assert len(gamma_figure(comparison).axes[0].get_yticks()) == MOST
    assert len(gaps_figure(comparison).axes) == MOST
    for figure in (gamma_figure(comparison), fits_figure(comparison)):
        png(figure, dpi=30)
