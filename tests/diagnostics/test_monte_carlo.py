"""p-values from simulations are valid, and simulations stop where the verdict would not change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtrc

from odinfer.diagnostics.monte_carlo import p_value, simulate_until_decided, verdict_known


def evidence(rng, *shape):
    """Statistics with the heaviest tail that evidence can have: P(larger than x) = e^-x."""
    return rng.exponential(size=shape)


def test_a_p_value_of_two_statistics_is_uniform_or_larger_when_nothing_is_wrong():
    rng = np.random.default_rng(0)
    p = np.array([p_value(v[0], v[1:]) for v in evidence(rng, 400, 40, 2)])
    for level in (0.05, 0.1, 0.25):
        assert np.mean(p <= level) <= level + 2.5 * np.sqrt(level / 400)
    assert p.min() <= 0.05


def test_verdicts_that_end_early_reject_right_models_at_the_level():
    rng, rejected = np.random.default_rng(1), 0
    for _ in range(1000):
        observed = evidence(rng, 1)
        null = simulate_until_decided(lambda a, b: evidence(rng, b - a, 1), observed, 199, 0.05)
        rejected += p_value(observed, null) <= 0.05
    assert rejected <= 50 + 2.5 * np.sqrt(50)


def test_the_largest_of_all_has_the_smallest_p_value_which_falls_with_its_distance():
    null = evidence(np.random.default_rng(1), 99, 2)
    top = null.max(0) + 1e-9
    near, far, further = (p_value(top + by, null) for by in (0.0, 20.0, 40.0))
    assert near == pytest.approx(0.01)
    assert further < far < 1e-4
    assert p_value(np.array([-9.0, -9.0]), null) == 1.0
    assert p_value(np.array([np.inf, np.inf]), null) == 0.0


def test_without_simulations_nothing_is_rejected():
    assert p_value(np.array([9.0]), np.empty((0, 1))) == 1.0


@given(st.integers(1, 199), st.data())
def test_what_is_settled_by_acceptance_is_hardly_ever_overturned(of, data):
    reached = data.draw(st.integers(1, of))
    null = np.r_[np.ones(reached), np.zeros(of - reached)][:, None]
    if verdict_known(np.array([0.5]), null, 199, 0.05):
        rejected = (1 + reached) / (1 + of) <= 0.05 / 2.5
        assert rejected or reached >= 9 or bdtrc(reached - 1, of, 0.05) < 1e-3
    elif of == 199:
        assert (1 + reached) / 200 <= 0.05


def test_a_statistic_just_beyond_all_simulations_settles_a_verdict_only_after_many_of_them():
    def just_beyond(n):
        return verdict_known(np.zeros(1), np.full((n, 1), -1e-9), 199, 0.05)

    assert [just_beyond(n) for n in (20, 48, 49, 150)] == [False, False, True, True]


def test_all_simulations_are_made_without_a_level():
    observed = np.array([99.0])
    assert len(simulate_until_decided(lambda a, b: np.zeros((b - a, 1)), observed, 60, None)) == 60
    assert len(simulate_until_decided(lambda a, b: np.zeros((b - a, 1)), observed, 60, 0.05)) == 8


def test_a_right_model_is_accepted_after_twenty_simulations_at_the_earliest():
    assert len(simulate_until_decided(lambda a, b: np.ones((b - a, 1)), np.zeros(1), 60, 0.05)) == 20
