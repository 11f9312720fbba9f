"""The pattern of the derivatives is found without being told, and derivatives by colours are the derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer._jax import jnp
from odinfer.odin.sparse.jacobian import Pattern, SparseField, disjoint_colours, find_pattern

FEW = settings(max_examples=5, derandomize=True, deadline=None)


def points(K, M=5, U=0, seed=0):
    rng = np.random.default_rng(seed)
    return np.arange(float(M)), rng.normal(size=(M, K)), rng.normal(size=(M, U))


def pairs(pattern: Pattern) -> set[tuple[int, int]]:
    return set(zip(pattern.rows.tolist(), pattern.cols.tolist(), strict=True))


@FEW
@given(st.integers(2, 14), st.integers(0, 3), st.floats(0.05, 0.9), st.integers(0, 1000))
def test_pattern_and_derivatives_of_any_coupling_are_those_of_the_dense_jacobian(K, P, density, seed):
    rng = np.random.default_rng(seed)
    links = (rng.uniform(size=(K, K + P)) < density).astype(float)
    weights = links * rng.uniform(0.5, 2.0, size=links.shape)

    def field(t, x, theta):
        # Gathered from the linked columns only, so that the others are no part of an equation.
        z = jnp.concatenate([x, jnp.asarray(theta)])
        rows = [jnp.sum(jnp.sin(z[np.flatnonzero(w)]) * w[np.flatnonzero(w)]) + 0.0 * t for w in weights]
        return jnp.stack(rows)

    model = od.Model(field, [f"x{i}" for i in range(K)], [f"p{i}" for i in range(P)])
    t, x, u = points(K)
    theta = rng.normal(size=P)
    sparse = SparseField(model, t, x, theta, u)
    assert pairs(sparse.pattern) == set(zip(*(a.tolist() for a in np.nonzero(links)), strict=True))
    found = sparse.derivatives(t, x, theta, u)
    f, fx, ft = model.linearise(t, x, theta, u)
    np.testing.assert_allclose(found.f, f, rtol=1e-12, atol=1e-12)
    whole = found.fx.toarray().reshape(len(t), K, len(t), K)
    np.testing.assert_allclose(whole[np.arange(len(t)), :, np.arange(len(t))], fx, rtol=1e-10, atol=1e-12)
    assert np.count_nonzero(found.fx.toarray()) == np.count_nonzero(fx)
    np.testing.assert_allclose(found.ft.toarray().reshape(ft.shape), ft, rtol=1e-10, atol=1e-12)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.lists(st.sets(st.integers(0, 30), max_size=6), min_size=1, max_size=40))
def test_sets_of_one_colour_are_disjoint(sets):
    sets = [np.array(sorted(s), np.int64) for s in sets]
    colours = disjoint_colours(sets, 31)
    for colour in range(colours.max() + 1):
        members = np.concatenate([s for s, c in zip(sets, colours, strict=True) if c == colour])
        assert len(np.unique(members)) == len(members)


@pytest.mark.parametrize("K", [50, 3000])
def test_a_ring_takes_few_colours_however_long_it_is(K):
    system = od.systems.lorenz96(K)
    t, x, u = points(K)
    pattern = find_pattern(system.model, t, x, np.array([8.0]), u)
    right = {(k, (k + d) % K) for k in range(K) for d in (-2, -1, 0, 1)} | {(k, K) for k in range(K)}
    assert pairs(pattern) == right
    assert pattern.n_colours <= 8


def test_equations_in_text_depend_on_the_names_in_them():
    model = od.Model.from_text("a' = -k*a + u*c\nb' = k*a - d\nc' = -c^2*m\nd' = t\nm = b*l", inputs=["u"])
    t, x, u = points(4, U=1)
    pattern = SparseField(model, t, x, np.array([0.5, 0.3]), u).pattern
    probed = find_pattern(model, t, x, np.array([0.5, 0.3]), u)
    assert pairs(pattern) == pairs(probed)
    names = [*model.states, *model.parameters]
    found = {(model.states[i], names[j]) for i, j in pairs(pattern)}
    assert found == {
        ("a", "a"), ("a", "c"), ("a", "k"), ("b", "a"), ("b", "d"), ("b", "k"), ("c", "c"), ("c", "b"), ("c", "l"),
    }  # fmt: skip


def test_a_branch_that_no_probe_saw_is_learned_when_it_is_taken():
    def field(t, x, theta):
        far = jnp.roll(x, 5)
        return jnp.where(x > 2.0, theta[0] * far, -x)

    K = 12
    model = od.Model(field, [f"x{i}" for i in range(K)], ["k"])
    t, x, u = np.arange(3.0), np.full((3, K), 0.5), np.zeros((3, 0))
    sparse = SparseField(model, t, x, np.array([1.5]), u)
    assert pairs(sparse.pattern) == {(k, k) for k in range(K)}
    x = x.copy()
    x[1, 4] = 3.0
    found = sparse.derivatives(t, x, np.array([1.5]), u)
    _, fx, ft = model.linearise(t, x, np.array([1.5]), u)
    whole = found.fx.toarray().reshape(3, K, 3, K)
    np.testing.assert_allclose(whole[np.arange(3), :, np.arange(3)], fx)
    np.testing.assert_allclose(found.ft.toarray().reshape(3, K, 1), ft)
    assert (4, 11) in pairs(sparse.pattern)


def test_text_models_know_their_pattern_and_give_its_derivatives():
    K = 40
    ring = [f"x{k}' = (x{(k + 1) % K} - x{k - 2 + K * (k < 2)})*x{(k - 1) % K} - x{k} + F" for k in range(K)]
    model, lorenz = od.Model.from_text("\n".join(ring)), od.systems.lorenz96(K).model
    t, x, u = points(K)
    fields = [SparseField(m, t, x, np.array([8.0]), u) for m in (model, lorenz)]
    ours, theirs = (field.derivatives(t, x, np.array([8.0]), u) for field in fields)
    assert pairs(fields[0].pattern) == pairs(fields[1].pattern)
    np.testing.assert_allclose(ours.f, theirs.f, rtol=1e-13, atol=1e-13)
    for a, b in zip(ours[1:], theirs[1:], strict=True):
        np.testing.assert_allclose(a.toarray(), b.toarray(), rtol=1e-13, atol=1e-13)
    branch = od.Model.from_text("x' = where(x > 2, k*y, -x); y' = -y")
    at = np.zeros(3), np.full((3, 2), 0.5), np.array([1.5]), np.zeros((3, 0))
    assert pairs(SparseField(branch, *at).pattern) == {(0, 0), (0, 1), (0, 2), (1, 1)}
