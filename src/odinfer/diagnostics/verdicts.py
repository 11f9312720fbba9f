"""Combine the tests of the model and of its equations into verdicts, for fits and for comparisons.

The model as a whole is tested first (model_test.py). If it is accepted, so is every equation. If it is rejected, or if
there is no trajectory, the equations are tested one by one (equation_test.py). That no trajectory was found says
something about the search, not about the equations: an equation that could not be tested is not judged.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from odinfer.diagnostics.equation_test import FALSE_ALARMS, Judgement, judge, size, too_large
from odinfer.diagnostics.model_test import DRAWS, ModelTest, judge_model, signal_left, unasked
from odinfer.gp.residual_signal import SUSPICIOUS
from odinfer.odin.multistart import Minima, Search
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress, sub_progress
from odinfer.uncertainty.maximum import Maximum

CONSISTENT, CONTRADICTS, NOT_JUDGED = "consistent", "contradicts the data", "not judged"
TESTS = ("equation_tests", "model_test")  # the entries of a fit's details that hold results of tests

# Every simulation of an equation costs an ODIN stage. Simulations at most, unless more than `DRAWS` are asked for;
# states times observation times up to which equations are judged unasked, and values in all their simulations then.
_EQUATION_DRAWS, _UNASKED, _SIMULATED = 49, 150, 5000


@dataclass(frozen=True)
class Case:
    """The case of one model.

    Attributes:
        equations: a judgement of each, in the order of the states; empty where they could not be judged.
        whole: of all equations together; None if it was not asked for.
    """

    equations: tuple[Judgement, ...]
    whole: ModelTest | None = None

    def verdicts(self, states: tuple[str, ...]) -> dict[str, str]:
        """State → what is said about its equation."""
        return dict.fromkeys(states, NOT_JUDGED) | {j.state: _words(j) for j in self.equations}

    def rejected(self, level: float) -> bool:
        """Whether the data contradict the model as a whole or any equation."""
        return bool(self.whole and self.whole.contradicts(level)) or any(j.contradicts for j in self.equations)

    def numbers(self) -> dict[str, Any]:
        """What a fit keeps of it: p-values with the number of simulations behind them, where there are any."""
        found: dict[str, Any] = {}
        if tested := {j.state: {"p": j.p, "draws": j.draws} for j in self.equations if j.draws}:
            found["equation_tests"] = tested
        if self.whole is not None:
            found["model_test"] = asdict(self.whole)
        return found


def _words(j: Judgement) -> str:
    if j.contradicts:
        return CONTRADICTS
    return NOT_JUDGED if j.draws == 0 and not j.signal <= 0.0 else CONSISTENT


def judge_fit(
    problem: Problem,
    search: Search,
    minima: Minima,
    maximum: Maximum | None,
    seed: int = 0,
    level: float = FALSE_ALARMS,
    draws: int = DRAWS,
    progress: Progress = no_progress,
    whole: bool = False,
) -> Case:
    """Test a model, and its equations if it is rejected.

    Args:
        search, minima: how the ODIN stage was run, and what it found.
        maximum: of the likelihood over trajectories; None if there is none.
        level: probability of rejecting a right model, at most.
        draws: simulations of the whole model at most; of an equation fewer, unless more than `DRAWS` are asked for.
        whole: test the model however long its simulations take.
    """
    names = problem.model.states
    whole_test = _judge_whole_model(maximum, seed, level, draws, sub_progress(progress, 0.0, 0.5), whole)
    if whole_test is None and maximum is not None and signal_left(maximum).max() > SUSPICIOUS:
        return Case(())  # too many data to be simulated, and a pattern in their residuals
    if maximum is not None and not (whole_test and whole_test.contradicts(level)):
        gamma = minima.solutions[0].gamma if minima.solutions else np.full(len(names), np.nan)
        pairs = zip(names, gamma.tolist(), strict=True)
        floor = search.gamma_bounds[0]
        return Case(tuple(Judgement(state, g, 0.0, floor, 1.0, 0, False) for state, g in pairs), whole_test)
    learned = minima if search.gamma == "learn" else None
    if len(names) == 1 and whole_test is not None:  # a model of one equation is that equation
        first = float(minima.solutions[0].gamma[0]) if minima.solutions else np.nan
        floor = search.gamma_bounds[0]
        only = Judgement(names[0], first, whole_test.signal, floor, whole_test.p, whole_test.draws, True)
        return Case((only,), whole_test)
    if not minima.solutions or (too_large(problem) if whole else size(problem) > _UNASKED):
        return Case((), whole_test)
    if draws <= DRAWS:
        draws = min(draws, _EQUATION_DRAWS, draws if whole else _SIMULATED // size(problem))
    try:
        equations = judge(problem, search, seed, level, draws, sub_progress(progress, 0.5, 1.0), learned)
    except (np.linalg.LinAlgError, ArithmeticError):  # of estimates at the edge of the floating-point numbers
        equations = []
    return Case(tuple(equations), whole_test)


def _judge_whole_model(
    maximum: Maximum | None, seed: int, level: float, draws: int, progress: Progress = no_progress, whole: bool = False
) -> ModelTest | None:
    """Test a model as a whole; None without a maximum, or where simulations take too long and were not asked for.

    Args:
        draws: simulations at most; fewer are made once the verdict at the level is settled.
        whole: make them however long they take.
    """
    if maximum is None:
        return None
    simulated = draws if whole else unasked(maximum.likelihood.problem, draws)
    return judge_model(maximum, seed, simulated, progress, level) if simulated else None
