"""From a method's numbers to a Fit: names, residuals and warnings, the same for every method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.diagnostics.verdicts import CONSISTENT, NOT_JUDGED, TESTS
from odinfer.gp.curves import Curve, Gradients
from odinfer.gp.standardisation import Units
from odinfer.model.expression import initial_name
from odinfer.observation import observation_of
from odinfer.observation.gaussian_states import Plain, squares
from odinfer.problem.parameter_vector import Unknowns
from odinfer.problem.problem import Problem
from odinfer.result.fit import Fit, Workings
from odinfer.result.stages import ExperimentFit, Stage
from odinfer.uncertainty.forecast import columns_at
from odinfer.uncertainty.results import Uncertainty
from odinfer.version import __version__

Array = NDArray[np.float64]


def named(names: Sequence[str], values: ArrayLike) -> dict[str, Any]:
    """Values by name."""
    return dict(zip(names, np.asarray(values).tolist(), strict=True))


def residual_squares(problem: Problem, x: Sequence[Array], theta: Array | None = None) -> Array:
    """Residual sums of squares (M,) of states x, one (N, K) array per experiment at its observation times.

    Args:
        theta: all parameters, where columns are not the states themselves.
    """
    if theta is not None and not problem.plain:
        phi = problem.phi(theta)[None]
        x = [observation_of(problem).predicted(e, own[None], phi)[0] for e, own in enumerate(x)]
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
    # A bound reached on a log scale may be missed by rounding on the way back.
    low, high = np.reshape([problem.limits(p) for p in problem.parameters], (-1, 2)).T
    theta = np.clip(theta, low, high)
    x = tuple(c.at(e.t)[0] for c, e in zip(curves, problem.data.experiments, strict=True))
    return Stage(
        theta=named(problem.parameters, theta),
        gamma=dict(gamma or {}),
        sigma={
            c: s for c, s, own in zip(problem.columns, np.asarray(sigma).tolist(), _levels(problem), strict=True) if own
        },
        x=x,
        objective=float(objective),
        loglik=float(Plain.of(problem).loglik(residual_squares(problem, x))) if loglik is None else loglik,
        seconds=seconds,
        note=note,
        t=problem.data.experiments[0].t,
        state_names=problem.model.states,
    )


def _levels(problem: Problem) -> NDArray[np.bool_]:
    """Which columns have one standard deviation for all of their noise (M,), known or estimated beside θ."""
    return np.array(problem.estimated_noise) | ~np.isnan(problem.known_sigma)


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
    best: Sequence[Curve] | None = None,
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
        best: the model's own best trajectory per experiment, where the curves are none.
    """
    names = problem.model.states
    used = used or list(stages)[-1]
    result = stages[used]
    rate = np.ones(len(names)) if units is None else units.rate**2
    gamma, theta = result.gamma, np.array([result.theta[p] for p in problem.parameters])
    common = {
        "version": __version__,
        "fixed": sorted(problem.fixed),
        "stage_used": used,
        "observations": named(problem.columns, problem.count),
        "unknowns": Unknowns(problem, noise=True).size,
        "rmse": named(problem.columns, np.sqrt(residual_squares(problem, result.x, theta) / problem.count)),
        "loglik": result.loglik,
        "state_bounds": _state_bounds(problem),
        "seconds": float(np.nansum([s.seconds for s in stages.values()])),
        **({} if problem.plain else _beyond_plain(problem)),
    }
    options = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(method).items()}
    experiments = {
        e.name: ExperimentFit(
            e.t,
            e.y,
            curve,
            gradients[i].thinned() if gradients else None,
            best=best[i] if best else None,
            **({} if problem.plain else _seen(problem, i, result, theta, curve, workings)),
        )
        for i, (e, curve) in enumerate(zip(problem.data.experiments, curves, strict=True))
    }
    if undetermined := [*_too_few(common)]:  # any model could pass through so few data: nothing is tested
        verdicts = dict.fromkeys(names, NOT_JUDGED)
        details = {name: value for name, value in (details or {}).items() if name not in TESTS}
    return Fit(
        model=problem.model.name,
        equations=problem.model.text,
        method=method.name,
        options=options,
        seed=seed,
        state_names=names,
        parameter_names=problem.parameters,
        columns=problem.columns,
        noise={} if problem.plain else {c.name: c.words for c in problem.observed},
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
            *undetermined,
            *warnings,
            *_unheard(problem),
            *_at_bounds(problem, result.theta),
            *(uncertainty.notes if uncertainty else ()),
        ),
        uncertainty=uncertainty,
        workings=workings or Workings(),
    )


def _seen(
    problem: Problem, e: int, result: Stage, theta: Array, curve: Curve, workings: Workings | None
) -> dict[str, Any]:
    """Predicted values, standardised residuals and limits of an experiment whose columns are not just the states."""
    observation, phi, own = observation_of(problem), problem.phi(theta)[None], problem.data.experiments[e]
    x, noise = result.x[e][None], np.array([[result.sigma.get(c, 1.0) ** 2 for c in problem.columns]])
    maximum = workings.maximum if workings else None
    expected = observation.predicted(e, curve.x[None], phi, curve.t)[0]
    sd = columns_at(maximum, maximum.refined, e, curve.t)[1] if maximum else np.full_like(expected, np.nan)
    return {
        "fitted": observation.predicted(e, x, phi)[0],
        "scores": observation.residuals(e, x, own.y[None], noise, phi)[0],
        "limit": own.limit,
        "expected": expected,
        "expected_sd": sd,
    }


def _beyond_plain(problem: Problem) -> dict[str, Any]:
    """What has to be known of a fit in which not every state is observed as it is, to put it into words."""
    said = problem.model.said
    rows = zip(problem.columns, problem.observed, problem.estimated_noise, problem.known_sigma, strict=True)
    return {
        "given": [s for s in said.initial if initial_name(s) not in problem.model.parameters],
        "by_row": [name for name, c, free, sd in rows if c.profiled and not free and np.isnan(sd)],
    }


def _state_bounds(problem: Problem) -> dict[str, list[float | None]]:
    """Lower and upper bounds of the states that have any."""
    ends = np.stack(problem.state_bounds, -1)
    found = {name: [float(v) if np.isfinite(v) else None for v in own]
             for name, own in zip(problem.model.states, ends, strict=True)}  # fmt: skip
    return {name: own for name, own in found.items() if own != [None, None]}


def _too_few(facts: Mapping[str, Any]) -> Iterator[str]:
    observed, unknowns = sum(facts["observations"].values()), facts["unknowns"]
    if observed <= unknowns:
        yield (
            f"{observed} observations for {unknowns} unknowns (parameters, initial values and noise) leave nothing to "
            "tell how sure the estimates are: no intervals"
        )


def _unheard(problem: Problem) -> Iterator[str]:
    courses = [problem.course(e) for e in range(len(problem.data.experiments))]
    state = problem.model.states[0]
    for name in dict.fromkeys(name for c in courses for name in c.unheard):
        own = [c for c in courses if name in c.unheard]
        where = f"t = {own[0].start:g}" if len(own) == 1 else f"their first times in {len(own)} experiments"
        yield (
            f"input {name} changes before trajectories begin, at {where}, which has no influence; initial values "
            f"that are given earlier, such as {state}(0) = 0, make it count"
        )


def _at_bounds(problem: Problem, theta: Mapping[str, float]) -> Iterator[str]:
    for name in problem.free:
        low, high = problem.limits(name)
        if theta[name] <= low + 1e-9 * abs(low) or theta[name] >= high - 1e-9 * abs(high):
            yield f"parameter '{name}' is at its bound ({theta[name]:g})"
