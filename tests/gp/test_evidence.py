"""Empirical Bayes: the evidence against the plain formula, and no better hyperparameters anywhere near."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.gp.evidence import Hyperparameters, Series, empirical_bayes, log_evidence
from odinfer.gp.kernels import KERNELS

FEW = settings(max_examples=20, derandomize=True, deadline=None)


def hyper(name="rbf", shape=(1.0,), variance=1.0, noise=0.01) -> Hyperparameters:
    return Hyperparameters(name, tuple(shape), variance, noise, 0.0)


def wave(n=20, sd=0.1, seed=0, last=6.0) -> Series:
    t = np.linspace(0.0, last, n)
    y = np.sin(t) + sd * np.random.default_rng(seed).normal(size=n)
    return Series(t, y)


def evidence(kernel, shape, variance, noise, series):
    """log N(y; 0, vC + σ²I) by numpy's own determinant and solver."""
    total = 0.0
    for s in series:
        S = variance * KERNELS[kernel].gram(s.t, s.t, np.asarray(shape)).C + noise * np.eye(len(s.t))
        total -= 0.5 * (s.y @ np.linalg.solve(S, s.y) + np.linalg.slogdet(2 * np.pi * S)[1])
    return total


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_search_reports_the_evidence_that_cholesky_gives(name):
    series = [wave()]
    (found,) = empirical_bayes([series], [name], [None])
    assert found.evidence == pytest.approx(evidence(name, found.shape, found.variance, found.noise, series), abs=2e-3)
    assert log_evidence(found, series) == pytest.approx(
        evidence(name, found.shape, found.variance, found.noise, series), abs=1e-9
    )


@pytest.mark.parametrize("sd", [0.02, 0.3])
@pytest.mark.parametrize("name", ["rbf", "matern32", "matern52", "rational-quadratic", "warped-matern52", "sigmoid"])
def test_the_search_beats_a_random_search_over_hyperparameters(name, sd):
    series = [wave(sd=sd)]
    (found,) = empirical_bayes([series], [name], [None], thorough=True)
    rng = np.random.default_rng(3)
    d = len(KERNELS[name].shape_names)
    best = -np.inf
    for _ in range(400):
        shape, v, noise = 10 ** rng.uniform(-1, 1.5, d), 10 ** rng.uniform(-1.5, 2), 10 ** rng.uniform(-5, 1)
        best = max(best, evidence(name, shape, v, noise, series))
    assert log_evidence(found, series) >= best


@pytest.mark.parametrize("name", ["rbf", "matern52"])
def test_no_nearby_hyperparameters_have_a_higher_evidence(name):
    series = [wave(sd=0.2, seed=4)]
    (found,) = empirical_bayes([series], [name], [None], thorough=True)
    top = log_evidence(found, series)
    for step in (0.9, 1.1):
        for shape, v, noise in ((step, 1, 1), (1, step, 1), (1, 1, step)):
            moved = hyper(name, [shape * s for s in found.shape], v * found.variance, noise * found.noise)
            assert log_evidence(moved, series) <= top + 1e-4


@FEW
@given(sd=st.floats(0.01, 1.0), name=st.sampled_from(["rbf", "matern52", "warped-matern52"]))
def test_a_known_noise_is_honoured(sd, name):
    (found,) = empirical_bayes([[wave()]], [name], [sd**2])
    assert found.noise == pytest.approx(sd**2, rel=1e-9)


def test_noise_known_for_one_state_only_is_estimated_for_the_other():
    a, b = wave(seed=1), wave(seed=2)
    known, free = empirical_bayes([[a], [b]], ["rbf"], [0.25, None])
    assert known.noise == pytest.approx(0.25)
    (alone,) = empirical_bayes([[b]], ["rbf"], [None])
    assert free.noise == pytest.approx(alone.noise, rel=1e-6)


def test_the_noise_of_data_is_recovered():
    found = [empirical_bayes([[wave(n=60, sd=0.2, seed=s)]], ["rbf"], [None])[0].noise for s in range(8)]
    assert np.sqrt(np.median(found)) == pytest.approx(0.2, rel=0.15)


def test_experiments_pool_their_evidence():
    a, b = wave(seed=1), wave(n=12, seed=2, last=4.0)
    (both,) = empirical_bayes([[a, b]], ["rbf"], [None], thorough=True)
    assert both.evidence == pytest.approx(log_evidence(both, [a, b]), abs=2e-3)
    alone = [log_evidence(both, [s]) for s in (a, b)]
    assert sum(alone) == pytest.approx(log_evidence(both, [a, b]))
    for single in (a, b):
        (own,) = empirical_bayes([[single]], ["rbf"], [None], thorough=True)
        assert log_evidence(own, [a, b]) <= log_evidence(both, [a, b]) + 1e-3
    (twice,) = empirical_bayes([[a, a]], ["rbf"], [None], thorough=True)
    (once,) = empirical_bayes([[a]], ["rbf"], [None], thorough=True)
    assert twice.shape[0] == pytest.approx(once.shape[0], rel=1e-3)
    assert twice.evidence == pytest.approx(2 * once.evidence, abs=1e-3)


def test_states_observed_at_different_times_are_fitted_each_on_its_own():
    a, b, c = wave(seed=1), wave(n=13, seed=2), wave(seed=3)
    together = empirical_bayes([[a], [b], [c]], ["rbf", "matern52"], [None] * 3)
    for s, h in zip((a, b, c), together, strict=True):
        (alone,) = empirical_bayes([[s]], ["rbf", "matern52"], [None])
        assert h.kernel == alone.kernel
        np.testing.assert_allclose(
            (*h.shape, h.variance, h.noise), (*alone.shape, alone.variance, alone.noise), rtol=1e-6
        )


@FEW
@given(scale=st.floats(0.1, 10.0))
def test_rescaled_values_rescale_variances_and_keep_the_shape(scale):
    s = wave()
    (plain,) = empirical_bayes([[s]], ["matern52"], [None])
    (scaled,) = empirical_bayes([[Series(s.t, scale * s.y)]], ["matern52"], [None])
    assert scaled.shape[0] == pytest.approx(plain.shape[0], rel=1e-6)
    assert scaled.variance == pytest.approx(scale**2 * plain.variance, rel=1e-6)
    assert scaled.noise == pytest.approx(scale**2 * plain.noise, rel=1e-6)


def test_a_later_kernel_needs_the_margin():
    s = [wave(sd=0.02)]
    rbf, rough = (empirical_bayes([s], [name], [None])[0].evidence for name in ("rbf", "matern32"))
    assert rbf > rough + 1.0
    assert empirical_bayes([s], ["matern32", "rbf"], [None])[0].kernel == "rbf"
    assert empirical_bayes([s], ["matern32", "rbf"], [None], margin=1e3)[0].kernel == "matern32"


def test_hyperparameters_stay_within_their_bounds():
    low, high = 0.3, 2.0
    for sd in (0.0, 1.0):
        (h,) = empirical_bayes([[wave(sd=sd)]], ["rbf"], [None], bounds=(low, high))
        for value in (*h.shape, h.variance, h.noise):
            assert low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
    (free,) = empirical_bayes([[wave(sd=0.0)]], ["rbf"], [None])
    assert free.noise < low


def test_the_weak_prior_moves_the_noise_ratio_towards_its_mean_but_not_far():
    s = [wave(sd=0.1)]
    (plain,) = empirical_bayes([s], ["rbf"], [None])
    (weak,) = empirical_bayes([s], ["rbf"], [None], weak_prior=True)
    assert weak.noise != plain.noise
    assert weak.noise == pytest.approx(plain.noise, rel=0.1)
    assert weak.evidence <= plain.evidence + 1e-4
