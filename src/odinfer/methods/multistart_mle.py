"""What ODIN does where not every state can be smoothed: hidden states, other observations, other noise, known starts.

There is no γ then. The best trajectory is looked for from many starts, and the model is judged as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np

from odinfer.diagnostics.model_test import judge_model, signal_left, unasked
from odinfer.errors import Status
from odinfer.gp.curves import Curve
from odinfer.gp.residual_signal import SUSPICIOUS
from odinfer.ode.steady_state import unsettled
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, part_of
from odinfer.result.assemble import assemble, stage
from odinfer.result.fit import Fit, Workings
from odinfer.search.multistart import First, multistart
from odinfer.search.start_executor import Crew
from odinfer.uncertainty.maximum import Maximum

_T = TypeVar("_T")

FAILED = "failed: no start led to a trajectory of the model"


def lucky(step: Callable[[], _T]) -> _T | None:
    """What a step gives; None where its linear algebra breaks down, which is bad luck and no reason to stop."""
    try:
        return step()
    except (np.linalg.LinAlgError, ArithmeticError):
        return None


def without_smoother(
    method: Any, problem: Problem, seed: int, say: Progress, level: float, draws: int, whole: bool,
    crew: Crew | None = None, first: First | None = None,
) -> Fit:  # fmt: skip
    """The best trajectory from many starts.

    Args:
        crew: who follows the starts.
        first: a start to begin with.
        level, draws, whole: of the test of the model; it is asked for if a signal is left, or in any case.
    """
    clock = time.perf_counter()
    ways = multistart(problem, seed, part_of(say, 0.0, 0.7), crew, first)
    found = ways.best
    reached = None if found is None else lucky(lambda: replace(Maximum.at(problem, found), known=ways.known))
    details: dict[str, Any] = {"starts": len(ways.ends), "starts_agreeing": ways.agreeing, "start_objectives": [
        end for end in ways.ends if np.isfinite(end)]}  # fmt: skip
    seconds = time.perf_counter() - clock
    if reached is None:
        return nothing_found(method, problem, seed, "refined", details, seconds)
    say("intervals", 0.7)
    maximum, known = lucky(reached.settled) or (reached, None)
    if maximum is not reached:
        details["starts_agreeing"] = 0  # none has led to where the ends of intervals did
    best, curves = maximum.refined, maximum.curves()
    status = Status.CONVERGED if best.converged else Status.MAX_ITERATIONS
    made = stage(
        problem, problem.theta(best.phi), curves, maximum.left,
        objective=best.objective, loglik=best.loglik, seconds=seconds, note=status.value,
    )  # fmt: skip
    if known is not None:
        details["sigma_interval"] = {c: list(ends) for c, ends in maximum.noise_intervals().items()}
    suspicious = float(signal_left(maximum).max()) > SUSPICIOUS
    if simulated := draws if whole else unasked(problem, draws) if suspicious else 0:
        test = judge_model(maximum, seed, simulated, part_of(say, 0.8, 1.0), level)
        details["model_test"] = asdict(test)
    fit = assemble(
        problem, method, seed, {"refined": made}, curves, status=status.value, converged=status.converged,
        uncertainty=known, workings=Workings(maximum=maximum), details=details,
        warnings=unsettled(problem, lambda e, t: best.paths[e].at(t)[0]),
    )  # fmt: skip
    say("done", 1.0)
    return fit


def nothing_found(
    method: Any, problem: Problem, seed: int, name: str, details: dict[str, Any], seconds: float
) -> Fit:  # fmt: skip
    """A fit that failed: no trajectory was found."""
    K = len(problem.model.states)
    curves = []
    for e in range(len(problem.data.experiments)):
        t = problem.course(e).times
        curves.append(Curve(t, *(np.full((len(t), K), np.nan) for _ in range(3))))
    theta = np.array([problem.fixed.get(n, np.nan) for n in problem.parameters])
    sigma = np.full(len(problem.columns), np.nan)
    made = stage(problem, theta, curves, sigma, loglik=-np.inf, seconds=seconds, note=FAILED)
    return assemble(
        problem, method, seed, {name: made}, curves, status=FAILED, converged=False, details=details
    )  # fmt: skip
