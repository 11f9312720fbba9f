"""Trajectories side by side: each reaches the maximum that it reaches alone, and what is held stays there."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import odinfer as od
from odinfer.gp.standardisation import Units
from odinfer.likelihood import refinement as rf
from odinfer.likelihood.collocation_batch import CollocationTrajectories
from odinfer.likelihood.likelihood import Likelihood
from odinfer.uncertainty.quantities import HeldState, HeldUnknown

T = np.linspace(0.0, 3.0, 10)


@pytest.fixture(scope="module")
def data(decay_data) -> od.Data:
    y = 2.0 * np.exp(-0.7 * T) + 0.05 * np.random.default_rng(3).normal(size=10)
    y[4] = np.nan
    return od.Data.join({"one": decay_data, "two": od.Data(T, y, states=["x"])})


@pytest.fixture(scope="module")
def problem(decay, data) -> od.Problem:
    return od.Problem(decay, data, positive=False)


def refined(problem: od.Problem) -> rf.TrajectoryOptimum:
    """From the truth, as far as it is free."""
    states = [
        (e.t, x0 * np.exp(-0.7 * e.t)[:, None]) for e, x0 in zip(problem.data.experiments, (3.0, 2.0), strict=True)
    ]
    found = rf.refine_from(problem, np.array([problem.fixed.get("k", 0.7)]), states)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def best(problem) -> rf.TrajectoryOptimum:
    return refined(problem)


@pytest.fixture(scope="module")
def on(problem, best) -> CollocationTrajectories:
    return CollocationTrajectories.of(Likelihood(problem, Units.of(problem).scale), best)


def test_copies_of_a_maximum_have_its_objective_and_states(on, best):
    batch = on.start(best, 3)
    np.testing.assert_allclose(batch.value, best.objective, rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(batch.noise), np.tile(best.sigma, (3, 1)), rtol=1e-9)
    for x, path, t in zip(on.states_at(batch, on.likelihood.t), best.paths, on.likelihood.t, strict=True):
        np.testing.assert_array_equal(x, np.tile(path.states(t), (3, 1, 1)))


def test_after_a_step_the_trajectories_solve_the_equations_again(on, best):
    move = np.array([[0.3, -0.2, 0.1], [-0.5, 0.4, -0.3]])
    found = on.move(on.start(best, 2), move)
    v = np.concatenate([*(p.x0 for p in best.paths), best.phi]) + move
    np.testing.assert_allclose(np.concatenate([*found.x0, found.phi], 1), v)
    for e, x in enumerate(on.states_at(found, on.likelihood.t)):
        right = v[:, e, None] * np.exp(-v[:, 2:] * on.likelihood.t[e])
        np.testing.assert_allclose(x[..., 0], right, rtol=1e-6)
        h = 1e-6
        S = found.lins[e].nodes[:, :, 0, :-1]
        mesh = on.meshes[e]
        np.testing.assert_allclose(S[..., 0], np.exp(-v[:, 2:] * mesh), rtol=1e-4)
        slope = v[:, e, None] * (np.exp(-(v[:, 2:] + h) * mesh) - np.exp(-(v[:, 2:] - h) * mesh)) / (2 * h)
        np.testing.assert_allclose(S[..., 1], slope, rtol=1e-3, atol=1e-5)


def test_where_there_is_no_trajectory_the_objective_is_infinite_and_the_others_go_on():
    model = od.Model.from_text("x' = k*x^2")
    t = np.linspace(0.0, 1.0, 9)
    data = od.Data(t, 1 / (1 - 0.5 * t) + 0.01 * np.random.default_rng(0).normal(size=9), states=["x"])
    problem = od.Problem(model, data, positive=False)
    best = rf.refine_from(problem, np.array([0.5]), [(t, (1 / (1 - 0.5 * t))[:, None])])
    on = CollocationTrajectories.of(Likelihood(problem, np.ones(1)), best)
    found = on.move(on.start(best, 2), np.array([[0.0, 4.0], [0.0, 0.01]]))  # x = 1/(1 − 4.5 t) ends before t = 1
    assert found.value[0] == np.inf
    assert np.isfinite(found.value[1])
    again = on.maximise(found)
    assert again.value[0] == np.inf
    np.testing.assert_array_equal(again.phi[0], found.phi[0])
    assert again.value[1] == pytest.approx(best.objective, abs=1e-6)
    nowhere = found.take(np.array([0]))
    assert on.maximise(nowhere) is nowhere


def test_each_is_carried_to_the_maximum_that_refinement_finds_alone(problem, best, on):
    rng = np.random.default_rng(5)
    y = [e.y + 0.1 * rng.normal(size=(4, *e.y.shape)) for e in problem.data.experiments]
    own = CollocationTrajectories.of(on.likelihood.with_observations(y), best)
    found = own.maximise(own.start(best, 4))
    names = [e.name for e in problem.data.experiments]
    for b in range(4):
        sets = [od.Data(e.t, yy[b], states=["x"]) for e, yy in zip(problem.data.experiments, y, strict=True)]
        alone = refined(od.Problem(problem.model, od.Data.join(dict(zip(names, sets, strict=True))), positive=False))
        assert found.value[b] == pytest.approx(alone.objective, abs=1e-5)
        np.testing.assert_allclose(found.phi[b], alone.phi, rtol=1e-4)
        for x0, path in zip(found.x0, alone.paths, strict=True):
            np.testing.assert_allclose(x0[b], path.x0, rtol=1e-4)


def test_a_batch_is_carried_where_each_alone_is(on, best):
    start = on.move(on.start(best, 3), np.array([[0.5, 0.0, 0.3], [0.0, -0.4, -0.2], [0.0, 0.0, 0.0]]))
    together = on.maximise(start)
    for b in range(3):
        alone = on.maximise(start.take(np.array([b])))
        np.testing.assert_allclose(together.phi[b], alone.phi[0], rtol=1e-9)
        assert together.value[b] == pytest.approx(alone.value[0], abs=1e-10)
    np.testing.assert_allclose(together.value, best.objective, atol=1e-6)


def test_a_held_parameter_stays_at_its_target_and_the_rest_is_at_its_best(problem, best, on):
    targets = best.phi[0] + np.array([-0.1, 0.02, 0.2])
    held = HeldUnknown(on.likelihood.unknowns, on.likelihood.unknowns.phi_index[[0, 0, 0]])
    found = on.maximise(on.start(best, 3), held, targets)
    np.testing.assert_allclose(found.phi[:, 0], targets, rtol=1e-9)
    for target, value in zip(targets, found.value, strict=True):
        alone = refined(od.Problem(problem.model, problem.data, fixed={"k": float(target)}, positive=False))
        assert value == pytest.approx(alone.objective, abs=1e-5)


def test_a_held_state_stays_at_its_target_and_the_rest_is_at_its_best(on, best):
    node = len(on.meshes[0]) - 1
    held = HeldState(on.likelihood.unknowns, 0, np.full(2, node), np.zeros(2, int))
    start = on.start(best, 2)
    targets = held.value(start) * np.array([0.8, 1.3])
    found = on.maximise(start, held, targets)
    np.testing.assert_allclose(held.value(found), targets, rtol=1e-5)
    for target, value in zip(targets, found.value, strict=True):
        alone = minimize_scalar(
            lambda k, q=target: constrained(on.likelihood, q, k), bounds=(0.3, 1.2), method="bounded"
        )
        assert value == pytest.approx(alone.fun, abs=1e-5)
        assert value > best.objective + 1e-3


def constrained(likelihood: Likelihood, last: float, k: float) -> float:
    """The objective where the first experiment ends at `last`, all but k at its best."""
    total, n = 0.0, 0
    for e, (t, y) in enumerate(zip(likelihood.t, likelihood.y, strict=True)):
        shape, y = np.exp(-k * t), y[0, :, 0]
        seen = np.isfinite(y)
        x0 = last / shape[-1] if e == 0 else (shape[seen] @ y[seen]) / (shape[seen] @ shape[seen])
        total, n = total + ((x0 * shape - y)[seen] ** 2).sum(), n + seen.sum()
    return 0.5 * n * (np.log(2 * np.pi * total / n) + 1.0)


def test_what_is_taken_can_be_put_back(on, best):
    batch = on.move(on.start(best, 4), 0.1 * np.arange(12.0).reshape(4, 3) / 12)
    some = np.array([3, 1])
    back = on.start(best, 4).put(some, batch.take(some))
    for b in range(4):
        source = batch if b in some else on.start(best, 4)
        assert back.value[b] == source.value[b]
        np.testing.assert_array_equal(back.phi[b], source.phi[b])
        for e in range(2):
            np.testing.assert_array_equal(back.Z[e][b], source.Z[e][b])
            np.testing.assert_array_equal(back.lins[e].nodes[b], source.lins[e].nodes[b])


def test_bounds_hold_while_the_likelihood_is_maximised(decay, data, best):
    problem = od.Problem(decay, data, bounds={"k": (None, 0.6), "x": (0.0, 2.5)}, positive=False)
    on = CollocationTrajectories.of(Likelihood(problem, Units.of(problem).scale), best)
    inside = on.move(
        on.start(best, 1), np.array([[2.4, 1.9, 0.55]]) - np.concatenate([*(p.x0 for p in best.paths), best.phi])
    )
    found = on.maximise(inside)
    assert found.phi[0, 0] == pytest.approx(0.6)
    assert found.phi[0, 0] <= 0.6
    assert found.x0[0][0, 0] == pytest.approx(2.5)
    assert found.x0[0][0, 0] <= 2.5
    assert found.value[0] < inside.value[0]
