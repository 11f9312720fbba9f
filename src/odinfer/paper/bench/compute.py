"""Compute one run of a benchmark grid: draw the data, fit, and compare with the truth."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.paper.bench.runs import LIMIT, Run
from odinfer.paper.systems import system_of
from odinfer.parallel.resume import error_outcome, failure_outcome
from odinfer.parallel.store import canonical

if TYPE_CHECKING:
    from odinfer.model.model import Model
    from odinfer.paper.systems import System
    from odinfer.problem.problem import Problem
    from odinfer.result.fit import Fit

Array = NDArray[np.float64]

# Above so many states nothing is kept per state, and trajectories, here chaotic ones, are not compared.
MOST_STATES = 20
QUANTILES = np.linspace(0.0, 1.0, 201)
_PLOT_TIMES = 41  # times of a kept trajectory besides those of the observations
_compiled_kinds: set[str] = set()


def compute(run: Run) -> dict[str, Any]:
    """The record of a run. Whatever goes wrong in a fit is a status: a table of many runs must not miss one."""
    kind = canonical([run.system, run.candidate, run.method, run.preset, run.options])
    timing: dict[str, Any] = {"first": kind not in _compiled_kinds}
    _compiled_kinds.add(kind)
    clock, cpu = time.perf_counter(), time.process_time()
    try:
        truth = system_of(canonical(run.system))
        problem = problem_of(run, truth)
        clock, cpu = time.perf_counter(), time.process_time()
        found = _maximum_likelihood(truth, problem) if run.method == LIMIT else _fit(run, truth, problem)
        timing |= {"seconds": time.perf_counter() - clock, "cpu": time.process_time() - cpu}
        outcome = (
            _limit_outcome(found, truth, problem)
            if run.method == LIMIT
            else _compare_with_truth(found, truth, not run.candidate)
        )
    except Exception as error:
        outcome = error_outcome(error)
    timing.setdefault("seconds", time.perf_counter() - clock)
    timing.setdefault("cpu", time.process_time() - cpu)
    return {"outcome": to_json(outcome), "timing": to_json(timing)}


@functools.lru_cache(maxsize=64)
def _candidate(name: str, equations: str) -> Model:
    from odinfer.model.model import Model

    return Model.from_text(equations, name)


def problem_of(run: Run, truth: System) -> Problem:
    """The draw of a run, posed to its method: with the authors' bounds for their settings, without any otherwise."""
    import dataclasses

    from odinfer.problem.problem import Problem

    posed = truth
    if run.candidate is not None:
        model = _candidate(run.candidate["name"], run.candidate["equations"])
        posed = dataclasses.replace(truth, model=model, theta=dict.fromkeys(model.parameters, math.nan))
    data = truth.sample(run.noise, run.seed)
    return posed.problem(data) if run.preset == "paper" else Problem(posed.model, data)


def method_of(run: Run, truth: System) -> Any:
    """The method with its options."""
    from odinfer.methods import method_class

    cls = method_class(run.method)
    options = {name: tuple(v) if isinstance(v, list) else v for name, v in run.options.items()}
    return cls.paper(truth, **options) if run.preset == "paper" else cls(**options)


def _fit(run: Run, truth: System, problem: Problem) -> Fit:
    from odinfer.methods import fit

    return fit(problem, method=method_of(run, truth), seed=run.seed)


def plot_times(truth: System) -> Array:
    """Times at which trajectories are kept for pictures: those of the observations and even ones between."""
    return np.unique(np.concatenate([truth.t, np.linspace(truth.t[0], truth.t[-1], _PLOT_TIMES)]))


def _compare_with_truth(fit: Fit, truth: System, comparable: bool) -> dict[str, Any]:
    """A fit against the truth. A candidate's parameters mean nothing there: then only its states are compared."""
    small = len(fit.state_names) <= MOST_STATES
    (e,) = fit.experiments.values()
    outcome: dict[str, Any] = {"status": fit.status, "converged": fit.converged, "theta": fit.theta}
    outcome |= _state_errors(e.x, truth)
    if small:
        outcome |= {"gamma": fit.gamma, "sigma": fit.sigma, "verdicts": fit.verdicts}
    else:
        outcome["gamma_highest"] = max(fit.gamma.values(), default=math.nan)
    if comparable:
        outcome |= _trajectory_errors(fit.theta, truth, keep=True)
    if len(fit.stages) > 1:
        outcome["stages"] = {
            name: {"theta": s.theta, "objective": s.objective, **_state_errors(s.x[0], truth)}
            | (_trajectory_errors(s.theta, truth) if comparable else {})
            for name, s in fit.stages.items()
        }
    if fit.samples:
        outcome["quantiles"] = {n: _round(np.quantile(draws, QUANTILES)) for n, draws in fit.samples.items()}
        outcome["moments"] = {n: _moments(draws) for n, draws in fit.samples.items()}
    return outcome


def _maximum_likelihood(truth: System, problem: Problem) -> Any:
    """Maximum likelihood by the optimiser that ends ODIN, started at the true parameters and states."""
    from threadpoolctl import threadpool_limits

    from odinfer.likelihood.refinement import refine_from

    theta = np.array([truth.theta[p] for p in truth.model.parameters])
    with threadpool_limits(1, user_api="blas"):
        return refine_from(problem, theta, [(truth.t, truth.x)])


def _limit_outcome(best: Any, truth: System, problem: Problem) -> dict[str, Any]:
    if best is None:
        return failure_outcome("failed: the likelihood has no maximum near the truth")
    found = dict(zip(truth.model.parameters, problem.theta(best.phi).tolist(), strict=True))
    outcome: dict[str, Any] = {
        "status": "converged" if best.converged else "did not converge: the iteration limit was reached",
        "converged": best.converged,
        "theta": found,
        "objective": best.objective,
    }
    return outcome | _state_errors(best.paths[0].at(truth.t)[0], truth) | _trajectory_errors(found, truth, True)


def _state_errors(x: Array, truth: System) -> dict[str, Any]:
    """Root mean square errors of estimated states (N, K) at the observation times."""
    square = (x - truth.x) ** 2
    found: dict[str, Any] = {"state_rmse": float(np.sqrt(square.mean()))}
    if len(truth.model.states) <= MOST_STATES:
        found["state_rmses"] = _by_state(truth, np.sqrt(square.mean(0)))
    return found


def _trajectory_errors(theta: Mapping[str, float], truth: System, keep: bool = False) -> dict[str, Any]:
    """Both trajectory errors: x̃ is integrated from the true initial values with the estimated parameters.

    trmse is a root mean square over times and states, trmse_paper the paper's (1/N)·‖x̃ − x‖₂. Both are infinite for a
    trajectory that blows up, and missing where there are no parameters.
    """
    from odinfer.ode.simulate import simulate

    if len(truth.model.states) > MOST_STATES or not all(map(math.isfinite, theta.values())):
        return {}
    at = plot_times(truth)
    x = simulate(truth.model, theta, truth.x0, at, rtol=1e-7, atol=1e-9)
    square = (x[np.isin(at, truth.t)] - truth.x) ** 2
    square = np.where(np.isfinite(square), square, np.inf)
    N = len(truth.t)
    found: dict[str, Any] = {
        "trmse": float(np.sqrt(square.mean())),
        "trmse_paper": float(np.sqrt(square.sum()) / N),
        "trmses_paper": _by_state(truth, np.sqrt(square.sum(0)) / N),
    }
    if keep:
        found["trajectory"] = {s: _round(v) for s, v in zip(truth.model.states, x.T, strict=True)}
    return found


def _moments(draws: Array) -> dict[str, float]:
    """Mean, standard deviation, skewness and excess kurtosis: both zero for a Gaussian."""
    v = draws.ravel()
    mean, sd = float(v.mean()), float(v.std())
    z = (v - mean) / max(sd, 1e-300)
    return {"mean": mean, "sd": sd, "skewness": float((z**3).mean()), "kurtosis": float((z**4).mean() - 3.0)}


def _by_state(truth: System, values: Array) -> dict[str, float]:
    return dict(zip(truth.model.states, values.tolist(), strict=True))


def _round(values: Array) -> list[float]:
    return [float(f"{v:.6g}") for v in values.tolist()]


def to_json(value: Any) -> Any:
    """As JSON has it: null for NaN, "inf" for what is infinite."""
    match value:
        case Mapping():
            return {str(name): to_json(v) for name, v in value.items()}
        case str() | bool() | None:
            return value
        case Sequence():
            return [to_json(v) for v in value]
        case np.generic():
            return to_json(value.item())
        case float() if not math.isfinite(value):
            return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def from_json(value: Any) -> float:
    """A number of a record: what `to_json` made of it undone; NaN where there is none."""
    return math.nan if value is None else float(value)
