"""Maximum likelihood by multi-start search, for problems with hidden states, other observables or other noise.

There is no γ then. The best trajectory is looked for from many starts, and the model is judged as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.diagnostics.model_test import ModelTest, judge_model, unasked
from odinfer.errors import Status, none_if_singular
from odinfer.gp.curves import Curve
from odinfer.gp.standardisation import state_scales
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.ode.steady_state import steady_state_warnings
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, sub_progress
from odinfer.result.assemble import assemble, stage
from odinfer.result.fit import Cache, Fit
from odinfer.search.multistart import OdinStart, SearchResult, search
from odinfer.search.release import released
from odinfer.search.start_executor import StartExecutor
from odinfer.uncertainty.maximum import Maximum
from odinfer.uncertainty.verification import judge_with_intervals, verified_optimum

Array = NDArray[np.float64]

_EXCHANGED = 0.05  # relative difference of values that two parameters have exchanged
MODEL_IS_WRONG = "the intervals assume that the model is right, but the data contradict it"
FAILED = "failed: no start led to a trajectory of the model"


def optimum(problem: Problem, found: SearchResult) -> Maximum | None:
    """The best optimum of a search, with either sign of parameters that tended to zero; None if there is none."""
    if found.best is None:
        return None
    problem, best = released(problem, state_scales(problem), found.best)
    return replace(Maximum.of(problem, best), known=found.known)


def search_details(problem: Problem, found: SearchResult | None) -> dict[str, Any]:
    """What a fit keeps of a search: what the start points led to, and other optima that fit as well."""
    if found is None:
        return {}
    details: dict[str, Any] = {
        "starts": found.starts,
        "starts_agreeing": found.agreeing,
        "start_objectives": [value for value in found.objectives if np.isfinite(value)],
    }
    if found.elsewhere:
        details["starts_at_alternatives"] = found.elsewhere
    if found.alternatives is not None and len(found.alternatives):
        u = ParameterVector(problem)
        phi = u.phi(found.alternatives)
        rows = problem.theta(phi)[:, problem.free_index]
        details["alternatives"] = [dict(zip(problem.free, row.tolist(), strict=True)) for row in rows]
        solver = BatchLikelihood.of(problem).finer()
        with np.errstate(all="ignore"):
            details["alternatives_loglik"] = solver.solve(found.alternatives).worth.loglik.tolist()
    return details


def search_warnings(problem: Problem, found: SearchResult | None) -> list[str]:
    """Warnings about the optima that a search found, the most important first."""
    if found is None or found.best is None:
        return []
    own = problem.theta(found.best.phi)
    warnings = [
        f"the estimate is at the inequality {text}: the likelihood is higher beyond it"
        for text in (problem.inequalities.limiting(own) if problem.inequalities else ())
    ]
    if found.alternatives is None or not len(found.alternatives):
        return warnings
    others = problem.theta(ParameterVector(problem).phi(found.alternatives))
    own, other = own[problem.free_index], others[0][problem.free_index]
    with np.errstate(all="ignore"):
        apart = np.nan_to_num(np.abs(np.log(np.abs(other / own))))
    order = np.argsort(-apart)[:3]
    values = ", ".join(f"{problem.free[i]} = {other[i]:.3g} instead of {own[i]:.3g}" for i in order if apart[i] > 0.05)
    count = len(found.alternatives)
    what = "another solution fits" if count == 1 else f"{count} other solutions fit"
    choice = _differences_between(problem.free, own, other, order.tolist()) if len(order) else "a bound"
    place = f" ({values})" if values else ", with other initial values"
    return [*warnings, f"{what} the data as well{place}; choose by {choice}, or by fixing a parameter"]


def _differences_between(names: Sequence[str], own: Array, other: Array, differing: Sequence[int]) -> str:
    """What a user can declare to have the first of two solutions: an order of what is exchanged, or a bound.

    Args:
        own, other: values (F,) of the parameters in both solutions.
        differing: places of parameters, the one that differs most first.
    """

    def same(a: Any, b: Array) -> NDArray[np.bool_]:
        return np.asarray(np.isclose(a, b, rtol=_EXCHANGED, atol=0.0))

    with np.errstate(all="ignore"):
        ratios, other_ratios = own[:, None] / own, other[:, None] / other
        for i in sorted(differing):
            cycle = [i]
            while (next_ := np.flatnonzero(same(other[cycle[-1]], own))).size == 1 and next_[0] not in cycle:
                cycle.append(int(next_[0]))
            if len(cycle) > 1 and next_.tolist() == [i] and not any("(" in names[j] for j in cycle):
                return f"an order, {' < '.join(names[j] for j in sorted(cycle, key=lambda j: float(own[j])))}"
            pairs = np.argwhere(same(own[i], other_ratios) & same(other[i], ratios) & ~same(own[i], ratios))
            for j, k in (pair for pair in pairs.tolist() if i not in pair):
                three = [names[m].partition("[") for m in (i, j, k)]
                if len({of for *_, of in three}) == 1:  # parameters of one experiment
                    sign = "<" if own[i] < other[i] else ">"
                    return f"an order, {three[0][0]} {sign} {three[1][0]}/{three[2][0]}"
    a, b = float(own[differing[0]]), float(other[differing[0]])
    between = np.sign(a) * np.sqrt(a * b) if a * b > 0 else 0.5 * (a + b)
    bound = f"a bound, {names[differing[0]]} {'>' if a > b else '<'} {between:.2g}"
    return f"{bound}, an inequality between parameters" if len(names) > 1 else bound


def release_warnings(before: Problem, maximum: Maximum) -> list[str]:
    """Which parameters turned out negative although they were assumed positive."""
    after = maximum.problem
    theta = after.theta(maximum.phi)
    names = [n for n in before.assumed_positive - after.assumed_positive if theta[after.parameters.index(n)] < 0]
    return [f"{n} < 0: write 'real {n}' to keep this, '{n} > 0' to forbid it" for n in sorted(names)]


def replacement_warnings(before: Maximum, after: Maximum) -> list[str]:
    """Say that the verification of an optimum has replaced it, and what it was."""
    if after is before:
        return []
    exact = before.reintegrated_loglik
    instead = f"has a log-likelihood of {exact:.4g} instead of" if np.isfinite(exact) else "ends early, not at"
    what = (
        "start points led to an optimum that is due to errors of the solver: integrated once more, its trajectory "
        f"{instead} {before.loglik:.4g}; the best optimum near it that integration confirms is reported "
        f"({after.loglik:.4g})"
    )
    return [what]


def profile_replacement(before: Maximum, after: Maximum) -> str:
    """Say that the profiles of an optimum have led to a higher one."""
    return (
        "no start point led to the best optimum: it was found on the profile likelihoods of another, whose "
        f"log-likelihood is lower by {before.objective - after.objective:.3g}; it may not be the highest either"
    )


def fit_by_multistart(
    method: Any, problem: Problem, seed: int, progress: Progress, level: float, draws: int, whole: bool,
    executor: StartExecutor | None = None, start: OdinStart | None = None,
) -> Fit:  # fmt: skip
    """Fit a problem whose states cannot all be smoothed.

    Args:
        executor: worker processes that follow start points.
        start: a start point to begin with.
        level, draws, whole: of the test of the model; `whole` makes it however long it takes.
    """
    clock = time.perf_counter()
    found = search(problem, seed, sub_progress(progress, 0.0, 0.7), executor, first=start)
    reached = none_if_singular(lambda: optimum(problem, found))
    details = search_details(problem, found)
    warnings = search_warnings(problem, found)
    seconds = time.perf_counter() - clock
    if reached is None:
        return nothing_found(method, problem, seed, "refined", details, seconds)
    warnings += release_warnings(problem, reached)
    problem = reached.problem
    maximum = verified_optimum(reached)
    if replaced := replacement_warnings(reached, maximum):
        details["starts_agreeing"] = 0
        warnings += replaced
    simulated, verified = draws if whole else unasked(problem, draws), maximum

    def judge(own: Maximum) -> tuple[ModelTest | None, bool]:
        test = judge_model(own, seed, simulated, sub_progress(progress, 0.7, 0.8), level) if simulated else None
        progress("intervals", 0.8)
        return test, test is not None and test.contradicts(level)

    maximum, test, known = judge_with_intervals(verified, judge)
    if maximum.refined is not verified.refined:
        details["starts_agreeing"] = 0
        warnings.append(profile_replacement(verified, maximum))
    best, curves = maximum.refined, maximum.curves()
    status = Status.CONVERGED if best.converged else Status.MAX_ITERATIONS
    made = stage(
        problem, problem.theta(best.phi), curves, maximum.left,
        objective=best.objective, loglik=best.loglik, seconds=seconds, note=status.value,
    )  # fmt: skip
    if test is not None:
        details["model_test"] = asdict(test)
        warnings += [MODEL_IS_WRONG] if test.contradicts(level) else []
    if known is not None:
        details["sigma_interval"] = {c: list(ends) for c, ends in maximum.noise_intervals().items()}
    fit = assemble(
        problem, method, seed, {"refined": made}, curves, status=status.value, converged=status.converged,
        uncertainty=known, cache=Cache(maximum=maximum), details=details,
        warnings=(*warnings, *steady_state_warnings(problem, lambda e, t: best.paths[e].at(t)[0])),
    )  # fmt: skip
    progress("done", 1.0)
    return fit


def nothing_found(
    method: Any, problem: Problem, seed: int, name: str, details: dict[str, Any], seconds: float
) -> Fit:  # fmt: skip
    """A fit that failed: no trajectory was found."""
    K = len(problem.model.states)
    curves = []
    for e in range(len(problem.data.experiments)):
        t = problem.condition(e).times
        curves.append(Curve(t, *(np.full((len(t), K), np.nan) for _ in range(3))))
    theta = np.array([problem.fixed.get(n, np.nan) for n in problem.parameters])
    sigma = np.full(len(problem.columns), np.nan)
    made = stage(problem, theta, curves, sigma, loglik=-np.inf, seconds=seconds, note=FAILED)
    return assemble(
        problem, method, seed, {name: made}, curves, status=FAILED, converged=False, details=details
    )  # fmt: skip
