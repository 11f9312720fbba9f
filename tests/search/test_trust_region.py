"""Starts side by side come to maxima, each within its bounds."""

import numpy as np
import pytest

import odinfer as od
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.refinement import maximise_from_initial
from odinfer.search.trust_region import HeldUnknown, minimise_batch, predicted_reduction

T = np.linspace(0.0, 8.0, 17)


def solver(text="x' = -k*x + m; x(0) = 5; log k, m; 1e-4 < k < 1e3; 1e-4 < m < 1e3", most=1000):
    y = 2.0 + 3.0 * np.exp(-0.8 * T) + 0.1 * np.random.default_rng(0).normal(size=17)
    return BatchLikelihood.of(
        od.Problem(od.Model.from_text(text), od.Data(T, y[:, None], states=["x"]), positive=False), 1e-4, most
    )


def drawn(own, count=12):
    u = own.likelihood.unknowns
    return np.random.default_rng(2).uniform(u.low, u.high, (count, u.size))


def test_they_come_to_the_maximum_that_one_search_finds_from_the_truth():
    own = solver()
    p = own.problem
    truth = maximise_from_initial(p, np.full(1, np.nan), [np.array([5.0])], p.phi(np.array([0.8, 1.6])))
    ends = minimise_batch(own, drawn(own))
    assert (ends.value < truth.objective + 1e-2).sum() >= 6
    assert ends.value.min() == pytest.approx(truth.objective, abs=1e-2)
    assert ends.settled[ends.value.argmin()]
    u = own.likelihood.unknowns
    assert ((ends.v >= u.low) & (ends.v <= u.high)).all()


def test_no_end_is_worse_than_its_start():
    own = solver()
    v = drawn(own)
    assert (minimise_batch(own, v, rounds=3).value <= own.solve(v).worth.value).all()


def test_starts_without_a_trajectory_stay_where_they_are():
    own = solver("x' = k*x^2 + m; x(0) = 5; -9 < k < 9; 0 < m < 9")
    v = np.array([[8.0, 1.0], [-0.5, 1.0]])
    ends = minimise_batch(own, v)
    assert np.isinf(ends.value[0])
    np.testing.assert_array_equal(ends.v[0], v[0])
    assert np.isfinite(ends.value[1])


def test_what_will_not_come_near_the_best_is_given_up():
    own = solver()
    ends = minimise_batch(own, drawn(own), best=-1e6)
    assert not ends.settled.all()


def test_the_same_starts_give_the_same_ends():
    own = solver()
    one, other = (minimise_batch(own, drawn(own)) for _ in range(2))
    np.testing.assert_array_equal(one.v, other.v)


def test_the_last_few_may_be_left_on_their_way():
    own = solver()
    ends, part = minimise_batch(own, drawn(own)), minimise_batch(own, drawn(own), few=4)
    assert not ends.left.any()
    assert 0 < part.left.sum() <= 4
    assert not (part.left & part.settled).any()
    np.testing.assert_array_equal(part.value[~part.left], ends.value[~part.left])
    assert (part.value[part.left] >= ends.value[part.left]).all()


def test_groups_are_after_maxima_of_their_own():
    # With m held, the best k is another one for every m: far behind one group's best may be the best of another.
    own, v = solver(), np.tile(drawn(solver(), 6), (2, 1))
    value = np.repeat(np.log([1.6, 8.0]), 6)
    group = np.repeat([0, 1], 6)
    held = HeldUnknown(np.ones(12, int), value)
    ends = minimise_batch(own, v, held=held, group=group)
    alone = [minimise_batch(own, v[group == g], held=HeldUnknown(np.ones(6, int), value[group == g])) for g in (0, 1)]
    for g in (0, 1):
        assert ends.value[group == g].min() == pytest.approx(alone[g].value.min(), abs=1e-3)
    assert ends.value[group == 1].min() > ends.value[group == 0].min() + 5


def test_a_group_that_has_found_enough_does_not_go_on():
    own = solver()
    whole = minimise_batch(own, drawn(own))
    ends = minimise_batch(own, drawn(own), enough=whole.value.min() + 50.0)
    assert ends.value.min() < whole.value.min() + 50.0
    assert (ends.value >= whole.value - 1e-9).all()
    assert (ends.value > whole.value + 1e-6).any()


def late(most=1000):
    """Growth from e^-60 or so."""
    t = np.linspace(0.0, 10.0, 21)
    y = 1.0 / (1.0 + np.exp(-10.0 * (t - 6.0))) + 0.01 * np.random.default_rng(0).normal(size=21)
    problem = od.Problem(
        od.Model.from_text("x' = 10*x*(1 - x/K)"), od.Data(t, y[:, None], states=["x"]), positive=False
    )
    return BatchLikelihood.of(problem, 1e-5, most, halting=False)


def test_what_grows_from_very_little_does_not_keep_others_from_their_best():
    ends = minimise_batch(late(), np.array([[1.3 * np.exp(-60.0), 1.2]]))
    assert ends.v[0] == pytest.approx([np.exp(-60.0), 1.0], rel=0.05)
    assert (ends.settled[0], ends.blocked[0]) == (True, False)


def test_a_search_says_if_it_would_have_gone_on_to_where_no_trajectory_was_found():
    v = np.array([[np.exp(-57.5), 1.0]])
    taken = int(late().solve(v).tries.max())
    ends = minimise_batch(late(taken + 1), v)
    assert ends.blocked[0]
    assert ends.value[0] > minimise_batch(late(), v).value[0] + 1.0


def test_a_patient_search_follows_a_narrow_ridge_that_bends():
    """The first state is next to an unstable balance, v·K² matters, and b + v: only what is patient arrives."""
    t = [0.0, 1.33849, 1.33978, 1.98141, 3.32379, 3.58784, 3.93234, 5.42343, 5.43972, 6.73159, 6.78167, 6.85795]
    y = [0.1785, 0.5244, 0.5391, 0.4707, 1.2133, 1.5576, 1.5080, 2.3841, 2.3537, 2.8040, 2.6931, 2.5879]
    model = od.Model.from_text("x' = b + v*x^2/(K^2 + x^2) - d*x")
    data = od.Data(np.array(t), np.array(y)[:, None], states=["x"])
    own = BatchLikelihood.of(od.Problem(model, data, positive=False), 3e-5, halting=False)
    order = [own.problem.free.index(name) for name in ("b", "v", "K", "d")]
    v = np.empty((1, 5))
    v[0, 0], v[0, 1 + np.array(order)] = 0.28473, [-51.10852, 51.76183, 0.03127709, 0.1118505]
    held = HeldUnknown(np.array([1 + order[0]]), np.array([-51.10852]))
    usual, patient = (minimise_batch(own, v, rounds=40, held=held, patient=patient) for patient in (False, True))
    assert patient.value[0] < usual.value[0] - 0.2
    assert predicted_reduction(own, patient.v, held)[0] < 0.1 < 0.2 < predicted_reduction(own, usual.v, held)[0]
