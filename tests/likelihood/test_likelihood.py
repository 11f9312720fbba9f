"""The likelihood of trajectories: one is a batch of one, gradients are gradients, steps keep to their bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import odinfer as od
from odinfer.likelihood.likelihood import Likelihood
from odinfer.optimize.arrow_matrix import ArrowMatrix

FEW = settings(max_examples=25, derandomize=True, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
PRIOR = {"k": ("normal", 0.9, 0.2)}


@pytest.fixture(scope="module")
def data(decay_data) -> od.Data:
    """Two experiments, the second shorter and with a gap."""
    t = np.linspace(0.0, 2.0, 6)
    y = 2.0 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(3).normal(size=6)
    y[2] = np.nan
    return od.Data.join({"one": decay_data, "two": od.Data(t, y, states=["x"])})


@pytest.fixture(scope="module")
def estimated(decay, data) -> Likelihood:
    return Likelihood(od.Problem(decay, data, prior=PRIOR, positive=False), np.ones(1))


@pytest.fixture(scope="module")
def known(decay, data) -> Likelihood:
    return Likelihood(od.Problem(decay, data, prior=PRIOR, sigma={"x": 0.08}, positive=False), np.ones(1))


def solutions(likelihood: Likelihood, v):
    """States and their derivatives in closed form, per experiment, for v (B, 3) = both initial values and k."""
    x, S = [], []
    for e, t in enumerate(likelihood.t):
        shape = np.exp(-v[:, 2:] * t)[..., None]
        states = v[:, e, None, None] * shape
        x.append(states)
        S.append(np.stack([shape, -t[:, None] * states], -1))
    return x, S


def objective(likelihood: Likelihood, v):
    return likelihood.evaluate(solutions(likelihood, v)[0], v[:, 2:]).value


def equations(likelihood: Likelihood, v):
    x, S = solutions(likelihood, v)
    return likelihood.normal(x, S, likelihood.evaluate(x, v[:, 2:]).noise, v[:, 2:])


def places(seed: int, B: int = 4):
    return np.array([3.0, 2.0, 0.7]) + 0.2 * np.random.default_rng(seed).normal(size=(B, 3))


@FEW
@given(seed=SEEDS)
def test_a_batch_is_what_each_alone_is(estimated, seed):
    v = places(seed)
    H, g = equations(estimated, v)
    value = objective(estimated, v)
    move, fall = estimated.step(v, H, g, np.full(4, 0.1))
    for b in range(4):
        own = slice(b, b + 1)
        H1, g1 = equations(estimated, v[own])
        for mine, alone in (
            (H.dense()[own], H1.dense()),
            (g[own], g1),
            (value[own], objective(estimated, v[own])),
            (move[own], estimated.step(v[own], H1, g1, np.full(1, 0.1))[0]),
            (fall[own], estimated.step(v[own], H1, g1, np.full(1, 0.1))[1]),
        ):
            np.testing.assert_allclose(mine, alone, rtol=1e-9, atol=1e-12)


@FEW
@given(seed=SEEDS)
def test_the_gradient_equals_finite_differences_where_the_noise_is_known(known, seed):
    v, h = places(seed), 1e-6
    _, g = equations(known, v)
    for i, d in enumerate(h * np.eye(3)):
        along = (objective(known, v + d) - objective(known, v - d)) / (2 * h)
        np.testing.assert_allclose(g[:, i], along, rtol=1e-5, atol=1e-4)


@FEW
@given(seed=SEEDS)
def test_noise_that_is_not_known_is_at_its_best_so_the_gradient_is_that_of_the_profile(estimated, seed):
    v, h = places(seed), 1e-6
    _, g = equations(estimated, v)
    for i, d in enumerate(h * np.eye(3)):
        along = (objective(estimated, v + d) - objective(estimated, v - d)) / (2 * h)
        np.testing.assert_allclose(g[:, i], along, rtol=1e-5, atol=1e-5)


@FEW
@given(seed=SEEDS)
def test_the_hessian_is_that_of_gauss_and_newton(known, seed):
    v = places(seed, 1)
    S = solutions(known, v)[1]
    right = np.zeros((3, 3))
    for e, own in enumerate(([0, 2], [1, 2])):
        J = S[e][0, np.isfinite(known.y[e][0, :, 0]), 0]
        right[np.ix_(own, own)] += J.T @ J / 0.08**2
    right[2, 2] += 1 / 0.2**2
    np.testing.assert_allclose(equations(known, v)[0].dense()[0], right, rtol=1e-9)


def test_the_objective_is_the_density_of_data_and_prior(known):
    v = places(5)
    x, _ = solutions(known, v)
    for b, value in enumerate(objective(known, v)):
        total = stats.norm(0.9, 0.2).logpdf(v[b, 2])
        for states, y in zip(x, known.y, strict=True):
            seen = np.isfinite(y[0])
            total += stats.norm(states[b][seen], 0.08).logpdf(y[0][seen]).sum()
        assert value == pytest.approx(-total)


def test_a_prior_counts_in_value_and_gradient(decay, data, known):
    without = Likelihood(od.Problem(decay, data, sigma={"x": 0.08}, positive=False), np.ones(1))
    v = places(6)
    expected = -stats.norm(0.9, 0.2).logpdf(v[:, 2])
    np.testing.assert_allclose(objective(known, v) - objective(without, v), expected)
    change = equations(known, v)[1] - equations(without, v)[1]
    np.testing.assert_allclose(change[:, 2], (v[:, 2] - 0.9) / 0.2**2, atol=1e-8)
    np.testing.assert_allclose(change[:, :2], 0.0, atol=1e-12)


def test_what_is_not_finite_has_an_infinite_objective_and_exact_data_a_finite_one(estimated):
    v = places(8, 2)
    x, _ = solutions(estimated, v)
    x[0][0] = np.inf
    with np.errstate(invalid="ignore"):
        worth = estimated.evaluate(x, v[:, 2:])
    assert worth.value[0] == np.inf
    assert np.isfinite(worth.value[1])
    exact = estimated.with_observations(solutions(estimated, v)[0])
    assert np.isfinite(objective(exact, v)).all()


def test_noise_that_is_not_known_is_the_spread_of_the_residuals(estimated, known):
    v = places(9)
    x, _ = solutions(estimated, v)
    gaps = np.concatenate([xx - yy for xx, yy in zip(x, estimated.y, strict=True)], 1)
    np.testing.assert_allclose(estimated.evaluate(x, v[:, 2:]).noise, np.nanmean(gaps**2, 1))
    np.testing.assert_allclose(known.evaluate(x, v[:, 2:]).noise, 0.08**2)


def test_each_trajectory_may_have_observations_of_its_own(estimated):
    v, rng = places(7), np.random.default_rng(1)
    y = [yy + 0.1 * rng.normal(size=(4, *yy.shape[1:])) for yy in estimated.y]
    own, some = estimated.with_observations(y), np.array([2, 0])
    values = objective(own, v)
    np.testing.assert_allclose(objective(own.take(some), v[some]), values[some])
    for b in range(4):
        alone = estimated.with_observations([yy[b : b + 1] for yy in y])
        assert objective(alone, v[b : b + 1])[0] == pytest.approx(values[b])
    assert (values != objective(estimated, v)).all()
    assert estimated.take(some) is estimated


# --- steps, for any equations


@pytest.fixture(scope="module")
def bounded(lv, lv_data) -> Likelihood:
    bounds = {"a": (1.0, 3.0), "b": (0.5, None), "prey": (None, 6.0)}
    return Likelihood(od.Problem(lv.model, lv_data, bounds=bounds, positive=False), np.ones(2))


@pytest.fixture(scope="module")
def open_(lv, lv_data) -> Likelihood:
    return Likelihood(od.Problem(lv.model, lv_data, positive=False), np.ones(2))


def some_equations(seed: int, B: int = 3, P: int = 6):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(B, P, P)) * 10.0 ** rng.uniform(-2, 2, (1, 1, P))
    H = np.swapaxes(root, 1, 2) @ root + 1e-3 * np.eye(P)
    return H, rng.normal(size=(B, P)) * np.sqrt(np.einsum("bii->bi", H)), rng


@FEW
@given(seed=SEEDS, damping=st.floats(1e-8, 10.0))
def test_steps_solve_the_damped_equations(open_, seed, damping):
    H, g, rng = some_equations(seed)
    move, fall = open_.step(rng.normal(size=(3, 6)), ArrowMatrix.from_dense(H), g, np.full(3, damping))
    for b in range(3):
        damped = H[b] + damping * np.diag(np.diag(H[b]))
        np.testing.assert_allclose(damped @ move[b], -g[b], rtol=1e-6, atol=1e-7 * np.abs(g[b]).max())
        assert fall[b] == pytest.approx(-0.5 * g[b] @ move[b], rel=1e-6)


@FEW
@given(seed=SEEDS)
def test_a_held_quantity_changes_by_the_gap_and_the_rest_is_at_its_best(open_, seed):
    H, g, rng = some_equations(seed)
    a, gap = rng.normal(size=(3, 6)), rng.normal(size=3)
    move, fall = open_.step(np.zeros((3, 6)), ArrowMatrix.from_dense(H), g, np.zeros(3), a, gap)
    np.testing.assert_allclose((a * move).sum(1), gap, rtol=1e-6, atol=1e-8)
    for b in range(3):
        left = H[b] @ move[b] + g[b]  # only along a
        np.testing.assert_allclose(left, (left @ a[b]) / (a[b] @ a[b]) * a[b], atol=1e-5 * np.abs(g[b]).max())
        own = slice(b, b + 1)
        still = open_.step(np.zeros((1, 6)), ArrowMatrix.from_dense(H[own]), g[own], np.zeros(1), a[own], np.zeros(1))[
            0
        ][0]
        assert fall[b] == pytest.approx(-(g[b] @ still + 0.5 * still @ H[b] @ still), rel=1e-4, abs=1e-9)


@FEW
@given(seed=SEEDS, hold=st.booleans())
def test_steps_stay_within_the_bounds_and_what_a_bound_holds_does_not_move(bounded, seed, hold):
    H, g, rng = some_equations(seed)
    low, high = bounded.unknowns.low, bounded.unknowns.high
    at = np.clip(rng.normal(size=(3, 6)) * 5.0, low, high)
    free = ~np.isfinite(low) & ~np.isfinite(high)
    # A quantity of unknowns without bounds, so that a bound pushes as it does without one.
    a, gap = (rng.normal(size=(3, 6)) * free, rng.normal(size=3)) if hold else (None, None)
    move, fall = bounded.step(at, ArrowMatrix.from_dense(H), g, np.full(3, 1e-3), a, gap)
    rounding = 4.0 * np.spacing(np.abs(at))
    assert (at + move >= low - rounding).all()
    assert (at + move <= high + rounding).all()
    assert (fall >= 0).all()
    out = ((at == low) & (g > 0)) | ((at == high) & (g < 0))
    assert (move[out] == 0).all()
    if hold:
        np.testing.assert_allclose((a * move).sum(1), gap, rtol=1e-6, atol=1e-8)


@FEW
@given(seed=SEEDS)
def test_what_a_bound_stops_is_counted_on_by_nothing_else(bounded, seed):
    H, g, rng = some_equations(seed)
    low, high = bounded.unknowns.low, bounded.unknowns.high
    at = np.clip(rng.normal(size=(3, 6)), low, high)
    move, fall = bounded.step(at, ArrowMatrix.from_dense(H), g, np.full(3, 1e-3))
    H = H + 1e-3 * np.eye(6) * H
    inside = (at + move > low + 1e-9) & (at + move < high - 1e-9)
    left = g + (H @ move[..., None])[..., 0]
    size = np.abs(H).max() * np.abs(move).max() + np.abs(g).max()
    assert np.abs(left[inside]).max(initial=0.0) <= 1e-7 * size
    gained = -(g * move).sum(1) - 0.5 * (move * (H @ move[..., None])[..., 0]).sum(1)
    np.testing.assert_allclose(fall, np.maximum(gained, 0.0), rtol=1e-6, atol=1e-9)


def test_an_unknown_without_influence_stays_where_it_is(open_):
    H, g, _ = some_equations(1)
    H[:, 3], H[:, :, 3], g[:, 3] = 0.0, 0.0, 0.0
    move, fall = open_.step(np.zeros((3, 6)), ArrowMatrix.from_dense(H), g, np.full(3, 1e-6))
    assert np.isfinite(move).all()
    np.testing.assert_allclose(move[:, 3], 0.0, atol=1e-12)
    assert (fall > 0).all()
