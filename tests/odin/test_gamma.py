"""γ: the update is the exact minimum within its bounds, and every rule treats it as it says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.odin.gamma import GammaRule, best_gamma

FEW = settings(max_examples=25, derandomize=True, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
BOUNDS = (1e-6, 1e3)


def terms(seed: int, K: int = 3, M: int = 20):
    """Eigenvalues and mismatches (K, M) of states whose equations are right or wrong by any amount."""
    rng = np.random.default_rng(seed)
    w = 10.0 ** rng.uniform(-6, 1, (K, M))
    return w, np.sqrt(w + 10.0 ** rng.uniform(-6, 2, (K, 1))) * rng.normal(size=(K, M))


@settings(FEW, max_examples=60)
@given(seed=SEEDS, shared=st.booleans())
def test_best_gamma_is_the_global_minimum(seed, shared):
    rng = np.random.default_rng(seed)
    K, M = rng.integers(1, 4), rng.integers(3, 40)
    w = 10.0 ** rng.uniform(-8, 2, (K, M))
    e = np.sqrt(w + 10.0 ** rng.uniform(-8, 2, (K, 1))) * rng.normal(size=(K, M)) * 10.0 ** rng.uniform(-1, 1, (K, 1))
    low, high = 1e-6, 1e3
    found = best_gamma(w, e, (low, high), shared)
    assert found.shape == (K,)
    assert (found >= low * (1 - 1e-9)).all()
    assert (found <= high * (1 + 1e-9)).all()
    grid = np.geomspace(low, high, 4001)

    def risk(w, e, gamma):
        spread = w[..., None] + gamma
        return (e[..., None] ** 2 / spread + np.log(spread)).sum(-2)

    if shared:
        assert (found == found[0]).all()
        w, e, found = w.reshape(1, -1), e.reshape(1, -1), found[:1]
    for k in range(len(found)):
        best = risk(w[k : k + 1], e[k : k + 1], grid).min()
        assert risk(w[k : k + 1], e[k : k + 1], found[k])[0] <= best + 1e-6 * (1 + abs(best))


@FEW
@given(w=st.floats(1e-5, 10.0), level=st.floats(1e-8, 1e5), seed=SEEDS)
def test_of_equal_eigenvalues_it_is_the_mean_square_less_the_eigenvalue(w, level, seed):
    e = np.sqrt(level) * np.random.default_rng(seed).normal(size=(1, 30))
    right = np.clip((e**2).mean() - w, *BOUNDS)
    assert best_gamma(np.full(e.shape, w), e, BOUNDS)[0] == pytest.approx(right, rel=1e-5, abs=1e-9 + 1e-5 * w)


@FEW
@given(seed=SEEDS)
def test_states_do_not_matter_to_each_other_unless_gamma_is_shared(seed):
    w, e = terms(seed)
    alone = [best_gamma(w[k : k + 1], e[k : k + 1], BOUNDS)[0] for k in range(3)]
    np.testing.assert_allclose(best_gamma(w, e, BOUNDS), alone, rtol=1e-6)
    one = best_gamma(w, e, BOUNDS, shared=True)
    np.testing.assert_allclose(one, best_gamma(w.reshape(1, -1), e.reshape(1, -1), BOUNDS)[0])


def test_a_perfect_match_is_at_the_lower_bound_and_a_hopeless_one_at_the_upper():
    w = np.full((2, 10), 0.1)
    np.testing.assert_allclose(best_gamma(w, np.stack([np.zeros(10), np.full(10, 1e6)]), BOUNDS), BOUNDS)


def test_rules_hold_learn_or_share():
    w, e = terms(7)
    np.testing.assert_array_equal(GammaRule(fixed=0.0).update(w, e), np.zeros(3))
    np.testing.assert_array_equal(GammaRule(BOUNDS, fixed=0.3, shared=True).update(w, e), np.full(3, 0.3))
    own, narrow = GammaRule(BOUNDS).update(w, e), GammaRule((0.1, 0.2)).update(w, e)
    np.testing.assert_array_equal(own, best_gamma(w, e, BOUNDS))
    assert len(set(own)) == 3
    assert ((narrow >= 0.1 * (1 - 1e-9)) & (narrow <= 0.2 * (1 + 1e-9))).all()
    assert len(set(GammaRule(BOUNDS, shared=True).update(w, e))) == 1
