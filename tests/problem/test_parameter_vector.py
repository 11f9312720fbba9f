"""One vector of unknowns: packing and unpacking are inverse, derivatives are lifted to it, names and bounds fit it."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer._jax import jax, jnp
from odinfer.problem.parameter_vector import Layout, ParameterVector

FEW = settings(max_examples=25, derandomize=True, deadline=None)


@st.composite
def layouts(draw, noise=None):
    """Layouts of a few experiments, states, some with free initial values, and parameters, some of them local; with the
    noise of none, some or all columns in v."""
    E, F = draw(st.integers(1, 3)), draw(st.integers(0, 4))
    initial = tuple(k for k in range(4) if draw(st.booleans()))
    own = tuple(tuple(j for j in range(F) if draw(st.booleans())) for _ in range(E)) if draw(st.booleans()) else ()
    with_noise = draw(st.booleans()) if noise is None else noise
    in_v = tuple(draw(st.lists(st.booleans(), min_size=1, max_size=3))) if with_noise else ()
    return Layout(E, initial, F, own, in_v)


def pieces(u, leading, seed):
    """Initial values, φ and log σ, of distinct numbers."""
    rng = np.random.default_rng(seed)
    x0 = [rng.normal(size=(*leading, 4)) for _ in range(u.experiments)]
    return x0, rng.normal(size=(*leading, u.free)), rng.normal(size=(*leading, sum(u.in_v)))


LEADING = st.sampled_from([(), (3,), (2, 4)])
SEEDS = st.integers(0, 2**32 - 1)


@FEW
@given(layouts(), LEADING, SEEDS)
def test_what_is_joined_is_found_again(u, leading, seed):
    x0, phi, log_sigma = pieces(u, leading, seed)
    v = u.join(x0, phi, log_sigma)
    assert v.shape == (*leading, u.size)
    for e, own in enumerate(x0):
        free, part = own[..., list(u.initial)], phi[..., list(u.own_phi[e])] if u.own_phi else phi
        np.testing.assert_array_equal(u.x0(v, e), free)
        np.testing.assert_array_equal(v[..., u.own(e)], np.concatenate([free, part], -1))
    np.testing.assert_array_equal(u.phi(v), phi)
    np.testing.assert_array_equal(v[..., u.phi_index], phi)
    np.testing.assert_array_equal(v[..., u.noise_index], log_sigma)


@FEW
@given(layouts(noise=True), LEADING, SEEDS)
def test_noise_that_is_not_in_the_vector_is_the_known_one(u, leading, seed):
    v = u.join(*pieces(u, leading, seed))
    mask = np.array(u.in_v)
    known = 10.0 + np.arange((~mask).sum())
    found = u.log_sigma(v, known)
    assert found.shape == (*leading, len(u.in_v))
    np.testing.assert_array_equal(found[..., mask], v[..., u.noise_index])
    np.testing.assert_array_equal(found[..., ~mask], np.broadcast_to(known, (*leading, len(known))))


@settings(FEW, max_examples=5)
@given(layouts(noise=True), SEEDS)
def test_jax_unpacks_like_numpy(u, seed):
    v = u.join(*pieces(u, (2,), seed))
    known = -1.0 - np.arange(len(u.in_v) - sum(u.in_v))
    np.testing.assert_array_equal(u.log_sigma(jnp.asarray(v), jnp.asarray(known), jnp), u.log_sigma(v, known))
    np.testing.assert_array_equal(u.phi(jnp.asarray(v)), u.phi(v))
    np.testing.assert_array_equal(u.x0(jnp.asarray(v), u.experiments - 1), u.x0(v, u.experiments - 1))


@FEW
@given(layouts(), SEEDS)
def test_lifted_derivatives_equal_finite_differences_by_the_whole_vector(u, seed):
    rng = np.random.default_rng(seed)
    v, h = u.join(*pieces(u, (), seed)), 1e-3
    for e in range(u.experiments):
        part = list(u.own_phi[e]) if u.own_phi else list(range(u.free))
        M = rng.normal(size=(3, len(u.initial) + len(part)))

        def predicted(v, e=e, part=part, M=M):
            return M @ np.concatenate([u.x0(v, e), u.phi(v)[part]])  # linear: differences are exact

        lifted = u.lift(e, M)
        assert lifted.shape == (3, u.size)
        for i, step in enumerate(h * np.eye(u.size)):
            slope = (predicted(v + step) - predicted(v - step)) / (2 * h)
            np.testing.assert_allclose(lifted[:, i], slope, atol=1e-9)
        np.testing.assert_array_equal(u.lift(e, M[None, None]), lifted[None, None])


@FEW
@given(layouts(), SEEDS)
def test_unit_gradients_pick_out_the_unknowns_at_their_places(u, seed):
    v = u.join(*pieces(u, (), seed))
    places = np.random.default_rng(seed).integers(0, u.size, 5) if u.size else np.empty(0, int)
    np.testing.assert_array_equal(u.unit(places) @ v, v[places])
    np.testing.assert_array_equal(u.unit(places).sum(1), 1.0)


@FEW
@given(layouts(), layouts())
def test_equal_layouts_are_equal_and_share_what_is_compiled(one, other):
    same = dataclasses.astuple(one) == dataclasses.astuple(other)
    assert (one == other) is same
    assert len({one, other}) == (1 if same else 2)
    twin = Layout(*dataclasses.astuple(one))
    assert twin == one
    assert hash(twin) == hash(one)


def test_a_function_compiled_for_a_layout_is_not_compiled_again_for_an_equal_one():
    traced = []

    def phi(u, v):
        traced.append(u)
        return u.phi(v)

    compiled = jax.jit(phi, static_argnums=0)
    for u in (Layout(2, (0,), 2), Layout(2, (0,), 2), Layout(1, (0, 1), 2)):
        np.testing.assert_array_equal(compiled(u, jnp.arange(4.0)), [2.0, 3.0])
    assert traced == [Layout(2, (0,), 2), Layout(1, (0, 1), 2)]


# --- of a problem


@pytest.fixture(scope="module")
def two(lv, lv_data):
    return od.Data.join({"control": lv_data, "dose": lv_data})


def test_names_and_bounds_stand_in_the_order_of_the_vector(lv, two):
    problem = od.Problem(
        lv.model, two, fixed={"b": 1.0}, sigma={"prey": 0.1}, scale={"c": "log"},
        bounds={"a": (0.5, 3.0), "c": (0.1, 10.0), "prey": (0.0, None), "predator": (None, 9.0)},
    )  # fmt: skip
    u = ParameterVector(problem, noise=True)
    assert u.names == (
        "prey(0)[control]", "predator(0)[control]", "prey(0)[dose]", "predator(0)[dose]",
        "a", "c", "d", "sigma predator",
    )  # fmt: skip
    inf = np.inf
    np.testing.assert_allclose(u.low, [0.0, -inf, 0.0, -inf, 0.5, np.log(0.1), -inf, -inf])
    np.testing.assert_allclose(u.high, [inf, 9.0, inf, 9.0, 3.0, np.log(10.0), inf, inf])
    assert u.layout == Layout(2, (0, 1), 3, (), (False, True))
    assert u.size == len(u.names) == 8


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("known", [{}, {"predator": 0.2}, {"prey": 0.1, "predator": 0.2}])
def test_noise_is_among_the_unknowns_where_asked_for_and_not_known(lv, lv_data, noise, known):
    u = ParameterVector(od.Problem(lv.model, lv_data, sigma=known), noise=noise)
    unknown = [f"sigma {s}" for s in lv.model.states if noise and s not in known]
    assert u.names == ("prey(0)", "predator(0)", "a", "b", "c", "d", *unknown)
    assert [u.names[i] for i in u.noise_index] == unknown
    assert [u.names[i] for i in u.phi_index] == list("abcd")
    assert u.size == len(u.names) == len(u.low) == len(u.high) == 6 + len(unknown)


def test_unknowns_of_a_problem_with_every_parameter_fixed_are_its_initial_values(lv, two):
    u = ParameterVector(od.Problem(lv.model, two, fixed=lv.theta))
    assert u.size == len(u.names) == len(u.low) == 4
    assert u.phi(np.zeros(4)).shape == (0,)
    assert u.layout == Layout(2, (0, 1), 0)


def test_unknowns_of_two_problems_are_two_things_though_their_layouts_are_equal(lv, lv_data):
    one, other = (ParameterVector(od.Problem(lv.model, lv_data, bounds={"a": (0, high)})) for high in (1, 2))
    assert one != other
    assert one.layout == other.layout
    assert len({one, other}) == 2
    assert len({one.layout, other.layout}) == 1


def test_local_parameters_and_given_initial_values_are_told_apart_by_experiment(lv, two):
    text = lv.model.text + "\nlocal a; prey(0) = p0; log p0"
    u = ParameterVector(od.Problem(od.Model.from_text(text), two))
    assert u.names == ("predator(0)[control]", "predator(0)[dose]", "a[control]", "a[dose]", "b", "c", "d", "p0")
    names = [[u.names[i] for i in u.own(e)] for e in (0, 1)]
    assert names[0] == ["predator(0)[control]", "a[control]", "b", "c", "d", "p0"]
    assert names[1] == ["predator(0)[dose]", "a[dose]", "b", "c", "d", "p0"]
