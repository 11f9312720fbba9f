"""Candidates that the tests of model selection share: a right model, a wrong one, and comparisons made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

import odinfer as od
from fits import make_fit
from odinfer.diagnostics.equation_test import Judgement
from odinfer.diagnostics.model_test import ModelTest
from odinfer.selection.compare import Candidate, Comparison
from odinfer.selection.missing_terms import Hint

PREY, PREDATOR = "prey' = a*prey - b*prey*predator", "predator' = -c*predator + d*prey*predator"
RIGHT = od.Model.from_text(f"{PREY}\n{PREDATOR}", name="right")
WRONG = od.Model.from_text(f"prey' = a*prey^2 + b*predator\n{PREDATOR}", name="wrong <b>prey</b>")


def made(
    loglik: float = 10.0,
    contradicting: tuple[str, ...] = (),
    p: float = 0.5,
    gamma: float | None = None,
    signal: float = 3.0,
    **changes: Any,
) -> Candidate:
    """A candidate that nobody fitted; `changes` are those of its fit."""
    fit = make_fit(contradicting=contradicting, **changes)
    judgements = []
    for state in fit.state_names:
        bad = state in contradicting
        found = fit.gamma[state] if gamma is None else gamma
        numbers = (found, signal if bad else 0.0, 0.01, 0.005 if bad else 1.0, 199 if bad else 0)
        judgements.append(Judgement(state, *numbers, bad))
    hints = {state: (Hint("prey*predator", 120.0), Hint("prey", 3.5)) for state in contradicting}
    whole = ModelTest(1.0, p, 0 if np.isnan(p) else 99)
    return Candidate(fit, tuple(judgements), whole, loglik, 8, 40, -12.5, {}, hints)


def compared(**candidates: Candidate) -> Comparison:
    return Comparison(candidates)
