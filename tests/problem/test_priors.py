"""Priors: densities, derivatives, and the pull they have on a fit."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

import odinfer as od
from odinfer._jax import jax
from odinfer.model.priors import (
    FAMILIES,
    FLAT,
    GAMMA,
    Prior,
    beta,
    gamma,
    halfnormal,
    log_density,
    lognormal,
    named_prior,
    near,
    normal,
    uniform,
)

FEW = settings(max_examples=25, derandomize=True, deadline=None)


def difference(f, v, h):
    return (f(v + h) - f(v - h)) / (2 * h)


@FEW
@given(mean=st.floats(-10, 10), sd=st.floats(0.05, 10), v=st.floats(-20, 20))
def test_normal_is_the_normal_density(mean, sd, v):
    assert normal(mean, sd).derivatives(v)[0] == pytest.approx(-stats.norm.logpdf(v, mean, sd))


@FEW
@given(median=st.floats(0.01, 100), sd=st.floats(0.05, 3), v=st.floats(0.01, 100))
def test_lognormal_is_the_lognormal_density(median, sd, v):
    right = -stats.lognorm.logpdf(v, sd, scale=median)
    assert lognormal(median, sd).derivatives(v)[0] == pytest.approx(right, rel=1e-9, abs=1e-9)


def test_densities_integrate_to_one():
    families = ((normal(1.0, 0.5), -5, 7), (lognormal(2.0, 0.4), 1e-9, 40), (uniform(-1.0, 3.0), -1, 3))
    for term, low, high in (*families, (halfnormal(0.0, 0.7), 0, 9), (beta(2.0, 3.5), 0, 1), (gamma(2.0, 3.0), 0, 20)):
        assert quad(lambda v, d=term.derivatives: np.exp(-d(v)[0]), low, high)[0] == pytest.approx(1.0, abs=1e-6)


@FEW
@given(kind=st.sampled_from([normal, lognormal, near]), a=st.floats(0.1, 10), b=st.floats(0.2, 3), v=st.floats(0.1, 10))
def test_derivatives_equal_finite_differences(kind, a, b, v):
    d = kind(a, b).derivatives
    h = 1e-5 * v
    assert d(v)[1] == pytest.approx(difference(lambda w: d(w)[0], v, h), rel=1e-5, abs=1e-5)
    assert d(v)[2] == pytest.approx(difference(lambda w: d(w)[1], v, h), rel=1e-5, abs=1e-5)


@functools.cache
def functions():
    single = Prior.of({"b": lambda v: v**4 / 3 - v}, ("a", "b", "c"))
    return single, Prior.of(lambda p: (p["a"] * p["b"] - 1) ** 2 + p["c"] ** 3, ("a", "b", "c"))


@FEW
@given(theta=st.tuples(*[st.floats(0.2, 3.0)] * 3))
def test_functions_give_derivatives_like_finite_differences(theta):
    prior, joint = functions()
    theta, h = np.array(theta), 1e-5
    for one in (prior, joint):
        _, g, H = one.derivatives(theta)
        for i, e in enumerate(np.eye(3)):
            up, down = one.derivatives(theta + h * e), one.derivatives(theta - h * e)
            assert g[i] == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-5, abs=1e-6)
            np.testing.assert_allclose(H[i], (up[1] - down[1]) / (2 * h), rtol=1e-5, atol=1e-5)
    assert prior.derivatives(theta)[0] == pytest.approx(theta[1] ** 4 / 3 - theta[1])
    assert joint.derivatives(theta)[0] == pytest.approx((theta[0] * theta[1] - 1) ** 2 + theta[2] ** 3)


def test_terms_of_several_parameters_add_up():
    prior = Prior.of({"a": ("normal", 0.0, 1.0), "c": ("lognormal", 1.0, 0.5)}, ("a", "b", "c"))
    value, g, H = prior.derivatives(np.array([0.3, 5.0, 2.0]))
    one, two = normal(0.0, 1.0).derivatives(0.3), lognormal(1.0, 0.5).derivatives(2.0)
    assert value == pytest.approx(one[0] + two[0])
    np.testing.assert_allclose(g, [one[1], 0.0, two[1]])
    np.testing.assert_allclose(H, np.diag([one[2], 0.0, two[2]]))
    assert bool(prior)
    assert not Prior.of({}, ("a",))


@pytest.mark.parametrize("v", [0.0, 1e-250, 1e250])
def test_a_lognormal_far_out_is_improbable_and_no_error(v):
    value, slope, _ = lognormal(1.0, 0.5).derivatives(v)
    assert value > 100
    assert not np.isnan(slope)


# --- for samplers

DENSITY = jax.jit(log_density)
KINDS = np.array([FAMILIES["normal"].kind, FAMILIES["lognormal"].kind, FAMILIES["uniform"].kind, GAMMA])


@FEW
@given(st.tuples(*[st.floats(0.2, 5.0)] * 4), st.tuples(*[st.floats(0.2, 5.0)] * 4))
def test_the_density_for_samplers_is_that_for_optimisers_up_to_a_constant(theta, other):
    a, b = np.array([1.0, 2.0, 0.1, 3.0]), np.array([0.7, 0.5, 9.0, 2.0])
    terms = [FAMILIES[name].term(*n) for name, *n in zip(("normal", "lognormal", "uniform"), a, b, strict=False)]

    def by_terms(theta):
        own = -sum(term.derivatives(v)[0] for term, v in zip(terms, theta, strict=False))
        return own + stats.gamma.logpdf(theta[3], a[3], scale=1 / b[3])

    found = float(DENSITY(KINDS, a, b, np.array(theta))) - float(DENSITY(KINDS, a, b, np.array(other)))
    assert found == pytest.approx(by_terms(theta) - by_terms(other), rel=1e-9, abs=1e-9)


def test_a_flat_prior_is_the_same_everywhere():
    flat = np.full(3, FLAT)
    assert float(DENSITY(flat, np.ones(3), np.ones(3), np.array([-5.0, 0.0, 1e6]))) == 0.0


@pytest.mark.parametrize(
    ("family", "good", "bad"),
    [("normal", (-2, 0.5), (2, 0)), ("lognormal", (2, 0.5), (-2, 0.5)), ("uniform", (-1, 3), (3, 3))],
)
def test_numbers_that_make_no_density_are_told_from_those_that_do(family, good, bad):
    assert FAMILIES[family].valid(*good)
    assert not FAMILIES[family].valid(*bad)
    with pytest.raises(od.InputError, match="prior of 'k'"):
        Prior.of({"k": (family, *bad)}, ("k",))


# --- the pull on a fit


def slow_fit(decay, decay_data, prior=None, **options):
    return od.fit(od.Problem(decay, decay_data, prior=prior or {}, **options)).stages


STRONG = {
    "normal": {"k": ("normal", 1.5, 1e-3)},
    "lognormal": {"k": ("lognormal", 1.5, 1e-3)},
    "a function": {"k": lambda v: 0.5 * ((v - 1.5) / 1e-3) ** 2},
    "a joint function": lambda p: 0.5 * ((p["k"] - 1.5) / 1e-3) ** 2,
}


@pytest.mark.parametrize("kind", STRONG)
def test_a_strong_prior_wins_and_a_weak_one_hardly_matters(decay, decay_data, kind):
    stages = slow_fit(decay, decay_data, STRONG[kind])
    for stage in stages.values():
        assert stage.theta["k"] == pytest.approx(1.5, rel=0.02)
    weak = {
        "normal": {"k": ("normal", 1.5, 1e3)},
        "lognormal": {"k": ("lognormal", 1.5, 1e2)},
        "a function": {"k": lambda v: 1e-9 * v**2},
        "a joint function": lambda p: 1e-9 * p["k"] ** 2,
    }[kind]
    free = slow_fit(decay, decay_data)
    for name, stage in slow_fit(decay, decay_data, weak).items():
        assert stage.theta["k"] == pytest.approx(free[name].theta["k"], rel=1e-3)


def test_the_pull_grows_as_the_prior_tightens(decay, decay_data):
    found = [
        slow_fit(decay, decay_data, {"k": ("normal", 1.5, sd)})["refined"].theta["k"] for sd in (1.0, 0.05, 0.02, 0.005)
    ]
    assert (np.diff(found) > 0).all()
    assert found[0] < 0.75
    assert found[-1] > 1.2


def test_a_uniform_prior_is_a_pair_of_bounds(decay, decay_data):
    inside = slow_fit(decay, decay_data, {"k": ("uniform", 0.1, 5.0)})
    free = slow_fit(decay, decay_data)
    assert inside["refined"].theta["k"] == pytest.approx(free["refined"].theta["k"], rel=1e-4)
    outside = slow_fit(decay, decay_data, {"k": ("uniform", 0.9, 5.0)})
    for stage in outside.values():
        assert stage.theta["k"] == pytest.approx(0.9)


@pytest.mark.parametrize("refine", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_lognormal_prior_survives_data_that_ask_for_a_negative_value(decay, refine):
    t = np.linspace(0.0, 2.0, 10)
    growing = od.Data(t, np.exp(0.8 * t) + 0.02 * np.random.default_rng(0).normal(size=10), states=["x"])
    problem = od.Problem(decay, growing, prior={"k": ("lognormal", 1.0, 0.5)})
    found = od.fit(problem, method=od.Odin(refine=refine))
    assert found.theta["k"] > 0
    assert np.isfinite(found.theta["k"])


def test_a_prior_acts_the_same_on_both_scales(decay, decay_data):
    prior = {"k": ("normal", 1.0, 0.02)}
    plain = slow_fit(decay, decay_data, prior)
    log = slow_fit(decay, decay_data, prior, scale={"k": "log"})
    assert log["refined"].theta["k"] == pytest.approx(plain["refined"].theta["k"], rel=1e-4)


def test_near_has_its_maximum_at_its_value_and_the_distribution_of_a_lognormal():
    term = FAMILIES["near"].term(2.0, 0.4)
    assert term.derivatives(2.0)[:2] == (0.0, 0.0)
    assert lognormal(2.0, 0.4).derivatives(2.0)[1] > 0
    assert FAMILIES["near"].kind == FAMILIES["lognormal"].kind
    assert od.Model.from_text("x' = -k*x\nk ~ near(2, 0.4)").bounds["k"] == (0.0, np.inf)


@pytest.mark.parametrize(
    ("frozen", "named"),
    [
        (stats.norm(2.0, 0.5), ("normal", 2.0, 0.5)),
        (stats.lognorm(0.4, scale=3.0), ("lognormal", 3.0, 0.4)),
        (stats.uniform(1.0, 2.0), ("uniform", 1.0, 3.0)),
        (stats.gamma(2.0, scale=0.5), ("gamma", 2.0, 2.0)),
        (stats.expon(scale=0.25), ("gamma", 1.0, 4.0)),
        (stats.beta(2, b=3), ("beta", 2.0, 3.0)),
        (stats.halfnorm(scale=0.7), ("halfnormal", 0.0, 0.7)),
        (stats.loguniform(0.1, 10), ("loguniform", 0.1, 10.0)),
        (stats.cauchy(1, 2), ("cauchy", 1.0, 2.0)),
        (stats.laplace(1, 2), ("laplace", 1.0, 2.0)),
        (stats.rayleigh(1, 2), ("rayleigh", 1.0, 2.0)),
    ],
    ids=lambda v: v[0] if isinstance(v, tuple) else "",
)
def test_a_distribution_of_scipy_is_the_prior_of_the_same_density(frozen, named):
    family, a, b = named_prior("k", frozen)
    assert (family, a, b) == pytest.approx(named)
    term = FAMILIES[family].term(a, b)
    at = float(frozen.ppf(0.3))
    assert term.derivatives(at)[0] == pytest.approx(-frozen.logpdf(at), abs=1e-3)


def test_priors_as_text_are_those_of_the_language():
    assert named_prior("k", "normal(2, 0.5)") == ("normal", 2.0, 0.5)
    assert named_prior("k", "halfnormal(3)") == ("halfnormal", 0.0, 3.0)
    for wrong in ("normal", "normal(2; 3)", "k ~ normal(2, 3)"):
        with pytest.raises(od.InputError, match="prior of 'k' must be text such as"):
            named_prior("k", wrong)
    with pytest.raises(od.InputError, match=r"scipy\.stats\.t .* not supported; use one of beta"):
        named_prior("k", stats.t(3))
