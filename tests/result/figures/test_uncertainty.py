"""Pictures of how sure a fit is: a row per parameter and kind of interval, a panel per pair; none without intervals."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.text import Text

from fits import hidden, make_fit, uncertain
from odinfer.result.figures.uncertainty import MOST_PAIRS, MOST_ROWS, intervals_picture, pairs_picture, starts_picture
from odinfer.style.drawing import png
from odinfer.uncertainty.results import Bootstrap, Uncertainty


def figure_of(picture):
    return None if picture is None else picture.figure


def intervals_figure(fit):
    return figure_of(intervals_picture(fit))


def pairs_figure(fit):
    return figure_of(pairs_picture(fit))


def starts_figure(fit):
    return figure_of(starts_picture(fit))


def words(figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text)}


def with_covariance(names, covariance, **changes):
    n = len(names)
    u = Uncertainty(names, (), covariance, np.full(n, 9.0), 0.95, np.zeros(n), np.full(n, 2.0))
    return make_fit(parameters=names, uncertainty=u, details={}, **changes)


def test_a_fit_without_intervals_has_no_such_picture():
    assert intervals_figure(make_fit()) is None
    assert pairs_figure(make_fit()) is None


def test_every_kind_of_interval_has_its_line_and_every_parameter_its_name_and_value():
    figure = intervals_figure(uncertain())
    assert png(figure, dpi=40).startswith(b"\x89PNG")
    assert {f"{kind} interval, 95 %" for kind in ("likelihood", "profile", "bootstrap", "posterior")} <= words(figure)
    assert {"a = 1", "b = 1.1", "c = 1.2"} <= words(figure)
    assert not any(word.startswith("d = ") for word in words(figure))


def test_a_line_reaches_from_one_end_to_the_other_relative_to_the_estimate():
    fit = replace(uncertain(), profiles={}, bootstrapped=None, sampled=None)
    drawn = [line for line in intervals_figure(fit).axes[0].lines if line.get_lw() > 2 and len(line.get_xdata())]
    a, b, _ = sorted(drawn, key=lambda line: -line.get_ydata()[0])
    np.testing.assert_allclose(a.get_xdata(), [-0.2, 0.25])
    np.testing.assert_allclose(b.get_xdata(), [0.8 / 1.1 - 1, 1.4 / 1.1 - 1])


def test_an_end_without_a_limit_is_an_arrow_at_the_edge():
    fit = replace(uncertain(), profiles={}, bootstrapped=None, sampled=None)
    ax = intervals_figure(fit).axes[0]
    assert np.isfinite(ax.get_xlim()).all()
    arrows = [line for line in ax.lines if line.get_marker() == ">"]
    assert len(arrows) == 1
    assert arrows[0].get_xdata()[0] == pytest.approx(0.99 * ax.get_xlim()[1])


def test_one_wide_interval_does_not_flatten_the_others():
    names = tuple("abcde")
    fit = with_covariance(names, np.eye(5))
    low, high = np.full(5, 0.9), np.array([1.3, 1.3, 1.4, 1.5, 1e6])
    ax = intervals_figure(replace(fit, uncertainty=replace(fit.uncertainty, low=low, high=high))).axes[0]
    assert ax.get_xlim()[1] <= 3.0


def test_very_many_parameters_are_cut():
    names = tuple(f"p{i}" for i in range(MOST_ROWS + 15))
    fit = with_covariance(names, np.eye(len(names)))
    assert len(intervals_figure(fit).axes[0].get_yticks()) == MOST_ROWS
    assert len(pairs_figure(fit).axes) == MOST_PAIRS * (MOST_PAIRS + 1) // 2


def test_pairs_show_the_draws_of_a_posterior_before_refits_before_the_covariance():
    fit = uncertain()
    points = []
    for less in (fit, replace(fit, sampled=None), replace(fit, sampled=None, bootstrapped=None)):
        figure = pairs_figure(less)
        png(figure, dpi=40)
        assert len(figure.axes) == 6
        points.append((figure.axes[1].patches or figure.axes[1].lines)[0])
    points = [found.get_xydata() for found in points[:2]] + [points[2].get_xy()]
    np.testing.assert_allclose(points[0], np.stack([fit.sampled.theta[n].ravel() for n in "ab"], -1))
    np.testing.assert_allclose(points[1], np.stack([fit.bootstrapped.theta[n] for n in "ab"], -1))
    assert (points[2][:, 0] > 0).all()  # on a log scale


def test_ellipses_of_the_covariance_hold_half_and_95_percent():
    covariance = np.array([[0.04, 0.03], [0.03, 0.09]])
    patches = pairs_figure(with_covariance(("a", "b"), covariance)).axes[1].patches
    for patch, share in zip(patches, (0.95, 0.5), strict=True):
        away = patch.get_xy() - [1.0, 1.1]
        distance = np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)
        np.testing.assert_allclose(distance, -2 * np.log(1 - share), rtol=1e-3)  # χ² with two degrees of freedom


@pytest.mark.parametrize("covariance", [np.full((2, 2), np.nan), np.diag([np.inf, 1.0])])
def test_a_covariance_that_is_not_finite_draws_no_pairs(covariance):
    assert pairs_figure(with_covariance(("a", "b"), covariance)) is None


def test_one_parameter_makes_no_pair():
    assert pairs_figure(with_covariance(("k",), np.eye(1))) is None


def test_refits_that_all_failed_draw_no_line():
    none = Bootstrap(("a", "b"), (), np.empty((0, 2)), (), (), failed=9)
    ax = intervals_figure(replace(with_covariance(("a", "b"), np.eye(2)), bootstrapped=none)).axes[0]
    drawn = [line.get_xdata() for line in ax.lines if line.get_lw() > 2 and len(line.get_xdata())]
    assert sum(np.isfinite(ends).all() for ends in drawn) == 2


def test_names_are_never_read_as_mathematics():
    fit = with_covariance(("$x", "$\\frac$"), np.eye(2))
    for draw in (intervals_figure, pairs_figure):
        figure = draw(fit)
        png(figure, dpi=40)
        assert any("$\\frac$" in word for word in words(figure))


def test_a_bootstrap_without_a_single_refit_falls_back_on_the_covariance_or_nothing():
    nothing = Bootstrap(("a", "b"), (), np.empty((0, 2)), (), (), failed=9)
    assert pairs_figure(make_fit(bootstrapped=nothing)) is None
    assert pairs_figure(with_covariance(("a", "b"), np.eye(2), bootstrapped=nothing)) is not None


def test_the_starts_are_drawn_best_first_and_those_that_agree_stand_out():
    figure = starts_figure(hidden())
    agreeing, others = (line.get_ydata() for line in figure.axes[0].lines[1:])
    assert (len(agreeing), len(others)) == (3, 2)
    assert np.all(np.diff([*agreeing, *others]) >= 0)
    assert "start points, the best first; 2 more failed" in words(figure)
    png(figure, dpi=40)
    assert starts_figure(make_fit()) is None
    assert starts_figure(hidden(details={"start_objectives": [3.0]})) is None


def test_the_words_beside_the_pictures_state_the_result():
    fit = replace(uncertain(), profiles={}, bootstrapped=None, sampled=None)
    assert intervals_picture(fit).alt == "95 % intervals of 3 parameters relative to their estimates, widest for c"
    assert pairs_picture(fit).alt.startswith("Pairs of a, b, c: a and b are correlated most, 0.")
    assert starts_picture(hidden()).alt == "5 starts, the best first: 3 agree with the best"


def test_the_starts_of_odin_are_drawn_by_their_mismatch(lv_fit):
    assert len(lv_fit.details["start_mismatches"]) == 10
    picture = starts_picture(lv_fit)
    assert "mismatch of slopes gained" in words(picture.figure)
    assert picture.alt.startswith("10 starts, the best first: ")
    png(picture.figure, dpi=40)
