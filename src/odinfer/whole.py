"""Does the model as a whole follow the data? What its best trajectory leaves, compared with what a right model leaves.

Equation by equation, parameters can hide what is wrong, since each equation may choose its own. All equations share
one trajectory, so this sees more, but not which equation is to blame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.bootstrap import refitted, states_at
from odinfer.ensemble import Bundle
from odinfer.misfit import evidence
from odinfer.problem import Problem
from odinfer.trajectories import refined_again

if TYPE_CHECKING:
    from odinfer.fit import Fit

Array = NDArray[np.float64]

_CHUNK = 50  # simulations side by side


@dataclass(frozen=True)
class Whole:
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


def whole(fit: Fit, problem: Problem, seed: int, draws: int) -> Whole:
    """Compare the fit's residuals with those of refits to data simulated from it.

    Args:
        fit: of `problem`, refined.
        seed: of the simulations.
        draws: how many.
    """
    if fit.uncertainty is None:
        return Whole(np.nan, np.nan, 0)
    like, refined, info = refined_again(fit, problem)
    data = Bundle.of(like, refined)
    x = states_at(data, data.start(refined, 1), like.t)
    observed = _signal(like.t, [y - xx for y, xx in zip(data.y, x, strict=True)])[0]
    null: list[Array] = []
    for i in range(0, draws, _CHUNK):
        bundle, found = refitted(like, refined, info.sigma, min(_CHUNK, draws - i), (seed, i))
        good = np.isfinite(found.objective)
        left = [y - xx for y, xx in zip(bundle.y, states_at(bundle, found, like.t), strict=True)]
        null.append(_signal(like.t, [r[good] for r in left]))
    every = np.concatenate(null)
    return Whole(float(observed), float((1 + (every >= observed).sum()) / (1 + len(every))), len(every))


def _signal(t: list[Array], residuals: list[Array]) -> Array:
    """Evidence (B,), all states together, in residuals (B, N, K) per experiment."""
    found = np.zeros(len(residuals[0]))
    for k in range(residuals[0].shape[-1]):
        seen = [e for e, r in enumerate(residuals) if np.isfinite(r[0, :, k]).sum() > 1]
        if seen and len(found):
            found += evidence([t[e] for e in seen], [residuals[e][:, :, k] for e in seen])
    return found
