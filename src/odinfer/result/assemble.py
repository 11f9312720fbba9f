"""From a method's numbers to a Fit: names, residuals and warnings, the same for every method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.judgement.verdicts import CONSISTENT
from odinfer.observation.plain import Plain, squares
from odinfer.problem.problem import Problem
from odinfer.problem.unknowns import Unknowns
from odinfer.result.fit import Fit, Workings
from odinfer.result.stages import ExperimentFit, Stage, frame
from odinfer.smoothing.curves import Curve, Gradients
from odinfer.smoothing.units import Units
from odinfer.uncertainty.results import Uncertainty
from odinfer.version import __version__

Array = NDArray[np.float64]


def named(names: Sequence[str], values: ArrayLike) -> dict[str, Any]:
    """Values by name."""
    return dict(zip(names, np.asarray(values).tolist(), strict=True))


def residual_squares(problem: Problem, x: Sequence[Array]) -> Array:
    """Residual sums of squares (K,) of states x, one (N, K) array per experiment at its observation times."""
    return squares(x, [e.y for e in problem.data.experiments])


def stage(
    problem: Problem,
    theta: Array,
    curves: Sequence[Curve],
    sigma: Array,
    *,
    gamma: Mapping[str, float] | None = None,
    objective: float = float("nan"),
    loglik: float | None = None,
    seconds: float = float("nan"),
    note: str = "converged",
) -> Stage:
    """One stage of a fit from all parameters theta (P,), the curve of every experiment and the noise sigma (K,)."""
    names = problem.model.states
    # A bound reached on a log scale may be missed by rounding on the way back.
    low, high = np.reshape([problem.limits(p) for p in problem.model.parameters], (-1, 2)).T
    theta = np.clip(theta, low, high)
    x = tuple(c.at(e.t)[0] for c, e in zip(curves, problem.data.experiments, strict=True))
    rss = residual_squares(problem, x)
    return Stage(
        theta=named(problem.model.parameters, theta),
        gamma=dict(gamma or {}),
        sigma=named(names, sigma),
        x=x,
        objective=float(objective),
        loglik=float(Plain.of(problem).loglik(rss)) if loglik is None else loglik,
        seconds=seconds,
        note=note,
        states=frame(problem.data.experiments[0].t, x[0], names),
    )


def assemble(
    problem: Problem,
    method: Any,
    seed: int,
    stages: dict[str, Stage],
    curves: Sequence[Curve],
    *,
    status: str,
    converged: bool,
    used: str | None = None,
    units: Units | None = None,
    gradients: Sequence[Gradients] | None = None,
    verdicts: Mapping[str, str] | None = None,
    details: Mapping[str, Any] | None = None,
    samples: Mapping[str, Array] | None = None,
    warnings: Sequence[str] = (),
    uncertainty: Uncertainty | None = None,
    workings: Workings | None = None,
) -> Fit:
    """The Fit of a method (a frozen dataclass with a `name`).

    Args:
        stages: by name; the estimates of `used` (the last one if None) are the result.
        curves: of the result, one per experiment.
        units: the standardisation that γ is measured in, where there is a γ.
        gradients: f against the smoother's slope per experiment, where the method has it.
        verdicts: per state; consistent where nothing is said.
        samples: parameter → posterior draws (chain, draw), thinned to a few thousand.
        uncertainty: of estimates at a maximum of the likelihood.
        workings: what later steps need not compute again.
    """
    names = problem.model.states
    used = used or list(stages)[-1]
    result = stages[used]
    rate = np.ones(len(names)) if units is None else units.rate**2
    gamma = result.gamma
    common = {
        "version": __version__,
        "fixed": sorted(problem.fixed),
        "stage_used": used,
        "observations": named(names, problem.count),
        "unknowns": Unknowns(problem, noise=True).size,
        "rmse": named(names, np.sqrt(residual_squares(problem, result.x) / problem.count)),
        "loglik": result.loglik,
        "seconds": float(np.nansum([s.seconds for s in stages.values()])),
    }
    options = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(method).items()}
    experiments = {
        e.name: ExperimentFit(e.t, e.y, curve, gradients[i] if gradients else None)
        for i, (e, curve) in enumerate(zip(problem.data.experiments, curves, strict=True))
    }
    return Fit(
        model=problem.model.name,
        equations=problem.model.text,
        method=method.name,
        options=options,
        seed=seed,
        state_names=names,
        parameter_names=problem.model.parameters,
        theta=result.theta,
        gamma=gamma,
        gamma_user={n: gamma[n] * float(r) for n, r in zip(names, rate, strict=True) if n in gamma},
        sigma=result.sigma,
        verdicts={n: (verdicts or {}).get(n, CONSISTENT) for n in names} if gamma else {},
        experiments=experiments,
        stages=stages,
        status=status,
        converged=converged,
        details=common | dict(details or {}),
        samples=dict(samples or {}),
        warnings=(
            *warnings,
            *_too_few(common),
            *_at_bounds(problem, result.theta),
            *(uncertainty.notes if uncertainty else ()),
        ),
        uncertainty=uncertainty,
        workings=workings or Workings(),
    )


def _too_few(facts: Mapping[str, Any]) -> Iterator[str]:
    observed, unknowns = sum(facts["observations"].values()), facts["unknowns"]
    if observed <= unknowns:
        yield (
            f"{observed} observations for {unknowns} unknowns (parameters, initial values and noise) leave nothing to "
            "tell how sure the estimates are: no intervals"
        )


def _at_bounds(problem: Problem, theta: Mapping[str, float]) -> Iterator[str]:
    for name in problem.free:
        low, high = problem.limits(name)
        if theta[name] <= low + 1e-9 * abs(low) or theta[name] >= high - 1e-9 * abs(high):
            yield f"parameter '{name}' is at its bound ({theta[name]:g})"
