"""Problems of many states, and the same risk by sparse and by dense algebra."""

import numpy as np

import odinfer as od
from odinfer._jax import jnp
from odinfer.gp.operators import Smoother
from odinfer.odin.risk import Risk
from odinfer.odin.sparse.risk import SparseRisk


def lorenz(K, seed=11, times=26) -> od.Problem:
    system = od.systems.lorenz96(K)
    return od.Problem(system.model, system.sample(1.0, seed, np.linspace(0.0, 2.5, times)), positive=False)


def diffusion(K=12, gaps=False, **known) -> od.Problem:
    """Diffusion with decay on a ring, two experiments; with gaps in the data if asked for."""

    def field(t, x, theta):
        return theta[0] * (jnp.roll(x, 1) - 2 * x + jnp.roll(x, -1)) - theta[1] * x**2

    model = od.Model(field, [f"c{k}" for k in range(K)], ["D", "r"], name="ring")
    rng, sets = np.random.default_rng(3), []
    for n in (15, 12):
        t = np.linspace(0.0, 2.0, n)
        x = od.simulate(model, [0.8, 0.3], 1.0 + rng.uniform(0, 3, K), t)
        y = x + 0.05 * rng.normal(size=x.shape)
        if gaps:
            y[rng.uniform(size=y.shape) < 0.1] = np.nan
        sets.append(od.Data(t, y, states=model.states))
    return od.Problem(model, od.Data.join(dict(zip("ab", sets, strict=True))), **known)


def sparse_risk(problem, grid=1, temper=2.0) -> SparseRisk:
    risk = od.Odin(kernel="matern52", grid=grid, temper=temper, algebra="sparse", jitter=1e-4).risk(problem)
    assert isinstance(risk, SparseRisk)
    return risk


def dense_twin(risk: SparseRisk) -> Risk:
    """The same operators written out state by state, for the dense algebra."""
    grids, K = [], len(risk.v)
    for b in risk.blocks:
        N = len(b.y)
        C_inv, D, Q, w = (np.empty((K, N, N)) for _ in range(4))
        for g in b.groups:
            for k in g.members:
                C_inv[k], D[k], Q[k], w[k] = g.prior / risk.v[k], g.T.T @ g.S, g.T.T, g.w * risk.v[k]
        y = np.where(b.weight > 0, b.y, np.nan)
        grids.append((risk.t[b.rows], y.T, Smoother(b.mean.T, C_inv, D, Q, w[:, 0])))
    return Risk.build(risk.problem, risk.units, risk.hypers, grids)


def somewhere(risk, seed=0):
    rng = np.random.default_rng(seed)
    z = risk.mean + 0.1 * rng.normal(size=risk.mean.shape)
    phi = np.abs(rng.normal(size=len(risk.problem.free))) + 0.5
    return z, phi, np.exp(rng.uniform(-8, 1, len(risk.v)))
