"""A linear model's posterior by plain algebra: what the tests of samplers compare with."""

import numpy as np

import odinfer as od


def decay_problem(decay, decay_data, **options):
    e = decay_data.experiments[0]
    return od.Problem(decay, od.Data(e.t[::2], e.y[::2], states=["x"]), sigma={"x": 0.2}, **options)


def gaussian(risk, k, gamma):
    """x' = −k x is linear, so z given k is Gaussian: its mean, covariance and log p(y, k)."""
    (b,), u = risk.blocks, risk.units
    s, n = b.smoother, len(risk.t)
    S = (s.Q[0] * s.w[0]) @ s.Q[0].T + gamma * np.eye(n)
    # r = f − Dz = −(k τ I + D) z − k τ μ/scale
    J = -(k * u.time * np.eye(n) + s.D[0])
    c = -k * u.time * u.mean[0] / u.scale[0] * np.ones(n)
    P = s.C_inv[0] + np.diag(b.weight[0]) + J.T @ np.linalg.solve(S, J)
    h = b.weight[0] * b.y[0] - J.T @ np.linalg.solve(S, c)
    cov = np.linalg.inv(P)
    level = 0.5 * h @ cov @ h - 0.5 * c @ np.linalg.solve(S, c)
    return cov @ h, cov, level - 0.5 * (np.linalg.slogdet(P)[1] + np.linalg.slogdet(S)[1])


def agrees(mean, sd, true_mean, true_sd, tolerance=0.1):
    """Means to a tenth of a standard deviation and deviations to a tenth: some 500 effective draws."""
    near = np.abs(mean - true_mean) < tolerance * true_sd
    return bool(near.all() and (np.abs(sd / true_sd - 1) < tolerance).all())
