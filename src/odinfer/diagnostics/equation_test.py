"""Test single equations: compare γ with its simulated distribution under the model.

An equation is judged by two numbers: ODIN's γ, and the evidence for a smooth signal in what its own solution, driven
by the other states, leaves of the data (single_equation.py). Both depend on the times, the noise
and the model, so each is compared with what data simulated from a right equation give: the other states as estimated,
this one a solution of its equation, noise as estimated; everything is fitted anew, until the verdict is settled
(monte_carlo.py). An equation that leaves no signal at all is not suspected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.diagnostics.model_test import DRAWS
from odinfer.diagnostics.monte_carlo import p_value, simulate_until_decided
from odinfer.diagnostics.single_equation import Equation, Estimate
from odinfer.errors import InputError
from odinfer.gp.residual_signal import signal
from odinfer.gp.smoother import noise_sd
from odinfer.observation.gaussian_states import squares
from odinfer.odin.dense_engine import Dense
from odinfer.odin.engine import direct
from odinfer.odin.markov.engine import Markov
from odinfer.odin.multistart import Minima, Search
from odinfer.odin.sparse.engine import Sparse
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress

Array = NDArray[np.float64]

FALSE_ALARMS = 0.05  # accused models that are right, at most
_MOST_VALUES = 3000  # states times observation times: every simulation costs an ODIN stage


@dataclass(frozen=True)
class Judgement:
    """The case of one equation.

    Attributes:
        state: whose equation.
        gamma: ODIN's γ.
        signal: nats of evidence for a signal in the residuals of the equation's own solution; inf if it has none.
        expected: the γ that 95 % of right equations stay below, for this design; its floor where nothing was simulated.
        p: probability that a right equation looks as bad; 1 where its own solution leaves no signal.
        draws: how many simulations stand behind it.
        contradicts: whether p is small enough, all equations of the model taken together.
    """

    state: str
    gamma: float
    signal: float
    expected: float
    p: float
    draws: int
    contradicts: bool


@dataclass(frozen=True, eq=False)
class _Case:
    """What one set of data says about the equations: γ, signal and noise (K,), and what they were computed from."""

    gamma: Array
    signal: Array
    noise: Array
    estimate: Estimate
    x: list[list[Array] | None]  # per equation: the solution of its own at the observation times of its state


def judge(
    problem: Problem,
    search: Search,
    seed: int = 0,
    level: float = FALSE_ALARMS,
    draws: int = DRAWS,
    progress: Progress = no_progress,
    minima: Minima | None = None,
) -> list[Judgement]:
    """A judgement per equation, with at most `level` probability that any right equation of the model is accused.

    Args:
        problem: model and data.
        search: how the ODIN stage is run; γ is learned whatever it says.
        seed: of the simulations.
        level: false alarms per model.
        draws: simulations per suspicious equation.
        progress: told about the progress.
        minima: what such a search has found, if it need not be done again.
    """
    if too_large(problem):
        raise InputError(
            f"judging equations takes up to {_MOST_VALUES} values of states, not {size(problem)}; select fewer states"
        )
    search = replace(search, gamma="learn", algebra=direct(problem, search.kernel))
    equations = [Equation(problem, k) for k in range(len(problem.model.states))]
    minima = minima if minima is not None and not isinstance(minima.engine, Sparse) else search.run(problem, seed)
    case = _case(problem, minima, equations, range(len(equations)))
    floor = search.gamma_bounds[0]
    if case is None:
        return [Judgement(e.state, np.nan, np.nan, floor, np.nan, 0, False) for e in equations]
    # Bonferroni, down to what this many simulations can show.
    allowed = max(level / len(equations), 1.0 / (draws + 1))
    found = []
    for e in equations:
        progress(f"judging the equation for {e.state}", e.k / len(equations))
        g, s = float(case.gamma[e.k]), float(case.signal[e.k])
        # However large γ is: a solution that leaves nothing but noise is no contradiction. At high noise γ can be large
        # because the smoother took noise for signal.
        null = np.zeros((0, 2)) if s <= 0.0 else _null(problem, search, equations, case, e.k, seed, allowed, draws)
        p = p_value(np.array([g, s]), null)
        expected = float(np.quantile(null[:, 0], 0.95)) if len(null) else floor
        found.append(Judgement(e.state, g, s, expected, p, len(null), len(null) > 0 and p <= allowed))
    return found


def size(problem: Problem) -> int:
    """States times observation times."""
    return len(problem.model.states) * sum(len(e.t) for e in problem.data.experiments)


def too_large(problem: Problem) -> bool:
    """Whether a problem has too many values to be simulated again and again."""
    return size(problem) > _MOST_VALUES


def _case(problem: Problem, minima: Minima, equations: list[Equation], which: range | list[int]) -> _Case | None:
    risk, solutions, *_ = minima
    if not solutions:
        return None
    assert isinstance(risk, Dense | Markov)
    estimate = Estimate.of(risk, solutions[0])
    s, sd = np.zeros(len(equations)), _smoothers_noise(problem, estimate)
    x: list[list[Array] | None] = [None] * len(equations)
    for k in which:
        s[k], sd[k], x[k] = _residual_signal(equations[k], problem, estimate, sd[k])
    return _Case(solutions[0].gamma, s, sd, estimate, x)


def _residual_signal(
    equation: Equation, problem: Problem, estimate: Estimate, otherwise: float
) -> tuple[float, float, list[Array] | None]:
    """Signal and noise in the residuals of the equation's own solution, and that solution.

    The smoother's noise will not do: where it takes noise for signal, γ is large though the equation is right.
    """
    followed = equation.follow(problem, estimate)
    if followed is None:
        return np.inf, otherwise, None
    own, refined = followed
    x = [path.states(e.moments) for path, e in zip(refined.paths, own.data.experiments, strict=True)]
    units = estimate.risk.units
    starts = {e.name: e.t[0] for e in problem.data.experiments}
    t = [units.standard_time(e.t, starts[e.name]) for e in own.data.experiments]
    residuals = [(e.y - xe)[:, 0] for e, xe in zip(own.data.experiments, x, strict=True)]
    evidence, sd = signal(t, residuals, estimate.risk.hypers[equation.k])
    n = int(own.count.sum())
    spare = max(n - ParameterVector(own).size, 1)
    known = problem.known_sigma[equation.k]
    return evidence, sd * np.sqrt(n / spare) if np.isnan(known) else known, x


def _null(
    problem: Problem,
    search: Search,
    equations: list[Equation],
    case: _Case,
    k: int,
    seed: int,
    allowed: float,
    draws: int,
) -> Array:
    """(γ, signal) of equation k in data in which it is right (B, 2); ends early once the matter is settled."""
    truth = _truth(problem, case, k)
    if truth is None:
        return np.zeros((0, 2))
    rng = np.random.default_rng([seed, k])

    def simulate(begin: int, end: int) -> Array:
        found: list[tuple[float, float]] = []
        for i in range(begin, end):
            y = [x + case.noise * rng.normal(size=x.shape) for x in truth]
            again = replace(problem, data=problem.data.with_observations(y))
            simulated = _case(again, search.run(again, seed + 1 + i, most=1), equations, [k])
            if simulated is not None:
                found.append((simulated.gamma[k], simulated.signal[k]))
        return np.array(found).reshape(-1, 2)

    return simulate_until_decided(simulate, np.array([case.gamma[k], case.signal[k]]), draws, allowed)


def _truth(problem: Problem, case: _Case, k: int) -> list[Array] | None:
    """States in which equation k holds: a solution of its own, the other states as estimated."""
    own = case.x[k]
    if own is None:
        return None
    states = case.estimate.observed()
    seen = {e.name: e.t for e in problem.data.select((problem.model.states[k],)).experiments}
    solutions = dict(zip(seen, own, strict=True))
    for e, x in zip(problem.data.experiments, states, strict=True):
        if e.name in seen:
            x[np.isin(e.t, seen[e.name]), k] = solutions[e.name][:, 0]
    return states


def _smoothers_noise(problem: Problem, estimate: Estimate) -> Array:
    """Noise standard deviations (K,): the smoother's, or what ODIN's states leave if that is more."""
    smoother = noise_sd(estimate.risk.units, estimate.risk.hypers)
    left = squares(estimate.observed(), [e.y for e in problem.data.experiments]) / problem.count
    return np.asarray(np.sqrt(np.maximum(smoother**2, left)))
