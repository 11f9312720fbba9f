"""Options that samplers share: refused where they cannot be used; chains start inside all bounds, apart, and repeat."""

from dataclasses import replace

import numpy as np
import pytest

import odinfer as od
from odinfer.model.priors import FLAT
from odinfer.odin.dense_engine import Dense
from odinfer.paper.sampler_options import SamplerOptions

OPTIONS = SamplerOptions(kernel="matern52", jitter=1e-2)
UNIFORM = (FLAT, 0.0, 1.0)


def begin(problem, options=OPTIONS, chains=5, seed=0):
    return options.begin(problem, "learn", chains, seed, UNIFORM)


@pytest.fixture(scope="module")
def problem(decay, decay_data) -> od.Problem:
    return od.Problem(decay, decay_data, bounds={"k": (0.0, 2.0), "x": (0.0, None)}, positive=False)


BAD = {
    "a start that is none": ({"start": "random"}, "start"),
    "states that reach nowhere": ({"state_range": 0.0}, "state_range must be positive"),
    "states that reach backwards": ({"state_range": -3.0}, "state_range must be positive"),
    "a reach that is no number": ({"state_range": np.nan}, "state_range must be positive"),
    "parameters from high to low": ({"theta_range": (2.0, 1.0)}, "theta_range must be low < high"),
    "parameters at one value": ({"theta_range": (1.0, 1.0)}, "theta_range must be low < high"),
    "a kernel that is none": ({"kernel": "matern"}, "kernel"),
    "too much jitter": ({"jitter": 2.0}, "jitter"),
    "no grid": ({"grid": 0}, "grid"),
}


@pytest.mark.parametrize("case", BAD)
def test_options_that_cannot_be_used_are_refused(case):
    change, words = BAD[case]
    with pytest.raises(od.InputError, match=words):
        replace(OPTIONS, **change)


def test_odin_is_run_on_the_same_gaussian_processes():
    options = SamplerOptions(kernel="rbf", jitter=1e-3, grid=2, temper=3.0, shared=True, scale_time=False)
    search = options.search(0.2)
    for name in (
        "kernel",
        "jitter",
        "grid",
        "temper",
        "shared",
        "scale_time",
        "hyper_bounds",
        "thorough",
        "weak_prior",
    ):
        assert getattr(search, name) == getattr(options, name)
    assert search.rule.fixed == 0.2
    assert search.algebra == "dense"


def test_chains_start_around_odins_solution_apart_from_each_other(problem):
    risk, _, target, z, phi = begin(problem)
    best = OPTIONS.search("learn").run(problem, 0).solutions[0]
    assert isinstance(risk, Dense)
    assert z.shape == (5, *target.y.shape)
    assert phi.shape == (5, 1)
    assert np.abs(z - best.z.T).max() < 0.1
    np.testing.assert_allclose(phi, np.tile(best.phi, (5, 1)), rtol=0.2)
    assert len(np.unique(z[:, 0, 0])) == len(np.unique(phi)) == 5


def test_starts_as_in_the_paper_are_at_the_means_and_at_positive_parameters(problem):
    risk, _, target, z, phi = begin(problem, replace(OPTIONS, start="paper"), chains=40)
    inside = np.clip(risk.mean.T, target.z_low[:, None] + 1e-2, target.z_high[:, None] - 1e-2)
    np.testing.assert_array_equal(z, np.tile(inside, (40, 1, 1)))
    assert (phi > 0).all()
    assert phi.std() > 0.3


@pytest.mark.parametrize("start", ["odin", "paper"])
def test_starts_lie_strictly_inside_all_bounds(problem, start):
    options = replace(OPTIONS, start=start, state_range=1.2, theta_range=(0.9, 1.0))
    _, _, target, z, phi = begin(problem, options, chains=20)
    assert target.parameters.low.tolist() == [0.9]
    assert target.parameters.high.tolist() == [1.0]
    assert ((phi > 0.9) & (phi < 1.0)).all()
    assert target.z_high.tolist() == [1.2]
    assert (target.z_low >= -1.2).all()
    assert ((z > target.z_low[:, None]) & (z < 1.2)).all()


def test_the_same_seed_starts_at_the_same_places(problem):
    one, two, other = (begin(problem, seed=seed)[3:] for seed in (1, 1, 2))
    for a, b, c in zip(one, two, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()


def test_on_a_log_scale_parameters_start_on_that_scale(decay, decay_data):
    log = od.Problem(decay, decay_data, scale={"k": "log"}, positive=False)
    phi = begin(log)[4]
    np.testing.assert_allclose(np.exp(phi), 0.7, rtol=0.3)
