"""Kernel ridge regression: the curves are what the formula says, at any points, with their slopes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.gp.kernel_ridge import RIDGES, Regression, leave_one_out, ridge_regression
from odinfer.gp.kernels import kernel
from odinfer.gp.standardisation import Units

FEW = settings(max_examples=15, derandomize=True, deadline=None)
RBF = kernel("rbf")


def series(seed, n=12, sd=0.1):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0.0, 4.0, n))
    return t, np.sin(2.0 * t) + sd * rng.normal(size=n)


# --- one series


@FEW
@given(st.integers(0, 99), st.floats(0.1, 100.0), st.floats(-100.0, 100.0))
def test_other_units_of_the_values_change_centre_and_coefficients_only(seed, scale, shift):
    t, y = series(seed)
    plain, moved = ridge_regression(RBF, t, y), ridge_regression(RBF, t, shift + scale * y)
    assert moved.ridge == pytest.approx(plain.ridge)
    assert moved.centre == pytest.approx(shift + scale * plain.centre)
    np.testing.assert_allclose(moved.shape, plain.shape)
    np.testing.assert_allclose(moved.b, scale * plain.b, rtol=1e-6, atol=1e-6 * scale * np.abs(plain.b).max())


@FEW
@given(st.integers(0, 99))
def test_coefficients_solve_the_regression_and_freedom_is_the_trace_of_the_smoother(seed):
    t, y = series(seed)
    found = ridge_regression(RBF, t, y)
    C = RBF.gram(t, t, found.shape).C
    residuals = y - found.centre - C @ found.b
    np.testing.assert_allclose(residuals, found.ridge * found.b, atol=1e-9 * np.abs(found.b).max())
    hat = np.stack([C @ np.linalg.solve(C + found.ridge * np.eye(12), e) for e in np.eye(12)], -1)
    assert found.freedom == pytest.approx(np.trace(hat))
    assert 0 < found.freedom <= 12
    assert min(RIDGES) / 10 < found.ridge < 10 * max(RIDGES)


@FEW
@given(st.integers(0, 99), st.floats(0.2, 3.0), st.floats(1e-3, 5.0))
def test_the_leave_one_out_error_is_that_of_predicting_each_value_from_the_others(seed, length, ridge):
    t, y = series(seed, n=7)
    lam, U = np.linalg.eigh(RBF.gram(t, t, np.array([[length]])).C)
    (score,), alpha = leave_one_out(lam, U, y, np.array([ridge]))
    errors = []
    for i in range(7):
        rest = np.delete(np.arange(7), i)
        b = np.linalg.solve(RBF.gram(t[rest], t[rest], np.array([length])).C + ridge * np.eye(6), y[rest])
        errors.append(y[i] - RBF.gram(t[[i]], t[rest], np.array([length])).C[0] @ b)
    assert score[0] == pytest.approx(np.mean(np.square(errors)), rel=1e-6)
    assert alpha.shape == (1, 7, 1)


# --- all series of a problem


@pytest.fixture(scope="module")
def found(lv):
    """Two experiments with holes, one parameter fixed, one state bounded."""
    first, second = (lv.sample(0.1, seed).y.copy() for seed in (0, 1))
    first[[3, 4], 1] = np.nan
    second[12:, 0] = np.nan
    parts = {"a": od.Data(lv.t, first, states=lv.model.states), "b": od.Data(lv.t + 9, second, states=lv.model.states)}
    problem = od.Problem(lv.model, od.Data.join(parts), fixed={"b": 1.0}, bounds={"prey": (2.0, None)}, positive=False)
    return Regression.of(problem, Units.of(problem), RBF)


def test_states_are_the_regressions_of_each_experiment_and_state(found):
    x, slope = found.states([b[None] for b in found.smoothed])
    assert x.shape == slope.shape == (1, 40, 2)
    for e, rows, ridges in zip(found.problem.data.experiments, found.rows, found.ridges, strict=True):
        for k, r in enumerate(ridges):
            seen = np.isfinite(e.y[:, k])
            t, y = (e.t[seen] - e.t[0]) / found.units.time, found.y[rows, k][seen]
            alone = ridge_regression(RBF, t, y)
            np.testing.assert_allclose(alone.b, r.b)
            np.testing.assert_allclose(x[0, rows, k][seen], y - alone.ridge * alone.b, atol=1e-8)


def test_what_is_not_observed_has_no_coefficient(found):
    for e, b in zip(found.problem.data.experiments, found.smoothed, strict=True):
        assert (b[np.isnan(e.y.T)] == 0).all()
        assert (b[np.isfinite(e.y.T)] != 0).all()


def test_points_between_lie_on_the_same_curves(found):
    b = [b[None] for b in found.smoothed]
    x, slope = found.states(b)
    fine = found.between(4)
    assert np.isnan(fine.y).all()
    finer, fine_slope = fine.states(b)
    assert finer.shape == (1, 2 * (19 * 4 + 1), 2)
    for rows, fine_rows in zip(found.rows, fine.rows, strict=True):
        np.testing.assert_allclose(finer[:, fine_rows][:, ::4], x[:, rows], atol=1e-9)
        np.testing.assert_allclose(fine_slope[:, fine_rows][:, ::4], slope[:, rows], atol=1e-9)
        np.testing.assert_allclose(fine.t[fine_rows][::4], found.t[rows])


def test_curves_are_the_states_in_the_units_of_the_user_with_their_slopes_and_without_a_band(found):
    x, slope = found.states([b[None] for b in found.smoothed])
    for e, rows, curve in zip(found.problem.data.experiments, found.rows, found.curves(found.smoothed), strict=True):
        at, slope_at, sd = curve.at(e.t)
        np.testing.assert_allclose(at, found.units.user(x[0, rows]), atol=1e-9)
        np.testing.assert_allclose(slope_at, found.units.user_slope(slope[0, rows]), atol=1e-8)
        assert (sd == 0).all()
        middle = 0.5 * (curve.t[1:] + curve.t[:-1])
        rate = np.diff(curve.x, axis=0) / np.diff(curve.t)[:, None]
        np.testing.assert_allclose(curve.at(middle)[1], rate, atol=0.01 * np.abs(rate).max())


@FEW
@given(st.integers(0, 2**32 - 1), st.tuples(*[st.booleans()] * 3))
def test_the_field_is_the_standardised_one_within_bounds_with_its_derivatives(found, seed, logs):
    rng, logs, h = np.random.default_rng(seed), np.array(logs), 1e-6
    x, phi = rng.normal(size=(2, 40, 2)), rng.uniform(0.2, 1.5, (2, 3))
    f, J = found.field(x, phi, logs)
    for r in range(2):
        a, c, d = np.where(logs, np.exp(phi[r]), phi[r])
        prey, predator = found.units.user(x[r]).T
        prey = np.maximum(prey, 2.0)
        user = np.stack([a * prey - prey * predator, -c * predator + d * prey * predator], -1)
        np.testing.assert_allclose(f[r], found.units.standard_slope(user), rtol=1e-9, atol=1e-9)
    for i, e in enumerate(h * np.eye(3)):
        slope = (found.field(x, phi + e, logs)[0] - found.field(x, phi - e, logs)[0]) / (2 * h)
        np.testing.assert_allclose(J[..., i], slope, rtol=1e-5, atol=1e-6 * np.abs(f).max())


def test_details_and_freedom_are_by_state_over_experiments(found):
    details = found.details()
    assert details["ridge"] == {n: [r[k].ridge for r in found.ridges] for k, n in enumerate(("prey", "predator"))}
    assert details["shape"]["predator"] == [r[1].shape.tolist() for r in found.ridges]
    np.testing.assert_allclose(found.freedom, [sum(r[k].freedom for r in found.ridges) for k in range(2)])
    assert (found.freedom < found.problem.count).all()
