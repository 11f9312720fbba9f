"""Pictures of estimated unknown functions, in reports and for print."""

import numpy as np
import pytest

import odinfer as od
from odinfer.result.figures.unknown import unknown_picture
from odinfer.result.report import write_html
from odinfer.style.picture import combined_figure, panel_svg


@pytest.fixture(scope="module")
def two_arguments():
    t = np.linspace(0, 6, 40)
    truth = od.Model.from_text("x' = -a*x*y\ny' = a*x*y - 0.4*y\n")
    y = od.simulate(truth, {"a": 0.5}, {"x": 3, "y": 0.3}, t) + 0.01 * np.random.default_rng(0).normal(size=(40, 2))
    return od.fit("x' = -?(x, y)\ny' = ?(x, y) - c*y\n", od.Data(t, y, states=["x", "y"]), seed=0)


def test_a_function_of_two_arguments_has_labelled_contours_in_a_report_and_in_print(two_arguments):
    picture = unknown_picture(two_arguments)
    (plot,) = picture.plots
    drawn = panel_svg(plot).decode()
    assert drawn.count("<path") > 5
    assert "0.5" in drawn
    assert len(combined_figure(picture).axes[0].texts) > 2
    assert "?(x,y)" in two_arguments.summary().replace(" ", "")


def test_a_function_of_one_argument_is_in_the_report(tmp_path):
    t = np.linspace(0, 4, 25)
    y = 2 * np.exp(-0.6 * t) + 0.02 * np.random.default_rng(0).normal(size=25)
    fit = od.fit("x' = ?(x)", od.Data(t, y, states=["x"]), seed=0)
    write_html(fit, tmp_path / "report.html")
    assert "?(x) with its 95 % band" in (tmp_path / "report.html").read_text()
