"""Variable projection: scales, offsets and noise parameters at their optimum for given trajectories.

No trajectory depends on them, so that they are found without integrating anything: a start is judged by what its
trajectory can explain, not by a scale that was drawn.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.likelihood import Likelihood, LikelihoodValues
from odinfer.model.model import Model
from odinfer.model.program import LEAVES
from odinfer.optimize.arrow_matrix import ArrowMatrix
from odinfer.optimize.trust_region_step import trust_region_step

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_ROUNDS, _RADIUS, _ENOUGH = 30, 3.0, 1e-3  # at most; e-folds of a first step; nats that another round must promise


def moving(model: Model) -> set[str]:
    """The names that trajectories of a model from text depend on."""
    declarations = model.declarations
    left = [
        *declarations.outputs,
        *declarations.initial.values(),
        *(i for event in declarations.events for _, i in event.changes),
    ]
    left += [i for own in declarations.triggers for i in (own.condition, *own.gaps, *(j for _, j in own.changes))]
    seen: set[int] = set()
    while left:
        i = left.pop()
        if i in seen:
            continue
        seen.add(i)
        op, args = model.code[i]
        left += [] if op in LEAVES else list(args)
    return {str(model.code[i][1][0]) for i in seen if model.code[i][0] == "name"}


@dataclass(frozen=True, eq=False)
class VariableProjection:
    """The parameters of a problem that only its observations have."""

    likelihood: Likelihood

    @functools.cached_property
    def places(self) -> Index:
        """Where they stand among the unknowns."""
        p, moved = self.likelihood.problem, moving(self.likelihood.problem.model)
        own = np.zeros(len(p.free), bool)
        for e in range(len(p.data.experiments)):
            own[p.own_phi(e)] = [p.model.parameters[i] not in moved for i in p.own_index(e)]
        return self.likelihood.unknowns.phi_index[own]

    def set(self, x: Sequence[Array], v: Array, unit: Array) -> tuple[Array, LikelihoodValues]:
        """Unknowns (B, P) with these at their best for states x (B, N, K) per experiment, and what that is worth.

        Args:
            unit: by which unknowns (B, P) change in a step of length one.
        """
        likelihood, u, places = self.likelihood, self.likelihood.unknowns, self.places
        v, worth = v.copy(), likelihood.evaluate(x, u.phi(v))
        left = np.flatnonzero(np.isfinite(worth.value)) if len(places) else np.empty(0, np.int64)
        radius = np.full(len(v), _RADIUS)
        for _ in range(_ROUNDS):
            if not len(left):
                break
            own = [states[left] for states in x]
            still = [np.zeros((*s.shape, len(u.own(e)))) for e, s in enumerate(own)]
            full, g = likelihood.normal(own, still, worth.noise[left], u.phi(v[left]))
            H, g = ArrowMatrix.from_dense(full.dense()[:, places[:, None], places]), g[:, places]
            sound = np.flatnonzero(np.isfinite(g).all(1) & H.finite)
            left, own, H, g = left[sound], [s[sound] for s in own], H.take(sound), g[sound]
            low, high = u.low[places], u.high[places]
            move, fall = trust_region_step(v[left][:, places], H, g, low, high, unit[left][:, places], radius[left])
            tried = v[left]
            tried[:, places] = np.clip(tried[:, places] + move, low, high)
            found = likelihood.evaluate(own, u.phi(tried))
            gain = worth.value[left] - found.value
            better = gain > 0
            radius[left] *= np.where(better, 2.0, 0.2)
            taken = left[better]
            v[taken] = tried[better]
            for every, new in zip(worth, found, strict=True):
                every[taken] = new[better]
            left = left[(fall > _ENOUGH) & (radius[left] > 1e-3)]
        return v, worth
