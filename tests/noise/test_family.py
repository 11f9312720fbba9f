"""What every family of noise promises: densities, derivatives, draws, tails, the same in JAX, and silence."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from odinfer._jax import jax, jnp
from odinfer.noise import FAMILIES
from odinfer.noise.family import uncorrelated

FEW = settings(max_examples=25, derandomize=True, deadline=None)

# The same distribution in scipy.stats, in terms of our arguments.
SCIPY = {
    "normal": lambda m, s: stats.norm(m, s),
    "lognormal": lambda m, s: stats.lognorm(s, scale=m),
    "student": lambda m, s, df: stats.t(df, m, s),
    "laplace": lambda m, b: stats.laplace(m, b),
    "loglaplace": lambda m, b: stats.loglaplace(1 / b, scale=m),
    "poisson": lambda m: stats.poisson(m),
    "negbinomial": lambda m, k: stats.nbinom(k, k / (k + m)),
    "binomial": lambda m, n: stats.binom(n, m / n),
}
SIZES = st.floats(0.05, 50)
ARGUMENTS = {
    "normal": st.tuples(st.floats(-50, 50), SIZES),
    "lognormal": st.tuples(SIZES, st.floats(0.05, 2)),
    "student": st.tuples(st.floats(-50, 50), SIZES, st.floats(0.5, 200)),
    "laplace": st.tuples(st.floats(-50, 50), SIZES),
    "loglaplace": st.tuples(SIZES, st.floats(0.05, 2)),
    "poisson": st.tuples(SIZES),
    "negbinomial": st.tuples(SIZES, st.floats(0.1, 1e3)),
    "binomial": st.tuples(st.floats(0.01, 0.99), st.integers(1, 60)).map(lambda a: (a[0] * a[1], float(a[1]))),
}
TYPICAL = {
    "normal": (1.5, 0.7), "lognormal": (2.0, 0.4), "student": (1.5, 0.7, 5.0), "laplace": (1.5, 0.7),
    "loglaplace": (2.0, 0.2), "poisson": (4.2,), "negbinomial": (4.2, 1.7), "binomial": (4.2, 12.0),
}  # fmt: skip
BAD = {
    "normal": [(np.nan, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, np.nan), (np.inf, 1.0)],
    "lognormal": [(0.0, 1.0), (-1.0, 1.0), (1.0, 0.0), (np.nan, 1.0), (1.0, np.nan)],
    "student": [(0.0, 0.0, 4.0), (0.0, 1.0, 0.0), (0.0, 1.0, -1.0), (0.0, 1.0, np.nan), (np.nan, 1.0, 4.0)],
    "laplace": [(0.0, 0.0), (0.0, -1.0), (np.nan, 1.0)],
    "loglaplace": [(0.0, 1.0), (-1.0, 1.0), (1.0, 0.0), (np.nan, 1.0)],
    "poisson": [(-1.0,), (np.nan,), (np.inf,), (-np.inf,)],
    "negbinomial": [(-1.0, 1.0), (1.0, 0.0), (1.0, -2.0), (np.nan, 1.0), (1.0, np.nan)],
    "binomial": [(-1.0, 5.0), (6.0, 5.0), (1.0, 2.5), (np.nan, 5.0), (1.0, np.nan)],
}
every = pytest.mark.parametrize("name", FAMILIES)


def values_of(name, a, p=(0.001, 0.1, 0.3, 0.5, 0.8, 0.99, 0.9999)):
    """Values all over the distribution, none at the kink of laplace."""
    y = SCIPY[name](*a).ppf(np.array(p))
    return np.maximum(y, 0) if FAMILIES[name].discrete else np.where(y == a[0], y + 0.01, y)


def slope(f, name, a, i):
    """The derivative of f(a) by one argument, by differences on the scale on which it matters."""
    right = SCIPY[name](*a)
    size = abs(a[i])
    if i == 0:
        size = min(right.var() / a[0], a[0]) if FAMILIES[name].discrete else np.diff(right.ppf([0.3, 0.7]))[0]
    h = 1e-4 * size
    up, down = (f([v + d * (j == i) for j, v in enumerate(a)]) for d in (h, -h))
    return (np.nan_to_num(up, neginf=0) - np.nan_to_num(down, neginf=0)) / (2 * h)


def test_all_of_them_are_tested():
    assert set(FAMILIES) == set(SCIPY) == set(ARGUMENTS) == set(TYPICAL) == set(BAD)


@every
def test_what_may_be_left_out_is_last(name):
    family = FAMILIES[name]
    assert family.least == (2 if name == "binomial" else 1)
    assert set(family.defaults) <= set(family.arguments[family.least :])
    assert family.profiled == (name in ("normal", "lognormal"))
    assert family.discrete == hasattr(SCIPY[name](*TYPICAL[name]).dist, "pmf")


@every
@FEW
@given(data=st.data())
def test_densities_tails_and_quantiles_are_those_of_scipy(name, data):
    a = data.draw(ARGUMENTS[name])
    family, right, y = FAMILIES[name], SCIPY[name](*a), values_of(name, a)
    log_density = right.logpmf(y) if family.discrete else right.logpdf(y)
    np.testing.assert_allclose(family.log_density(y, a), log_density, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(family.log_cdf(y, a), right.logcdf(y), rtol=1e-8, atol=1e-12)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(family.log_sf(y, a), np.log(right.sf(y)), rtol=1e-7, atol=1e-12)
    p = np.array([0.01, 0.2, 0.5, 0.77, 0.999])
    np.testing.assert_allclose(family.quantile(p, a), right.ppf(p), rtol=1e-6, atol=1e-9)


@every
@FEW
@given(data=st.data())
def test_rows_give_the_gradient_of_minus_log_density(name, data):
    a = data.draw(ARGUMENTS[name])
    family, y = FAMILIES[name], values_of(name, a)
    r, J = family.rows(y, [np.full_like(y, v) for v in a])
    gradient = np.einsum("nr,nra->na", r, J)
    for i in range(len(a)):
        if family.arguments[i] == "n":
            assert not J[..., i].any()
            continue
        numeric = -slope(lambda a: family.log_density(y, a), name, a, i)
        np.testing.assert_allclose(gradient[:, i], numeric, rtol=1e-5, atol=1e-6 * np.abs(numeric).max() + 1e-9)


@every
def test_rows_have_fishers_information(name):
    # Expected over the quantiles, or all counts: the information is the variance of the score.
    family, a = FAMILIES[name], TYPICAL[name]
    if family.discrete:
        y = np.arange(0.0, 400.0)
        weight = np.exp(family.log_density(y, a))
    else:
        x, w = np.polynomial.legendre.leggauss(2000)
        y, weight = family.quantile((1 + x) / 2, a), w / 2
    r, J = family.rows(y, [np.full_like(y, v) for v in a])
    score = np.einsum("nr,nra->na", r, J)
    information = np.einsum("nra,nrb->nab", J, J)
    np.testing.assert_allclose(weight @ score, 0.0, atol=1e-4)
    np.testing.assert_allclose(information[0], information[-1])
    np.testing.assert_allclose(information[0], np.einsum("n,na,nb->ab", weight, score, score), rtol=1e-3, atol=1e-4)


@every
def test_draws_have_the_distributions_mean_variance_and_quantiles(name):
    family, a, size = FAMILIES[name], TYPICAL[name], 40_000
    y = family.draw(np.random.default_rng(1), [np.full(size, v) for v in a])
    mean, variance, kurtosis = SCIPY[name](*a).stats("mvk")
    assert y.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / size))
    assert y.var() == pytest.approx(variance, rel=5 * np.sqrt((2 + min(kurtosis, 100)) / size))
    for p in (0.05, 0.5, 0.9):
        q = family.quantile(p, a)
        right = np.exp(family.log_cdf(q, a))
        assert (y <= q).mean() == pytest.approx(right, abs=4 * np.sqrt(right * (1 - right) / size))


@every
@FEW
@given(data=st.data(), p=st.floats(1e-6, 1 - 1e-6))
def test_quantile_inverts_the_cdf_and_both_tails_are_one(name, data, p):
    family, a = FAMILIES[name], data.draw(ARGUMENTS[name])
    y = family.quantile(p, a)
    below, above = np.exp(family.log_cdf(y, a)), np.exp(family.log_sf(y, a))
    assert below + above == pytest.approx(1.0, abs=1e-12)
    if family.discrete:
        assert below >= p * (1 - 1e-12)
        assert np.exp(family.log_cdf(y - 1, a)) < p
        assert family.quantile(below, a) == y
    else:
        assert below == pytest.approx(p, rel=1e-6)


@every
@FEW
@given(data=st.data())
def test_jax_agrees_with_numpy_and_differentiates(name, data):
    a = data.draw(ARGUMENTS[name])
    family, y = FAMILIES[name], values_of(name, a)
    r, J = family.rows(y, [np.full_like(y, v) for v in a])
    for part in ("log_density", "log_cdf", "log_sf"):
        own = getattr(family, part)
        value, gradient = map(np.asarray, in_jax(name, part)(y, jnp.array(a)))
        np.testing.assert_allclose(value, own(y, a), rtol=1e-7, atol=1e-9)
        assert np.isfinite(gradient).all()
        if part == "log_density":
            right = -np.einsum("nr,nra->na", r, J)
            np.testing.assert_allclose(gradient[:, 0], right[:, 0], rtol=1e-6, atol=1e-6 * np.abs(right).max())
            continue
        for i in range(len(a)):
            if family.arguments[i] != "n":
                numeric = slope(lambda a, own=own: own(y, a), name, a, i)
                np.testing.assert_allclose(gradient[:, i], numeric, rtol=1e-4, atol=1e-5 * np.abs(numeric).max() + 1e-7)


@cache
def in_jax(name, part):
    """Values and gradients by the arguments, compiled once."""
    family, fixed = FAMILIES[name], "n" in FAMILIES[name].arguments

    def f(y, a):
        return getattr(family, part)(y, [a[0], jax.lax.stop_gradient(a[1])] if fixed else list(a), jnp)

    return jax.jit(jax.vmap(jax.value_and_grad(f, argnums=1), (0, None)))


@every
@pytest.mark.parametrize("xp", [np, jnp])
def test_arguments_outside_their_domain_are_impossible_and_say_nothing(name, xp):
    family = FAMILIES[name]
    y = np.array([1.0, 2.0, 3.0, 1e9])
    for a in BAD[name]:
        assert np.all(family.log_density(y, a, xp) == -np.inf)
        assert np.all(family.log_cdf(y, a, xp) == -np.inf)
        assert np.all(family.log_sf(y, a, xp) == -np.inf)
        if xp is np:
            r, J = family.rows(y, [np.full_like(y, v) for v in a])
            assert np.isfinite(r).all()
            assert np.isfinite(J).all()
            assert np.isfinite(np.einsum("nr,nra->na", r, J)).all()
            assert np.isnan(family.draw(np.random.default_rng(0), [np.full_like(y, v) for v in a])).all()
            assert np.isnan(family.quantile(np.array([0.2, 0.8]), a)).all()


@every
def test_jax_has_no_nan_among_gradients_beside_bad_arguments(name):
    # One bad observation must not spoil the derivatives of the good ones.
    family = FAMILIES[name]
    columns = jnp.array([TYPICAL[name], *BAD[name]]).T
    y = jnp.ones(columns.shape[1])

    def f(columns):
        log_p = family.log_density(y, list(columns), jnp)
        return jnp.where(jnp.isfinite(log_p), log_p, 0.0).sum()

    assert np.isfinite(jax.grad(f)(columns)).all()


@every
@pytest.mark.parametrize("xp", [np, jnp])
def test_a_missing_value_stays_missing_and_infinite_ones_are_the_ends(name, xp):
    family, a = FAMILIES[name], TYPICAL[name]
    y = np.array([np.nan, -np.inf, np.inf])
    np.testing.assert_array_equal(family.log_density(y, a, xp), [np.nan, -np.inf, -np.inf])
    np.testing.assert_array_equal(family.log_cdf(y, a, xp), [np.nan, -np.inf, 0.0])
    np.testing.assert_array_equal(family.log_sf(y, a, xp), [np.nan, 0.0, -np.inf])
    assert family.refuses(np.array([np.nan, 1.0])) is None
    r, J = family.rows(y[:1], [np.full(1, v) for v in a])
    assert np.isnan(r[0, 0])
    assert np.isfinite(J).all()


@every
def test_arguments_and_values_of_shapes_that_fit_together_are_broadcast(name):
    family, a = FAMILIES[name], TYPICAL[name]
    y = np.ones((3, 1))
    a = [np.full((2, 1, 4), a[0]), *a[1:]]
    assert family.log_density(y, a).shape == family.log_cdf(y, a).shape == (2, 3, 4)
    r, J = family.rows(y, a)
    assert r.shape[:-1] == J.shape[:-2] == (2, 3, 4)
    assert J.shape[-1] == len(family.arguments)


@every
def test_the_gradient_of_an_argument_of_any_size_is_finite(name):
    family = FAMILIES[name]
    for size in (1e-12, 1e-3, 1.0, 1e6, 1e12, 1e40):
        a = [np.array([size])] * len(family.arguments)
        y = np.array([np.ceil(size)])
        r, J = family.rows(y, a)
        assert np.isfinite(r).all()
        assert np.isfinite(J).all()


def test_uncorrelated_rows_with_no_information_have_no_residual():
    r, J = uncorrelated([np.array([1.0]), np.array([2.0])], [np.array([0.5]), np.array([0.0])])
    np.testing.assert_array_equal(r, [[2.0, 0.0]])
    np.testing.assert_array_equal(J, [[[0.5, 0.0], [0.0, 0.0]]])
