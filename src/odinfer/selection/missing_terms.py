"""Slope gaps f − Dx of an equation over time, and hints at missing terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.discovery.integral_form import IntegralForm
from odinfer.discovery.screening import candidate_terms, screen
from odinfer.problem.observables import need_fully_observed_gaussian
from odinfer.problem.problem import Problem
from odinfer.result.fit import Fit
from odinfer.uncertainty.results import BAND

Array = NDArray[np.float64]

_SHOWN = 6  # terms in a hint


@dataclass(frozen=True, eq=False)
class Gap:
    """What an equation lacks at times t (M,) of an experiment: slope of the data minus f, and its sd."""

    state: str
    experiment: str
    t: Array
    gap: Array
    sd: Array

    @property
    def stretches(self) -> list[tuple[float, float]]:
        """Intervals of time in which the gap leaves its 95 % band at two grid times in a row or more."""
        out = np.abs(self.gap) > BAND * self.sd
        out &= np.r_[False, out[:-1]] | np.r_[out[1:], False]
        edges = np.flatnonzero(np.diff(np.r_[False, out, False].astype(int)))
        return [(float(self.t[a]), float(self.t[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@dataclass(frozen=True)
class Hint:
    """A term that an equation may lack: nats that it gains where the equation is matched to smoothed states."""

    term: str
    gain: float


def gaps(fit: Fit, state: str) -> list[Gap]:
    """Per experiment, the slope of the data minus the slope of the equation, with the smoother's uncertainty."""
    k = fit.state_names.index(state)
    return [
        Gap(state, name, g.t, g.gp[:, k] - g.f[:, k], g.sd[:, k])
        for name, g in ((n, e.gradients) for n, e in fit.experiments.items())
        if g is not None
    ]


def hints(problem: Problem, fit: Fit, state: str) -> list[Hint]:
    """Terms by what they gain in the integral form of an equation, its own parameters fitted anew beside each.

    A hint, not a test: terms resemble each other along a single time course; `odinfer.discover` refits and tests them.

    Raises:
        InputError: not every state is observed with Gaussian noise, so that states cannot be smoothed.
    """
    need_fully_observed_gaussian(problem, "a hint at missing terms")
    integral = IntegralForm.of(problem)
    theta = np.array([fit.stages["odin"].theta[n] for n in problem.model.parameters])
    found = screen(problem, integral, theta, *candidate_terms(problem, integral.x, integral.u))
    return [Hint(own.term.form, own.gain) for own in found if own.state == state and own.gain > 0][:_SHOWN]
