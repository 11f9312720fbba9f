"""The systems of the paper: their numbers, their samples, and the authors' settings."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odinfer as od
from odinfer.paper.systems import SYSTEMS, lorenz96

LV, FHN, PT = "lotka_volterra", "fitzhugh_nagumo", "protein_transduction"


def lv(t, x):
    return [2 * x[0] - x[0] * x[1], -4 * x[1] + x[0] * x[1]]


def fhn(t, x):
    return [3 * (x[0] - x[0] ** 3 / 3 + x[1]), -(x[0] - 0.2 + 0.2 * x[1]) / 3]


def pt(t, x):
    s, _, r, rs, rpp = x
    bind, off, back = 0.6 * s * r, 0.05 * rs, 0.017 * rpp / (0.3 + rpp)
    return [-0.07 * s - bind + off, 0.07 * s, -bind + off + back, bind - off - 0.3 * rs, 0.3 * rs - back]


@pytest.mark.parametrize(
    ("name", "field", "x0", "last", "points"),
    [(LV, lv, [5, 3], 2.0, 20), (FHN, fhn, [-1, 1], 10.0, 20), (PT, pt, [1, 0, 1, 0, 0], 100.0, 15)],
)
def test_the_truth_is_that_of_the_paper(name, field, x0, last, points):
    system = SYSTEMS[name]
    assert len(system.t) == points
    assert (system.t[0], system.t[-1]) == (0.0, last)
    right = solve_ivp(field, (0.0, last), x0, "Radau", system.t, rtol=1e-10, atol=1e-12).y.T
    np.testing.assert_allclose(system.x, right, rtol=1e-6, atol=1e-8)
    assert set(system.theta) == set(system.model.parameters)


def test_the_noise_levels_are_those_of_the_paper():
    assert [SYSTEMS[n].levels for n in (LV, FHN, PT)] == [(0.1, 0.5), (100.0, 10.0), (0.001, 0.01)]
    np.testing.assert_array_equal(SYSTEMS[LV].sigma(0.5), [0.5, 0.5])
    f = SYSTEMS[FHN]
    np.testing.assert_allclose(f.x.var(0) / f.sigma(10.0) ** 2, [10.0, 10.0])  # a ratio of variances


@pytest.mark.parametrize("name", SYSTEMS)
def test_samples_are_the_truth_with_noise_of_the_given_size_and_repeat_with_their_seed(name):
    system = SYSTEMS[name]
    level = system.levels[1]
    draws = np.stack([system.sample(level, seed).y for seed in range(60)])
    z = (draws - system.x) / system.sigma(level)
    assert abs(z.mean()) < 4 / np.sqrt(z.size)
    assert z.std() == pytest.approx(1.0, abs=4 / np.sqrt(2 * z.size))
    np.testing.assert_array_equal(system.sample(level, 7).y, draws[7])
    assert (draws[0] != draws[1]).all()


def test_samples_at_other_times_start_from_the_same_initial_values():
    system = SYSTEMS[LV]
    t = np.linspace(0.0, 1.0, 9)
    data = system.sample(1e-9, 0, t)
    np.testing.assert_array_equal(data.t, t)
    np.testing.assert_allclose(data.y[0], [5.0, 3.0], atol=1e-7)
    np.testing.assert_allclose(system.states(t)[-1], system.states(np.array([0.0, 1.0]))[-1], rtol=1e-6)


@pytest.mark.parametrize("noise", [0.0, -1.0, np.nan])
def test_noise_must_be_positive(noise):
    with pytest.raises(od.InputError, match="positive"):
        SYSTEMS[LV].sample(noise, 0)


def test_lorenz_96_has_its_neighbours_in_a_ring():
    system = lorenz96(5)
    x = np.array([[1.0, 2.0, -1.0, 0.5, 3.0]])
    f, _, _ = system.model.linearise(np.zeros(1), x, np.array([8.0]), np.zeros((1, 0)))
    right = [(x[0, (k + 1) % 5] - x[0, k - 2]) * x[0, k - 1] - x[0, k] + 8.0 for k in range(5)]
    np.testing.assert_allclose(f[0], right)
    assert lorenz96(5) is system
    assert system.x.shape == (50, 5)
    assert np.isfinite(system.x).all()
    with pytest.raises(od.InputError, match="at least 4"):
        lorenz96(3)


@pytest.mark.parametrize(
    ("name", "theta", "state"),
    [(LV, (0.0, 100.0), (0.0, 10.0)), (FHN, (0.0, 100.0), (-np.inf, np.inf)), (PT, (1e-8, 10.0), (0.0, 2.0))],
)
def test_the_problem_of_a_system_has_the_authors_bounds(name, theta, state):
    system = SYSTEMS[name]
    problem = system.problem(system.sample(system.levels[0], 0))
    assert {problem.limits(p) for p in system.model.parameters} == {theta}
    assert {problem.limits(s) for s in system.model.states} == {state}


@pytest.mark.parametrize(
    ("name", "kernel", "shared", "scale_time", "hops"),
    [
        (LV, "rbf", True, True, False),
        (FHN, "matern52", False, True, True),
        (PT, "sigmoid", False, False, True),
        ("lorenz96", "matern32", False, True, False),
    ],
)
def test_the_papers_preset_has_the_authors_settings(name, kernel, shared, scale_time, hops):
    system = lorenz96(4) if name == "lorenz96" else SYSTEMS[name]
    preset = od.Odin.paper(system)
    assert preset == od.Odin.paper(system.model.name)
    assert (preset.kernel, preset.shared, preset.scale_time, preset.hops > 0) == (kernel, shared, scale_time, hops)
    assert preset.gamma_bounds == (1e-6, 10.0)
    assert preset.jitter == 1e-4
    assert (preset.grid, preset.temper, preset.refine, preset.weak_prior) == (1, 1.0, False, False)
    assert preset.hyper_bounds == (1e-6, 100.0)
    assert od.Odin.paper(system, optimizer="lbfgsb").optimizer == "lbfgsb"


@pytest.mark.parametrize("name", [*SYSTEMS, "lorenz96"])
def test_the_papers_preset_fits_its_system(name):
    system = lorenz96(4) if name == "lorenz96" else SYSTEMS[name]
    data = system.sample(system.levels[0], 1)
    fit = od.fit(system.problem(data), method=od.Odin.paper(system))
    assert list(fit.stages) == ["odin"]
    assert fit.converged
    truth = system.states(data.t)
    smoothed = np.sqrt(np.mean((fit.states.to_numpy() - truth) ** 2))
    assert smoothed < np.sqrt(np.mean((data.y - truth) ** 2))


def test_a_system_that_is_not_in_the_paper_is_refused():
    with pytest.raises(od.InputError, match="did you mean 'lotka_volterra'"):
        od.Odin.paper("lotka_voltera")
