"""Operators of Gaussian processes on a grid: joint Gaussian conditioning, and means from observed times only."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.kernels import KERNELS
from odinfer.gp.operators import smooth

FEW = settings(max_examples=20, derandomize=True, deadline=None)


def hyper(name="rbf", shape=(1.0,), variance=1.0, noise=0.01) -> Hyperparameters:
    return Hyperparameters(name, tuple(shape), variance, noise, 0.0)


@FEW
@given(length=st.floats(0.8, 2.0))
def test_the_derivative_operator_turns_sine_into_cosine(length):
    t = np.linspace(0.0, 3.0, 20)
    s = smooth([hyper(shape=(length,))], t, np.sin(t)[None], jitter=1e-8)
    np.testing.assert_allclose(s.D[0] @ np.sin(t), np.cos(t), atol=1e-3)


@pytest.mark.parametrize(
    ("name", "shape"), [("rbf", (0.8,)), ("matern52", (1.1,)), ("matern32", (0.6,)), ("sigmoid", (0.5, 2.0))]
)
def test_derivative_operators_are_joint_gaussian_conditioning_in_high_precision(name, shape):
    t, variance, jitter = np.array([0.0, 0.3, 0.7, 1.5, 1.9, 3.0]), 1.7, 1e-6
    got = smooth([hyper(name, shape, variance)], t, np.zeros((1, 6)), jitter)

    def k(a, b):
        p = [mp.mpf(v) for v in shape]
        if name == "sigmoid":
            return mp.asin((p[0] + p[1] * a * b) / mp.sqrt((p[0] + p[1] * a**2 + 1) * (p[0] + p[1] * b**2 + 1)))
        d = abs(a - b) / p[0]
        return {
            "rbf": lambda: mp.exp(-(d**2) / 2),
            "matern32": lambda: (1 + mp.sqrt(3) * d) * mp.exp(-mp.sqrt(3) * d),
            "matern52": lambda: (1 + mp.sqrt(5) * d + 5 * d**2 / 3) * mp.exp(-mp.sqrt(5) * d),
        }[name]()

    with mp.workdps(40):
        # (x, ẋ) are jointly Gaussian with the blocks C, C', 'C, C''; condition ẋ on x.
        def block(i, j):
            return mp.matrix([[variance * mp.diff(k, (mp.mpf(a), mp.mpf(b)), (i, j)) for b in t] for a in t])

        inverse = mp.inverse(block(0, 0) + jitter * mp.eye(6))
        D = block(1, 0) * inverse
        A = block(1, 1) - D * block(0, 1) + jitter * mp.eye(6)
        D, A, inverse = (np.array(m.tolist(), dtype=float) for m in (D, A, inverse))
    np.testing.assert_allclose(got.D[0], D, atol=1e-8 * np.abs(D).max())
    np.testing.assert_allclose((got.Q[0] * got.w[0]) @ got.Q[0].T, A, atol=1e-8 * np.abs(A).max())
    np.testing.assert_allclose(got.C_inv[0], inverse, atol=1e-8 * np.abs(inverse).max())


@FEW
@given(
    name=st.sampled_from(["rbf", "matern32", "matern52", "matern72", "warped-matern52", "sigmoid"]),
    length=st.floats(0.2, 3.0),
    n=st.integers(3, 25),
    jitter=st.sampled_from([1e-8, 1e-6, 1e-4]),
)
def test_the_derivative_covariance_is_positive_semidefinite_up_to_rounding(name, length, n, jitter):
    t = np.linspace(0.0, 3.0, n)
    shape = np.array([length, 1.0][: len(KERNELS[name].shape_names)])
    g = KERNELS[name].gram(t, t, shape)
    A = g.dCd - g.dC @ np.linalg.solve(g.C + jitter * np.eye(n), g.Cd)
    w = np.linalg.eigvalsh(0.5 * (A + A.T))
    assert w.min() >= -1e-15 / jitter * n * np.abs(g.dCd).max()
    got = smooth([hyper(name, shape)], t, np.zeros((1, n)), jitter)
    np.testing.assert_allclose(got.w[0], w + jitter, atol=1e-15 / jitter * n * np.abs(g.dCd).max())
    assert (got.w >= 0).all()


def test_the_posterior_mean_uses_the_observed_times_only():
    t = np.linspace(0.0, 3.0, 9)
    y = np.stack([np.sin(t), np.cos(t)])
    y[0, [1, 4]] = np.nan
    y[1, 6:] = np.nan
    hypers = [hyper("rbf", (0.9,), 1.3, 0.02), hyper("matern52", (1.5,), 0.8, 0.05)]
    got = smooth(hypers, t, y, jitter=1e-9)
    for k, h in enumerate(hypers):
        seen = np.isfinite(y[k])
        g = KERNELS[h.kernel]
        S = h.variance * g.gram(t[seen], t[seen], np.array(h.shape)).C + h.noise * np.eye(seen.sum())
        mean = h.variance * g.gram(t, t[seen], np.array(h.shape)).C @ np.linalg.solve(S, y[k, seen])
        np.testing.assert_allclose(got.mean[k], mean, atol=1e-6)


def test_tempering_divides_the_weight_of_the_prior():
    t = np.linspace(0.0, 3.0, 6)
    s = smooth([hyper()], t, np.sin(t)[None], 1e-6)
    assert s.tempered(1.0) is s
    np.testing.assert_allclose(s.tempered(4.0).C_inv, s.C_inv / 4)
    np.testing.assert_allclose(s.tempered(4.0).w, 4 * s.w)
    np.testing.assert_array_equal(s.tempered(4.0).D, s.D)


def test_states_with_other_kernels_have_the_operators_they_would_have_alone():
    t = np.linspace(0.0, 3.0, 7)
    hypers = [hyper("rbf", (0.9,), 1.3), hyper("matern52", (1.5,), 0.8), hyper("sigmoid", (0.5, 2.0))]
    y = np.stack([np.sin(t), np.cos(t), t])
    together = smooth(hypers, t, y, 1e-6)
    for k, h in enumerate(hypers):
        alone = smooth([h], t, y[[k]], 1e-6)
        for name in ("mean", "C_inv", "D", "w"):
            np.testing.assert_allclose(getattr(together, name)[k], getattr(alone, name)[0], rtol=1e-9, atol=1e-9)
