"""What drives a system is drawn: inputs, doses and events."""

import numpy as np

import odinfer as od
from fits import make_fit
from odinfer.result.figures.inputs import inputs_picture
from odinfer.style.drawing import svg
from odinfer.style.picture import alone


def test_inputs_and_events_are_drawn_as_long_as_the_fit_has_its_problem():
    t = np.linspace(0.5, 4.0, 8)
    data = od.Data(t, np.exp(-0.5 * t)[:, None], ["x"], inputs={"u": (t, np.sin(t))})
    model = od.Model.from_text("input u\nx' = -k*x + u\nat 1, 2: x = x + 1\nx(0) = 1")
    fit = make_fit(("x",), ("k",), problem=od.Problem(model, data))
    picture = inputs_picture(fit)
    assert [plot.name for plot in picture.plots] == ["u", "doses and events"]
    assert picture.plots[1].alt == "doses and events at times 1, 2"
    assert picture.plots[0].alt.startswith("u: a known input between ")
    for plot in picture.plots:
        assert svg(alone(plot)).startswith(b"<svg")
    assert inputs_picture(make_fit()) is None


def test_an_input_with_one_value_is_no_picture():
    t = np.linspace(0.5, 4.0, 8)
    data = od.Data(t, np.exp(-0.5 * t)[:, None], ["x"], inputs={"u": ([0.0], [2.0])})
    fit = make_fit(("x",), ("k",), problem=od.Problem(od.Model.from_text("input u\nx' = -k*x + u"), data))
    assert inputs_picture(fit) is None
