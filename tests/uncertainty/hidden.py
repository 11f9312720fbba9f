"""Small problems in which a state is hidden, or what is observed is no state: counts, doubles, scales."""

import numpy as np

import odinfer as od

T = np.linspace(0.0, 4.0, 12)


def counts() -> od.Problem:
    """Poisson counts of 50·exp(−0.6 t), whose start is known: only k is estimated."""
    model = od.Model.from_text("x' = -k*x; x(0) = 50; n ~ poisson(x)", name="counts")
    n = np.random.default_rng(4).poisson(50.0 * np.exp(-0.6 * T))
    return od.Problem(model, od.Data(T, n.astype(float), states=["n"]))


def count_loglik(problem: od.Problem, k: np.ndarray) -> np.ndarray:
    """Its log-likelihood at k (...), up to a constant."""
    n = problem.data.y[:, 0]
    return (n * (-k[..., None] * T) - 50.0 * np.exp(-k[..., None] * T)).sum(-1)


def doubled(family: str = "normal") -> od.Problem:
    """A hidden x of which twice the value is observed."""
    model = od.Model.from_text(f"x' = -k*x; x > 0; y ~ {family}(2*x)", name="doubled")
    e = np.random.default_rng(5).normal(size=len(T))
    x = 3.0 * np.exp(-0.7 * T)
    y = 2 * x + 0.1 * e if family == "normal" else 2 * x * np.exp(0.1 * e)
    return od.Problem(model, od.Data(T, y, states=["y"]))


def without_scale() -> od.Problem:
    """A hidden x that drives y with a strength r: only r·x matters."""
    model = od.Model.from_text("x' = -k*x; y' = r*x - c*y; log k, r, c", name="without scale")
    t = np.linspace(0.0, 8.0, 25)
    x = od.simulate(model, {"k": 0.5, "r": 1.0, "c": 1.0}, [5.0, 0.2], t)
    return od.Problem(model, od.Data(t, x[:, 1] + 0.05 * np.random.default_rng(0).normal(size=25), states=["y"]))
