"""The ODIN stage: options that cannot be used are refused; what it finds is sorted, different and repeats."""

from dataclasses import replace

import numpy as np
import pytest

import odinfer as od
from odinfer.odin.gamma import GammaRule
from odinfer.odin.multistart import Search

SEARCH = od.Odin(starts=20).search


@pytest.fixture(scope="module")
def two_minima(decay_data) -> od.Problem:
    """Rates k³ − 3k − 1.35: the data's 0.7 near k = 2, and a local maximum of 0.65 at k = −1."""
    return od.Problem(od.Model.from_text("x' = -(k^3 - 3*k - 1.35)*x"), decay_data, positive=False)


BAD = {
    "kernel": ("matern", "kernel"),
    "optimizer": ("newton", "optimizer"),
    "algebra": ("sparce", "did you mean 'sparse'"),
    "gamma": ("lern", "gamma must be 'learn' or a number"),
    "gamma_bounds": ((1.0, 0.5), "gamma_bounds"),
    "hyper_bounds": ((0.0, 1.0), "hyper_bounds"),
    "jitter": (1.5, "jitter"),
    "temper": (0.5, "temper"),
    "grid": (0, "grid"),
    "starts": (2.5, "starts"),
    "hops": (-1, "hops"),
}


@pytest.mark.parametrize("option", BAD)
def test_options_that_cannot_be_used_are_refused_by_name(option):
    value, words = BAD[option]
    with pytest.raises(od.InputError, match=words):
        replace(SEARCH, **{option: value})


@pytest.mark.parametrize(
    "change", [{"gamma": -0.1}, {"gamma": np.inf}, {"jitter": "small"}, {"temper": np.nan}, {"gamma_bounds": 3.0}]
)
def test_numbers_that_are_none_are_refused_too(change):
    with pytest.raises(od.InputError, match=next(iter(change))):
        replace(SEARCH, **change)


def test_different_minima_are_different_and_sorted(two_minima):
    found = SEARCH.run(two_minima)
    best, other = found.solutions
    assert best.phi[0] == pytest.approx(2.0, abs=0.05)
    assert other.phi[0] == pytest.approx(-1.0, abs=0.05)
    assert best.risk < other.risk - 1.0
    assert 1 <= found.agreeing < 20


def test_equal_minima_are_one_and_their_starts_agree(decay_data):
    found = SEARCH.run(od.Problem(od.Model.from_text("x' = -k^2*x"), decay_data, positive=False))
    assert len(found.solutions) == 1
    assert abs(found.solutions[0].phi[0]) == pytest.approx(np.sqrt(0.7), rel=0.05)
    assert found.agreeing == 20


def test_places_of_the_same_risk_are_one_minimum(decay_data):
    circle = od.Problem(od.Model.from_text("x' = -(k^2 + m^2)*x"), decay_data, positive=False)
    for seed in range(3):
        found = SEARCH.run(circle, seed)
        assert len(found.solutions) == 1
        assert (found.solutions[0].phi ** 2).sum() == pytest.approx(0.7, rel=0.05)
        assert found.agreeing > 1


def test_the_same_seed_gives_the_same_and_another_the_same_minimum(two_minima):
    one, two, other = (SEARCH.run(two_minima, seed) for seed in (3, 3, 4))
    assert one.agreeing == two.agreeing
    for a, b in zip(one.solutions, two.solutions, strict=True):
        np.testing.assert_array_equal(a.z, b.z)
        np.testing.assert_array_equal(a.phi, b.phi)
        assert a.risk == b.risk
    assert other.solutions[0].risk == pytest.approx(one.solutions[0].risk, abs=1e-2)


def test_a_model_that_is_finite_nowhere_has_no_minimum(decay_data):
    found = SEARCH.run(od.Problem(od.Model.from_text("x' = -sqrt(-1 - k^2)*x"), decay_data, positive=False))
    assert found.solutions == []
    assert found.agreeing == 0
    assert np.isfinite(found.engine.mean).all()


def test_hops_find_what_one_start_misses(two_minima):
    near_the_worse = od.Problem(
        two_minima.model, two_minima.data, start={"k": -1.0}, bounds={"k": (-5.0, 5.0)}, positive=False
    )
    few = replace(SEARCH, starts=1)
    alone, hopped = few.run(near_the_worse), replace(few, hops=3).run(near_the_worse)
    assert alone.solutions[0].phi[0] == pytest.approx(-1.0, abs=0.05)
    assert hopped.solutions[0].phi[0] == pytest.approx(2.0, abs=0.05)
    assert hopped.solutions[0].risk < alone.solutions[0].risk
    again = replace(few, hops=3).run(near_the_worse)
    np.testing.assert_array_equal(hopped.solutions[0].phi, again.solutions[0].phi)


def test_the_papers_optimiser_is_run_where_it_is_asked_for(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, positive=False)
    ours, theirs = (replace(SEARCH, optimizer=o, starts=4, grid=1) for o in ("gauss-newton", "lbfgsb"))
    engine = ours.engine(problem)
    start = engine.mean, np.array([2.0, 1.0, 4.0, 1.0])
    one, two = ours.minimise(engine, *start), theirs.minimise(engine, *start)
    assert two.risk == pytest.approx(one.risk, abs=0.5)
    assert two.iterations > 2 * one.iterations
    assert theirs.run(problem).solutions[0].risk == pytest.approx(one.risk, abs=0.5)


def test_gamma_is_learned_or_held_as_the_options_say():
    assert SEARCH.rule == GammaRule((1e-6, 1e3), None, False)
    held = replace(SEARCH, gamma="0.25", shared=True, gamma_bounds=(1e-3, 10.0))
    assert held.rule == GammaRule((1e-3, 10.0), 0.25, True)
    assert Search(**{**held.__dict__, "gamma": 0}).rule.fixed == 0.0
