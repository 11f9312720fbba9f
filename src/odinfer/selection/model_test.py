"""Does the model as a whole follow the data? What its best trajectory leaves, compared with what a right model leaves.

Equation by equation, parameters can hide what is wrong, since each equation may choose its own. All equations share
one trajectory, so this sees more, but not which equation is to blame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.problem import Problem
from odinfer.progress import Progress, silent
from odinfer.result.fit import Fit
from odinfer.selection.residual_signal import evidence
from odinfer.trajectory.batch import OnMeshes
from odinfer.uncertainty.bootstrap import refitted

Array = NDArray[np.float64]

_CHUNK = 50  # simulations side by side


@dataclass(frozen=True)
class ModelTest:
    """The case of a model.

    Attributes:
        signal: nats of evidence, over all states, for a signal in the residuals of its best trajectory.
        p: probability that a right model leaves as much; NaN if no trajectory of this one follows the data.
        draws: how many simulations stand behind it.
    """

    signal: float
    p: float
    draws: int

    def contradicts(self, level: float) -> bool:
        return self.p <= level


def judge_model(fit: Fit, problem: Problem, seed: int, draws: int, say: Progress = silent) -> ModelTest:
    """Compare the fit's residuals with those of refits to data simulated from it.

    Args:
        fit: of `problem`, refined.
        seed: of the simulations.
        draws: how many.
        say: told about the progress.
    """
    if fit.uncertainty is None:
        return ModelTest(np.nan, np.nan, 0)
    maximum = fit.maximum(problem)
    like, refined, info = maximum.like, maximum.refined, maximum.info
    data = OnMeshes.of(like, refined)
    x = data.states_at(data.start(refined, 1), like.t)
    observed = _signal(like.t, [y - xx for y, xx in zip(like.y, x, strict=True)])[0]
    null: list[Array] = []
    for i in range(0, draws, _CHUNK):
        say("testing the model as a whole", i / draws)
        on, found = refitted(like, refined, info.sigma, min(_CHUNK, draws - i), (seed, i))
        good = np.isfinite(found.value)
        left = [y - xx for y, xx in zip(on.like.y, on.states_at(found, like.t), strict=True)]
        null.append(_signal(like.t, [r[good] for r in left]))
    every = np.concatenate(null)
    return ModelTest(float(observed), float((1 + (every >= observed).sum()) / (1 + len(every))), len(every))


def _signal(t: list[Array], residuals: list[Array]) -> Array:
    """Evidence (B,), all states together, in residuals (B, N, K) per experiment."""
    found = np.zeros(len(residuals[0]))
    for k in range(residuals[0].shape[-1]):
        seen = [e for e, r in enumerate(residuals) if np.isfinite(r[0, :, k]).sum() > 1]
        if seen and len(found):
            found += evidence([t[e] for e in seen], [residuals[e][:, :, k] for e in seen])
    return found
