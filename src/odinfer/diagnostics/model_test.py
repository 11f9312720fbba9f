"""Does the model as a whole follow the data? What its best trajectory leaves, compared with what a right model leaves.

Equation by equation, parameters can hide what is wrong, since each equation may choose its own. All equations share
one trajectory, so this sees more, but not which equation is to blame.

A verdict is often settled long before the last simulation. Of 199, ten that leave as much are enough to acquit at the
level of 5 %, whatever the others would show; and if none of the first hundred leaves as much, ten of the rest do with a
probability below 1 in 5,000, whatever the truth. Simulations end there (Besag and Clifford 1991).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.residual_signal import SUSPICIOUS
from odinfer.likelihood.forward_batch import around
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, silent
from odinfer.uncertainty.bootstrap import refitted
from odinfer.uncertainty.maximum import Maximum

Array = NDArray[np.float64]

DRAWS = 199  # simulations
_CHUNK = 50  # simulations side by side, if there are not too many values in all of them
_SIDE_BY_SIDE = 20_000_000
_ACCURACY = 1e-3  # nats to which they are fitted: what is compared differs by many times as much
# Values in all simulations that are fitted unasked, where data are compressed (likelihood/observation_operator.py) and
# elsewhere; and the fewest simulations that say anything.
_UNASKED, _UNASKED_WHOLE, _FEWEST = 200_000_000, 10_000_000, 39
_SURE = 5  # times less than the level: a p-value that small, with nothing reached so far, will not rise above it


@dataclass(frozen=True)
class ModelTest:
    """The case of a model.

    Attributes:
        signal: nats of evidence, over all states, for a signal in the residuals of its best trajectory.
        p: probability that a right model leaves as much; NaN if no trajectory of this one follows the data.
        draws: how many simulations stand behind it.
        loudest: the most of the evidence in any one column: a fit is acquitted without any simulation where that is not
            suspicious, so that it has to be for a verdict against it, whatever p.
    """

    signal: float
    p: float
    draws: int
    loudest: float = np.inf

    @staticmethod
    def of(stored: Any) -> ModelTest:
        """As a fit keeps it in its details; one that says nothing if there was none."""
        own = stored if isinstance(stored, Mapping) else {}
        signal, p = (own.get(name, np.nan) for name in ("signal", "p"))
        return ModelTest(signal, p, own.get("draws", 0), own.get("loudest", np.inf))

    @property
    def faint(self) -> bool:
        """Whether too little of a pattern is left to speak against the model."""
        return self.loudest <= SUSPICIOUS

    def contradicts(self, level: float) -> bool:
        return self.p <= level and not self.faint


def unasked(problem: Problem, draws: int) -> int:
    """How many of so many simulations are worth their time where nobody asked for them; 0 if too few would be left."""
    affordable = (_UNASKED if problem.plain else _UNASKED_WHOLE) // max(int(problem.count.sum()), 1)
    return min(draws, affordable) if affordable >= min(draws, _FEWEST) else 0


def judge_model(
    maximum: Maximum | None, seed: int, draws: int, say: Progress = silent, level: float | None = None
) -> ModelTest:
    """Compare what the best trajectory leaves of the data with what those of data simulated from it leave.

    Args:
        maximum: of the likelihood; None if there is none.
        seed: of the simulations.
        draws: how many.
        say: told about the progress.
        level: end once the verdict at this level is settled; None to make all simulations for the sake of p.
    """
    if maximum is None:
        return ModelTest(np.nan, np.nan, 0)
    like, left = maximum.like, signal_left(maximum)
    observed, loudest = float(left.sum()), float(left.max())
    null = np.zeros(0)
    size = int(np.clip(_SIDE_BY_SIDE // max(int(like.problem.count.sum()), 1), 1, _CHUNK))
    for i in range(0, draws, size):
        say("testing the model as a whole", i / draws)
        null = np.append(null, _left_by_refits(maximum, min(size, draws - i), (seed, i)))
        if level is not None and _settled(int((null >= observed).sum()), len(null), draws, level):
            break
    return ModelTest(observed, float((1 + (null >= observed).sum()) / (1 + len(null))), len(null), loudest)


def _left_by_refits(maximum: Maximum, size: int, seed: tuple[int, int]) -> Array:
    """Nats of evidence (n,) for a signal in what refits leave of n sets of simulated data, those that succeed."""
    refined = maximum.refined
    on, found = refitted(around(maximum.like, refined), refined, maximum.info.sigma, size, seed, _ACCURACY)
    good = np.flatnonzero(np.isfinite(found.value))
    own = found.take(good)
    return np.asarray(on.like.take(good).signal(on.observed(own), refined.sigma**2, own.phi).sum(-1))


def _settled(reached: int, of: int, draws: int, level: float) -> bool:
    """Whether the verdict at a level is known before all draws are made, of which so many reached what was observed."""
    return reached + 1 > level * (draws + 1) or (reached == 0 and (of + 1) * level >= _SURE)


def signal_left(maximum: Maximum) -> Array:
    """Nats of evidence (K,), state by state, for a signal in the residuals of a maximum of the likelihood."""
    like, refined = maximum.like, maximum.refined
    return np.asarray(like.signal(refined.states(like.t), refined.sigma**2, refined.phi[None])[0])
