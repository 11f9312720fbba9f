"""Logistic growth with few noisy data, and how far its likelihood falls where something is held, by scipy alone."""

import numpy as np
from scipy.optimize import least_squares

import odinfer as od

T = np.linspace(0.0, 5.0, 12)


def growth_data() -> od.Data:
    """x(0) = 2, r = 1.2, K = 50, noise 3."""
    x = 50.0 / (1 + 24.0 * np.exp(-1.2 * T))
    return od.Data(T, x + 3.0 * np.random.default_rng(2).normal(size=len(T)), states=["n"])


def fall(fit: od.Fit, residual, start) -> float:
    """Twice the fall of the log-likelihood, noise profiled out, at the best v that residual(v) is free to choose."""
    least = float((fit.residuals.to_numpy() ** 2).sum())
    found = least_squares(residual, start, x_scale=np.abs(start))
    return len(T) * float(np.log(2.0 * found.cost / least))


def fall_at_parameter(model: od.Model, fit: od.Fit, name: str, value: float) -> float:
    """The fall where one of r and K is held, the other and the initial value free, by forward integration."""
    y, (other,) = growth_data().y[:, 0], [n for n in ("r", "K") if n != name]

    def residual(v):
        return od.simulate(model, {name: value, other: v[0]}, [v[1]], T)[:, 0] - y

    return fall(fit, residual, [fit.theta[other], float(fit.states["n"].iloc[0])])


def fall_at_state(fit: od.Fit, t: float, value: float) -> float:
    """The fall where the state at a time is held, r and K (early) or r and the initial value (late) being free."""
    y = growth_data().y[:, 0]

    def early(v):
        return v[1] / (1 + (v[1] / value - 1) * np.exp(-v[0] * (T - t))) - y

    def late(v):
        grown = np.exp(v[0] * t)
        K = value * v[1] * (grown - 1) / (v[1] * grown - value)
        return K / (1 + (K / v[1] - 1) * np.exp(-v[0] * T)) - y

    r, K, n0 = fit.theta["r"], fit.theta["K"], float(fit.states["n"].iloc[0])
    return fall(fit, early, [r, K]) if t < T[-1] / 2 else fall(fit, late, [r, n0])
