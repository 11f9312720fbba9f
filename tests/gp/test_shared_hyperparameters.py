"""Shapes from one grid: evidence close to that of a free search, and the operators of every state on its own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.gp import shared_hyperparameters
from odinfer.gp.evidence import Hyperparameters, Series, empirical_bayes, log_evidence
from odinfer.gp.operators import smooth
from odinfer.gp.shared_hyperparameters import Group, bayes_on_grid, shared_operators

FEW = settings(max_examples=20, derandomize=True, deadline=None)


def wave(n=20, sd=0.1, seed=0, last=6.0) -> Series:
    t = np.linspace(0.0, last, n)
    rng = np.random.default_rng(seed)
    return Series(t, np.sin(rng.uniform(0.5, 2.0) * t + seed) + sd * rng.normal(size=n))


def on_grid(series, kernels=("matern52",), known=None, margin=0.0, bounds=(1e-10, 1e6), weak=False):
    return bayes_on_grid(series, kernels, known or [None] * len(series), margin, bounds, weak)


# --- hyperparameters


@FEW
@given(st.sampled_from(["rbf", "matern32", "matern52", "matern72"]), st.integers(0, 99), st.floats(0.02, 0.5))
def test_the_evidence_is_close_to_that_of_a_free_search_and_not_above(name, seed, sd):
    series = [wave(sd=sd, seed=seed)]
    (held,) = on_grid([series], [name])
    (free,) = empirical_bayes([series], [name], [None], thorough=True)
    assert log_evidence(free, series) - 0.2 < log_evidence(held, series) <= log_evidence(free, series) + 1e-3
    assert held.evidence == pytest.approx(log_evidence(held, series), abs=2e-3)


@pytest.mark.parametrize("name", ["rbf", "warped-matern52", "sigmoid"])
def test_no_other_shape_of_the_grid_has_a_higher_evidence(name):
    many = [[wave(seed=s)] for s in range(30)]
    found = on_grid(many, [name])
    shapes = {h.shape for h in found}
    assert 2 < len(shapes) <= 100
    for series, h in zip(many, found, strict=True):
        for shape in shapes:
            other = Hyperparameters(name, shape, h.variance, h.noise, 0.0)
            assert log_evidence(other, series) <= h.evidence + 2e-3


def test_states_do_not_depend_on_each_other_or_on_the_size_of_the_chunks(monkeypatch):
    many = [[wave(seed=s), wave(n=9, seed=s + 50, last=2.0)] if s % 3 else [wave(n=14, seed=s)] for s in range(8)]
    whole = on_grid(many, ["matern52", "rbf"])
    monkeypatch.setattr(shared_hyperparameters, "_CHUNK", 2)
    for some in (on_grid(many, ["matern52", "rbf"]), on_grid(many[:5], ["matern52", "rbf"])):
        for a, b in zip(some, whole, strict=False):
            assert (a.kernel, a.shape) == (b.kernel, b.shape)
            np.testing.assert_allclose((a.variance, a.noise, a.evidence), (b.variance, b.noise, b.evidence), rtol=1e-9)


def test_known_noise_is_kept_and_bounds_are_kept_to():
    known, free = on_grid([[wave(seed=1)], [wave(seed=2)]], known=[0.25, None])
    assert known.noise == pytest.approx(0.25)
    (alone,) = on_grid([[wave(seed=2)]])
    assert free.noise == pytest.approx(alone.noise, rel=1e-9)
    (h,) = on_grid([[wave(sd=0.0)]], bounds=(0.3, 2.0))
    assert all(0.3 * (1 - 1e-9) <= v <= 2.0 * (1 + 1e-9) for v in (*h.shape, h.variance, h.noise))


def test_a_later_kernel_needs_the_margin():
    series = [[wave(sd=0.02)]]
    rough, smoother = (on_grid(series, [name])[0].evidence for name in ("matern32", "rbf"))
    gain = smoother - rough
    assert gain > 1.0
    assert on_grid(series, ["matern32", "rbf"], margin=gain - 0.1)[0].kernel == "rbf"
    assert on_grid(series, ["matern32", "rbf"], margin=gain + 0.1)[0].kernel == "matern32"


def test_the_weak_prior_moves_the_noise_ratio_but_is_no_part_of_the_evidence():
    series = [wave(sd=0.02)]
    (plain,), (weak,) = on_grid([series]), on_grid([series], weak=True)
    assert weak.noise != plain.noise
    assert weak.evidence == pytest.approx(log_evidence(weak, series), abs=5e-3)


# --- operators


def states(seed, size=5, n=8):
    """Hyperparameters that share shapes two by two, and observations (N, K) with holes but for the first two."""
    rng = np.random.default_rng(seed)
    kinds = [("rbf", (0.9,)), ("matern52", (1.4,)), ("sigmoid", (0.5, 2.0))]
    hypers = [
        Hyperparameters(*kinds[k // 2], *(10 ** rng.uniform(-1, 1, 2) * [1.0, 0.05]).tolist(), 0.0) for k in range(size)
    ]
    y = rng.normal(size=(n, size))
    y[1:, 2:][rng.uniform(size=(n - 1, max(size - 2, 0))) < 0.3] = np.nan
    return hypers, np.sort(rng.uniform(0, 3, n)), y


@FEW
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1e-4, 1e-2]))
def test_operators_are_those_of_the_states_on_their_own_up_to_their_variance(seed, jitter):
    hypers, t, y = states(seed)
    groups, mean = shared_operators(hypers, t, y, jitter)
    assert [g.members.tolist() for g in groups] == [[0, 1], [2, 3], [4]]
    for group in groups:
        for k in group.members:
            v = hypers[k].variance
            own = smooth([hypers[k]], t, y[:, [k]].T, v * jitter)
            np.testing.assert_allclose(mean[:, k], own.mean[0], atol=1e-6)
            np.testing.assert_allclose(group.prior / v, own.C_inv[0], rtol=1e-6, atol=1e-9 / jitter / v)
            A = (own.Q[0] * own.w[0]) @ own.Q[0].T
            np.testing.assert_allclose(
                v * (group.T.T * group.w) @ group.T, A, atol=1e-8 * np.abs(A).max() + 1e-9 * v / jitter
            )
            size = 1e-9 / jitter * np.abs(own.D[0]).max()
            np.testing.assert_allclose(group.T.T @ group.S, own.D[0], rtol=1e-6, atol=size)


@FEW
@given(st.integers(0, 2**32 - 1))
def test_the_mismatch_of_a_group_weighs_like_the_covariance_of_the_slope(seed):
    hypers, t, y = states(seed, size=1)
    (group,), _ = shared_operators(hypers, t, y, 1e-2)
    own = smooth(hypers, t, y.T, 1e-2 * hypers[0].variance)
    rng = np.random.default_rng(seed)
    f, z, gamma = rng.normal(size=8), rng.normal(size=8), 0.1
    e = group.T @ f - group.S @ z
    A = (own.Q[0] * own.w[0]) @ own.Q[0].T / hypers[0].variance + gamma * np.eye(8)
    r = f - own.D[0] @ z
    assert (e**2 / (group.w + gamma)).sum() == pytest.approx(r @ np.linalg.solve(A, r), rel=1e-6)


def test_tempering_divides_the_weight_of_the_prior():
    hypers, t, y = states(0)
    for group in shared_operators(hypers, t, y, 1e-4)[0]:
        tempered = group.tempered(4.0)
        assert isinstance(tempered, Group)
        np.testing.assert_allclose(tempered.prior, group.prior / 4)
        np.testing.assert_allclose(tempered.w, 4 * group.w)
        assert tempered.T is group.T
        assert tempered.S is group.S
