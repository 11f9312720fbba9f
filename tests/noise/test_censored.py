"""Values of which only a limit is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer._jax import jax, jnp
from odinfer.errors import InputError
from odinfer.noise import FAMILIES, censored
from odinfer.noise.censored import continuous

CONTINUOUS = {
    "normal": st.tuples(st.floats(-3, 3), st.floats(0.2, 3)),
    "lognormal": st.tuples(st.floats(0.2, 5), st.floats(0.2, 2)),
    "student": st.tuples(st.floats(-3, 3), st.floats(0.2, 3), st.floats(0.7, 100)),
    "laplace": st.tuples(st.floats(-3, 3), st.floats(0.2, 3)),
}
every = pytest.mark.parametrize("name", CONTINUOUS)
FEW = settings(max_examples=25, derandomize=True, deadline=None)
SHARES = np.array([1e-9, 0.01, 0.3, 0.7, 0.99, 1 - 1e-9])
LIMITS = np.array([[-1.0], [0.0], [1.0]])


@every
@FEW
@given(data=st.data())
def test_a_value_is_below_or_above(name, data):
    family, a = FAMILIES[name], data.draw(CONTINUOUS[name])
    y = family.quantile(SHARES, a)
    below, at, above = censored.log_density(family, y, a, LIMITS)
    np.testing.assert_allclose(np.exp(below) + np.exp(above), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(below), SHARES, rtol=1e-6)
    np.testing.assert_array_equal(at, family.log_density(y, a))


@every
@FEW
@given(data=st.data())
def test_rows_give_the_gradient_with_and_without_limits(name, data):
    family, a = FAMILIES[name], data.draw(CONTINUOUS[name])
    y = family.quantile(np.array([1e-9, 0.01, 0.3, 0.7, 0.99]), a)
    r, J = censored.rows(family, y, [np.full_like(y, v) for v in a], LIMITS)
    gradient = np.einsum("lnr,lnra->lna", r, J)
    for i in range(len(a)):
        h = 1e-5 * (a[1] if i == 0 and name != "lognormal" else a[i])
        up, down = ([v + d * (j == i) for j, v in enumerate(a)] for d in (h, -h))
        numeric = [-(censored.log_density(family, y, b, LIMITS)) for b in (up, down)]
        numeric = (numeric[0] - numeric[1]) / (2 * h)
        np.testing.assert_allclose(gradient[..., i], numeric, rtol=1e-4, atol=1e-6 * np.abs(numeric).max() + 1e-8)


@pytest.mark.parametrize("z", [-30.0, -3.0, 0.0, 2.0])
def test_of_normal_noise_the_information_is_the_curvature(z):
    family, limit = FAMILIES["normal"], np.array([-1.0])
    _, J = censored.rows(family, np.array([z]), [np.zeros(1), np.ones(1)], limit)
    h = 1e-3
    f = [-censored.log_density(family, np.array([z]), (m, 1.0), limit)[0] for m in (-h, 0.0, h)]
    assert J[0, 0, 0] ** 2 == pytest.approx((f[0] - 2 * f[1] + f[2]) / h**2, rel=1e-3, abs=1e-6)


@every
def test_limits_far_away_and_missing_values_say_nothing_wrong(name):
    family = FAMILIES[name]
    a = [np.full(5, 1.0), np.full(5, 0.5), np.full(5, 4.0)][: len(family.arguments)]
    y = np.array([-1e12, 1e-200, 1e12, 1e200, np.nan])
    r, J = censored.rows(family, y, a, LIMITS[[0, 2]])
    assert np.isfinite(r[:, :4]).all()
    assert np.isfinite(J[:, :4]).all()
    assert np.isnan(censored.log_density(family, y, a, LIMITS)[:, 4]).all()


@every
def test_jax_agrees_and_differentiates(name):
    family, a = FAMILIES[name], (1.3, 0.6, 3.0)[: len(FAMILIES[name].arguments)]
    y = family.quantile(np.array([0.01, 0.3, 0.7, 0.99]), a)
    own = censored.log_density(family, y, a, LIMITS)
    np.testing.assert_allclose(censored.log_density(family, y, a, LIMITS, jnp), own, rtol=1e-9)
    r, J = censored.rows(family, y, [np.full_like(y, v) for v in a], LIMITS)
    slope = jax.jacobian(lambda a: -censored.log_density(family, y, list(a), LIMITS, jnp))(jnp.array(a))
    np.testing.assert_allclose(slope, np.einsum("lnr,lnra->lna", r, J), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["poisson", "negbinomial", "binomial"])
def test_counts_have_no_limits(name):
    with pytest.raises(InputError, match="count"):
        continuous(FAMILIES[name])
    with pytest.raises(InputError, match="count"):
        censored.log_density(FAMILIES[name], np.ones(1), (1.0, 2.0), np.ones(1))
    with pytest.raises(InputError, match="count"):
        censored.rows(FAMILIES[name], np.ones(1), [np.ones(1)], np.ones(1))
