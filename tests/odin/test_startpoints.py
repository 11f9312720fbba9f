"""Where θ starts: inside the bounds, the same for the same seed, and at the best gradient match."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odin.risks import risk_of
from odinfer.odin.startpoints import distinct, draw, match, scaled_back
from odinfer.scaling.dimensional_analysis import natural_sizes

FEW = settings(max_examples=25, derandomize=True, deadline=None)
LIMIT = st.one_of(st.none(), st.floats(-1e6, 1e6))


@FEW
@given(low=LIMIT, width=st.floats(1e-3, 1e6), upper=st.booleans(), seed=st.integers(0, 99), log=st.booleans())
def test_starts_lie_within_the_bounds(decay, decay_data, low, width, upper, seed, log):
    if log and low is not None:
        low = abs(low)
    high = (0.0 if low is None else low) + width if upper else None
    p = od.Problem(
        decay, decay_data, bounds={"k": (low, high)}, scale={"k": "log" if log else "linear"}, positive=False
    )
    theta = p.theta(draw(p, 12, np.random.default_rng(seed)))
    assert theta.shape == (12, 1)
    assert np.isfinite(theta).all()
    at_low, at_high = p.limits("k")
    assert (theta >= at_low - 1e-9 * abs(at_low)).all()
    assert (theta <= at_high + 1e-9 * abs(at_high)).all()


def test_starts_repeat_with_their_seed_and_differ_otherwise(lv, lv_data):
    p = od.Problem(lv.model, lv_data, positive=False)
    one, two, other = (draw(p, 10, np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


def test_the_first_half_is_positive_and_the_later_half_has_both_signs(lv, lv_data):
    theta = draw(od.Problem(lv.model, lv_data, positive=False), 40, np.random.default_rng(0))
    assert (theta[:20] >= 0).all()
    assert (theta[20:] < 0).any()
    assert (theta[20:] > 0).any()


def test_a_start_of_the_user_is_the_first(lv, lv_data):
    p = od.Problem(lv.model, lv_data, start={"a": 1.7, "d": -0.4}, scale={"a": "log"}, fixed={"b": 1.0}, positive=False)
    theta = p.theta(draw(p, 6, np.random.default_rng(0)))
    assert theta[0, 0] == pytest.approx(1.7)
    assert theta[0, 3] == -0.4
    assert (theta[:, 1] == 1.0).all()
    assert len(set(theta[:, 0])) == 6


def test_matching_lowers_the_mismatch_of_every_start(lv, lv_data):
    risk = risk_of(od.Problem(lv.model, lv_data, positive=False), jitter=1e-4)
    phi = draw(risk.problem, 10, np.random.default_rng(3))
    _, before = match(risk, phi, iterations=0)
    after, cost = match(risk, phi)
    assert after.shape == phi.shape
    assert (cost <= before).all()
    np.testing.assert_allclose(match(risk, after, iterations=0)[1], cost, rtol=1e-9)


def test_for_equations_linear_in_parameters_matching_is_weighted_least_squares(oscillator):
    t = np.linspace(0.0, 5.0, 20)
    x = od.simulate(oscillator, {"a": -4.0, "b": -0.3}, [2.0, 0.0], t)
    y = x + 0.05 * np.random.default_rng(0).normal(size=x.shape)
    risk = risk_of(od.Problem(oscillator, od.Data(t, y, states=oscillator.states), positive=False), jitter=1e-4)
    found = match(risk, draw(risk.problem, 8, np.random.default_rng(0)), gamma=0.3)[0]
    z, m, u = risk.mean, risk.blocks[0].smoother, risk.units
    state = u.user(z)
    # Standardised v' = a x + b v: the design in units of the standardised slope.
    design = state * u.time / u.scale[1]
    A = (m.Q[1] * m.w[1]) @ m.Q[1].T + 0.3 * np.eye(len(t))
    W = np.linalg.inv(A)
    best = np.linalg.solve(design.T @ W @ design, design.T @ W @ (m.D[1] @ z[:, 1]))
    late = found[4:]  # the first half keeps to positive parameters, and the truth is negative
    np.testing.assert_allclose(late, np.tile(best, (4, 1)), rtol=1e-4)
    assert (found[:4] >= 0).all()


def test_starts_where_the_field_is_not_finite_are_left_out():
    t = np.linspace(0.0, 2.0, 8)
    model = od.Model.from_text("x' = -sqrt(k - 3)*x")
    risk = risk_of(od.Problem(model, od.Data(t, np.exp(-t), states=["x"]), positive=False), jitter=1e-4)
    phi, cost = match(risk, np.array([[1.0], [2.0], [4.5], [8.0]]))
    assert np.isinf(cost[:2]).all()
    assert np.isfinite(cost[2:]).all()
    kept = distinct(risk.problem, phi, cost, most=4)
    assert sum(n for _, n in kept) == 2


def test_equal_ends_are_counted_together(oscillator):
    t = np.linspace(0.0, 1.0, 5)
    p = od.Problem(
        oscillator, od.Data(t, np.stack([np.cos(t), np.sin(t)], -1), states=oscillator.states), positive=False
    )
    phi = np.array([[1.0, 2.0], [1.0001, 2.0], [5.0, 6.0], [1.0, 2.0001], [7.0, 7.0]])
    cost = np.array([1.0, 1.00001, 2.2, 1.00002, np.inf])
    best, second = distinct(p, phi, cost, most=2)
    np.testing.assert_array_equal(best[0], phi[0])
    assert best[1] == 3
    np.testing.assert_array_equal(second[0], phi[2])
    assert second[1] == 1


def test_one_of_the_kept_is_of_the_positive_half(decay, decay_data):
    phi = np.array([[4.0], [3.0], [-1.0], [-2.0]])  # the first two are of the positive half
    cost = np.array([2.4, 2.3, 1.0, 2.0])
    kept = [p[0] for p, _ in distinct(od.Problem(decay, decay_data, positive=False), phi, cost, most=2)]
    assert kept == [-1.0, 3.0]


def test_parameters_that_ran_off_together_are_pulled_back_at_their_ratio(lv_data, lv):
    p = od.Problem(lv.model, lv_data, bounds={"d": (0.5, None)}, positive=False)
    assert scaled_back(p, np.array([1.0, 2.0, 3.0, 400.0])) == []
    for back in scaled_back(p, np.array([1.0, 2.0, -900.0, 300.0])):
        np.testing.assert_array_equal(back[:2], [1.0, 2.0])
        assert back[2] > 0
        assert back[2] < 30
        assert back[3] >= 0.5
    free = od.Problem(lv.model, lv_data, positive=False)
    natural = natural_sizes(free)[2:]
    for back, size in zip(scaled_back(free, np.array([1.0, 2.0, 900.0, 600.0])), (1.0, 0.1), strict=True):
        assert back[2] / back[3] == pytest.approx(1.5)
        assert np.sqrt(np.prod(back[2:] / natural)) == pytest.approx(size)


SATURATED = od.Model.from_text("s' = -v*s/(k + s) + b; p' = v*s/(k + s) - d*p")
T = np.linspace(0.0, 8.0, 16)
X = od.simulate(SATURATED, {"v": 1.0, "k": 0.5, "b": 0.1, "d": 0.3}, [3.0, 0.2], T)


def in_units(x: float, y: float, time: float) -> tuple[od.Problem, np.ndarray]:
    """Data of a saturated reaction in other units of its substance and of time; the units (4,) of its parameters."""
    noise = 0.02 * np.random.default_rng(3).normal(size=X.shape)
    data = od.Data(time * T, (X + noise) * x, states=SATURATED.states)
    return od.Problem(SATURATED, data, positive=False), np.array([x / time, x, x / time, 1.0 / time])


@FEW
@given(x=st.floats(-9.0, 9.0), time=st.floats(-6.0, 6.0))
def test_matching_does_not_depend_on_units(x, time):
    (one, _), (other, units) = in_units(1.0, 1.0, 1.0), in_units(10.0**x, 10.0**x, 10.0**time)
    phi, cost = match(risk_of(one), draw(one, 10, np.random.default_rng(0)))
    phi_other, cost_other = match(risk_of(other), draw(other, 10, np.random.default_rng(0)))
    np.testing.assert_allclose(cost_other, cost, rtol=1e-4)
    counts = [
        [n for _, n in distinct(p, at, c, most=3)] for p, at, c in ((one, phi, cost), (other, phi_other, cost_other))
    ]
    assert counts[0] == counts[1]
    best = cost.argmin()
    np.testing.assert_allclose(phi_other[best] / units, phi[best], rtol=1e-3)


def test_a_saturation_is_found_however_small_its_rate_starts():
    p, _ = in_units(1.0, 1.0, 1.0)
    risk = risk_of(p)
    start = np.array([[v, 0.5, v, v] for v in (1e-12, 1e-6, 1.0, 1e6)] * 2)
    phi, _ = match(risk, start)
    np.testing.assert_allclose(phi, np.tile(phi[2], (8, 1)), rtol=1e-2)


def test_a_capacity_that_starts_too_small_is_found_though_it_leaves_nothing_to_the_rate():
    model = od.Model.from_text("x' = r*x*(1 - x/K)", "growth")
    x = od.simulate(model, {"r": 1.0, "K": 200.0}, [2.0], T)
    p = od.Problem(
        model, od.Data(T, x + np.random.default_rng(0).normal(size=x.shape), states=model.states), positive=False
    )
    phi, _ = match(risk_of(p), np.array([[0.05, 8.0], [0.05, 30.0], [0.05, 300.0], [1.0, 200.0]]))
    np.testing.assert_allclose(phi, np.tile(phi[3], (4, 1)), rtol=1e-2)
    assert abs(phi[3, 1] / 200.0 - 1.0) < 0.1
