"""The risk of many states: values and gradients are those of the dense algebra, whatever groups share operators."""

import numpy as np

from odin.sparse.many_states import diffusion, somewhere, sparse_risk
from odinfer.odin.sparse.risk import SparseRisk


def test_risk_and_gradient_are_those_of_the_dense_algebra(both):
    risk, dense = both
    z, phi, gamma = somewhere(risk)
    np.testing.assert_allclose(risk.mean, dense.mean)
    parts = []
    for r in both:
        lin = r.linearise(z, phi)
        e = r.mismatch(z, lin.f)
        parts.append((r.value(z, e, gamma, phi), *r.gradient(z, lin, e, gamma, phi)))
    for mine, right in zip(*parts, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-8, atol=1e-8 * np.abs(right).max())


def value(risk: SparseRisk, z, phi, gamma) -> float:
    return risk.value(z, risk.mismatch(z, risk.linearise(z, phi).f), gamma, phi)


def test_the_gradient_equals_finite_differences(both):
    risk, h = both[0], 1e-5
    z, phi, gamma = somewhere(risk, 3)
    lin = risk.linearise(z, phi)
    gz, gphi, ggamma = risk.gradient(z, lin, risk.mismatch(z, lin.f), gamma, phi)
    dz = np.random.default_rng(4).normal(size=z.shape)
    along = (value(risk, z + h * dz, phi, gamma) - value(risk, z - h * dz, phi, gamma)) / (4 * h)
    np.testing.assert_allclose(along, (gz * dz).sum(), rtol=1e-5)
    for i, d in enumerate(h * np.eye(len(phi))):
        along = (value(risk, z, phi + d, gamma) - value(risk, z, phi - d, gamma)) / (4 * h)
        np.testing.assert_allclose(along, gphi[i], rtol=1e-5, atol=1e-6 * np.abs(gz).max())
    for k in (0, len(gamma) - 1):
        d = np.exp(h * (np.arange(len(gamma)) == k))
        along = (value(risk, z, phi, gamma * d) - value(risk, z, phi, gamma / d)) / (4 * h)
        np.testing.assert_allclose(along, ggamma[k], rtol=1e-5, atol=1e-5)


def test_an_operator_of_several_groups_acts_on_each_with_its_own_matrix(both):
    for b in both[0].blocks:
        z = np.random.default_rng(0).normal(size=b.y.shape)
        for name in ("T", "S", "prior"):
            for transpose in (False, True):
                found = b.apply(name, z, transpose)
                for g in b.groups:
                    matrix = np.asarray(getattr(g, name))
                    for k in g.members:
                        np.testing.assert_allclose(found[:, k], (matrix.T if transpose else matrix) @ z[:, k])


def test_where_the_field_or_the_states_are_not_finite_the_risk_is_infinite():
    risk = sparse_risk(diffusion())
    z, phi, gamma = somewhere(risk)
    assert np.isfinite(value(risk, z, phi, gamma))
    assert value(risk, 1e200 * z, phi, gamma) == np.inf
    assert value(risk, z * np.nan, phi, gamma) == np.inf
