"""Bins: times too close to be told apart are joined, with everything their observations say about a smooth curve."""

import numpy as np
import pytest

from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.markov.binning import Binned, joined

HYPER = Hyperparameters("matern52", (1.0,), 1.0, 0.01, 0.0)


def test_ordinary_times_are_left_alone():
    t = np.linspace(0.0, 5.0, 100)
    label = joined([HYPER], t)
    np.testing.assert_array_equal(label, np.arange(100))
    y = np.sin(t)[:, None]
    y[3] = np.nan
    bins = Binned.of(t, y, label)
    np.testing.assert_array_equal(bins.t, t)
    assert (bins.count[3], bins.y[3], bins.count.sum(), bins.within) == (0.0, 0.0, 99.0, 0.0)


def test_repeated_and_nearly_repeated_times_become_one_with_their_mean():
    t = np.array([0.0, 1.0, 1.0, 1.0 + 1e-9, 2.0])
    y = np.array([[1.0, 0.0], [2.0, np.nan], [4.0, 1.0], [6.0, 3.0], [5.0, 0.0]])
    bins = Binned.of(t, y, joined([HYPER], t))
    np.testing.assert_allclose(bins.t, [0.0, 1.0, 2.0], atol=1e-8)
    np.testing.assert_allclose(bins.y, [[1.0, 0.0], [4.0, 2.0], [5.0, 0.0]])
    np.testing.assert_array_equal(bins.count, [[1, 1], [3, 2], [1, 1]])
    np.testing.assert_allclose(bins.within, [8.0, 2.0], atol=1e-6)


def test_a_long_step_never_joins_what_lies_at_its_ends():
    t = np.array([0.0, 1e-9, 3.0, 3.0 + 1e-9, 7.0])
    np.testing.assert_array_equal(joined([HYPER], t), [0, 0, 1, 1, 2])


@pytest.mark.parametrize("noise", [0.3, 1e-3])
def test_what_is_left_within_bins_is_noise_alone_though_the_curve_moves_through_them(noise):
    t = np.linspace(0.0, 3.0, 60_000)
    y = np.sin(3.0 * t)[:, None] + noise * np.random.default_rng(0).normal(size=(len(t), 1))
    label = joined([HYPER], t)
    bins = Binned.of(t, y, label)
    assert len(bins.t) < 3000
    free = len(t) - len(bins.t)
    assert bins.within[0] / free == pytest.approx(noise**2, rel=0.02)
