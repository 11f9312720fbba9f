"""Where steps end: at every observation and corner, with what jumps there."""

import numpy as np

import odinfer as od
from odinfer.ode.breakpoints import Timetable


def problem(text, t=(1.0, 2.0, 4.0), **more):
    t = np.array(t)
    return od.Problem(
        od.Model.from_text(text), od.Data(t, np.arange(1.0, len(t) + 1)[:, None], states=["x"], **more), positive=False
    )


def test_stops_are_the_start_all_observations_and_corners():
    p = problem("x' = -k*x + piecewise(1, t < 1.5, 0); x(0) = 3; at 3: x = x + 1")
    table = Timetable.of([p.condition(0)])
    np.testing.assert_allclose(table.stops[0], [0.0, 1.0, 1.5, 2.0, 3.0, 4.0])
    assert table.corner[0].tolist() == [True, False, True, False, True, False]
    assert table.rows[0].tolist() == [1, 3, 5]
    assert table.last.tolist() == [5]
    assert list(table.jumps) == [(0, 4)]


def test_the_field_is_asked_between_corners_only():
    p = problem("x' = -k*x + piecewise(1, t < 1.5, 0); x(0) = 3")
    table = Timetable.of([p.condition(0)])
    assert 0.0 < table.low[0, 0] < 1e-6
    assert 1.5 - 1e-6 < table.high[0, 1] < 1.5
    assert 1.5 < table.low[0, 2] < 1.5 + 1e-6
    smooth = Timetable.of([problem("x' = -k*x; x(0) = 1").condition(0)])
    assert np.isinf(smooth.low).all()


def test_shorter_experiments_are_filled_up_and_know_where_they_end():
    one, other = (od.Data(np.arange(1.0, n), np.arange(1.0, n)[:, None], states=["x"]) for n in (3, 6))
    p = od.Problem(od.Model.from_text("x' = -k*x"), od.Data.join({"a": one, "b": other}), positive=False)
    table = Timetable.of([p.condition(0), p.condition(1)])
    assert table.stops.shape == (2, 5)
    assert table.last.tolist() == [1, 4]


def test_nothing_jumps_after_the_end():
    assert Timetable.of([problem("x' = -k*x; x(0) = 1; at 4: x = 0").condition(0)]).jumps == {}


def test_steps_must_end_where_something_jumps_or_bends_and_at_the_end():
    p = problem("x' = -k*x; x(0) = 1; at 2: x = x + 1", t=(1.0, 1.5, 2.0, 3.0, 4.0))
    table = Timetable.of([p.condition(0)])
    stops = table.stops[0].tolist()
    assert [stops[i] for i in table.halt[0, :-1]] == [2.0 if t < 2 else 4.0 for t in stops[:-1]]
