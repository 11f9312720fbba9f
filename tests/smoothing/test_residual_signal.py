"""White residuals hold no signal, smooth ones do, and units do not matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.smoothing.evidence import Hyperparameters
from odinfer.smoothing.residual_signal import signal

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
