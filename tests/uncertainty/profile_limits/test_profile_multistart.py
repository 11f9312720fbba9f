"""Supposed ends are put right from wherever the likelihood is higher, and so is a maximum that is none."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import odinfer as od
from odinfer.likelihood.batch_likelihood import SideBySide
from odinfer.likelihood.refinement import refine
from odinfer.search.trust_region import Held, follow
from odinfer.uncertainty.intervals import far_from, parameter_ends
from odinfer.uncertainty.maximum import Maximum
from odinfer.uncertainty.profile_limits.bracket import Point, Way
from odinfer.uncertainty.profile_limits.profile_multistart import Claims, _Search, asked_elsewhere
from odinfer.uncertainty.profile_limits.start_archive import Pool


def asked(maximum, values, side=(-1.0, -1.0, 1.0, 1.0), best=None):
    """What becomes of claims about the ends of both parameters, all of them at the maximum itself otherwise."""
    u = maximum.like.unknowns
    v = u.join([p.x0 for p in maximum.refined.paths], maximum.phi) if best is None else best
    place, side = np.tile(u.phi_index, 2), np.array(side)
    limit, bound = far_from(maximum, place, side)
    fall = maximum.info.fall(u.unit(place), 0.95)
    claims = Claims(
        place,
        side,
        fall,
        limit,
        limit == bound,
        np.asarray(values),
        np.tile(v, (len(place), 1)),
        *np.zeros((2, len(place))),
    )
    return asked_elsewhere(maximum.problem, v, maximum.objective, claims, 0.02), fall, limit


@pytest.fixture
def search(growth_fit):
    """Of the upper end of the first parameter, of which nothing is known."""
    maximum = growth_fit.maximum()
    j = int(maximum.like.unknowns.phi_index[0])
    half = 0.5 * float(maximum.info.fall(maximum.like.unknowns.unit(np.array([j])), 0.95)[0])
    way = Way(j, 1.0, half, float(maximum.v[j]), 1e3, 1e-9, 0.02, [Point(0.0, 0.0, maximum.v)])
    return _Search.of(maximum.problem, maximum.v, maximum.objective, [way], Pool(np.full(len(maximum.v), 1e-9)))


def beside(search, distance):
    """Unknowns at a distance from the maximum that are not at their best, and the rise of the objective."""
    v = search.best.copy()
    v[search.ways[0].place] += distance
    return v, float(search.solver.solve(v[None]).worth.value[0]) - search.top


@pytest.mark.parametrize("far", [0.5, 1.6, np.nan])
def test_ends_that_are_too_near_too_far_or_unknown_are_where_the_likelihood_has_fallen(growth_fit, far):
    maximum = growth_fit.maximum()
    low, high, found = parameter_ends(maximum, 0.95)
    assert not len(found.lost)
    ends, best = np.concatenate([low, high]), np.tile(maximum.phi, 2)
    answers, fall, _ = asked(maximum, best + far * (ends - best))
    assert answers.value == pytest.approx(ends, rel=0.02)
    assert 2 * answers.rise == pytest.approx(fall, rel=0.03)
    assert not answers.lost.any()
    assert answers.higher is None


def test_an_end_is_open_only_if_the_likelihood_far_out_says_so():
    t = np.linspace(0.0, 4.0, 15)
    y = 3.0 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(0).normal(size=15)
    fit = od.fit(od.Model.from_text("S' = -V*S/(K + S); log V, K"), od.Data(t, y, states=["S"]))
    maximum = fit.maximum()
    low = np.array([fit.interval()[name][0] for name in ("V", "K")])
    answers, fall, limit = asked(maximum, np.full(4, np.nan))
    assert answers.value[:2] == pytest.approx(np.log(low), abs=0.03)
    assert (answers.value[2:] == limit[2:]).all()
    assert (2 * answers.rise[2:] <= fall[2:]).all()


def test_what_is_higher_than_a_supposed_maximum_is_met_and_climbed(growth_fit):
    maximum = growth_fit.maximum()
    problem, scale, r = maximum.problem, maximum.like.scale, 0.8 * growth_fit.theta["r"]
    fixed = problem.holding("r", r)
    held = refine(fixed, scale, [replace(p, problem=fixed) for p in maximum.refined.paths], maximum.phi[1:])
    paths = [replace(p, problem=problem) for p in held.paths]
    aside = refine(problem, scale, paths, np.append(r, held.phi), max_iterations=0)
    supposed = Maximum.of(problem, scale, aside)
    assert supposed.objective > maximum.objective + 0.5
    v = maximum.like.unknowns.join([p.x0 for p in aside.paths], aside.phi)
    answers, *_ = asked(supposed, np.full(4, np.nan), best=v)
    assert answers.higher is not None
    assert supposed.above(answers.higher).objective == pytest.approx(maximum.objective, abs=1e-3)


def test_ends_are_found_though_something_higher_could_not_be_climbed(growth_fit):
    maximum = growth_fit.maximum()
    objective, v = maximum.objective, maximum.like.unknowns.join([p.x0 for p in maximum.refined.paths], maximum.phi)
    v[-1] *= 1.03  # beside the maximum, so that something is higher
    aside = SideBySide.of(maximum.problem, 1e-6).solve(v[None]).worth.value[0]
    assert aside > objective + 0.15
    place, side = maximum.like.unknowns.phi_index[:1], np.array([1.0])
    fall, (limit, bound) = maximum.info.fall(maximum.like.unknowns.unit(place), 0.95), far_from(maximum, place, side)
    claims = Claims(place, side, fall, limit, limit == bound, np.full(1, np.nan), v[None], *np.zeros((2, 1)))
    stopped, went_on = (
        asked_elsewhere(maximum.problem, v, aside, claims, 0.02, climbing=climbing) for climbing in (True, False)
    )
    assert stopped.higher is not None
    assert went_on.higher is None
    assert not went_on.lost.any()
    assert 2.0 * went_on.rise[0] == pytest.approx(fall[0], rel=0.025)


def test_where_other_searches_have_ended_counts():
    """x' = −k²x has the same trajectories for k and −k: one that is known leads beyond the barrier between them."""
    t = np.linspace(0.0, 4.0, 15)
    y = 3.0 * np.exp(-0.49 * t) + 0.3 * np.random.default_rng(0).normal(size=15)
    fit = od.fit(od.Model.from_text("x' = -k^2*x"), od.Data(t, y, states=["x"]))
    maximum = fit.maximum()
    v = np.append(maximum.refined.paths[0].x0, maximum.phi)
    side, place = np.array([-np.sign(v[1])]), np.array([1])
    fall, (limit, bound) = maximum.info.fall(np.eye(2)[1:], 0.95), far_from(maximum, place, side)
    claims = Claims(place, side, fall, limit, limit == bound, np.full(1, np.nan), v[None], *np.zeros((2, 1)))
    other = np.array([[v[0], -v[1]]])
    answers = asked_elsewhere(maximum.problem, v, maximum.objective, claims, 0.02, known=other)
    assert any(p.v[1] * v[1] < 0 and p.root < 0.1 for p in answers.ways[0].points)
    assert answers.value[0] * v[1] > 0  # the barrier is an end all the same
    assert not answers.lost[0]


def test_trajectories_that_cannot_follow_the_maximum_are_not_asked(growth_fit):
    maximum = growth_fit.maximum()
    v = maximum.like.unknowns.join([p.x0 for p in maximum.refined.paths], maximum.phi)
    claims = Claims(*np.zeros((9, 0)))
    assert asked_elsewhere(maximum.problem, v, maximum.objective - 1.0, claims, 0.02) is None


def test_what_is_inside_for_one_unknown_counts_for_all():
    # k is determined as a + b only; wherever a goes, b follows, and each is evidence for the other.
    t = np.linspace(0.0, 4.0, 15)
    y = 3.0 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(0).normal(size=15)
    fit = od.fit(od.Model.from_text("x' = -(a + b)*x"), od.Data(t, y, states=["x"]))
    assert all(ends == (-np.inf, np.inf) for ends in fit.interval().values())
    assert not any("could not be followed" in note for note in fit.warnings)


def test_intervals_and_profiles_of_all_levels_speak_of_one_likelihood():
    # Noise that hides where saturation begins: ends are open, and far from where the curvature puts them.
    t = np.linspace(0.0, 4.0, 12)
    y = 3.0 * np.exp(-0.7 * t) + 0.1 * np.random.default_rng(1).normal(size=12)
    fit = od.fit(od.Model.from_text("S' = -V*S/(K + S)"), od.Data(t, y, states=["S"]))
    assert fit.maximum().ends[2].ways
    for name, ends in fit.interval().items():
        np.testing.assert_allclose(fit.profile(name).interval(), ends, rtol=1e-6)
        for level in (0.8, 0.99):
            low, high = fit.interval(level)[name]
            inner, outer = sorted([ends, (low, high)], key=lambda pair: (pair == ends) == (level > 0.95), reverse=True)
            assert outer[0] <= inner[0] <= inner[1] <= outer[1]


def share_of_fall(judge, family, seed, name, side, **bounds):
    """An end of a parameter of a random problem, and what the likelihood has fallen there by, as a share."""
    text, problem, _ = judge.random_problem(family, seed)
    problem = replace(problem, bounds=bounds)
    fit = od.fit(problem)
    best, j = fit.maximum(), problem.free.index(name)
    end, u, by_scipy = fit.interval()[name][side], best.like.unknowns, judge.Judge(text, problem)
    fall = float(best.info.fall(u.unit(u.phi_index[j : j + 1]), 0.95)[0])
    top, _ = by_scipy.fitted(by_scipy.unknowns([p.x0 for p in best.refined.paths], best.phi))
    there, _ = by_scipy.fitted(best.ends[2].v[j + side * len(best.phi)], int(u.phi_index[j]), end)
    return end, 2.0 * (there - top) / fall


def test_an_interval_goes_on_behind_a_pole(judge):
    """x' = a − v·x/(k + x): as k goes to 0 from either side, a and v go to infinity, and v·k stays."""
    end, share = share_of_fall(judge, "saturating uptake", 16047, "k", 0)
    assert -0.1 < end < -0.03
    assert share == pytest.approx(1.0, abs=0.03)


def test_an_interval_goes_on_where_others_have_gone_through_infinity(judge):
    """x' = a − v·x/(k + x), nearly linear: v and k are 7,000 and 5,000, and at a smaller a some −1 both."""
    end, share = share_of_fall(judge, "saturating uptake", 19086, "a", 0, a=(0.0, np.inf))
    assert 0.07 < end < 0.11
    assert share == pytest.approx(1.0, abs=0.03)


def test_an_interval_goes_on_by_another_of_odins_minima_and_a_warning_names_it(judge):
    """x' = b + v·x²/(K² + x²) − d·x: both v = −21 and v = 2.7 fit, and the second for larger b."""
    _, problem, _ = judge.random_problem("hill", 22181)
    fit = od.fit(problem, seed=22181)
    assert fit.interval()["b"][1] == pytest.approx(0.296, abs=0.01)
    (said,) = [note for note in fit.maximum().intervals().notes if note.startswith("other values fit nearly as well")]
    assert "lower by only 0.86 at b = -0.111, v = 2.71, K = 0.683, d = 0.945" in said


def test_places_at_their_best_go_along_a_ridge_as_an_unknown_moves(search):
    (way,) = search.ways
    value = way.start * 1.02
    (moved,) = search.moved(search.best[None], way.place, value)
    assert moved[way.place] == value
    there = np.where(np.arange(len(moved)) == way.place, moved, search.best)
    rise = search.solver.solve(np.stack([moved, there])).worth.value - search.top
    best = follow(search.solver, moved[None], held=Held(np.array([way.place]), np.array([value]))).value[0] - search.top
    assert rise[0] == pytest.approx(best, rel=0.1)
    assert rise[1] > 1.5 * best


@pytest.mark.slow
def test_what_only_a_square_has_ends_at_the_same_size_on_both_sides(judge):
    _, problem, _ = judge.random_problem("hill", 16103)
    low, high = od.fit(problem).interval()["K"]
    assert -low == pytest.approx(high, rel=0.02)


def test_an_epidemic_that_may_have_started_from_nothing_has_no_largest_rate():
    t = np.array([0.0, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0])
    exact = np.stack([t == 0.0, np.where(t == 0.0, 0.0, 0.9 * np.exp(-0.1 * (t - 2.0)))], 1)
    y = exact + 0.05 * np.random.default_rng(1).normal(size=(8, 2))
    fit = od.fit(od.Model.from_text("S' = -b*S*I; I' = b*S*I - g*I"), od.Data(t, y, states=["S", "I"]))
    assert fit.interval()["b"][1] == np.inf
    assert np.isfinite(fit.interval()["g"]).all()


def test_what_a_mesh_says_is_inside_counts_only_if_trajectories_agree(growth_fit):
    maximum = growth_fit.maximum()
    u = maximum.like.unknowns
    v = u.join([p.x0 for p in maximum.refined.paths], maximum.phi)
    _, high, _ = parameter_ends(maximum, 0.95)
    place, side, fall = u.phi_index[:1], np.ones(1), maximum.info.fall(u.unit(u.phi_index[:1]), 0.95)
    limit, bound = far_from(maximum, place, side)
    far = v.copy()
    far[place] += 5.0 * (high[:1] - v[place])  # far outside, whatever is said of it
    said = Claims(
        place, side, fall, limit, limit == bound, np.full(1, np.nan), far[None], far[place] - v[place], 0.0 * fall
    )
    answers = asked_elsewhere(maximum.problem, v, maximum.objective, said, 0.02)
    assert answers.value == pytest.approx(high[:1], rel=0.02)


def test_an_end_that_is_not_at_the_best_of_all_else_is_none(search):
    (way,) = search.ways
    distance = brentq(lambda d: beside(search, d)[1] - way.half, 0.0, 10.0 * way.start)
    v, rise = beside(search, distance)
    way.add(distance, rise, v)
    assert way.end is not None
    assert search.doubted()
    assert way.end is None
    assert way.points[1].root < 0.9
    assert not search.doubted()


def test_an_end_at_the_best_of_all_else_is_not_doubted(growth_fit, search):
    low, high, found = parameter_ends(growth_fit.maximum(), 0.95)
    (way,) = search.ways
    way.add(float(high[0]) - way.start, way.half, found.v[len(low)])
    assert way.end is not None
    assert not search.doubted()


def test_a_likelihood_that_can_be_followed_in_short_steps_does_not_jump(growth_fit, search):
    high = parameter_ends(growth_fit.maximum(), 0.95)[1]
    (way,) = search.ways
    end = float(high[0]) - way.start
    way.add(0.4990 * end, 0.2 * way.half, search.best)
    way.add(0.4993 * end, 9.0 * way.half, search.best)
    assert way.jumps
    search.follow_jump(way)
    assert way.lost or way.bracket[0].distance > 0.4991 * end
    assert all(p.blocked for p in way.points if p.root > 2.0)
