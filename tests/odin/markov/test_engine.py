"""The engine for long series: dense algebra's minimum, curves and bands, and series that dense algebra cannot hold."""

import numpy as np
import pytest

import odinfer as od
from odin.markov.chains import both, two_experiments
from odinfer.odin.gamma import GammaRule
from odinfer.odin.markov.engine import Markov


@pytest.fixture(scope="module", params=[False, True], ids=["free", "bounded"])
def solved(request, lv):
    bounds = {lv.model.parameters[2]: (0.0, 3.5)} if request.param else {}
    dense, chains = both(two_experiments(lv, bounds=bounds), jitter=1e-5)
    start = np.array([1.7, 1.2, 3.4, 0.8])
    return [(e, e.minimise(e.mean, start, GammaRule())) for e in (dense, chains)]


def test_the_minimum_is_that_of_dense_algebra(solved):
    (_, mine), (_, other) = solved
    assert mine.converged
    assert other.converged
    assert mine.risk == pytest.approx(other.risk, abs=0.01)
    np.testing.assert_allclose(mine.phi, other.phi, rtol=1e-3)
    np.testing.assert_allclose(mine.gamma, other.gamma, rtol=1e-2)
    np.testing.assert_allclose(mine.z, other.z, atol=1e-3)


def test_curves_bands_and_gradients_are_those_of_dense_algebra(solved):
    (dense, s), (chains, _) = solved
    for mine, other in zip(chains.curves(s), dense.curves(s), strict=True):
        x, slope, sd = other.at(mine.t)
        np.testing.assert_allclose(mine.x, x, atol=1e-6)
        np.testing.assert_allclose(mine.sd, sd, rtol=1e-2)
        np.testing.assert_allclose(mine.slope, slope, atol=1e-3 * np.abs(slope).max())
    for mine, other in zip(chains.gradients(s), dense.gradients(s), strict=True):
        np.testing.assert_array_equal(mine.t, other.t)
        np.testing.assert_allclose(mine.f, other.f)
        np.testing.assert_allclose(mine.gp, other.gp, atol=1e-3 * np.abs(other.gp).max())
        np.testing.assert_allclose(mine.sd, other.sd, rtol=1e-3)
    for mine, other in zip(chains.mean_curves(), dense.mean_curves(), strict=True):
        np.testing.assert_allclose(mine.x, other.x, atol=1e-6)


def test_starts_are_matched_as_by_dense_algebra(solved):
    (dense, _), (chains, _) = solved
    phi = np.array([[1.0, 1.0, 1.0, 1.0], [3.0, 0.5, 2.0, 2.0]])
    for mine, other in zip(chains.match(phi), dense.match(phi), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-3)


@pytest.mark.parametrize("optimizer", ["gauss-newton", "lbfgsb"])
def test_either_optimiser_goes_through_chains(lv, optimizer):
    problem = od.Problem(lv.model, lv.sample(0.1, 3), positive=False)
    mine, other = (
        od.Odin(kernel="matern52", algebra=a, optimizer=optimizer, jitter=1e-3, refine=False, starts=2).solve(problem)
        for a in ("markov", "dense")
    )
    assert isinstance(mine.engine, Markov)
    assert mine.solutions[0].risk == pytest.approx(other.solutions[0].risk, abs=0.05)


def test_twenty_thousand_times_are_no_trouble(lv):
    problem = od.Problem(lv.model, lv.sample(0.1, 0, np.linspace(0.0, 2.0, 20_000)), positive=False)
    minima = od.Odin().solve(problem)
    assert isinstance(minima.engine, Markov)
    assert len(minima.engine.t) < 3000
    assert minima.solutions[0].converged
    np.testing.assert_allclose(problem.theta(minima.solutions[0].phi), [2.0, 1.0, 4.0, 1.0], rtol=0.02)
    np.testing.assert_allclose(
        np.sqrt([h.noise for h in minima.engine.hypers]) * minima.engine.units.scale, 0.1, rtol=0.02
    )


def test_repeated_times_are_joined(lv):
    t = np.repeat(np.linspace(0.0, 2.0, 12), 2) + np.tile([0.0, 1e-12], 12)
    rng = np.random.default_rng(0)
    x = lv.sample(1e-9, 0, np.linspace(0.0, 2.0, 12)).y
    data = od.Data(t, np.repeat(x, 2, 0) + 0.1 * rng.normal(size=(24, 2)), states=lv.model.states)
    engine = od.Odin(algebra="markov", grid=1).risk(od.Problem(lv.model, data, positive=False))
    assert len(engine.t) == 12
    np.testing.assert_allclose(engine.weight * [h.noise for h in engine.hypers], 2.0)
