"""White residuals hold no signal, smooth ones do, and units do not matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.gp import Hyperparameters
from odinfer.misfit import signal

T = np.linspace(0.0, 3.0, 25)
HYPER = Hyperparameters("matern52", (1.0,), 1.0, 0.01, 0.0)


@given(st.integers(0, 500), st.floats(1e-6, 1e6))
@settings(max_examples=30, deadline=None)
def test_the_unit_of_the_residuals_does_not_matter(seed, unit):
    r = np.random.default_rng(seed).normal(size=25) + np.sin(T)
    assert signal([T], [unit * r], HYPER) == pytest.approx(signal([T], [r], HYPER), abs=1e-6)


def test_white_noise_rarely_shows_a_signal_and_a_smooth_part_does():
    rng = np.random.default_rng(1)
    white = [signal([T], [rng.normal(size=25)], HYPER) for _ in range(100)]
    smooth = [signal([T], [rng.normal(size=25) + 2 * np.sin(2 * T)], HYPER) for _ in range(100)]
    assert np.quantile(white, 0.9) < 2.5
    assert np.quantile(smooth, 0.1) > 2.5
    assert min(white) == 0.0


def test_missing_values_are_as_if_they_were_not_there():
    r = np.sin(T)
    holes = r.copy()
    holes[[3, 7]] = np.nan
    keep = np.isfinite(holes)
    assert signal([T], [holes], HYPER) == pytest.approx(signal([T[keep]], [r[keep]], HYPER), abs=1e-9)


def test_experiments_add_up():
    rng = np.random.default_rng(0)
    r = np.sin(2 * T) + 0.3 * rng.normal(size=25)
    assert signal([T, T], [r, r], HYPER) == pytest.approx(2 * signal([T], [r], HYPER), rel=1e-6)
