"""What data read off a path is what stands there, and compressed data tell as much as all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.gp.standardisation import Units
from odinfer.likelihood.collocation_batch import CollocationTrajectories
from odinfer.likelihood.extension import extended
from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.observation_operator import ObservationOperator
from odinfer.likelihood.refinement import TrajectoryOptimum, refine, refine_from
from odinfer.ode.adaptive_mesh import integrated
from odinfer.ode.collocation import MANY, STAGES, CollocationPath

FEW = settings(max_examples=20, derandomize=True, deadline=None)
LV = od.systems.lotka_volterra
THETA = np.array([2.0, 1.0, 4.0, 1.0])


def long_problem(N: int = 3000, missing: float = 0.0, seed: int = 0) -> od.Problem:
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0.0, 2.0, N))
    y = LV.states(t) + 0.1 * rng.normal(size=(N, 2))
    y[rng.uniform(size=y.shape) < missing] = np.nan
    return od.Problem(LV.model, od.Data(t, y, states=LV.model.states), positive=False)


def refined(problem: od.Problem) -> TrajectoryOptimum:
    t = problem.data.t
    found = refine_from(problem, THETA, [(t, LV.states(t))])
    assert found is not None
    return found


@FEW
@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 80), st.booleans())
def test_readings_between_the_points_of_a_mesh_are_those_of_its_polynomials(seed, n, N, first):
    rng = np.random.default_rng(seed)
    mesh, t = np.sort(rng.uniform(0.0, 1.0, n + 1)), np.sort(rng.uniform(0.0, 1.0, N))
    t = mesh[0] + t * np.ptp(mesh)
    t[0] = mesh[0] if first else t[0]
    problem = od.Problem(LV.model, LV.sample(0.1, 0), positive=False)
    path = CollocationPath(problem, 0, mesh, rng.normal(size=2), rng.normal(size=(n, STAGES, 2)))
    found = ObservationOperator.of(mesh, t).read(path.nodes[None], path.begun[None], path.Z[None])[0]
    np.testing.assert_allclose(found, path.at(t)[0], atol=1e-12)
    np.testing.assert_allclose(found, path.states(t), atol=1e-12)


def test_points_of_a_mesh_are_read_to_the_last_digit():
    mesh = np.linspace(0.0, 1.0, 8)
    nodes = np.random.default_rng(0).normal(size=(3, 8, 2))
    read = ObservationOperator.of(mesh, mesh[[1, 1, 5]])
    np.testing.assert_array_equal(read.read(nodes, np.empty(0), np.empty(0)), nodes[:, [1, 1, 5]])
    assert read.compressed(nodes)[0] is read


@FEW
@given(st.integers(0, 1000), st.integers(1, 5), st.integers(1, 120), st.sampled_from([0.0, 0.2, 0.9]))
def test_compressed_data_have_the_same_distance_to_every_path(seed, n, N, missing):
    rng = np.random.default_rng(seed)
    mesh, t = np.linspace(0.0, 1.0, n + 1), np.sort(rng.uniform(0.0, 1.0, N))
    y = rng.normal(size=(3, N, 2))
    y[:, rng.uniform(size=(N, 2)) < missing] = np.nan
    every = ObservationOperator.of(mesh, t)
    few, target = every.compressed(y)
    assert len(few.interval) <= 1 + max(N, 10 * n)
    assert len(few.interval) <= 1 + N
    nodes, stages = rng.normal(size=(3, n + 1, 2)), rng.normal(size=(3, n, STAGES, 2))
    far = np.nansum((every.read(nodes, nodes[:, :-1], stages) - y) ** 2, 1)
    np.testing.assert_allclose(np.nansum((few.read(nodes, nodes[:, :-1], stages) - target) ** 2, 1), far, rtol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_likelihood_of_many_times_and_its_derivatives_are_those_of_all_observations(missing):
    problem = long_problem(missing=missing)
    best = refined(problem)
    likelihood = Likelihood(problem, Units.of(problem).scale)
    assert len(best.paths[0].mesh) < 200 < MANY + 1 < len(likelihood.t[0])
    seen = likelihood.on([best.paths[0].mesh])
    assert seen.likelihood.y[0].shape[1] < 0.5 * len(likelihood.t[0])
    worth = likelihood.evaluate(best.states(likelihood.t), best.phi[None])
    assert worth.loglik[0] == pytest.approx(best.loglik, rel=1e-12)
    np.testing.assert_allclose(np.sqrt(worth.noise[0]), best.sigma, rtol=1e-10)
    S = best.paths[0].sensitivity_at(best.condensed[0], likelihood.t[0])[None]
    H, g = likelihood.normal(best.states(likelihood.t), [S], worth.noise, best.phi[None])
    np.testing.assert_allclose(best.information.dense(), H.dense(), rtol=1e-8, atol=1e-8 * H.diagonal.max())
    on = CollocationTrajectories.of(likelihood, best)
    batch = on.start(best, 3)
    found = on.normal(batch)
    for mine, right in ((found[0].dense(), H.dense()), (found[1], g)):
        np.testing.assert_allclose(mine[1], right[0], rtol=1e-8, atol=1e-8)


def test_many_times_have_the_maximum_that_they_have_as_points_of_a_mesh():
    problem = long_problem(400)
    t = problem.data.t
    scale = Units.of(problem).scale
    theta, x0 = THETA, LV.states(t[:1])[0]
    path = integrated(problem, 0, theta, x0, scale, times=t, tolerance=1e-7)
    assert path is not None
    assert np.isin(t, path.mesh).all()
    dense = refine(problem, scale, [path], theta)
    coarse = refined(problem)
    assert dense is not None
    assert len(coarse.paths[0].mesh) < len(dense.paths[0].mesh) / 3
    assert coarse.loglik == pytest.approx(dense.loglik, abs=1e-5)
    np.testing.assert_allclose(coarse.phi, dense.phi, rtol=1e-6)


def test_jumps_are_read_before_them_and_followed_after_them():
    model = od.Model.from_text("x' = -k*x\nat 1: x = x + 2\nx(0) = 1")
    t = np.linspace(0.0, 2.0, 501)
    right = np.where(t <= 1.0, np.exp(-t), (np.exp(-1.0) + 2.0) * np.exp(-(t - 1.0)))
    data = od.Data(t, right + 0.02 * np.random.default_rng(0).normal(size=501), states=["x"])
    problem = od.Problem(model, data, positive=False)
    path = integrated(problem, 0, np.ones(1), np.ones(1), np.ones(1))
    assert path is not None
    assert len(path.mesh) < 100
    found = od.fit(problem)
    maximum = found.cache.maximum
    assert maximum is not None
    likelihood, best = maximum.likelihood, maximum.refined
    k = best.phi[0]
    curve = np.where(t <= 1.0, np.exp(-k * t), (np.exp(-k) + 2.0) * np.exp(-k * (t - 1.0)))
    np.testing.assert_allclose(best.states([t])[0][0, :, 0], curve, atol=1e-5)
    on = CollocationTrajectories.of(likelihood, best)
    np.testing.assert_allclose(on.states_at(on.start(best, 2), [t])[0][1, :, 0], curve, atol=1e-5)
    later = extended(likelihood, best, [np.array([2.5])])
    assert later is not None
    assert later.paths[0].mesh[-1] == 2.5
