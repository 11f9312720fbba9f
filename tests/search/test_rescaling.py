"""Parameters that ran off are brought back where that costs nothing, and left where it would."""

import numpy as np

import odinfer as od
from odinfer.likelihood.refinement import maximise_from_initial
from odinfer.search.rescaling import rescale_runaways

T = np.linspace(0.0, 5.0, 12)


def fitted(text, y, phi, x0=(1.0,)):
    problem = od.Problem(od.Model.from_text(text), od.Data(T, y[:, None], states=["x"]), positive=False)
    return problem, maximise_from_initial(problem, np.full(len(x0), np.nan), [np.array(x0)], np.asarray(phi))


def test_a_parameter_beyond_all_bounds_comes_back_to_where_the_likelihood_is_flat():
    problem, far = fitted("x' = -k*x/(1 + x/m); x(0) = 1", np.exp(-0.5 * T) + 0.01 * np.cos(9 * T), [0.5, 1e9])
    found = rescale_runaways(problem, np.full(1, np.nan), far, np.ones(2))
    m = problem.theta(found.phi)[1]
    assert 1e0 <= abs(m) < 1e7
    assert found.objective < far.objective + 0.02


def test_a_parameter_at_zero_by_symmetry_leaves_it():
    y = np.exp(-0.5 * T) + 0.01 * np.cos(9 * T)
    problem, flat = fitted("x' = -k^2*x; x(0) = 1", y, [0.0])
    assert problem.theta(flat.phi)[0] == 0.0
    found = rescale_runaways(problem, np.full(1, np.nan), flat, np.ones(1))
    np.testing.assert_allclose(abs(problem.theta(found.phi)[0]), np.sqrt(0.5), rtol=0.02)


def test_what_is_determined_stays():
    problem, best = fitted("x' = -k*x; x(0) = 1", np.exp(-0.5 * T) + 0.01 * np.cos(9 * T), [0.4])
    assert rescale_runaways(problem, np.full(1, np.nan), best, np.ones(1)) is best
