"""What the data say about a model, equation by equation and as a whole: decided here, for fits and for comparisons.

A trajectory of the model that leaves nothing but noise acquits every equation, whatever the smoother thinks. If it
leaves a signal, or if there is none, the equations are put to the test (equation_test.py), and the model as a whole
(model_test.py). That no trajectory was found says something about the search, not about the equations: an equation that
could not be tested is not judged.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from odinfer.diagnostics.equation_test import FALSE_ALARMS, Judgement, judge, size, too_large
from odinfer.diagnostics.model_test import DRAWS, ModelTest, judge_model, signal_left, unasked
from odinfer.gp.residual_signal import SUSPICIOUS
from odinfer.odin.multistart import Minima, Search
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, part_of, silent
from odinfer.uncertainty.maximum import Maximum

CONSISTENT, CONTRADICTS, NOT_JUDGED = "consistent", "contradicts the data", "not judged"
TESTS = ("equation_tests", "model_test")  # the entries of a fit's details that hold results of tests

# States times observation times up to which equations are judged unasked: every simulation costs an ODIN stage.
_UNASKED = 150


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


def judged(
    problem: Problem,
    search: Search,
    minima: Minima,
    maximum: Maximum | None,
    seed: int = 0,
    level: float = FALSE_ALARMS,
    draws: int = DRAWS,
    say: Progress = silent,
    whole: bool = False,
) -> Case:
    """Put a model to the test, as far as there is reason to.

    Args:
        search, minima: how the ODIN stage was run, and what it found.
        maximum: of the likelihood over trajectories; None if there is none.
        level: probability at most of accusing any equation of a right model.
        draws: simulations per suspicious equation, and of the whole model, at most.
        whole: put the model to the test whatever it costs, and as a whole even if nothing is suspicious.
    """
    suspicious = maximum is None or bool(signal_left(maximum).max() > SUSPICIOUS)
    if not suspicious:
        floor = search.gamma_bounds[0]
        gamma = minima.solutions[0].gamma if minima.solutions else np.full(len(problem.model.states), np.nan)
        pairs = zip(problem.model.states, gamma.tolist(), strict=True)
        equations = [Judgement(state, g, 0.0, floor, 1.0, 0, False) for state, g in pairs]
    elif not minima.solutions or (too_large(problem) if whole else size(problem) > _UNASKED):
        equations = []
    else:
        learned = minima if search.gamma == "learn" else None
        equations = judge(problem, search, seed, level, draws, part_of(say, 0.0, 0.8), learned)
    simulated = draws if whole else unasked(problem, draws) if suspicious else 0
    tell = part_of(say, 0.8, 1.0)
    found = judge_model(maximum, seed, simulated, tell, level) if simulated and maximum is not None else None
    if len(equations) == len(problem.model.states) == 1 and found is not None and found.contradicts(level):
        # A model of one equation is that equation: what speaks against one speaks against the other.
        equations = [replace(j, p=min(j.p, found.p), draws=found.draws, contradicts=True) for j in equations]
    return Case(tuple(equations), found)
