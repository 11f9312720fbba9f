"""Assemble a Fit from the numbers of any method: names, residuals and warnings."""

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
from odinfer.observation.gaussian_states import GaussianNoise, squares
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem
from odinfer.result.fit import Cache, Fit
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
    if theta is not None and not problem.fully_observed_gaussian:
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
        loglik=float(GaussianNoise.of(problem).loglik(residual_squares(problem, x))) if loglik is None else loglik,
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
    cache: Cache | None = None,
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
        cache: intermediate results for later steps.
        best: the model's own best trajectory per experiment, where the curves are none.
    """
    names = problem.model.states
    used = used or list(stages)[-1]
    result = stages[used]
    rate = np.ones(len(names)) if units is None else units.rate**2
    gamma, theta = result.gamma, np.array([result.theta[p] for p in problem.parameters])
    common = _common_details(problem, stages, used, theta)
    options = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(method).items()}
    experiments = {}
    for i, (e, curve) in enumerate(zip(problem.data.experiments, curves, strict=True)):
        columns = (
            {} if problem.fully_observed_gaussian else _column_predictions(problem, i, result, theta, curve, cache)
        )
        matched, own = gradients[i].thinned() if gradients else None, best[i] if best else None
        experiments[e.name] = ExperimentFit(e.t, e.y, curve, matched, best=own, **columns)
    if undetermined := [*_too_few_observations(common)]:  # any model could pass through so few data: nothing is tested
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
        noise={} if problem.fully_observed_gaussian else {c.name: c.words for c in problem.observed},
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
        warnings=(*undetermined, *warnings, *_problem_warnings(problem, curves, result.theta, uncertainty)),
        uncertainty=uncertainty,
        problem=problem,
        cache=cache or Cache(),
    )


def _problem_warnings(
    problem: Problem, curves: Sequence[Curve], theta: Mapping[str, float], uncertainty: Uncertainty | None
) -> Iterator[str]:
    """Warnings that every method gives."""
    yield from _undetermined_states(problem, curves)
    yield from _ignored_input_changes(problem)
    yield from _at_bounds(problem, theta)
    yield from uncertainty.notes if uncertainty else ()


def _common_details(problem: Problem, stages: Mapping[str, Stage], used: str, theta: Array) -> dict[str, Any]:
    """The numbers that every method reports."""
    result = stages[used]
    return {
        "version": __version__,
        "fixed": sorted(problem.fixed),
        **({"assumed_positive": list(names)} if (names := problem.assumed_positive_names) else {}),
        **({"labels": dict(problem.data.labels)} if problem.data.labels else {}),
        "stage_used": used,
        "observations": named(problem.columns, problem.count),
        "unknowns": ParameterVector(problem, noise=True).counted,
        "rmse": named(problem.columns, np.sqrt(residual_squares(problem, result.x, theta) / problem.count)),
        "loglik": result.loglik,
        "state_bounds": _state_bounds(problem),
        "seconds": float(np.nansum([s.seconds for s in stages.values()])),
        **({} if problem.fully_observed_gaussian else _column_details(problem)),
    }


def _column_predictions(
    problem: Problem, e: int, result: Stage, theta: Array, curve: Curve, cache: Cache | None
) -> dict[str, Any]:
    """Predicted values, standardised residuals and limits of an experiment whose columns are not just the states."""
    observation, phi, own = observation_of(problem), problem.phi(theta)[None], problem.data.experiments[e]
    x, noise = result.x[e][None], np.array([[result.sigma.get(c, 1.0) ** 2 for c in problem.columns]])
    maximum = cache.maximum if cache else None
    expected = observation.predicted(e, curve.x[None], phi, curve.t)[0]
    sd = columns_at(maximum, maximum.refined, e, curve.t)[1] if maximum else np.full_like(expected, np.nan)
    return {
        "fitted": observation.predicted(e, x, phi)[0],
        "scores": observation.residuals(e, x, own.y[None], noise, phi)[0],
        "limit": own.limit,
        "expected": expected,
        "expected_sd": sd,
    }


def _column_details(problem: Problem) -> dict[str, Any]:
    """What has to be known of a fit in which not every state is observed as it is, to put it into words."""
    declarations = problem.model.declarations
    rows = zip(problem.columns, problem.observed, problem.estimated_noise, problem.known_sigma, strict=True)
    return {
        "given": [s for s in declarations.initial if initial_name(s) not in problem.model.parameters],
        "by_row": [name for name, c, free, sd in rows if c.profiled and not free and np.isnan(sd)],
    }


def _state_bounds(problem: Problem) -> dict[str, list[float | None]]:
    """Lower and upper bounds of the states that have any."""
    ends = np.stack(problem.state_bounds, -1)
    found = {name: [float(v) if np.isfinite(v) else None for v in own]
             for name, own in zip(problem.model.states, ends, strict=True)}  # fmt: skip
    return {name: own for name, own in found.items() if own != [None, None]}


def _too_few_observations(facts: Mapping[str, Any]) -> Iterator[str]:
    observed, unknowns = sum(facts["observations"].values()), facts["unknowns"]
    if observed <= unknowns:
        yield (
            f"{observed} observations for {unknowns} unknowns (parameters, initial values and noise): there are no "
            "intervals"
        )


def _undetermined_states(problem: Problem, curves: Sequence[Curve]) -> Iterator[str]:
    for name in problem.undetermined_states:
        first = float(curves[0].x[0, problem.model.states.index(name)])
        yield (
            f"{name} is not determined by the data: nothing observed depends on it. It is shown from "
            f"{initial_name(name)} = {first:g}; declare another initial value to change that"
        )


def _ignored_input_changes(problem: Problem) -> Iterator[str]:
    conditions = [problem.condition(e) for e in range(len(problem.data.experiments))]
    state = problem.model.states[0]
    for name in dict.fromkeys(name for c in conditions for name in c.ignored_inputs):
        own = [c for c in conditions if name in c.ignored_inputs]
        where = f"t = {own[0].start:g}" if len(own) == 1 else f"their first times in {len(own)} experiments"
        yield (
            f"input {name} changes before the trajectories start, at {where}; this has no influence. To include it, "
            f"give an earlier initial value, such as {state}(0) = 0"
        )


def _at_bounds(problem: Problem, theta: Mapping[str, float]) -> Iterator[str]:
    for name in problem.free:
        low, high = problem.limits(name)
        if theta[name] <= low + 1e-9 * abs(low) or theta[name] >= high - 1e-9 * abs(high):
            remedy = "widen the bound or check the model"
            if name in problem.assumed_positive and name not in problem.bounds:
                remedy = f"it is assumed positive: write 'real {name}' to allow negative values"
            yield f"parameter '{name}' is at its bound ({theta[name]:g}); {remedy}"
