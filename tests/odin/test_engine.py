"""Engines: which one a problem gets, and that either is a risk that minimises itself, with the same answer."""

import inspect

import numpy as np
import pytest

import odinfer as od
from odin.sparse.many_states import diffusion, lorenz
from odinfer.odin import engine as choosing
from odinfer.odin.dense_engine import Dense
from odinfer.odin.engine import Engine, direct, engine_of
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import Objective
from odinfer.odin.markov.engine import Markov
from odinfer.odin.sparse.engine import FEWEST_STATES, FEWEST_UNKNOWNS, Sparse


def chosen(problem, algebra="auto", grid=1, **more) -> Engine:
    return engine_of(problem, algebra, grid, temper=2.0, jitter=1e-4, kernel_name="matern52", **more)


@pytest.fixture(scope="module")
def engines() -> tuple[Dense, Sparse, Markov]:
    problem = diffusion()
    return chosen(problem, "dense"), chosen(problem, "sparse"), chosen(problem, "markov")


def test_many_states_get_sparse_algebra_from_the_threshold_on():
    times = -(-FEWEST_UNKNOWNS // FEWEST_STATES)
    assert isinstance(chosen(lorenz(FEWEST_STATES, times=times)), Sparse)
    assert not isinstance(chosen(lorenz(FEWEST_STATES - 1, times=times + 10)), Sparse)
    assert not isinstance(chosen(lorenz(FEWEST_STATES, times=times - 2)), Sparse)


def test_many_values_get_chains_where_the_kernel_has_them(lv):
    short, long = (
        od.Problem(lv.model, lv.sample(0.1, 0, np.linspace(0.0, 2.0, n)), positive=False) for n in (140, 150)
    )
    assert isinstance(chosen(short), Dense)
    assert isinstance(chosen(long), Markov)
    assert direct(long, "rbf") == "dense"
    with pytest.raises(od.InputError, match="'markov' takes a Matérn kernel, warped or not, and kernel 'rbf' is none"):
        engine_of(long, "markov", 1, 1.0, 1e-4, kernel_name="rbf")


def test_a_long_series_gets_no_points_between_its_observations_unless_gaps_are_long(lv):
    times = np.linspace(0.0, 2.0, 400)
    problem = od.Problem(lv.model, lv.sample(0.1, 0, times), positive=False)
    np.testing.assert_array_equal(chosen(problem, grid=2).t, times)
    short = {str(i): lv.sample(0.1, i, np.linspace(0.0, 2.0, 11)) for i in range(20)}
    assert len(chosen(od.Problem(lv.model, od.Data.join(short), positive=False), grid=2).t) == 20 * 21


def test_what_is_asked_for_is_what_one_gets(engines):
    assert isinstance(engines[0], Dense)
    assert isinstance(engines[1], Sparse)
    assert isinstance(engines[2], Markov)


def members(protocol) -> set[str]:
    return {name for name in (*vars(Objective), *vars(protocol)) if not name.startswith("_")}


def test_all_engines_have_all_that_an_engine_has_with_the_same_arguments(engines):
    names = members(Engine)
    assert {"minimise", "curves", "gradient", "match", "notes", "best_gamma"} <= names
    for engine in engines:
        for name in names:
            assert hasattr(engine, name), name
    for name in (n for n in names if inspect.isfunction(vars(Engine).get(n))):
        wanted = list(inspect.signature(vars(Engine)[name]).parameters)
        for engine in engines:
            assert list(inspect.signature(getattr(type(engine), name)).parameters)[: len(wanted)] == wanted


def test_all_engines_find_the_same_parameters_and_states(engines):
    phi, rule = np.ones((1, 2)), GammaRule(fixed=1e-3)
    noise = 0.05
    starts, ends = zip(*((e.match(phi)[0][0], e.minimise(e.mean, phi[0], rule)) for e in engines), strict=True)
    for other in (1, 2):
        np.testing.assert_allclose(starts[0], starts[other], rtol=0.1)
        np.testing.assert_allclose(ends[0].phi, ends[other].phi, rtol=0.05)
    np.testing.assert_allclose(ends[0].phi, [0.8, 0.3], rtol=0.3)
    x = [[c.at(e.t)[0] for c, e in zip(g.curves(s), g.problem.data.experiments, strict=True)]
         for g, s in zip(engines, ends, strict=True)]  # fmt: skip
    for mine, *others in zip(*x, strict=True):
        assert max(np.abs(mine - other).max() for other in others) < noise
    for mine, *others in zip(*(g.gradients(s) for g, s in zip(engines, ends, strict=True)), strict=True):
        for other in others:
            np.testing.assert_allclose(mine.f, other.f, atol=0.1 * np.abs(mine.f).max())
    means = [[c.at(e.t)[0] for c, e in zip(g.mean_curves(), g.problem.data.experiments, strict=True)] for g in engines]
    for mine, *others in zip(*means, strict=True):
        assert max(np.abs(mine - other).max() for other in others) < 4 * noise


def test_only_the_sparse_engine_says_that_it_has_no_bands(engines):
    assert engines[0].notes == ()
    assert len(engines[1].notes) == 1
    assert engines[2].notes == ()


def test_a_grid_is_finer_than_the_data_unless_dense_algebra_would_grow_too_large(lv, lv_data, monkeypatch):
    problem = od.Problem(lv.model, lv_data, positive=False)
    fine, n = chosen(problem, grid=2), len(lv_data.t)
    assert fine.mean.shape == (2 * n - 1, 2)
    monkeypatch.setattr(choosing, "MOST_UNKNOWNS", 4 * n - 1)
    np.testing.assert_array_equal(chosen(problem, grid=2).t, lv_data.t)


def test_options_of_the_smoothing_reach_it(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, positive=False)
    one = chosen(problem, shared=True, scale_time=False)
    assert one.units.time == 1.0
    assert one.hypers[0] == one.hypers[1]
    assert chosen(problem).units.time != 1.0
