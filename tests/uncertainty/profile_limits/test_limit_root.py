"""Ends of likelihood intervals: the likelihood, maximised anew by scipy, has fallen there by what was asked for."""

import numpy as np
import pytest

import odinfer as od
from odinfer.uncertainty.profile_limits.constraints import HeldState, HeldUnknown
from odinfer.uncertainty.profile_limits.limit_root import Wanted, find_ends
from uncertainty.growth import fall_at_parameter, fall_at_state

BOTH = np.array([-1.0, 1.0])


def wanted_of(maximum, held, best, side, fall, limit=np.inf) -> Wanted:
    sd = maximum.info.spread(held.gradient(best))[0]
    return Wanted(side, np.broadcast_to(fall, side.shape).astype(float), sd, side * limit)


@pytest.mark.parametrize("name", ["r", "K"])
def test_at_ends_of_a_parameter_the_likelihood_has_fallen_by_what_was_asked_for(
    logistic, growth_fit, maximum, on, name
):
    side, asked = np.repeat(BOTH, 2), np.tile([1.0, 5.0], 2)
    held = HeldUnknown(maximum.like.unknowns, np.full(4, maximum.like.unknowns.names.index(name)))
    best = on.start(maximum.refined, 4)
    found = find_ends(on, best, held, wanted_of(maximum, held, best, side, asked, 1e6), tolerance=0.01)
    assert len(found.lost) == 0
    estimate = growth_fit.theta[name]
    assert (side * (found.values - estimate) > 0).all()
    for value, fall in zip(found.values, asked, strict=True):
        assert fall_at_parameter(logistic, growth_fit, name, float(value)) == pytest.approx(fall, rel=0.03)


@pytest.mark.parametrize("log", [False, True])
def test_at_ends_of_a_state_the_likelihood_has_fallen_by_what_was_asked_for(growth_fit, maximum, on, log):
    node = len(on.meshes[0]) // 2
    held = HeldState(maximum.like.unknowns, 0, np.full(2, node), np.zeros(2, int), log=log)
    best = on.start(maximum.refined, 2)
    found = find_ends(on, best, held, wanted_of(maximum, held, best, BOTH, 3.84, 1e6), tolerance=0.01)
    values = np.exp(found.values) if log else found.values
    for value in values:
        assert fall_at_state(growth_fit, on.meshes[0][node], float(value)) == pytest.approx(3.84, rel=0.03)


def test_trajectories_at_the_ends_have_the_held_value(maximum, on):
    held = HeldUnknown(maximum.like.unknowns, maximum.like.unknowns.phi_index[[0, 0]])
    best = on.start(maximum.refined, 2)
    found = find_ends(on, best, held, wanted_of(maximum, held, best, BOTH, 3.84, 1e6))
    np.testing.assert_allclose(held.value(found.batch), found.values, rtol=0.02)
    assert 2 * (found.batch.value - best.value) == pytest.approx(np.full(2, 3.84), rel=0.1)


def test_an_end_of_a_state_is_where_its_trajectory_is(maximum, on):
    # It is held in first order only: where it should have been can lie where no trajectory goes.
    held = HeldState(maximum.like.unknowns, 0, np.full(2, len(on.meshes[0]) // 3), np.zeros(2, int))
    best = on.start(maximum.refined, 2)
    found = find_ends(on, best, held, wanted_of(maximum, held, best, BOTH, 3.84, 1e6))
    assert not len(found.lost)
    np.testing.assert_array_equal(held.value(found.batch), found.values)


def test_a_limit_that_comes_first_is_the_end(maximum, on):
    held = HeldUnknown(maximum.like.unknowns, maximum.like.unknowns.phi_index[[1, 1]])
    best = on.start(maximum.refined, 2)
    sd = maximum.info.spread(held.gradient(best))[0]
    limit = held.value(best) + BOTH * np.array([0.3, 0.6]) * sd
    found = find_ends(on, best, held, Wanted(BOTH, np.full(2, 3.84), sd, limit))
    np.testing.assert_array_equal(found.values, limit)
    at_once = find_ends(on, best, held, Wanted(BOTH, np.full(2, 3.84), sd, held.value(best)))
    np.testing.assert_array_equal(at_once.values, held.value(best))


def test_many_at_once_are_what_each_alone_is(maximum, on):
    index, side = maximum.like.unknowns.phi_index[[0, 0, 1, 1]], np.tile(BOTH, 2)
    held, best = HeldUnknown(maximum.like.unknowns, index), on.start(maximum.refined, 4)
    asked = wanted_of(maximum, held, best, side, 3.84, 1e6)
    together = find_ends(on, best, held, asked).values
    for b in range(4):
        own = np.array([b])
        alone = find_ends(on, best.take(own), held.take(own), Wanted(*(v[own] for v in asked)))
        assert together[b] == pytest.approx(alone.values[0], rel=1e-9)


@pytest.mark.parametrize(
    ("name", "seed"),
    [("relaxation", 5), ("logistic", 2), ("michaelis-menten", 3), ("oscillator", 4), ("gompertz", 7), ("epidemic", 9)],
)
def test_at_every_printed_end_scipy_finds_the_fall_that_belongs_to_it(judge, name, seed):
    text, problem, truth = judge.random_problem(name, seed)
    found = judge.measured(text, problem, seed, truth=truth)
    assert found["gain"] < 1e-3
    assert len(found["ends"]) == 4 * len(problem.free)
    for _, _, _, end, share in found["ends"]:
        assert np.isfinite(end)
        assert share == pytest.approx(1.0, abs=0.03)


def test_an_end_on_a_profile_that_hardly_rises_is_still_an_end(judge):
    # Towards large a the fall levels off at 1.4 times what belongs to the interval.
    text, problem, _ = judge.random_problem("saturating uptake", 1008)
    fit = od.fit(problem)
    own, drawn = fit.interval()["a"], fit.profile("a").interval()
    np.testing.assert_allclose(own, drawn, rtol=0.02)
    assert 1.6 < own[1] < 2.0
    best = fit.maximum()
    fall = float(best.info.fall(best.like.unknowns.unit(best.like.unknowns.phi_index[:1]), 0.95)[0])
    by_scipy = judge.Judge(text, problem)
    top, v = by_scipy.fitted(by_scipy.unknowns([p.x0 for p in best.refined.paths], best.phi))
    drop = next(iter(judge.drops(by_scipy, top, v, by_scipy.before, [own[1]])))
    assert drop / fall == pytest.approx(1.0, abs=0.03)
