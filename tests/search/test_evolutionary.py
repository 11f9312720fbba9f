"""Generations of starts end where fresh ones agree, and copies of the best lead to better ones."""

import numpy as np

import odinfer as od
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.search.evolutionary import StartGenerations, generations, mutated_copies
from odinfer.search.trust_region import TrustRegionResult, minimise_batch

T = np.linspace(0.0, 8.0, 17)


def solver(text="x' = -k*x + m; x(0) = 5; log k, m; 1e-4 < k < 1e3; 1e-4 < m < 1e3", wave=0.0):
    y = 2.0 + 3.0 * np.exp(-0.8 * T) + wave * np.sin(T) + 0.1 * np.random.default_rng(0).normal(size=17)
    return BatchLikelihood.of(
        od.Problem(od.Model.from_text(text), od.Data(T, y[:, None], states=["x"]), positive=False)
    )


def anywhere(own, rng):
    u = own.likelihood.unknowns
    while True:
        yield rng.uniform(u.low, u.high)


def test_the_search_ends_where_fresh_starts_agree_and_copies_lead_nowhere():
    own = solver()
    asked = []

    def done(found):
        asked.append(found.agreeing)
        return True

    every = list(generations(own, anywhere(own, np.random.default_rng(0)), np.random.default_rng(1), done))
    assert len(every) == 2
    assert 3 <= asked[0] <= every[-1].agreeing
    assert len(every[-1].value) == 48  # no more fresh ones where those of the first generation agreed
    assert every[-1].fresh.sum() == 32


def test_where_that_is_not_good_enough_it_goes_on_until_nothing_becomes_better():
    own = solver()
    every = list(generations(own, anywhere(own, np.random.default_rng(0)), np.random.default_rng(1), lambda _: False))
    assert len(every) == 5


def generations_with_small_gains(own):
    """How many generations there are where each of the first ten finds an end that is 0.2 nats better."""
    optimum = minimise_batch(own, own.likelihood.unknowns.low[None] + 6.0).v
    line = optimum + np.linspace(1.0, 0.0, 1000)[:, None] * np.array([1.0, 0.0])
    value = own.solve(line).worth.value
    ends = iter(np.searchsorted(-value, -value[-1] - 0.2 * np.maximum(np.arange(10.0, -30.0, -1.0), 0.0)))

    def followed(solver, v, best):
        v = np.concatenate([line[[min(next(ends), len(line) - 1)]], v[1:]])
        value = np.append(solver.solve(v[:1]).worth.value, np.full(len(v) - 1, np.inf))
        none = np.zeros(len(v), bool)
        return TrustRegionResult(v, value, ~none, none, none, np.ones(len(v), int))

    rngs = np.random.default_rng(0), np.random.default_rng(1)
    return sum(1 for _ in generations(own, anywhere(own, rngs[0]), rngs[1], lambda _: False, followed))


def test_small_gains_prolong_the_search_only_where_little_is_left_to_explain():
    assert generations_with_small_gains(solver(wave=0.0)) > 10
    assert generations_with_small_gains(solver(wave=3.0)) < 10


def test_copies_keep_to_bounds_and_differ():
    own = solver()
    u = own.likelihood.unknowns
    found = StartGenerations(
        u.low + np.linspace(0.3, 0.7, 6)[:, None] * (u.high - u.low), np.arange(6.0), np.ones(6, bool)
    )
    copies = mutated_copies(own, found, np.random.default_rng(0), 24)
    assert ((copies >= u.low) & (copies <= u.high)).all()
    assert len(np.unique(copies.round(9), axis=0)) > 20


def test_copies_are_made_of_a_single_end_too():
    own = solver()
    found = StartGenerations(np.zeros((2, 2)), np.array([1.0, np.inf]), np.ones(2, bool))
    assert np.isfinite(mutated_copies(own, found, np.random.default_rng(0), 9)).all()


def test_without_any_trajectory_there_is_no_end():
    own = solver("x' = k + x^2; x(0) = 5; 0.1 < k < 9")
    every = list(generations(own, anywhere(own, np.random.default_rng(0)), np.random.default_rng(1), lambda _: True))
    assert np.isinf(every[-1].value).all()
    assert every[-1].agreeing == 0


def test_searches_that_are_left_on_their_way_go_on_with_the_next_generation():
    own = solver()
    left, begun = [0], [0]

    def some(solver, v, best):
        begun[0] += len(v) - left[-1]
        ends = minimise_batch(solver, v, best, few=10)
        left.append(int(ends.left.sum()))
        return ends

    rngs = np.random.default_rng(0), np.random.default_rng(1)
    for found in generations(own, anywhere(own, rngs[0]), rngs[1], lambda _: False, some):
        assert len(found.value) == len(found.left) == begun[0]
    assert max(left) > 0
    assert not found.left.any()
