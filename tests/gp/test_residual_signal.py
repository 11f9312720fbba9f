"""White residuals hold no signal, smooth ones do, and units do not matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.residual_signal import _binned, _compare, evidence, signal

T = np.linspace(0.0, 3.0, 25)
HYPER = Hyperparameters("matern52", (1.0,), 1.0, 0.01, 0.0)


@given(st.integers(0, 500), st.floats(1e-6, 1e6))
@settings(max_examples=30, deadline=None)
def test_the_unit_of_the_residuals_does_not_matter(seed, unit):
    r = np.random.default_rng(seed).normal(size=25) + np.sin(T)
    assert signal([T], [unit * r], HYPER)[0] == pytest.approx(signal([T], [r], HYPER)[0], abs=1e-6)


def test_white_noise_rarely_shows_a_signal_and_a_smooth_part_does():
    rng = np.random.default_rng(1)
    white = [signal([T], [rng.normal(size=25)], HYPER)[0] for _ in range(100)]
    smooth = [signal([T], [rng.normal(size=25) + 2 * np.sin(2 * T)], HYPER)[0] for _ in range(100)]
    assert np.quantile(white, 0.9) < 2.5
    assert np.quantile(smooth, 0.1) > 2.5
    assert min(white) == 0.0


def test_missing_values_are_as_if_they_were_not_there():
    r = np.sin(T)
    holes = r.copy()
    holes[[3, 7]] = np.nan
    keep = np.isfinite(holes)
    assert signal([T], [holes], HYPER) == pytest.approx(signal([T[keep]], [r[keep]], HYPER), abs=1e-9)


def test_the_noise_beside_a_signal_is_that_of_the_noise_alone():
    rng = np.random.default_rng(3)
    noise = [signal([T], [5 * np.sin(2 * T) + 0.3 * rng.normal(size=25)], HYPER)[1] for _ in range(50)]
    assert 0.2 < np.median(noise) < 0.4
    r = rng.normal(size=25)
    r -= np.convolve(r, np.ones(5) / 5, "same")  # less smooth than white: no signal
    assert signal([T], [r], HYPER) == pytest.approx((0.0, np.sqrt(np.mean(r**2))))


def test_experiments_add_up():
    rng = np.random.default_rng(0)
    r = np.sin(2 * T) + 0.3 * rng.normal(size=25)
    assert signal([T, T], [r, r], HYPER)[0] == pytest.approx(2 * signal([T], [r], HYPER)[0], rel=1e-6)


@pytest.mark.parametrize("kind", ["even", "random", "missing"])
def test_bins_give_the_evidence_of_all_residuals(kind):
    rng = np.random.default_rng(4)
    t = np.sort(rng.uniform(0.0, 7.0, 600)) if kind == "random" else np.linspace(0.0, 7.0, 600)
    r = np.array([0.0, 0.1, 0.5])[:, None] * np.sin(3.0 * t) + rng.normal(size=(3, 600))
    if kind == "missing":
        r[:, rng.uniform(size=600) < 0.1] = np.nan
    for share in (0.05, 0.4):
        few, every = (_compare([_binned(t, r, most)], "rbf", (share * 7.0,))[0] for most in (300, 600))
        np.testing.assert_allclose(logsumexp(few, axis=1), logsumexp(every, axis=1), rtol=5e-3, atol=0.02)
    assert evidence([t], [r])[2] > 20


def test_residuals_that_are_few_are_taken_as_they_are():
    r = np.random.default_rng(5).normal(size=(2, 25))
    b = _binned(T, r)
    np.testing.assert_array_equal(b.values, r)
    assert b.more == 0
    assert (b.rest == 0).all()


def test_a_hundred_thousand_residuals_show_a_signal_of_a_tenth_of_their_noise_and_white_ones_none():
    t, rng = np.linspace(0.0, 1.0, 100_000), np.random.default_rng(6)
    r = rng.normal(size=(2, len(t)))
    r[1] += 0.1 * np.sin(9.0 * t)
    found = evidence([t], [r])
    assert found[0] < 0 < 100 < found[1]
