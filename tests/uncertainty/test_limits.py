"""Confidence limits lie where the likelihood, maximised anew by SciPy, reaches the threshold."""

from dataclasses import replace

import numpy as np
import pytest

import odinfer as od
from odinfer.likelihood.forward_batch import ForwardTrajectories
from odinfer.likelihood.refinement import maximise_from_initial, refine
from odinfer.uncertainty.intervals import parameter_limits
from odinfer.uncertainty.limit_verification import verified_limits
from odinfer.uncertainty.limits import Searches, find_limits
from odinfer.uncertainty.maximum import Maximum
from odinfer.uncertainty.quantities import HeldState, HeldUnknown
from uncertainty.growth import fall_at_parameter, fall_at_state

BOTH = np.array([-1.0, 1.0])


def searches_for(maximum, held, best, side, threshold, stop=1e6) -> Searches:
    threshold = np.broadcast_to(threshold, side.shape).astype(float)
    sd = maximum.info.spread(held.gradient(best))[0]
    return Searches(side, threshold, sd * np.sqrt(threshold), side * stop)


@pytest.mark.parametrize("name", ["r", "K"])
def test_limits_of_a_parameter_lie_at_the_threshold(logistic, growth_fit, maximum, on, name):
    side, threshold = np.repeat(BOTH, 2), np.tile([1.0, 5.0], 2)
    held = HeldUnknown(maximum.likelihood.unknowns, np.full(4, maximum.likelihood.unknowns.names.index(name)))
    best = on.start(maximum.refined, 4)
    found = find_limits(on, best, held, searches_for(maximum, held, best, side, threshold))
    assert not found.failed.any()
    assert (side * (found.values - growth_fit.theta[name]) > 0).all()
    for value, fall in zip(found.values, threshold, strict=True):
        assert fall_at_parameter(logistic, growth_fit, name, float(value)) == pytest.approx(fall, rel=0.02)


@pytest.mark.parametrize("log", [False, True])
def test_limits_of_a_state_lie_at_the_threshold(growth_fit, maximum, on, log):
    node = len(on.meshes[0]) // 2
    held = HeldState(maximum.likelihood.unknowns, 0, np.full(2, node), np.zeros(2, int), log=log)
    best = on.start(maximum.refined, 2)
    found = find_limits(on, best, held, searches_for(maximum, held, best, BOTH, 3.84))
    for value in np.exp(found.values) if log else found.values:
        assert fall_at_state(growth_fit, on.meshes[0][node], float(value)) == pytest.approx(3.84, rel=0.03)


def test_a_bound_inside_the_threshold_is_the_limit(maximum, on):
    held = HeldUnknown(maximum.likelihood.unknowns, maximum.likelihood.unknowns.phi_index[[1, 1]])
    best = on.start(maximum.refined, 2)
    searches = searches_for(maximum, held, best, BOTH, 3.84)
    bound = held.value(best) + BOTH * np.array([0.15, 0.3]) * searches.first
    np.testing.assert_array_equal(find_limits(on, best, held, searches._replace(stop=bound)).values, bound)
    at_once = find_limits(on, best, held, searches._replace(stop=held.value(best)))
    np.testing.assert_array_equal(at_once.values, held.value(best))


def test_limits_do_not_depend_on_the_batch(maximum, on):
    index, side = maximum.likelihood.unknowns.phi_index[[0, 0, 1, 1]], np.tile(BOTH, 2)
    held, best = HeldUnknown(maximum.likelihood.unknowns, index), on.start(maximum.refined, 4)
    searches = searches_for(maximum, held, best, side, 3.84)
    together = find_limits(on, best, held, searches).values
    for b in range(4):
        own = np.array([b])
        alone = find_limits(on, best.take(own), held.take(own), searches.take(own))
        assert together[b] == pytest.approx(alone.values[0], rel=1e-9)


@pytest.mark.parametrize(
    ("name", "seed"),
    [("relaxation", 5), ("logistic", 2), ("michaelis-menten", 3), ("oscillator", 4), ("gompertz", 7), ("epidemic", 9)],
)
def test_at_every_reported_limit_scipy_finds_the_threshold(judge, name, seed):
    text, problem, truth = judge.random_problem(name, seed)
    found = judge.measured(text, problem, seed, truth=truth)
    assert found["gain"] < 1e-3
    assert len(found["ends"]) == 4 * len(problem.free)
    for _, _, _, end, share in found["ends"]:
        assert np.isfinite(end)
        assert share == pytest.approx(1.0, abs=0.03)


def test_limits_are_right_where_a_nuisance_parameter_tends_to_zero(judge):
    """s' = −v·s/(k + s) with k → 0 at the estimate: towards larger v, k must come back."""
    text, problem, truth = judge.random_problem("michaelis-menten", 30016)
    fit = od.fit(problem)
    assert fit.theta["k"] < 1e-6
    low, high = fit.interval()["v"]
    assert fit.interval()["k"][0] == 0.0
    by_scipy, best = judge.Judge(text, problem), fit.maximum()
    threshold = best.info.fall(best.likelihood.unknowns.unit(np.array([1])), 0.95)[0]
    start = np.append(truth[:1], np.log(truth[1:]))
    for value in (low, high):
        with np.errstate(all="ignore"):
            top = by_scipy.fitted(best.profile_origin)[0]
            falls = [by_scipy.fitted(v, 1, np.log(value))[0] - top for v in (best.profile_origin, start)]
        drop = 2.0 * min(falls)
        assert drop == pytest.approx(threshold, rel=0.03)


def test_limits_are_open_where_the_profile_stays_below_the_threshold():
    # Far below saturation only V/K matters: K can be as large as it likes, but not as small.
    t = np.linspace(0.0, 4.0, 15)
    y = 3.0 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(0).normal(size=15)
    fit = od.fit(od.Model.from_text("S' = -V*S/(K + S); log V, K"), od.Data(t, y, states=["S"]))
    for name in ("V", "K"):
        low, high = fit.interval()[name]
        assert high == np.inf
        assert 0 < low < np.inf
        np.testing.assert_allclose(fit.profile(name).interval(), (low, high), rtol=1e-6)
        for level in (0.8, 0.99):
            inner, outer = sorted([fit.interval(level)[name], (low, high)], key=lambda pair: pair[0], reverse=True)
            assert outer[0] <= inner[0] <= inner[1] <= outer[1]


def test_an_epidemic_that_may_have_started_from_nothing_has_no_largest_rate():
    t = np.array([0.0, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0])
    exact = np.stack([t == 0.0, np.where(t == 0.0, 0.0, 0.9 * np.exp(-0.1 * (t - 2.0)))], 1)
    y = exact + 0.05 * np.random.default_rng(1).normal(size=(8, 2))
    fit = od.fit(od.Model.from_text("S' = -b*S*I; I' = b*S*I - g*I; log b, g"), od.Data(t, y, states=["S", "I"]))
    assert fit.interval()["b"][1] == np.inf
    assert np.isfinite(fit.interval()["g"]).all()


def test_limits_hold_where_jumps_of_the_trajectory_move_in_time():
    model = od.Model.from_text("x' = m*(y - x^3/3 + x); y' = -x/m; real m")
    t = np.linspace(0.0, 200.0, 40)
    x = od.simulate(model, {"m": 100.0}, [2.0, 0.6], t)
    y = x + 0.02 * x.std(0) * np.random.default_rng(0).normal(size=x.shape)
    problem, scale = od.Problem(model, od.Data(t, y, states=model.states)), x.std(0)
    best = maximise_from_initial(problem, scale, [y[0]], np.array([100.0]))
    m = Maximum.of(problem, best, scale)
    limits = parameter_limits(m, 0.95)
    assert not limits.found.failed.any()
    assert limits.low[0] < 100.0 < limits.high[0]
    a = m.likelihood.unknowns.unit(m.likelihood.unknowns.phi_index)
    for end in (limits.low[0], limits.high[0]):
        held = maximise_from_initial(
            od.Problem(model, problem.data, fixed={"m": end}), scale, [p.x0 for p in best.paths], np.empty(0)
        )
        assert 2 * (held.objective - best.objective) == pytest.approx(m.info.fall(a, 0.95)[0], rel=0.1)


@pytest.fixture
def aside(growth_fit):
    """A point beside the optimum of the growth curve, taken for the optimum."""
    maximum, r = growth_fit.maximum(), 0.8 * growth_fit.theta["r"]
    problem, scale, fixed = maximum.problem, maximum.likelihood.scale, maximum.problem.holding("r", r)
    held = refine(fixed, scale, [replace(p, problem=fixed) for p in maximum.refined.paths], maximum.phi[1:])
    paths = [replace(p, problem=problem) for p in held.paths]
    return Maximum.of(problem, refine(problem, scale, paths, np.append(r, held.phi), max_iterations=0), scale)


def test_a_better_optimum_is_reported_and_does_not_replace_the_estimate(growth_fit, aside):
    assert aside.objective > growth_fit.maximum().objective + 0.1
    before = aside.v.copy()
    (said,) = [note for note in aside.intervals().notes if "not the global optimum" in note]
    assert "r = " in said
    np.testing.assert_array_equal(aside.v, before)


def test_a_limit_on_the_wrong_ridge_is_moved_from_another_start(growth_fit, maximum):
    u = maximum.likelihood.unknowns
    on, held = ForwardTrajectories.of(maximum.likelihood, maximum.refined), HeldUnknown(u, u.phi_index[:1])
    best = on.start(maximum.refined, 1)
    searches = searches_for(maximum, held, best, np.ones(1), 3.84)
    right = find_limits(on, best, held, searches)
    early = replace(right, values=held.value(best) + 0.5 * (right.values - held.value(best)))
    other = maximum.v.copy()
    other[0] *= 3.0  # another start point
    found = verified_limits(on, best, held, searches, early, other[None])
    assert found.values[0] == pytest.approx(right.values[0], rel=1e-3)


def test_values_beyond_a_limit_that_fit_as_well_are_reported():
    """x' = −k²·x has the same trajectories for k and −k, with a barrier between them."""
    t = np.linspace(0.0, 4.0, 15)
    y = 3.0 * np.exp(-0.49 * t) + 0.3 * np.random.default_rng(0).normal(size=15)
    fit = od.fit(od.Model.from_text("x' = -k^2*x; real k"), od.Data(t, y, states=["x"]))
    maximum = fit.maximum()
    low, high = fit.interval()["k"]
    assert low * high > 0
    found = maximum.limits.found
    mirrored = np.array([[maximum.v[0], -maximum.v[1]]])
    limits = replace(found, visited=mirrored, objectives=np.array([maximum.objective]))
    from odinfer.uncertainty.intervals import _separate

    index, side = np.array([1, 1]), BOTH
    ends = np.append(maximum.limits.low, maximum.limits.high)
    separate = _separate(
        maximum, limits, ends, index, side, maximum.info.fall(maximum.likelihood.unknowns.unit(index), 0.95)
    )
    np.testing.assert_array_equal(separate, mirrored)
    object.__setattr__(maximum, "limits", replace(maximum.limits, separate=separate))
    (said,) = [note for note in maximum.intervals().notes if "multimodal" in note]
    assert f"k = {-maximum.v[1]:.3g}" in said


def test_a_limit_that_cannot_be_computed_is_open_and_named(growth_fit):
    maximum = replace(growth_fit.maximum())
    limits = maximum.limits
    values = limits.found.values.copy()
    values[2] = np.nan
    object.__setattr__(maximum, "limits", replace(limits, found=replace(limits.found, values=values)))
    (said,) = [note for note in maximum.intervals().notes if "could not be computed" in note]
    assert "upper confidence limit of r" in said
