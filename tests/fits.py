"""Fits made by hand, odd ones included: what a method returns, without running one; and how to compare them."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from odinfer.diagnostics.verdicts import CONSISTENT, CONTRADICTS
from odinfer.gp.curves import Curve, Gradients
from odinfer.result.fit import Fit, FitResult
from odinfer.result.stages import ExperimentFit, Stage
from odinfer.uncertainty.results import Bootstrap, Posterior, Profile, Uncertainty

EVIL = "<script>alert(1)</script>"


def make_fit(
    states: tuple[str, ...] = ("prey", "predator"),
    parameters: tuple[str, ...] = ("a", "b", "c", "d"),
    experiments: tuple[str, ...] = ("1",),
    contradicting: tuple[str, ...] = (),
    gamma: bool = True,
    gradients: bool = True,
    stages: tuple[str, ...] = ("odin", "refined"),
    n: int = 20,
    missing: float = 0.0,
    **changes: Any,
) -> FitResult:
    """Damped waves per state with noise; `changes` replaces fields of the result; with a `problem` it is a Fit."""
    rng = np.random.default_rng(len(states))
    K = len(states)
    fitted: dict[str, ExperimentFit] = {}
    for i, name in enumerate(experiments):
        t, fine = np.sort(rng.uniform(0, 2 + i, n)), np.linspace(0, 2 + i, 101)
        fine = np.unique(np.concatenate([t, fine[(fine > t[0]) & (fine < t[-1])]]))
        phase = np.arange(K) + 0.4 * i
        x = np.exp(-0.3 * fine[:, None]) * np.sin(3 * fine[:, None] + phase) * 2.0 ** np.arange(K) + 3
        slope = np.gradient(x, fine, axis=0)
        at = np.searchsorted(fine, t)
        sd = np.broadcast_to(0.06 * 2.0 ** np.arange(K) * (1 + 0.8 * np.cos(9 * fine[:, None])), x.shape).copy()
        y = x[at] + 0.15 * 2.0 ** np.arange(K) * rng.normal(size=(n, K))
        y[rng.uniform(size=y.shape) < missing] = np.nan
        f = slope[at] + np.array([2.0 * (s in contradicting) for s in states]) * np.cos(5 * t[:, None])
        match = Gradients(t, f, slope[at] + 0.2, np.full((n, K), 0.4) * 2.0 ** np.arange(K)) if gradients else None
        fitted[name] = ExperimentFit(t, y, Curve(fine, x, slope, sd), match)
    theta = {p: 1.0 + 0.1 * j for j, p in enumerate(parameters)}
    levels = {s: 3.0 if s in contradicting else 1e-6 for s in states} if gamma else {}
    sigma = {s: 0.15 * 2.0**k for k, s in enumerate(states)}
    made = {}
    for j, name in enumerate(stages):
        x_stage = tuple(e.x + 0.01 * j for e in fitted.values())
        first = next(iter(fitted.values()))
        made[name] = Stage(
            theta={p: v + 0.01 * (name == "odin") for p, v in theta.items()},
            gamma=levels if name == "odin" else {},
            sigma=sigma,
            x=x_stage,
            objective=-12.5 + j,
            loglik=3.25 + j,
            seconds=0.4,
            note="converged after 7 steps",
            t=first.t,
            state_names=states,
        )
    fields: dict[str, Any] = {
        "model": "lotka_volterra",
        "equations": "prey' = a*prey - b*prey*predator\npredator' = -c*predator + d*prey*predator",
        "method": "odin",
        "options": {"kernel": "auto", "gamma_bounds": (1e-6, 1e3), "jitter_A": None, "refine": True},
        "seed": 0,
        "state_names": states,
        "parameter_names": parameters,
        "theta": theta,
        "gamma": levels,
        "gamma_user": {s: 2.5 * g for s, g in levels.items()},
        "sigma": sigma,
        "verdicts": {s: CONTRADICTS if s in contradicting else CONSISTENT for s in levels},
        "experiments": fitted,
        "stages": made,
        "status": "converged",
        "converged": True,
        "details": {
            "seconds": 0.8,
            "starts": 10,
            "starts_agreeing": 9,
            "stage_used": "refined",
            "fixed": list(parameters[-1:]),
            "kernels": dict.fromkeys(states, "matern52"),
        },
        "warnings": (),
    }
    return (Fit if "problem" in changes else FitResult)(**(fields | changes))


MANY = tuple(f"x{i}" for i in range(40))
ODD: dict[str, FitResult] = {
    "plain": make_fit(),
    "one state": make_fit(("x",), ("k",)),
    "six states": make_fit(tuple("ABCDEF"), contradicting=("C",)),
    "forty states": make_fit(MANY, contradicting=("x33",)),
    "missing observations": make_fit(missing=0.4),
    "three experiments": make_fit(experiments=("control", "dose 1", "dose 2")),
    "nine experiments": make_fit(experiments=tuple("abcdefghi"), n=6),
    "no gamma": make_fit(gamma=False),
    "no gradients": make_fit(gradients=False),
    "only odin": make_fit(stages=("odin",)),
    "no stages": make_fit(stages=()),
    "no equations": make_fit(equations=None),
    "evil names": make_fit((EVIL, "_$x^$_"), (EVIL, "[bold]k"), experiments=(EVIL, "$\\frac$"), model=EVIL),
    "other scripts": make_fit(("捕食者", "état"), ("α",), experiments=("Ωμέγα",)),
    "tiny and huge": make_fit(sigma={"prey": 1e-12, "predator": 1e12}),
    "infinite": make_fit(
        gamma_user={"prey": np.inf, "predator": np.nan},
        sigma={"prey": np.nan, "predator": np.nan},
        theta={"a": np.nan, "b": np.inf, "c": -np.inf, "d": -0.0},
        status="did not converge: the iteration limit was reached",
        converged=False,
        warnings=("read me", "and me"),
    ),
}


def failed() -> FitResult:
    """A fit of which nothing but the data is left."""
    fit = make_fit(gradients=False, stages=(), gamma=False, converged=False, status="failed: nothing is finite")
    e = fit.experiments["1"]
    nothing = np.full_like(e.curve.x, np.nan)
    fit.experiments["1"] = ExperimentFit(e.t, e.y, Curve(e.curve.t, nothing, nothing, nothing))
    return fit


def uncertain() -> FitResult:
    """Every kind of interval at once; `a` is on a log scale, and the data set no upper limit to `c`."""
    fit, rng = make_fit(), np.random.default_rng(5)
    names, log = ("a", "b", "c"), ("a",)
    covariance = np.array([[0.01, 0.004, 0.0], [0.004, 0.02, 0.0], [0.0, 0.0, 0.05]])
    low, high = np.array([0.8, 0.8, 0.9]), np.array([1.25, 1.4, np.inf])
    e, n = fit.experiments["1"], 60
    refits = rng.multivariate_normal([0.0, fit.theta["b"], fit.theta["c"]], covariance, n)
    x = e.x + 0.01 * rng.normal(size=(n, *e.x.shape))
    values = np.linspace(0.5, 1.7, 13)
    chains = {name: fit.theta[name] + 0.1 * rng.normal(size=(4, 25)) for name in names}
    posterior = Posterior(
        target="trajectory", theta=chains, x0={"prey": chains["a"]}, sigma={"prey": chains["b"]},
        stats={"lp": rng.normal(size=(4, 25)), "diverging": np.zeros((4, 25))},
        r_hat=dict.fromkeys(names, 1.01), ess=dict.fromkeys(names, 90.0), divergences=0,
        status="converged: R-hat at most 1.010", converged=True, seconds=2.5, t=(e.t,), x=(x[:5],),
    )  # fmt: skip
    return replace(
        fit,
        uncertainty=Uncertainty(names, log, covariance, np.full(3, 12.0), 0.95, low, high, ("c has no upper limit",)),
        profiles={"a": Profile("a", 1.0, values, -20 * (values - 1.0) ** 2, (0.0, np.inf), 12.0, 20.0)},
        bootstrapped=Bootstrap(names, log, refits, (e.t,), (x,), failed=3),
        sampled=posterior,
    )


def hidden(**changes: Any) -> FitResult:
    """S is hidden; I is observed with limits of detection, and so are counts and something that spans five decades."""
    fit = make_fit(
        ("S", "I"), ("b", "S(0)", "k[one]", "k[two]"), ("one", "two"), gamma=False, gradients=False,
        stages=("refined",), verdicts={},
    )  # fmt: skip
    columns, rng = ("I", "cases", "load"), np.random.default_rng(8)
    for name, e in fit.experiments.items():
        S, infected = e.curve.x.T
        expected = np.stack([infected, 5 * S**2, np.exp(3 * (infected - 3))], -1)
        fitted = expected[np.searchsorted(e.curve.t, e.t)]
        counts, load = rng.poisson(fitted[:, 1]).astype(float), fitted[:, 2] * np.exp(0.3 * rng.normal(size=len(e.t)))
        limit = np.zeros((len(e.t), 3), np.int8)
        limit[:2, 0], limit[3, 0] = -1, 1
        fit.experiments[name] = replace(
            e, y=np.stack([e.y[:, 1], counts, load], -1), fitted=fitted, limit=limit, expected=expected,
            scores=np.where(limit == 0, rng.normal(size=fitted.shape), np.nan), expected_sd=0.05 * np.abs(expected),
        )  # fmt: skip
    sigma = {"I": 0.3, "load": 0.3}
    details = {"starts": 7, "starts_agreeing": 3, "start_objectives": [-9.0, -9.0, -8.99, 4.0, 2e3], "given": ["I"]}
    fields: dict[str, Any] = {
        "columns": columns, "noise": {"I": "normal", "cases": "poisson", "load": "lognormal"}, "sigma": sigma,
        "stages": {name: replace(stage, sigma=sigma) for name, stage in fit.stages.items()}, "details": details,
    }  # fmt: skip
    return replace(fit, **(fields | changes))


def hidden_failed() -> FitResult:
    """The same if no trajectory was found."""
    fit = hidden(converged=False, status="failed: no start led to a trajectory", sigma={}, stages={})
    for name, e in fit.experiments.items():
        x, y = np.full_like(e.curve.x, np.nan), np.full_like(e.y, np.nan)
        along = np.full_like(e.expected, np.nan)
        curve = Curve(e.curve.t, x, x, x)
        fit.experiments[name] = replace(e, curve=curve, fitted=y, scores=y, expected=along, expected_sd=along)
    return fit


def refuted() -> FitResult:
    """A model whose own best trajectory is a straight line, far from ODIN's compromise."""
    fit = make_fit(contradicting=("prey",), details={"stage_used": "odin"})
    e = fit.experiments["1"]
    line = np.linspace(2.0, 4.0, 30)[:, None] * np.ones(2)
    t = np.linspace(e.t[0], e.t[-1], 30)
    fit.experiments["1"] = replace(e, best=Curve(t, line, np.gradient(line, t, axis=0), np.full_like(line, np.nan)))
    return fit


ODD |= {
    "refuted": refuted(),
    "failed": failed(),
    "every interval": uncertain(),
    "hidden": hidden(),
    "hidden and failed": hidden_failed(),
}


def assert_same(one: Any, other: Any) -> None:
    """Equal in type and in every number, NaN and the sign of zero included."""
    assert type(one) is type(other)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    elif is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, np.ndarray):
        assert one.shape == other.shape
        assert_same(one.ravel().tolist(), other.ravel().tolist())
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, float):
        assert repr(one) == repr(other)
    else:
        assert one == other


def strict_json(text: str) -> Any:
    """The content of a JSON text; NaN and infinities, which JSON has not, are an error."""

    def refuse(token: str) -> NoReturn:
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, parse_constant=refuse)
