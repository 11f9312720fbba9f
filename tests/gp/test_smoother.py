"""Smoothing the states of a problem: which kernel they get, what they share, and curves that are their posterior."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.errors import InputError
from odinfer.gp.evidence import Series, empirical_bayes, log_evidence
from odinfer.gp.kernels import kernel
from odinfer.gp.smoother import AUTO, facts, noise_sd, posterior_curves, smooth_states
from odinfer.gp.standardisation import Units

FEW = settings(max_examples=12, derandomize=True, deadline=None)


def numbers(h):
    return (*h.shape, h.variance, h.noise)


@pytest.fixture(scope="module")
def holey(lv):
    """Two experiments, one starting late, in which values are missing."""
    first, second = (lv.sample(0.1, seed).y.copy() for seed in (0, 1))
    first[[0, 2, 5, 6], 0] = np.nan
    second[10:, 1] = np.nan
    parts = {"a": od.Data(lv.t, first, states=lv.model.states), "b": od.Data(lv.t + 50, second, states=lv.model.states)}
    return od.Problem(lv.model, od.Data.join(parts), positive=False)


def standardised(problem, units, k):
    """The observations of a state, in each experiment from the start of its data."""
    for e in problem.data.experiments:
        seen = np.isfinite(e.y[:, k])
        t = (e.t[seen] - e.t[0]) / units.time
        yield Series(t, (e.y[seen, k] - units.mean[k]) / units.scale[k])


def test_every_state_is_smoothed_by_what_was_observed_of_it_in_all_experiments(holey):
    units = Units.of(holey)
    found = smooth_states(holey, units, "matern52")
    for k, h in enumerate(found):
        series = list(standardised(holey, units, k))
        (alone,) = empirical_bayes([series], ["matern52"], [None])
        np.testing.assert_allclose(numbers(h), numbers(alone), rtol=1e-6)
        assert h.evidence == pytest.approx(log_evidence(h, series), abs=2e-3)


def test_the_warped_kernel_is_taken_only_where_the_evidence_clearly_asks_for_it(lv, lv_data):
    for system, data in (
        (lv, lv_data),
        (od.systems.protein_transduction, od.systems.protein_transduction.sample(0.001, 0)),
    ):
        problem = od.Problem(system.model, data, positive=False)
        units = Units.of(problem)
        plain, warped = (smooth_states(problem, units, name) for name in AUTO)
        chosen = smooth_states(problem, units)
        for h, p, w in zip(chosen, plain, warped, strict=True):
            gain = w.evidence - p.evidence
            assert h.kernel == (w if gain > 2 else p).kernel
            assert abs(gain - 2) > 0.5
            np.testing.assert_allclose(numbers(h), numbers(w if gain > 2 else p), rtol=1e-9)
        assert {h.kernel for h in chosen} == {AUTO[0] if system is lv else AUTO[1]}


def test_a_kernel_that_is_named_is_taken_and_one_that_is_none_is_refused(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, positive=False)
    assert [h.kernel for h in smooth_states(problem, Units.of(problem), "rbf")] == ["rbf", "rbf"]
    with pytest.raises(InputError, match="did you mean 'rbf'"):
        smooth_states(problem, Units.of(problem), "rbff")


def test_shared_hyperparameters_are_those_of_all_states_together(holey):
    units = Units.of(holey)
    one, other = smooth_states(holey, units, "rbf", shared=True)
    assert one == other
    series = [s for k in range(2) for s in standardised(holey, units, k)]
    (pooled,) = empirical_bayes([series], ["rbf"], [None])
    np.testing.assert_allclose(numbers(one), numbers(pooled), rtol=1e-6)
    assert smooth_states(holey, units, "rbf", shared=True, by="grid") == (one, other)
    np.testing.assert_allclose(noise_sd(units, (one, other)) / units.scale, np.sqrt(one.noise))


def test_shapes_from_a_grid_cost_little_evidence(holey):
    units = Units.of(holey)
    free, held = (smooth_states(holey, units, "matern52", by=by) for by in ("eigenvalues", "grid"))
    for a, b in zip(free, held, strict=True):
        assert a.shape != b.shape
        assert -0.1 < b.evidence - a.evidence < 1e-3


def test_chains_find_the_hyperparameters_that_eigenvalues_find(holey):
    units = Units.of(holey)
    dense, chains = (smooth_states(holey, units, weak_prior=True, by=by) for by in ("eigenvalues", "chains"))
    for a, b in zip(dense, chains, strict=True):
        assert (a.kernel, abs(a.evidence - b.evidence) < 0.02) == (b.kernel, True)
    shared = smooth_states(holey, units, "matern52", shared=True, by="chains")
    assert shared[0] == shared[1]
    assert shared[0].evidence == pytest.approx(
        smooth_states(holey, units, "matern52", shared=True)[0].evidence, abs=0.02
    )


@pytest.mark.parametrize("by", ["eigenvalues", "grid", "chains"])
def test_known_noise_is_taken_as_given_in_the_units_of_the_user(lv, lv_data, by):
    problem = od.Problem(lv.model, lv_data, sigma={"predator": 0.3}, positive=False)
    units = Units.of(problem)
    sd = noise_sd(units, smooth_states(problem, units, by=by))
    assert sd[1] == pytest.approx(0.3)
    assert 0.05 < sd[0] < 0.2


def test_hyperparameters_keep_to_their_bounds_and_the_weak_prior_is_passed_on(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, positive=False)
    units = Units.of(problem)
    for h in smooth_states(problem, units, bounds=(0.05, 5.0)):
        assert h.noise == pytest.approx(0.05)
        assert all(0.05 * (1 - 1e-9) <= v <= 5.0 * (1 + 1e-9) for v in numbers(h))
    plain, weak = (smooth_states(problem, units, "rbf", weak_prior=w) for w in (False, True))
    assert all(a.noise != b.noise for a, b in zip(plain, weak, strict=True))


def test_facts_are_by_the_name_of_the_state(holey):
    hypers = smooth_states(holey, Units.of(holey), "rbf")
    assert facts(holey, hypers) == {
        "kernels": {"prey": "rbf", "predator": "rbf"},
        "evidence": {"prey": hypers[0].evidence, "predator": hypers[1].evidence},
    }


# --- the curves


@pytest.mark.parametrize("name", ["matern52", "warped-rbf"])
def test_the_curve_is_the_posterior_given_the_observations(holey, name):
    units, jitter = Units.of(holey), 1e-5
    hypers = smooth_states(holey, units, name)
    for e, curve in zip(holey.data.experiments, posterior_curves(holey, units, hypers, jitter), strict=True):
        for k, h in enumerate(hypers):
            seen = np.isfinite(e.y[:, k])
            t, y = (e.t[seen] - e.t[0]) / units.time, (e.y[seen, k] - units.mean[k]) / units.scale[k]
            tau = h.noise + jitter
            inverse = np.linalg.inv(h.variance * kernel(name).gram(t, t, np.array(h.shape)).C + tau * np.eye(len(t)))
            # At observed times the posterior has these forms without any cross-covariance.
            mean, variance = y - tau * inverse @ y, tau - tau**2 * np.diag(inverse)
            x, _, sd = curve.at(e.t[seen])
            np.testing.assert_allclose(x[:, k], units.mean[k] + units.scale[k] * mean, atol=1e-7)
            np.testing.assert_allclose(sd[:, k], units.scale[k] * np.sqrt(variance), rtol=1e-4)
        between = 0.5 * (curve.t[1:] + curve.t[:-1])
        slope = np.diff(curve.x, axis=0) / np.diff(curve.t)[:, None]
        np.testing.assert_allclose(curve.at(between)[1], slope, atol=0.05 * np.abs(slope).max())


def test_the_band_is_wider_where_nothing_was_observed(lv, lv_data):
    seen = np.abs(lv.t - 1.0) > 0.3
    problem = od.Problem(lv.model, lv_data.with_rows([seen]), positive=False)
    units = Units.of(problem)
    (curve,) = posterior_curves(problem, units, smooth_states(problem, units))
    gap = np.abs(curve.t - 1.0) < 0.15
    inside = (np.abs(curve.t - 1.0) > 0.4) & (curve.t > 0.2) & (curve.t < 1.8)
    assert (curve.sd[gap].min(0) > 1.5 * curve.sd[inside].max(0)).all()


@FEW
@given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3), st.floats(1e-2, 1e2))
def test_other_units_of_the_user_give_the_same_curves_in_these_units(lv, lv_data, scale, shift, pace):
    problem = od.Problem(lv.model, lv_data, positive=False)
    other = od.Problem(
        lv.model, od.Data(pace * lv.t, shift + scale * lv_data.y, states=lv.model.states), positive=False
    )
    (a,), (b,) = (posterior_curves(p, u, smooth_states(p, u)) for p in (problem, other) for u in [Units.of(p)])
    size = scale * np.ptp(a.x, axis=0).max()
    np.testing.assert_allclose(b.t, pace * a.t)
    np.testing.assert_allclose(b.x, shift + scale * a.x, atol=1e-3 * size)
    np.testing.assert_allclose(b.slope * pace, scale * a.slope, atol=1e-2 * size)
    np.testing.assert_allclose(b.sd, scale * a.sd, atol=1e-3 * size)
