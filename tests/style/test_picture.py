"""Pictures: every panel by itself or all on a sheet, the same marks either way, and a legend that stays inside."""

import numpy as np
import pytest
from matplotlib.text import Text

from odinfer.style.drawing import WIDTH, png, svg
from odinfer.style.picture import PANEL, LegendEntry, PanelFigure, Plot, combined_figure, panel_figure


def plot(name="x", **more) -> Plot:
    return Plot(name, f"{name}: a line", lambda ax: ax.plot([0.0, 1.0], [0.0, 2.0]), **more)


def words(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@pytest.mark.parametrize("n", [1, 2, 5, 13])
def test_a_sheet_has_all_panels_and_a_panel_is_drawn_alike_by_itself(n):
    picture = PanelFigure(tuple(plot(f"p{i}", title="said") for i in range(n)), (LegendEntry("line", "-"),))
    figure = combined_figure(picture)
    assert len(figure.axes) == n
    assert figure.get_size_inches()[0] == WIDTH
    single = panel_figure(picture.plots[0])
    assert single.get_size_inches()[0] == PANEL
    for of_sheet in (figure.axes[0], single.axes[0]):
        np.testing.assert_array_equal(of_sheet.lines[0].get_ydata(), [0.0, 2.0])
        assert of_sheet.get_title(loc="left") == "said"
        assert of_sheet.get_ylabel() == "p0"


def test_panels_do_not_overlap_and_stay_on_the_sheet():
    figure = combined_figure(
        PanelFigure(tuple(plot(str(i)) for i in range(7)), (LegendEntry("line", "-"),), (("a", "#0072B2"),))
    )
    boxes = [ax.get_position() for ax in figure.axes]
    for i, a in enumerate(boxes):
        assert a.x0 > 0
        assert a.x1 < 1
        assert a.y1 < 1
        assert a.y0 > 0
        assert all(not a.overlaps(b) for b in boxes[i + 1 :])


def test_a_legend_with_many_words_takes_more_rows_and_stays_inside():
    keys = tuple(
        LegendEntry(f"a candidate with quite a long name, number {i}", mark)
        for i, mark in enumerate(("o", "-", "--", ":", "band", "v", "^"))
    )
    figure = combined_figure(PanelFigure((plot(),), keys))
    png(figure, 100)
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert box.x1 <= figure.bbox.x1
        assert box.y0 >= figure.axes[0].get_window_extent().y1 - 1
    assert [w for w in words(figure) if w.startswith("a candidate")] == [key.words for key in keys]


def test_names_are_never_mathematics():
    picture = PanelFigure(
        (plot("$\\frac$", title="_$x^$_"),), (LegendEntry("_$k$", "-"),), (("$g$", "#0072B2"),), note="$n"
    )
    assert {"$\\frac$", "_$x^$_", "_$k$", "$g$", "$n"} <= set(words(combined_figure(picture)))
    assert svg(combined_figure(picture)).startswith(b"<svg")


def test_titles_of_narrow_panels_do_not_collide():
    title = "the model contradicts the data (p = 2.2e-5)"
    plots = tuple(Plot(f"x, {i}", "", lambda ax: None, title=title) for i in range(13))
    figure = combined_figure(PanelFigure(plots))
    drawn = [text.get_text() for ax in figure.axes for text in (ax.title, ax._left_title) if text.get_text()]
    assert drawn == ["the model contradicts the data"] * 13
