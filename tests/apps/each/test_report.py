"""The report of many fits: summary, outliers, panels and page."""

import csv
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from apps.each.conftest import FAST, RISING, SHORT
from odinfer.apps.each import panels
from odinfer.apps.each.fits import Fits
from odinfer.apps.each.outliers import FEWEST, distances, find_outliers
from odinfer.apps.each.page import dumps, html, save
from odinfer.apps.each.panels import HEIGHT, ROW, WIDTH, axes_of, panel
from odinfer.apps.each.row import Row
from odinfer.apps.each.summary import headline, spread_statistics, summary, tone
from odinfer.errors import InputError


def invented(count: int, bad: int = 0) -> Fits:
    rng = np.random.default_rng(0)
    rows = {}
    for i in range(count):
        a = float(2.0 + 0.1 * rng.normal())
        rows[f"s{i}"] = Row("converged", True, {"a": (a, a - 0.2, a + 0.2)}) if i >= bad else Row("failed: so")
    return Fits("m", "odin", {}, rows, {})


def test_a_few_series_are_shown_in_full_and_many_by_their_spread(fits):
    text = summary(fits)
    assert text.startswith("decay, fitted by odin\n13 series, fitted one by one: 12 converged.\n")
    assert text.count("s0 ") == 2  # k and x(0)
    many = summary(invented(1000, bad=3))
    assert len(many.splitlines()) < 12
    assert "1,000 series, fitted one by one: 997 converged." in many
    a = many.splitlines()[5].split()
    assert [a[0], *(round(float(v), 1) for v in a[1:])] == ["a", 2.0, 1.8, 2.2, 0.2]
    assert "Without a result: 3, namely s0 (failed: so), s1 (failed: so), s2 (failed: so)." in many


def test_who_needs_a_look_is_named(fits):
    text = " ".join(summary(fits).split())
    assert f"Without a result: 1, namely {SHORT} (failed: state 'x' has too few" in text
    assert f"{RISING} (x)" in text.partition("The model is rejected by: ")[2]
    assert f"{FAST} (" in text.partition("Outliers: ")[2]


def test_the_headline_counts_and_the_tone_is_that_of_the_worst():
    assert headline(invented(3)) == "3 series, fitted one by one: all converged."
    assert headline(invented(1)) == "1 series: 1 converged."
    assert (tone(invented(3)), tone(invented(3, bad=1))) == ("good", "bad")


@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_the_spread_lies_in_order_and_of_nothing_there_is_none(values):
    median, low, high, half = spread_statistics([(v, v - 1.0, v + 3.0) for v in values])
    assert low <= median <= high if values else np.isnan(median)
    assert abs(half - 2.0) < 1e-6 if values else np.isnan(half)


def test_names_do_not_command_the_terminal():
    rows = {"a\x1b[2Jb": Row("failed: so")}
    assert "\x1b" not in summary(Fits("m\x1b", "odin", {}, rows, {}))


def estimates(values, half: float = 0.05):
    return [(v, v - half, v + half) for v in values]


def drawn(seed: int = 0, count: int = 200):
    return np.random.default_rng(seed).normal(3.0, 0.1, size=count)


def test_series_that_are_alike_are_not_named_and_those_far_away_are_the_farthest_first():
    values = drawn()
    assert find_outliers({"a": dict(enumerate(estimates(values)))}) == {}
    values[[7, 9]] = 5.0, 9.0
    alike = dict(enumerate(estimates(drawn(1))))
    assert find_outliers({"a": dict(enumerate(estimates(values))), "b": alike}) == {9: ("a",), 7: ("a",)}


def test_about_one_set_of_alike_series_in_twenty_has_any_that_is_named():
    named = [bool(find_outliers({"a": dict(enumerate(estimates(drawn(seed))))})) for seed in range(400)]
    assert 0 < sum(named) < 0.12 * 400


def test_what_is_merely_unknown_is_no_outlier():
    table = estimates(drawn())
    table[3] = (9.0, -np.inf, np.inf)
    table[4] = (9.0, 2.0, 16.0)
    table[5] = (np.nan, np.nan, np.nan)
    assert find_outliers({"a": dict(enumerate(table))}) == {}


@pytest.mark.parametrize("values", [[1.0] * (FEWEST - 1) + [50.0], []])
def test_of_few_nothing_is_said(values):
    assert not distances(estimates(values[1:])).any()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.1, 10.0), min_size=FEWEST, max_size=40), st.floats(1e-6, 1e6))
def test_units_do_not_matter(values, unit):
    one, other = distances(estimates(values, 0.0)), distances(estimates(np.array(values) * unit, 0.0))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


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
    found = panels.estimates({str(i): v for i, v in enumerate(values)}, ["0"])
    assert found is not None
    every = points(found.dots) + points(found.marked_dots)
    assert len(every) == len(values)
    assert len(points(found.marked_dots)) == 1
    assert all(0 <= x <= ROW[0] and 0 <= y <= ROW[1] for x, y in every)


def test_without_estimates_there_is_no_picture():
    assert panels.estimates({"a": (np.nan,) * 3}, []) is None


def test_the_page_shows_every_series_that_could_be_posed_and_needs_no_other_file(fits):
    page = html(fits)
    assert page.count("<figure") == len(fits) - 1
    assert "1 series are not drawn here" in page
    assert fits.failed[SHORT].replace("'", "&#39;") in page
    assert not re.search(r"(src|href)=\"?(?!data:|#)", page)
    assert "&lt;b&gt;fast" in page
    assert FAST not in page


def test_a_thousand_series_stay_below_a_few_megabytes(lv, lv_fit):
    rng, rows, problems = np.random.default_rng(0), {}, {}
    base = od.Problem(lv.model, lv.sample(0.1, 0))
    drawn = Row.of(lv_fit)
    for i in range(1000):
        problems[f"plot {i}"] = base
        theta = {n: tuple(np.multiply(v, np.exp(0.1 * rng.normal()))) for n, v in drawn.theta.items()}
        rows[f"plot {i}"] = Row("converged", True, theta, 0.0, drawn.initial, drawn.sigma, (), drawn.t, drawn.x)
    page = html(Fits("lv", "odin", problems, rows, {}))
    assert page.count("<figure") == 1000
    assert 200_000 < len(page.encode()) < 3_000_000


def test_fits_are_saved_by_the_ending_of_the_file(fits, tmp_path):
    for name in ("fits.csv", "fits.html", "folder"):
        save(fits, tmp_path / name)
    with open(tmp_path / "fits.csv", newline="") as file:
        rows = {row["experiment"]: row for row in csv.DictReader(file)}
    assert float(rows["s0"]["k"]) == fits["s0"].theta["k"]
    assert rows[SHORT]["k"] == ""
    assert sorted(p.name for p in (tmp_path / "folder").iterdir()) == ["estimates.csv", "report.html"]
    with pytest.raises(InputError, match=r"not as '\.pdf'"):
        save(fits, tmp_path / "fits.pdf")


def test_the_table_as_json_is_strict(fits):
    rows = json.loads(dumps(fits), parse_constant=lambda token: pytest.fail(token))
    assert rows[0]["experiment"] == "s0"
    assert rows[-1]["k"] is None
