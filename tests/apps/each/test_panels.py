"""Small pictures: what is drawn is where the numbers are, in whole numbers, and small."""

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.apps.each.panels import HEIGHT, ROW, WIDTH, axes_of, estimates, panel
from odinfer.apps.each.row import Row


def points(path: str) -> list[tuple[int, int]]:
    return [(int(x), int(y)) for x, y in re.findall(r"M(-?\d+) (-?\d+)", path)]


def problems(decay, **series) -> dict[str, od.Problem]:
    t = np.arange(6.0)
    return {name: od.Problem(decay, od.Data(t, np.array(y, float), ["x"])) for name, y in series.items()}


def test_dots_are_where_the_data_are_and_lines_go_through_the_curve(decay):
    posed = problems(decay, one=[0, 1, 2, 3, 4, 5])
    axes, shared = axes_of(posed)
    row = Row("converged", True, t=np.array([0.0, 5.0]), x=np.array([[0.0], [5.0]]))
    drawn = panel(posed["one"], row, axes["one"])
    dots = points(drawn.dots[0])
    assert shared
    assert dots[0] == (4, HEIGHT - 4)
    assert dots[-1] == (WIDTH - 4, 4)
    assert len(dots) == 6
    assert drawn.lines[0] == f"M4 {HEIGHT - 4}l{WIDTH - 8} {8 - HEIGHT}"
    assert panel(posed["one"], Row("failed: so"), axes["one"]).lines == ("",)


def test_series_of_one_size_share_their_axes_and_those_of_very_different_sizes_do_not(decay):
    alike = problems(decay, a=[0, 1, 2, 3, 4, 5], b=[1, 2, 3, 4, 5, 6])
    axes, shared = axes_of(alike)
    assert shared
    assert (axes["a"].low, axes["a"].high) == (0.0, 6.0)
    other = problems(decay, a=[0, 1, 2, 3, 4, 5], b=[0, 1, 2, 3, 4, 5], c=[0, 1, 2, 3, 4, 500])
    axes, shared = axes_of(other)
    assert not shared
    assert axes["c"].high == 500.0


def test_a_long_series_is_thinned(decay):
    t = np.linspace(0, 1, 20_000)
    posed = {"long": od.Problem(decay, od.Data(t, t, ["x"]))}
    assert len(points(panel(posed["long"], Row("failed: so"), axes_of(posed)[0]["long"]).dots[0])) == 60


ends = st.floats(-1e9, 1e9) | st.sampled_from([np.inf, -np.inf, np.nan])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(-1e9, 1e9), ends, ends), min_size=1, max_size=20))
def test_every_estimate_is_inside_the_picture_whatever_its_interval(values):
    found = estimates({str(i): v for i, v in enumerate(values)}, ["0"])
    assert found is not None
    every = points(found.dots) + points(found.marked_dots)
    assert len(every) == len(values)
    assert len(points(found.marked_dots)) == 1
    assert all(0 <= x <= ROW[0] and 0 <= y <= ROW[1] for x, y in every)


def test_without_estimates_there_is_no_picture():
    assert estimates({"a": (np.nan,) * 3}, []) is None
