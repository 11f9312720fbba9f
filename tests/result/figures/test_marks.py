"""What pictures share: few points that follow a curve, limits that nothing flattens, colours that differ."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from fits import ODD, hidden, make_fit
from odinfer.result.figures.marks import (
    axis_limits,
    colours,
    contradiction_note,
    displayed_points,
    groups,
    largest_magnitude,
    set_time_axis,
    simplify_polyline,
    span,
    states_to_show,
)
from odinfer.style.drawing import new_figure


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=60), st.floats(0.1, 100.0))
def test_straight_lines_between_enough_points_follow_the_curve(values, scale):
    t, y = np.linspace(0.0, scale, len(values)), np.array(values)
    at = simplify_polyline(t, y)
    assert at[0] == 0
    assert at[-1] == len(t) - 1
    assert np.abs(np.interp(t, t[at], y[at]) - y).max() <= 2.1e-4 * (np.ptp(y) or 1.0) + 1e-9


def test_smooth_curves_need_few_points_and_gaps_do_no_harm():
    t = np.linspace(0.0, 6.0, 1000)
    assert len(simplify_polyline(t, np.sin(t))) < 130
    assert len(simplify_polyline(t, 2.0 + 3.0 * t)) == 2
    assert len(simplify_polyline(t, np.sin(t), np.full(1000, np.nan))) < 130


def test_limits_hold_all_lines_and_as_much_of_the_bands_as_does_not_flatten_them():
    y = np.array([0.0, 1.0])
    low, high = axis_limits([y], [y + 0.1])
    assert low < 0.0
    assert high > 1.1
    assert axis_limits([y], [np.array([-1e6, 1e6])])[1] < 2.0
    assert np.isnan(axis_limits([np.array([np.nan])], [])[0])


def test_experiments_have_colours_of_their_own_and_a_legend_if_there_are_several():
    many = make_fit(experiments=tuple("abcdefghij"), n=5)
    assert len(set(colours(many))) == 10
    assert groups(many)[-1][0] == "f  and 4 more"
    assert groups(make_fit()) == ()


def test_what_speaks_against_the_whole_model_is_said_in_a_few_words():
    assert contradiction_note(hidden()) == ""
    fit = hidden(details={"model_test": {"p": 0.02, "draws": 99}})
    assert contradiction_note(fit) == "the model contradicts the data (p = 0.02)"


def test_sizes_skip_what_is_not_finite():
    values = np.array([np.nan, -3.0, 2.0, np.inf])
    assert largest_magnitude(values) == 3.0
    assert span(values) == (-3.0, 2.0)
    assert np.isnan(largest_magnitude(np.array([np.nan])))
    assert states_to_show(ODD["forty states"])[0] == 33


def test_the_time_in_which_a_system_settles_is_not_drawn():
    model = od.Model.from_text("x' = a - k*x; x(-1000) = 0; at 0: x = x + 3")
    t = np.linspace(0.0, 4.0, 12)
    y = 2.0 + 3.0 * np.exp(-t) + 0.05 * np.random.default_rng(0).normal(size=12)
    fit = od.fit(model, od.Data(t, y[:, None], states=["x"]))
    (e,) = fit.experiments.values()
    assert e.curve.t[0] < -900
    assert e.curve.t[displayed_points(e)].min() >= 0.0
    ax = new_figure(2.0).add_subplot()
    set_time_axis(fit, ax)
    assert ax.get_xlim()[0] > -1.0
